#!/bin/bash
# The logic of gpu-check, on the stand-in: what it says without a device, that it passes with equal bits, and that a
# difference and a sanitizer's complaint make it fail. Nothing here runs on a GPU.
passed=0 failed=0
build=${PABD_BUILD_DIR:-build}
program=$build/tests/gpu_check_standin
ok() { passed=$((passed + 1)); }
bad() {
  echo "tests/test_gpu_check.sh: $1"
  failed=$((failed + 1))
}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
check() { # check NAME EXPECTED_CODE PATTERN COMMAND...
  local name=$1 code=$2 pattern=$3 text result
  shift 3
  text=$("$@" 2>&1)
  result=$?
  if [[ $result == "$code" && $text =~ $pattern ]]; then ok; else bad "$name: exit $result, not $code with \"$pattern\": ${text: -600}"; fi
}
check "no program" 0 '^gpu-check: not run: there is no CUDA compiler[^
]*$' harness/gpu_check.sh "" "$out"
check "no device" 0 '^gpu-check: not run: no CUDA device$' env PABD_STANDIN_DEVICES=0 harness/gpu_check.sh "$program" "$out"
if [[ -z $(ls "$out") ]]; then ok; else bad "something was written without a device: $(ls "$out")"; fi
check "bad use" 2 'usage: gpu-check' "$program" --no-such-option

# A sanitizer that is content, and one that is not.
printf '#!/bin/bash\nexit 0\n' >"$out/content"
printf '#!/bin/bash\necho "========= Error: Race reported"\nexit 9\n' >"$out/grumpy"
chmod +x "$out/content" "$out/grumpy"
check "all is well" 0 'passed' env PABD_SANITIZER="$out/content" harness/gpu_check.sh "$program" "$out/good" --quick
check "a sanitizer complains" 1 'FAILED' env PABD_SANITIZER="$out/grumpy" PABD_STANDIN_FAULT= harness/gpu_check.sh "$program" "$out/race" --quick --worlds 2
check "a device that computes otherwise" 1 'FAILED' env PABD_SANITIZER="$out/content" PABD_STANDIN_FAULT=1 harness/gpu_check.sh "$program" "$out/fault" --quick --worlds 2
page=$(cat "$out"/good/*.md 2>/dev/null)
for text in 'nothing here ran on a GPU' 'same bits as the CPU' 'memcheck: clean' 'Frame times of piles' 'world-steps/s' 'RTX 4090' '`body_sweep`' 'Predictions (nothing of this was measured'; do
  if [[ $page == *"$text"* ]]; then ok; else bad "the page lacks \"$text\""; fi
done
if [[ $page != *nan* && $page != *inf* ]]; then ok; else bad "numbers that are none: $(grep -nE 'nan|inf' "$out"/good/*.md | head -n 3)"; fi
if grep -q 'differs' "$out"/fault/*.md && grep -q '"stand_in":	*true' "$out"/fault/*.json; then ok; else bad "the page of the fault says nothing of it"; fi
if ls results/gpu 2>/dev/null | grep -qi 'stand'; then bad "results/gpu holds something made on the stand-in"; else ok; fi
echo "$passed passed, $failed failed"
((failed == 0))
