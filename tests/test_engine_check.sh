#!/bin/bash
# engine-check passes a right adapter and fails each of ten planted faults, by the check that is meant to find it.
bench=$PABD_BUILD_DIR/pabd-bench
faulty=./$PABD_BUILD_DIR/tests/engines/faulty.so
passed=0 failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

check() { # check NAME CONDITION...: counts one test
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    sed 's/^/    /' "$out"
  fi
}
exits() { # exits CODE ENGINE
  "$bench" engine-check "$2" >"$out" 2>&1
  [[ $? == "$1" ]]
}
fails_by() { # fails_by FAULT CHECK HINT: exit code 1, that check fails, with that hint
  exits 1 "$faulty:fault=$1" && grep -A1 "^FAIL *$2 " "$out" | grep -q "$3"
}

check "a right adapter passes" exits 0 "$faulty:fault=none"
check "our default preset passes" exits 0 pabd:auto
check "Bullet passes" exits 0 bullet
check "swapped quaternion order" fails_by quaternion 'quaternion order' '(x, y, z, w)'
check "angular velocity in the body's frame" fails_by body-frame 'angular velocity' "body's frame"
check "hidden damping" fails_by damping 'linear damping' 'damping'
check "wrong units" fails_by units 'free fall' 'foot'
check "pyramid declared as a cone" fails_by pyramid 'cone isotropy' 'pyramid'
check "sleeping bodies" fails_by sleeping 'sleeping' 'deactivation'
check "stale poses" fails_by stale 'uniform motion' 'stale'
check "NaN" fails_by nan 'free fall' 'diverged'
check "lying clock" fails_by clock 'honest clock' 'less time'
check "wrong inertia" fails_by inertia 'inertia' 'inertia'
check "an unknown engine is bad input" exits 2 no-such-engine
echo "$passed passed, $failed failed"
((failed == 0))
