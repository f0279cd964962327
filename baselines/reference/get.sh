#!/bin/bash
# SuiteSparse (UMFPACK, CHOLMOD) from the distribution's package libsuitesparse-dev, for the engine `reference`.
# Nothing is built: FOLDER/key.txt says that it is there, FOLDER/unavailable.txt holds one line of why where it is not.
# Exits 0 either way; with CI=true a missing one is a failure.
#   baselines/reference/get.sh FOLDER KEY
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$1
mkdir -p "$folder" || exit 2
if "$root/harness/setup/setup.sh" suitesparse >"$folder/setup.log" 2>&1 &&
  echo '#include <suitesparse/cholmod.h>
#include <suitesparse/umfpack.h>
int main(void) { cholmod_common c; double info[UMFPACK_CONTROL]; umfpack_di_defaults(info); return !cholmod_start(&c); }' |
  ${CC:-gcc} -x c - -o "$folder/try" -lumfpack -lcholmod >>"$folder/setup.log" 2>&1 && "$folder/try"; then
  rm -f "$folder/unavailable.txt" "$folder/try"
  version=$(dpkg-query -W -f '${Version}' libsuitesparse-dev 2>/dev/null)
  [[ $(cat "$folder/key.txt" 2>/dev/null) == "$2 $version" ]] || echo "$2 $version" >"$folder/key.txt"
  exit 0
fi
rm -f "$folder/key.txt" "$folder/try"
grep -q 'sudo apt-get' "$folder/setup.log" && cat "$folder/setup.log" >&2
echo "no libsuitesparse-dev: $(grep -v '^ *$' "$folder/setup.log" | tail -n 1 | cut -c1-160)" >"$folder/unavailable.txt"
echo "SuiteSparse is not available: $(cat "$folder/unavailable.txt")" >&2
[[ ${CI:-} == true ]] && exit 1
exit 0
