# Plots and the report: gnuplot scripts that read results and nothing else.
