# Common look of all plots: two outputs of the same picture, SVG for the page and PNG beside it.
# Colors come with the data (one color an engine, harness/report_data.c); here is only what is not data.

set encoding utf8
set border 3 lw 1 lc rgb '#444444'
set tics nomirror out scale 0.6 textcolor rgb '#222222'
set grid xtics ytics lt 1 lw 0.6 lc rgb '#dddddd'
set key below left horizontal samplen 2.2 spacing 1.1 width 0 maxrows 12 noenhanced font ',11'
set title font ',13' noenhanced
set xlabel noenhanced
set ylabel noenhanced
