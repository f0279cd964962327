#!/bin/bash
# The commands that run and judge in one: figures of the paper, work-precision. Verdicts are computed from records.
bench=$PABD_BUILD_DIR/pabd-bench
passed=0 failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
check() { # check NAME COMMAND...: counts one test
  local name=$1
  shift
  if "$@"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED: $name"
    tail -n 20 "$folder"/out
  fi
}
runs() { "$@" >"$folder/out" 2>&1; }
exits() {
  local code=$1
  shift
  runs "$@"
  [[ $? == "$code" ]]
}
verdict() { # verdict ENGINE METRIC WANTED
  python3 - "$folder/figures/figures.json" "$@" <<'P'
import json, sys
claims = json.load(open(sys.argv[1]))["claims"]
found = [c["verdict"] for c in claims if c["engine"] == sys.argv[2] and c["metric"] == sys.argv[3]]
sys.exit(not found or any(v != sys.argv[4] for v in found))
P
}
check "fig-4 runs" exits 0 "$bench" figures fig-4 --out "$folder/figures"
check "the stack sinks little with auto" verdict pabd:auto penetration_settled_max holds
check "ten iterations fall, and the claim says so" verdict bullet-native:default stands holds
check "a claim that does not hold is said to fail" verdict pabd:paper stands fails
check "the map is there" test -s "$folder/figures/figures.html"
check "an unknown figure is bad input" exits 2 "$bench" figures fig-99 --out "$folder/none"
check "and the known ones are named" grep -q 'fig-4 fig-8' "$folder/out"
check "work-precision runs" exits 0 "$bench" wp stack --engine 'pabd*' --repeat 1 --out "$folder/wp"
check "and has its page" grep -q 'id="work-precision"' "$folder/wp/report.html"
check "with what is least within a time" grep -q 'Least error within a frame time' "$folder/wp/report.html"
echo "$passed passed, $failed failed"
((failed == 0))
