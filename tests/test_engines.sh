#!/bin/bash
# Every engine of baselines/ is built and exports the entry point, or says why it is not available (with CI=true that is a
# failure, but for engines that are set up on demand only). The harness holds no engine and no solver.
passed=0 failed=0 skipped=0
build=${PABD_BUILD_DIR:-build}
ok() { passed=$((passed + 1)); }
bad() {
  echo "tests/test_engines.sh: $1"
  failed=$((failed + 1))
}
for source in baselines/*.c baselines/*.cpp; do
  [[ -f $source && $source != baselines/template.c ]] || continue
  name=$(basename "${source%.*}" | tr _ -)
  names=("$name")
  [[ $name != pabd ]] || names+=(pabd-double)
  for name in "${names[@]}"; do
    if [[ -f $build/engines/$name.so ]]; then
      if nm -D --defined-only "$build/engines/$name.so" | grep -q ' T pabd_engine_entry$'; then ok; else
        bad "$build/engines/$name.so does not export pabd_engine_entry"
      fi
    elif [[ -s $build/engines/$name.unavailable && (${CI:-} != true || $(cat "$build/engines/$name.unavailable") == 'not set up'*) ]]; then
      echo "SKIP $name: not available: $(cat "$build/engines/$name.unavailable")"
      skipped=$((skipped + 1))
    else
      bad "$name was not built: $(cat "$build/engines/$name.unavailable" 2>/dev/null || echo 'and nothing says why')"
    fi
  done
done
if [[ -f $build/pabd-bench ]]; then
  if found=$(nm "$build/pabd-bench" | grep -E ' [TtDdBb] (pabd_sim_|pabd_engine_entry|b3|bt)'); then bad "the harness holds engine code: $found"; else ok; fi
fi
if ((skipped)); then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
((failed == 0))
