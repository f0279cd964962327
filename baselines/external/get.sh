#!/bin/bash
# The Python packages of an external engine, pinned and unpacked into FOLDER/python (nothing is installed).
#   FOLDER/key.txt is written last; FOLDER/unavailable.txt holds one line of why. Exits 0 either way; with CI=true a
#   missing one is a failure.
#   baselines/external/get.sh NAME FOLDER KEY
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
name=$1
numpy=numpy==1.26.4:666dbfb6ec68962c033a450943ded891bed2d54e6755e35e5835d63f4f6931d5 # x86-64, CPython 3.11
case $name in
  rapier) packages=(rapier3d==0.36.1:5cabbb375f73c9c9eae912c7e41ff3fca2be62e8c988dcbaa5754f2418fec3bb "$numpy") ;;
  physx) packages=(sapien==3.0.3:9a5eb4dc2efdf9b451cdd77a955d45578a5d81474d4e98089bbc36eeb4a07e45 "$numpy") ;;
  *)
    echo "get.sh: unknown engine \"$name\"" >&2
    exit 2
    ;;
esac
mkdir -p "$2" && folder=$(cd "$2" && pwd) || exit 2
key="${packages[*]}"
[[ $(cat "$folder/key.txt" 2>/dev/null) == "$key" ]] && exit 0

fail() {
  rm -f "$folder/key.txt"
  echo "$1" >"$folder/unavailable.txt"
  echo "$name is not available: $1" >&2
  [[ ${CI:-} == true ]] && exit 1
  exit 0
}
exec 9>"$folder/lock"
flock 9
[[ $(cat "$folder/key.txt" 2>/dev/null) == "$key" ]] && exit 0
rm -rf "$folder/part" "$folder/download"
mkdir -p "$folder/part" || fail "cannot write in $folder"
for package in "${packages[@]}"; do
  echo "  GET  ${package%%:*} (for $name, once)"
  file=$("$root/harness/setup/fetch.sh" "${package%%:*}" "${package##*:}" wheel "$folder/download" 2>"$folder/fetch.log") ||
    fail "$(tail -n 1 "$folder/fetch.log")"
  python3 -m zipfile -e "$file" "$folder/part" || fail "cannot unpack $file"
done
rm -rf "$folder/python" && mv "$folder/part" "$folder/python" || fail "cannot write in $folder"
rm -rf "$folder/download" "$folder/unavailable.txt"
echo "$key" >"$folder/key.txt"
