#!/bin/bash
# Builds a base revision beside the working tree and compares the two on this machine, in one job.
#   harness/perf_check.sh BASE BENCH [arguments of pabd-bench perf-check]
# BASE: a git revision; empty: where this branch left main, or the commit before when there is no branch. BENCH: the
# head's pabd-bench, built. The base lies in build/perf/base (a git worktree) and is built with the same command line.
set -euo pipefail
cd "$(dirname "$0")/.."
base=$1 bench=$2
shift 2
if [[ -z $base ]]; then
  base=$(git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
  # Nothing was committed since: the last commit, if the tree differs from it, else the one before.
  if [[ $base == "$(git rev-parse HEAD)" ]] && git diff --quiet HEAD --; then base=$(git rev-parse HEAD~1); fi
fi
if ! commit=$(git rev-parse --verify --quiet "$base^{commit}"); then
  echo "perf-check: no revision \"$base\" (BASE=branch, tag or commit)" >&2
  exit 2
fi
tree=build/perf/base
if [[ ! -e $tree/.git ]]; then
  git worktree prune
  mkdir -p build/perf
  rm -rf "$tree"
  git worktree add --quiet --detach --force "$tree" "$commit"
else
  git -C "$tree" checkout --quiet --force --detach "$commit"
fi
mkdir -p "$tree/build"
[[ -e $tree/build/third_party ]] || ln -s "$(realpath build/third_party)" "$tree/build/third_party"
echo "perf-check: base $(git log -1 --format='%h %s' "$commit")" >&2
if ! "${MAKE:-make}" -C "$tree" --no-print-directory build/engines/pabd.so >"build/perf/base.log" 2>&1; then
  tail -n 20 build/perf/base.log >&2
  echo "perf-check: the base does not build (build/perf/base.log)" >&2
  exit 2
fi
exec "$bench" perf-check --base "$tree" "$@"
