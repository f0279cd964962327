# Reads what `nvcc -Xptxas -v` printed and writes one JSON object: registers, spills and stack of each kernel on each
# architecture. Used in the build; a spill fails tests/test_device.sh.
#   { echo "source NAME.cu"; c++filt < NAME.log; } | awk -v compiler=TEXT -f solver/ptxas.awk
function flush() {
  if (kernel == "" || registers == "") return
  printf "%s\n    {\"kernel\": \"%s\", \"source\": \"%s\", \"architecture\": \"%s\", \"registers\": %d, \"stack_bytes\": %d, \"spill_store_bytes\": %d, \"spill_load_bytes\": %d, \"shared_bytes\": %d}", \
    count++ ? "," : "", kernel, source, architecture, registers, stack, stores, loads, shared
  kernel = registers = ""
}
BEGIN { printf "{\"schema\": 1, \"compiler\": \"%s\", \"kernels\": [", compiler }
/^source / { flush(); source = $2 }
/Compiling entry function/ {
  flush()
  match($0, /'.*' for '/); kernel = substr($0, RSTART + 1, RLENGTH - 8)
  match($0, /for '[^']*'/); architecture = substr($0, RSTART + 5, RLENGTH - 6)
  sub(/\(.*/, "", kernel)
  gsub(/["\\]/, "", kernel)
  registers = ""; stack = stores = loads = shared = 0
}
# The kernel's own line, then one for each function that was not inlined into it: those count too.
/bytes stack frame/ && kernel != "" {
  split($0, field, " ")
  if (field[1] + 0 > stack) stack = field[1] + 0
  stores += field[5]; loads += field[9]
}
/Used [0-9]+ registers/ && kernel != "" {
  match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
  if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART, RLENGTH - 11)
}
END { flush(); print "\n]}" }
