#!/bin/bash
# Checks on the source text.
#   tests/check.sh format|includes|cppcheck|tidy...    exit 1 when something was found
# `make check` runs all four, `make test` the two quick ones (format and includes).
set -u
cd "${PABD_CHECK_ROOT:-$(dirname "$0")/..}" || exit 2

# Committed and staged files, so that a neighbor's half-written file does not count; without git, all of them.
sources() { # sources PATTERN...
  local listed
  if listed=$(git ls-files -- "$@" 2>/dev/null) && [[ -n $listed ]]; then
    while read -r file; do [[ ! -f $file ]] || echo "$file"; done <<<"$listed"
  else
    local names=()
    for pattern in "$@"; do names+=(-o -name "$pattern"); done
    find solver baselines cases harness plots tests -type f \( "${names[@]:1}" \) 2>/dev/null | sort
  fi
}

# Text is judged by one version of the tool: others break lines elsewhere.
format_version=14
check_format() {
  local found
  found=$(clang-format --version | grep -oE 'version [0-9]+' | grep -oE '[0-9]+')
  if [[ $found != "$format_version" ]]; then
    echo "check format: needs clang-format $format_version, this is $found" >&2
    return 2
  fi
  sources '*.c' '*.h' '*.cpp' '*.cu' | xargs -r clang-format --dry-run -Werror --ferror-limit=3
}

# Who may include whom. The table is the architecture: cases know nothing of engines, so that no case can be tuned to one;
# the harness links no solver, so that ours gets in by the same door as the others. Only headers of the project count.
check_includes() {
  sources '*.c' '*.h' '*.cpp' '*.cu' '*.def' | awk '
    function kind(path) {
      if (path ~ /^solver\/scene\//) return "scene"
      if (path == "solver/pabd.h") return "solver-api"
      if (path ~ /^solver\//) return "solver"
      if (path == "baselines/pabd_engine.h") return "engine"
      if (path ~ /^baselines\//) return "baselines"
      if (path == "cases/pabd_case.h") return "case"
      if (path ~ /^cases\//) return "cases"
      if (path ~ /^harness\//) return "harness"
      return "tests"
    }
    function allowed(from, to, path) {
      if (from == "tests") {
        # An oracle shares no code with what it judges.
        if (path ~ /\/(reference|newton)[^\/]*$/) return to == "scene" || to == "tests"
        return 1
      }
      if (from == "scene") return to == "scene"
      if (from ~ /^solver/) return to == "scene" || to ~ /^solver/
      if (from == "case" || from == "cases") return to == "scene" || to == "case" || to == "cases"
      if (from == "engine" || from == "baselines")
        return to == "scene" || to == "engine" || to == "baselines" || (to == "solver-api" && path == "baselines/pabd.c")
      if (from == "harness") return to == "scene" || to == "engine" || to == "case" || to == "harness"
      return 0
    }
    { files[++count] = $0; n = split($0, part, "/"); if (part[n] ~ /\.(h|def)$/) where[part[n]] = $0 }
    END {
      for (k = 1; k <= count; ++k) {
        file = files[k]; line = 0
        while ((getline text < file) > 0) {
          ++line
          if (!match(text, /^[ \t]*#[ \t]*include[ \t]*["<][^">]+[">]/)) continue
          name = substr(text, RSTART, RLENGTH); sub(/^[^"<]*["<]/, "", name); sub(/[">]$/, "", name); sub(/.*\//, "", name)
          if (!(name in where)) continue
          if (!allowed(kind(file), kind(where[name]), file)) {
            printf "%s:%d: a file of kind \"%s\" must not include %s (\"%s\")\n", file, line, kind(file), where[name], kind(where[name])
            found = 1
          }
        }
        close(file)
      }
      exit found
    }'
}

include_flags=(-Isolver/scene -Isolver -Icases -Ibaselines -Iharness -Itests -Ibuild/generated)

check_cppcheck() {
  sources '*.c' '*.cpp' | grep -vE '^baselines/.*\.cpp$' |
    xargs -r cppcheck -q -j "$(nproc)" --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
      --suppress=missingIncludeSystem --template='{file}:{line}: {severity}: {message} [{id}]' -D__x86_64__ -DPABD_BUILD_DIR='"build"' \
      "${include_flags[@]}"
}

# Checks and reasons: .clang-tidy. Adapters of other libraries are left out: their headers are not ours to lint.
check_tidy() {
  sources '*.c' | grep -vE '^baselines/(bullet|mujoco|ode)' |
    xargs -r -n 1 -P "$(nproc)" bash -c 'clang-tidy --quiet "$@" 2>/dev/null' tidy-of \
      --extra-arg=-std=c11 --extra-arg=-D_GNU_SOURCE --extra-arg=-fopenmp --extra-arg='-DPABD_BUILD_DIR="build"' \
      $(printf -- '--extra-arg=%s ' "${include_flags[@]}")
}

status=0
for check in "$@"; do
  case $check in
    format | includes | cppcheck | tidy) ;;
    *)
      echo "check.sh: unknown check \"$check\" (format, includes, cppcheck, tidy)" >&2
      exit 2
      ;;
  esac
  if "check_$check"; then echo "check $check: clean"; else
    echo "check $check: FAILED"
    status=1
  fi
done
exit $status
