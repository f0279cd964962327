#!/bin/bash
# Format and include rules of the sources, and whether the check of the include rules can fail.
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() {
  echo "tests/test_style.sh: $1"
  failed=$((failed + 1))
}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{solver/scene,baselines,cases,harness,tests}
touch "$tree"/{solver/scene/pabd_scene.h,solver/pabd.h,solver/state.h,baselines/pabd_engine.h,cases/pabd_case.h,harness/judge.h}
includes_of() { # includes_of FILE HEADER: 0 when the rules allow it
  local result
  echo "#include \"$2\"" >"$tree/$1"
  PABD_CHECK_ROOT=$tree bash "$PWD/tests/check.sh" includes >/dev/null 2>&1
  result=$?
  rm "$tree/$1"
  return $result
}
while read -r verdict file header; do
  includes_of "$file" "$header"
  result=$?
  if [[ ($verdict == yes && $result == 0) || ($verdict == no && $result == 1) ]]; then ok; else
    bad "$file including $header: expected \"$verdict\", the check says $result"
  fi
done <<'RULES'
yes cases/a.c pabd_scene.h
no cases/a.c pabd_engine.h
no cases/a.c pabd.h
yes harness/a.c pabd_engine.h
no harness/a.c state.h
yes baselines/pabd.c pabd.h
no baselines/pabd.c state.h
no baselines/other.c pabd.h
no solver/a.c judge.h
no solver/scene/a.c state.h
yes tests/test_a.c state.h
no tests/reference_newton.c state.h
RULES

if bash tests/check.sh includes; then ok; else bad "include rules are broken"; fi

command -v clang-format >/dev/null 2>&1 || [[ $(id -u) != 0 ]] || bash harness/setup/setup.sh format
if ! command -v clang-format >/dev/null 2>&1 || ! clang-format --version | grep -q 'version 14\.'; then
  if [[ ${CI:-} == true ]]; then bad "no clang-format 14"; else
    echo "SKIP format: no clang-format 14"
    skipped=1
  fi
elif bash tests/check.sh format; then ok; else bad "not formatted (clang-format -i)"; fi

if ((skipped)); then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
((failed == 0))
