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
  # Bounds: six blocks of 128 threads of the sweep's kernels on a multiprocessor, five of the others; a stack only where
  # there is a list of a traversal, a manifold, or the 4x4 matrix of the polar factor's rare case.
  if found=$(awk '
    function value(key) { return match($0, "\"" key "\": [0-9]+") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0 : -1 }
    BEGIN {
      while ((getline line < "solver/kernels.def") > 0)
        if (match(line, /^(SIMD_)?KERNEL\([a-z_]+/)) { name = substr(line, RSTART, RLENGTH); sub(/.*\(/, "", name); shared[name] = 1 }
      room["body_sweep"] = 128; room["narrow"] = 640; room["count_pairs"] = room["fill_pairs"] = 288
    }
    match($0, /"kernel": "grid_[a-z_]+"/) {
      name = substr($0, RSTART + 16, RLENGTH - 17); ++seen[name]
      if (value("registers") > (name in shared ? 85 : 102) || value("stack_bytes") > room[name] + 0) print
    }
    END { for (name in shared) if (seen[name] != 7) print "no figures of " name }' build/cuda/ptxas.json) && [[ -z $found ]]; then ok; else
    bad "registers or stack beyond the bounds: $found"
  fi
  # The paper's claim: the sweep with the 13-number block holds fewer numbers than the same sweep with a dense 12x12 matrix.
  if found=$(awk '
    function value(key) { return match($0, "\"" key "\": [0-9]+") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0 : -1 }
    match($0, /compare_(block|dense)_sweep/) {
      which = substr($0, RSTART + 8, 5); match($0, /sm_[0-9]+/); architecture = substr($0, RSTART, RLENGTH)
      held[which architecture] = value("registers") + (value("stack_bytes") + value("spill_store_bytes") + value("spill_load_bytes")) / 4
      all[architecture] = 1
    }
    END {
      for (a in all) { ++count; if (!(held["block" a] < held["dense" a])) print a ": " held["block" a] " and " held["dense" a]; text = text " " a " " held["block" a] "/" held["dense" a] }
      if (count != 7) print "figures of " count + 0 " architectures"
      print "numbers a thread holds, 13-number block / dense 12x12:" text > "/dev/stderr"
    }' build/cuda/ptxas.json) && [[ -z $found ]]; then ok; else bad "the block is not smaller than the dense matrix: $found"; fi
  # The engine loads without a GPU and says what there is, or why not.
  if nm -D --defined-only build/engines/pabd-cuda.so 2>/dev/null | grep -q ' T pabd_engine_entry$'; then ok; else bad "build/engines/pabd-cuda.so was not built"; fi
  if build/pabd-bench list 2>&1 | grep -qE '^ *pabd-cuda +(not available: (no CUDA device|the CUDA driver is too old)|.*presets: )'; then ok; else
    bad "pabd-cuda: $(build/pabd-bench list 2>&1 | grep pabd-cuda)"
  fi
  awk 'match($0, /"registers": [0-9]+/) { r = substr($0, RSTART + 13, RLENGTH - 13) + 0; if (r > most) { most = r; line = $0 } }
       END { sub(/^ */, "", line); print "most registers: " line }' build/cuda/ptxas.json
fi
if ((skipped)); then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
((failed == 0))
