#!/bin/bash
# MuJoCo 4.0.0, prebuilt, from the Python wheel mujoco-core (no Python at run time): library and headers only.
#   FOLDER/lib/libmujoco.so.4.0.0, FOLDER/include/mujoco/*.h, FOLDER/key.txt; FOLDER/unavailable.txt says why not.
# Exits 0 either way; with CI=true a missing one is a failure.
#   baselines/mujoco/get.sh FOLDER KEY
set -u
package=mujoco-core==4.0.0
sha256=885bd9b9cc0a6b5ba1114923eb954027652a6a0c115fa46b3218b83bae72ac4f # x86-64, CPython 3.11
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1" && folder=$(cd "$1" && pwd) || exit 2
[[ $(cat "$folder/key.txt" 2>/dev/null) == "$sha256" && -f $folder/lib/libmujoco.so.4.0.0 ]] && exit 0

fail() {
  rm -f "$folder/key.txt"
  echo "$1" >"$folder/unavailable.txt"
  echo "MuJoCo is not available: $1" >&2
  [[ ${CI:-} == true ]] && exit 1
  exit 0
}
exec 9>"$folder/lock"
flock 9
[[ $(cat "$folder/key.txt" 2>/dev/null) == "$sha256" && -f $folder/lib/libmujoco.so.4.0.0 ]] && exit 0
echo "  GET  MuJoCo ($package, 10 MB, once)"
file=$("$root/harness/setup/fetch.sh" "$package" "$sha256" wheel "$folder/download" 2>"$folder/fetch.log") ||
  fail "$(tail -n 1 "$folder/fetch.log")"
rm -rf "$folder/part" && mkdir -p "$folder/part" || fail "cannot write in $folder"
python3 -m zipfile -e "$file" "$folder/part" || fail "cannot unpack $file"
rm -rf "$folder/lib" "$folder/include" && mkdir -p "$folder/lib"
mv "$folder/part/mujoco/libmujoco.so.4.0.0" "$folder/lib/" && mv "$folder/part/mujoco/include" "$folder/include" &&
  cp "$folder"/part/mujoco_core-*.dist-info/licenses/LICENSE "$folder/LICENSE" || fail "the wheel has another layout"
rm -rf "$folder/part" "$folder/download" "$folder/unavailable.txt"
echo "$sha256" >"$folder/key.txt"
