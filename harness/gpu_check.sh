#!/bin/bash
# Runs gpu-check on this machine's GPU: comparison with the CPU, sanitizers on small scenes, times. `make gpu-check` builds
# the program first.
#   harness/gpu_check.sh PROGRAM OUT_DIR [options of the program]
# Writes OUT_DIR/<device>.json and .md. Exit 0: passed, or there is nothing to run it on (one line says why); 1: something
# differs from the CPU or a sanitizer complains; 2: it could not do its work.
set -u
program=$1 out=$2
shift 2
say() { echo "gpu-check: $*"; }
if [[ -z $program || ! -x $program ]]; then
  say "not run: there is no CUDA compiler to build it with (make setup)"
  exit 0
fi
device=$("$program" --probe)
case $? in
  0) ;;
  3)
    echo "$device"
    exit 0
    ;;
  *)
    say "the probe failed: $device"
    exit 2
    ;;
esac
name=$(tr -cs 'A-Za-z0-9\n' '-' <<<"$device" | tr 'A-Z' 'a-z' | sed 's/^-*//; s/-*$//')
mkdir -p "$out" || exit 2
say "$device"

"$program" --out "$out" --name "$name" "$@"
code=$?
((code <= 1)) || exit 2

# Sanitizers, where they are installed; their lines are added to the page.
sanitizer=${PABD_SANITIZER:-$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)}
{
  echo
  echo "## compute-sanitizer, small scenes"
  echo
} >>"$out/$name.md"
if [[ -z $sanitizer ]]; then
  say "compute-sanitizer is not installed: skipped"
  echo "Not installed: not run." >>"$out/$name.md"
else
  for tool in memcheck racecheck initcheck; do
    log=$out/$name.$tool.log
    if timeout 300 "$sanitizer" --tool "$tool" --error-exitcode 9 "$program" --small >"$log" 2>&1; then
      say "$tool: clean"
      echo "- $tool: clean" >>"$out/$name.md"
      rm -f "$log"
    else
      say "$tool: complains, see $log"
      echo "- $tool: **complains**: $(grep -m1 -E '=========.*(Error|error|hazard|Uninitialized|ERROR)' "$log" | tr -d '|')" >>"$out/$name.md"
      code=1
    fi
  done
fi
if ((code == 0)); then say "passed; $out/$name.json and $out/$name.md are ready to be committed"; else
  say "FAILED: see $out/$name.md"
fi
exit "$code"
