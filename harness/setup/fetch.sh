#!/bin/bash
# Fetches one file of a Python package by the machine's own pip (its configuration says from where) and checks its hash
# before anything of it is used.
#   harness/setup/fetch.sh PACKAGE==VERSION SHA256 sdist|wheel FOLDER
# Prints the file's path. On failure prints one line of why on stderr and exits with 1.
set -u
requirement=$1 sha256=$2 kind=$3 folder=$4
say() {
  echo "$1" >&2
  exit 1
}
"$(dirname "$0")"/setup.sh fetch >&2 || say "cannot fetch $requirement: no python3 with pip"
mkdir -p "$folder" || say "cannot make folder $folder"
log=$(mktemp)
requirements=$(mktemp)
trap 'rm -f "$log" "$requirements"' EXIT
echo "$requirement --hash=sha256:$sha256" >"$requirements"
if [[ $kind == sdist ]]; then form=(--no-binary :all:); else form=(--only-binary :all:); fi
# pip checks the hash (--require-hashes) before it asks the package for its metadata. That step runs in a build
# environment of pip's own; where that cannot be had the second try uses the installed setuptools.
for extra in "" --no-build-isolation; do
  python3 -m pip download --quiet --no-input --disable-pip-version-check --retries 2 --no-deps "${form[@]}" $extra \
    --require-hashes -r "$requirements" -d "$folder" >"$log" 2>&1 </dev/null && break
done
for file in "$folder"/*; do
  [[ -f $file && $(sha256sum "$file" | cut -d ' ' -f 1) == "$sha256" ]] || continue
  echo "$file"
  exit 0
done
if grep -qi 'do not match the hashes' "$log"; then
  say "$requirement: what was served does not have the pinned hash"
elif grep -qiE 'retrying|connection|timed out|could not find a version' "$log"; then
  say "$requirement could not be downloaded (no network, or the package index does not have it)"
fi
say "$requirement: pip failed: $(grep -v '^ ' "$log" | grep -m1 -i error | cut -c1-160)"
