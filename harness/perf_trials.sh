#!/bin/bash
# Shows that perf-check neither sleeps nor cries wolf: plants known faults in copies of the committed solver and counts.
#   harness/perf_trials.sh [--same 60] [--slow 20] [--wrong 3] [--json FILE]
# same   the same source built again: no alarm may come.
# slow   the sweep takes 15 % longer by waiting: no counter, hash or instruction gate sees it (the gate is off here).
# wrong  a wrong factor on bonds: must be caught without timing, by the changed hash and by worse metrics.
# Each trial is one perf-check of one small benchmark (pile:n=3 on pabd:jacobi; chain for `wrong`). Trials of all kinds
# are mixed, so that they meet the same load. Exit code 1 when an alarm came in `same`, when more than one in twenty
# `slow` was missed, or one `wrong`.
set -euo pipefail
cd "$(dirname "$0")/.."
same=60 slow=20 wrong=3 json=
while (($# > 1)); do
  case $1 in
    --same) same=$2 ;;
    --slow) slow=$2 ;;
    --wrong) wrong=$2 ;;
    --json) json=$2 ;;
    *) break ;;
  esac
  shift 2
done
if (($#)); then
  echo "usage: harness/perf_trials.sh [--same N] [--slow N] [--wrong N] [--json FILE]" >&2
  exit 2
fi
bench=${PABD_BENCH:-build/pabd-bench}
if [[ ! -x $bench ]]; then
  echo "perf_trials.sh: build first (make all)" >&2
  exit 2
fi

commit=$(git rev-parse HEAD)

# ---- copies with planted faults: HEAD's source, one edit each, which must match exactly once --------------------------
plant() { # plant NAME FILE PATTERN REPLACEMENT
  local tree=build/perf/$1 file=$2 pattern=$3 replacement=$4
  rm -rf "$tree"
  mkdir -p "$tree/build"
  git archive "$commit" | tar -x -C "$tree"
  ln -s "$(realpath build/third_party)" "$tree/build/third_party"
  if [[ -n $file ]]; then
    if [[ $(grep -cF -- "$pattern" "$tree/$file") != 1 ]]; then
      echo "perf_trials.sh: the line to spoil is not (once) in $file: $pattern" >&2
      exit 2
    fi
    awk -v p="$pattern" -v r="$replacement" '{ at = index($0, p); if (at) $0 = substr($0, 1, at - 1) r substr($0, at + length(p)); print }' \
      "$tree/$file" >"$tree/$file.new"
    mv "$tree/$file.new" "$tree/$file"
  fi
  "${MAKE:-make}" -C "$tree" --no-print-directory build/engines/pabd.so >"$tree/build.log" 2>&1 || {
    tail -n 20 "$tree/build.log" >&2
    exit 2
  }
}
plant trial-base '' '' ''
plant trial-same '' '' ''
plant trial-slow solver/timers.c 'double ms = now_ms() - begin;' \
  'double ms = now_ms() - begin; if (strcmp(name, "body_sweep") == 0) { double until = begin + 1.15 * ms; while (now_ms() < until) {} ms = now_ms() - begin; }'
plant trial-wrong solver/jacobi_kernels.h '*k = both ? s->bond_factor * s->bond_stamp[j]' '*k = both ? R(1.0) * s->bond_stamp[j]'

# ---- trials in mixed order ----------------------------------------------------------------------------------------------
folder=build/perf/trials
mkdir -p "$folder"
log=$folder/trials.txt
: >"$log"
order=$(for ((k = 0; k < same; ++k)); do echo same; done; for ((k = 0; k < slow; ++k)); do echo slow; done
  for ((k = 0; k < wrong; ++k)); do echo wrong; done)
n=0
total=$((same + slow + wrong))
while read -r kind; do
  n=$((n + 1))
  case $kind in
    wrong) what=(chain --engine pabd:jacobi --no-times --accept-changes) ;;
    *) what=(pile:n=3 --engine pabd:jacobi --no-instructions --blocks 6 --most-blocks 15) ;;
  esac
  begin=$EPOCHREALTIME code=0
  "$bench" perf-check --base build/perf/trial-base --root "build/perf/trial-$kind" --engines-dir "build/perf/trial-$kind/build/engines" \
    "${what[@]}" --json "$folder/$n.json" --markdown "$folder/$n.md" 2>/dev/null || code=$?
  seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  # What was found: slower stages, or exactly worse.
  found=$(grep -oE '^\| [a-z_0-9 ]+ \|.*\*\*worse\*\*' "$folder/$n.md" | awk -F'|' '{ gsub(/ /, "", $2); printf "%s%s", k++ ? "," : "", $2 }' || true)
  read -r load _ </proc/loadavg
  echo "$kind $code ${found:--} $seconds $load" >>"$log"
  printf '[%d/%d] %-5s exit %d %s (%s s, load %s)\n' "$n" "$total" "$kind" "$code" "${found:--}" "$seconds" "$load" >&2
done < <(shuf --random-source=<(yes) <<<"$order")

# ---- counts -------------------------------------------------------------------------------------------------------------
# slow counts as caught only when the sweep itself is named; what else is named beside it is a false alarm of its own
# (the whole step and its solve part do contain the sweep).
summary=$(awk '
  $1 == "same" { same++; if ($2 == 1) alarms++; if ($2 == 3) same_refused++ }
  $1 == "slow" { slow++; if ($2 == 1 && ("," $3 ",") ~ /,body_sweep,/) caught++; if ($2 == 3) slow_refused++
                 n = split($3, f, ","); for (k = 1; k <= n; ++k) if (f[k] !~ /^(-|body_sweep|step|solve)$/) stray++ }
  $1 == "wrong" { wrong++; if ($2 == 1) wrong_caught++ }
  { if ($4 > longest) longest = $4; load += $5; if ($5 > top) top = $5 }
  END { printf "{\"same\": {\"trials\": %d, \"alarms\": %d, \"refused\": %d}, \"slow\": {\"trials\": %d, \"caught\": %d, \"refused\": %d, \"stray_alarms\": %d}, \"wrong\": {\"trials\": %d, \"caught\": %d}, \"longest_trial_s\": %.1f, \"load_mean\": %.2f, \"load_max\": %.2f}",
        same, alarms, same_refused, slow, caught, slow_refused, stray, wrong, wrong_caught, longest, load / NR, top }' "$log")
echo "$summary"
if [[ -n $json ]]; then
  {
    printf '{\n  "what": "trials of perf-check: harness/perf_trials.sh",\n'
    printf '  "command": "harness/perf_trials.sh --same %d --slow %d --wrong %d",\n' "$same" "$slow" "$wrong"
    printf '  "commit": "%s",\n  "date": "%s",\n' "$commit" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    printf '  "cpu": "%s",\n  "cores": %d,\n' "$(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)" "$(nproc)"
    printf '  "compiler": "%s",\n  "os": "%s",\n' "$(sed -n 's/^#define PABD_BUILD_COMPILER "\(.*\)"$/\1/p' build/generated/build_info.h)" "$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release)"
    printf '  "counts": %s,\n  "trials": [\n' "$summary"
    awk '{ printf "%s    {\"kind\": \"%s\", \"exit_code\": %d, \"found\": \"%s\", \"seconds\": %s, \"load\": %s}", (NR > 1 ? ",\n" : ""), $1, $2, ($3 == "-" ? "" : $3), $4, $5 }' "$log"
    printf '\n  ]\n}\n'
  } >"$json.tmp"
  mv "$json.tmp" "$json"
fi
awk '
  $1 == "same" && $2 == 1 { bad = 1 }
  $1 == "slow" { slow++; caught += $2 == 1 && ("," $3 ",") ~ /,body_sweep,/ }
  $1 == "wrong" && $2 != 1 { bad = 1 }
  END { exit (bad || caught < 0.95 * slow) ? 1 : 0 }' "$log"
