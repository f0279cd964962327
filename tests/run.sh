#!/bin/bash
# Runs test programs and scripts and adds their results up to one final line "N passed, N failed".
#   tests/run.sh BUILD_DIR FILTER PROGRAM...
# A program that crashes, times out, prints no result line or ran no test counts as one failure and is named. Output is
# kept in BUILD_DIR/tests/log/NAME.log and shown when something failed.
set -u
build=$1 filter=$2
shift 2
log_dir=$build/tests/log
mkdir -p "$log_dir"
limit=${PABD_TEST_TIMEOUT:-300} # seconds per program: far above the slowest one
export PABD_BUILD_DIR=$build
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

passed=0 failed=0 skipped=0 bad=()
for program in "$@"; do
  name=$(basename "$program" .sh)
  [[ -z $filter || $name == *"$filter"* ]] || continue
  log=$log_dir/$name.log
  start=$EPOCHREALTIME
  case $program in
    *.sh) timeout -k 5 "$limit" bash "$program" >"$log" 2>&1 </dev/null ;;
    *) timeout -k 5 "$limit" "$program" >"$log" 2>&1 </dev/null ;;
  esac
  rc=$?
  took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1)
  p=0 f=0 s=0 note=
  if [[ -n $line ]]; then
    read -r p _ f _ s _ <<<"${line//,/}"
    s=${s:-0}
  fi
  if ((rc == 124 || rc == 137)); then
    f=$((f + 1)) note="timed out after $limit s"
  elif [[ -z $line ]]; then
    f=$((f + 1)) note="crashed or ended early (exit status $rc)"
  elif ((rc != 0 && f == 0)); then
    f=$((f + 1)) note="exit status $rc after its result line"
  elif ((p + f + s == 0)); then
    f=$((f + 1)) note="ran no test"
  fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  if ((f > 0)); then
    bad+=("$name${note:+: $note}")
    printf 'FAIL %-34s %s\n' "$name" "$p passed, $f failed${note:+ ($note)}, $took s"
    tail -n 60 "$log" | sed 's/^/     | /'
  else
    printf 'ok   %-34s %s\n' "$name" "$p passed$( ((s > 0)) && echo ", $s skipped"), $took s"
    ((s == 0)) || grep -E '^SKIP' "$log" | sed 's/^/     | /'
  fi
done
for entry in "${bad[@]+"${bad[@]}"}"; do echo "failed: $entry"; done
if ((passed + failed == 0)); then
  echo "no test ran"
  failed=1
fi
if ((skipped > 0)); then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
((failed == 0))
