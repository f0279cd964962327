#!/bin/bash
# Device code: does it compile for every architecture without spilling registers? Reads build/cuda/ptxas.json, which the
# build writes. First the reader is tried on a log with a spill in it, so that this test is known to be able to fail.
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() {
  echo "tests/test_device.sh: $1"
  failed=$((failed + 1))
}
spills() { grep -E '"spill_(store|load)_bytes": [1-9]' "$1"; }

sample=$(mktemp)
trap 'rm -f "$sample"' EXIT
awk -v compiler=sample -f solver/ptxas.awk >"$sample" <<'LOG'
source sample.cu
ptxas info    : Compiling entry function 'first(float*)' for 'sm_75'
ptxas info    : Function properties for first(float*)
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers, 96 bytes smem, 352 bytes cmem[0]
ptxas info    : Compiling entry function 'second(float*)' for 'sm_120'
ptxas info    : Function properties for second(float*)
    64 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 352 bytes cmem[0]
ptxas info    : Function properties for helper(float)
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
LOG
expected='{"kernel": "second", "source": "sample.cu", "architecture": "sm_120", "registers": 255, "stack_bytes": 64, "spill_store_bytes": 8, "spill_load_bytes": 12, "shared_bytes": 0}'
if [[ $(spills "$sample") == *"$expected"* && $(grep -c '"kernel"' "$sample") == 2 ]] && grep -q '"registers": 40, .*"shared_bytes": 96' "$sample"; then
  ok
else
  bad "the reader of compiler logs missed a spill: $(cat "$sample")"
fi

sources=(solver/*.cu)
if [[ ! -f ${sources[0]} ]]; then
  echo "SKIP device: there is no device code (solver/*.cu)"
  skipped=1
elif [[ -f build/third_party/cuda/unavailable.txt && ! -f build/cuda/ptxas.json ]]; then
  if [[ ${CI:-} == true ]]; then bad "nvcc: $(cat build/third_party/cuda/unavailable.txt)"; else
    echo "SKIP device: nvcc: $(cat build/third_party/cuda/unavailable.txt)"
    skipped=1
  fi
elif [[ ! -f build/cuda/ptxas.json ]]; then
  bad "build/cuda/ptxas.json was not written"
else
  if found=$(spills build/cuda/ptxas.json); then bad "spilled registers: $found"; else ok; fi
  # Every kernel has figures for every architecture.
  for architecture in 75 80 86 89 90 100 120; do
    kernels=$(grep -c "\"architecture\": \"sm_$architecture\"" build/cuda/ptxas.json)
    if ((kernels > 0 && kernels * 7 == $(grep -c '"kernel"' build/cuda/ptxas.json))); then ok; else
      bad "sm_$architecture: figures of $kernels kernels, not as many as the others"
    fi
  done
  awk 'match($0, /"registers": [0-9]+/) { r = substr($0, RSTART + 13, RLENGTH - 13) + 0; if (r > most) { most = r; line = $0 } }
       END { sub(/^ */, "", line); print "most registers: " line }' build/cuda/ptxas.json
fi
if ((skipped)); then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
((failed == 0))
