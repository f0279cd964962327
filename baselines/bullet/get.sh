#!/bin/bash
# Bullet 3.2.7 with its C API: fetched once as a source package, compiled once, kept in build/third_party/bullet.
#   source/   the unpacked part that is needed (src, examples without data, Extras, licence)
#   lib/libbullet.a     float build with the contract's flags (library.mk)
#   unavailable.txt     one line of why, where there is no library
# Exits 0 either way, so that the suite goes on without this baseline; with CI=true a missing library is a failure.
#   baselines/bullet/get.sh FOLDER KEY    KEY: compiler and processor; another one means compile again
set -u
package=pybullet==3.2.7
sha256=042879db8d101ac7590dee475fc6aded508b85fe1273fdbbfde1d88bd200e14f
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$1
key="$2 $sha256 $(cat "$root/baselines/bullet/library.mk" "$root/baselines/bullet/sources.txt" | sha256sum | cut -c1-16)"

if [[ -f $folder/lib/libbullet.a && $(cat "$folder/key.txt" 2>/dev/null) == "$key" ]]; then exit 0; fi
mkdir -p "$folder/lib" && folder=$(cd "$folder" && pwd) || exit 2

fail() {
  echo "$1" >"$folder/unavailable.txt"
  echo "Bullet is not available: $1" >&2
  [[ ${CI:-} == true ]] && exit 1
  exit 0
}

# Offline, do not make every build wait for a download that failed a moment ago.
if [[ ${CI:-} != true && -n $(find "$folder/unavailable.txt" -mmin -10 2>/dev/null) ]]; then
  echo "Bullet is not available (tried less than 10 minutes ago): $(cat "$folder/unavailable.txt")" >&2
  exit 0
fi

# One of several makes at a time; the others then find it done.
exec 9>"$folder/lock"
flock 9
if [[ -f $folder/lib/libbullet.a && $(cat "$folder/key.txt" 2>/dev/null) == "$key" ]]; then exit 0; fi

if [[ $(cat "$folder/source/VERIFIED" 2>/dev/null) != "$sha256" ]]; then
  echo "  GET  Bullet ($package, about 80 MB, once)"
  file=$("$root/harness/setup/fetch.sh" "$package" "$sha256" sdist "$folder/download" 2>"$folder/fetch.log") || {
    fail "$(tail -n 1 "$folder/fetch.log")"
  }
  rm -rf "$folder/source" "$folder/source.part"
  mkdir -p "$folder/source.part"
  # Not the 170 MB of models and meshes in examples/pybullet.
  tar -xzf "$file" -C "$folder/source.part" --strip-components=1 --wildcards --exclude='*/examples/pybullet' \
    --exclude='*/Bullet3OpenCL' --exclude='*/Gwen' --exclude='*/openvr' '*/src/*' '*/examples/*' '*/Extras/*' '*/LICENSE.txt' '*/AUTHORS.txt' ||
    fail "cannot unpack $file"
  echo "$sha256" >"$folder/source.part/VERIFIED"
  mv "$folder/source.part" "$folder/source" && rm -rf "$folder/download"
fi

# Objects of another key are of no use.
if [[ $(cat "$folder/obj/key.txt" 2>/dev/null) != "$key" ]]; then
  rm -rf "$folder/obj" "$folder/lib" "$folder/key.txt"
  mkdir -p "$folder/obj" "$folder/lib"
  echo "$key" >"$folder/obj/key.txt"
fi
echo "  LIB  Bullet (126 files, once: about 3 minutes on 2 cores)"
jobs=$(nproc)
env -u MAKEFLAGS -u MFLAGS make --no-print-directory -s -f "$root/baselines/bullet/library.mk" -j"$jobs" BULLET="$folder" \
  LIST="$root/baselines/bullet/sources.txt" >"$folder/compile.log" 2>&1 9>&- || {
  tail -n 20 "$folder/compile.log" >&2
  fail "its library does not compile here (see $folder/compile.log)"
}
rm -f "$folder/unavailable.txt"
rm -rf "$folder/obj"
echo "$key" >"$folder/key.txt"
