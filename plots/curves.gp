# One plot of curves: measured ones with their engine's color and mark, theory as thin dashed lines, runs that failed as
# marks on the upper edge (set by the parameter file, the one argument). Paths are relative to the folder of plots:
#   cd results/local/plots && gnuplot -c ../../../plots/curves.gp data/NAME.gp

HERE = ARG0[1:strlen(ARG0) - strlen('curves.gp')]
load ARG1
load HERE.'style.gp'

set title TITLE
set xlabel X_LABEL
set ylabel Y_LABEL
if (LOG_X) set logscale x
if (LOG_Y) set logscale y
if (LOG_Y) set format y '%.0te%T'
if (LOG_Y && Y_HIGH / Y_LOW > 20) set format y '10^{%T}'
if (LOG_Y && Y_HIGH / Y_LOW > 20) set ytics enhanced
set xrange [X_LOW:X_HIGH]
set yrange [Y_LOW:Y_HIGH]
if (BAND_HIGH > BAND_LOW) set object 1 rectangle from graph 0, first BAND_LOW to graph 1, first BAND_HIGH fs solid 0.5 noborder fc rgb '#e8e8d8' behind

PICTURE_WIDTH = WIDE ? 760 : 460
PICTURE_HEIGHT = 310 + FAILURE_HEIGHT + 17 * ((MEASURED + THEORY + 1) / 2)
do for [OUTPUT = 1:2] {
  if (OUTPUT == 1) {
    set terminal svg size PICTURE_WIDTH, PICTURE_HEIGHT dynamic enhanced font 'Helvetica,12' background '#ffffff'
    set output SVG
  } else {
    set terminal pngcairo size 2 * PICTURE_WIDTH, 2 * PICTURE_HEIGHT enhanced font 'Sans,12' fontscale 2 linewidth 2 pointscale 2
    set output PNG
  }
  if (MEASURED + THEORY > 0) {
    plot for [i = 1:MEASURED] DATA index (i - 1) using 1:2 with linespoints lc rgb COLOR[i] pt POINT[i] dt DASH[i] lw 1.6 ps 0.75 pi (OVER_TIME ? EVERY[i] : 1) title LABEL[i], \
         for [j = 1:THEORY] DATA index (MEASURED + j - 1) using 1:2 with lines lc rgb '#222222' dt 3 lw 1.1 title LABEL[MEASURED + j]
  } else {
    plot NaN notitle
  }
  unset output
}
