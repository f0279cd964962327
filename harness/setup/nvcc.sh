#!/bin/bash
# Gets a CUDA compiler where the machine has none: five Python wheels of one toolkit version, unpacked to one folder. No
# Python is needed to run it, and no GPU.
#   harness/setup/nvcc.sh FOLDER    does nothing when nvcc is on the PATH, in /usr/local/cuda, or already unpacked
# All five are pinned to 13.0: mixed versions do not work together (ptxas refuses the code of a newer nvvm). Exits 0 with
# FOLDER/unavailable.txt (one line of why) when it cannot; with CI=true that is a failure.
set -u
folder=$1
here=$(dirname "$0")
fail() {
  mkdir -p "$folder" && echo "$1" >"$folder/unavailable.txt"
  echo "nvcc is not available: $1" >&2
  [[ ${CI:-} == true ]] && exit 1
  exit 0
}
if [[ ${PABD_IGNORE_NVCC:-} != 1 ]] && { command -v nvcc >/dev/null 2>&1 || [[ -x /usr/local/cuda/bin/nvcc ]]; }; then exit 0; fi
[[ -x $folder/nvidia/cu13/bin/nvcc ]] && exit 0
[[ $(uname -m) == x86_64 ]] || fail "the pinned compiler is for x86_64 only"
mkdir -p "$folder" || exit 2
if [[ ${CI:-} != true && -n $(find "$folder/unavailable.txt" -mmin -10 2>/dev/null) ]]; then
  echo "nvcc is not available (tried less than 10 minutes ago): $(cat "$folder/unavailable.txt")" >&2
  exit 0
fi
exec 9>"$folder/lock"
flock 9
[[ -x $folder/nvidia/cu13/bin/nvcc ]] && exit 0

echo "  GET  nvcc 13.0 (five wheels, about 105 MB, once)"
rm -rf "$folder/part" && mkdir -p "$folder/part"
while read -r requirement sha256; do
  file=$("$here/fetch.sh" "$requirement" "$sha256" wheel "$folder/part/download" 2>"$folder/fetch.log") || {
    fail "$(tail -n 1 "$folder/fetch.log")"
  }
  python3 -m zipfile -e "$file" "$folder/part" || fail "cannot unpack $file"
done <<'WHEELS'
nvidia-cuda-nvcc==13.0.88 56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
nvidia-cuda-crt==13.0.88 2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
nvidia-nvvm==13.0.88 c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
nvidia-cuda-runtime==13.0.96 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cccl==13.0.85 e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649
WHEELS
# Unzipping drops the execute bits.
find "$folder/part/nvidia" -type f \( -path '*/bin/*' -o -name cicc \) -exec chmod +x {} +
[[ -x $folder/part/nvidia/cu13/bin/nvcc ]] || fail "the wheels hold no bin/nvcc where it was expected"
rm -rf "$folder/nvidia" && mv "$folder/part/nvidia" "$folder/nvidia" && rm -rf "$folder/part" "$folder/unavailable.txt"
