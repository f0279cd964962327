#!/bin/bash
# Makes sure that this machine has what a group of targets needs. Quick when all is there; no network then.
#   harness/setup/setup.sh GROUP...     build: compile and test;  report: draw;  fetch: third-party sources;  check, format: lint
# What is missing is found by looking for the thing itself (a header that compiles, a program), never by a stamp. As root
# on Debian or Ubuntu it installs the packages; otherwise it prints the one line to type and exits with 2.
set -u
packages=() why=()

first_cc=${CC:-gcc} first_cc=${first_cc%% *} # "ccache gcc" is a compiler too: its first word must be there
first_cxx=${CXX:-g++} first_cxx=${first_cxx%% *}
need() { # need PACKAGE WHAT: the last command told whether WHAT is there
  local there=$?
  ((there == 0)) || { packages+=("$1") why+=("$2"); }
}
program() { command -v "$1" >/dev/null 2>&1; }
header() { # header LANGUAGE NAME
  local compiler=${CC:-gcc}; compiler=${compiler##* } # the compiler behind a launcher such as ccache
  program "$compiler" || compiler=gcc
  program "$compiler" && echo "#include <$2>" | "$compiler" -x "$1" -E -o /dev/null - 2>/dev/null
}

for group in "$@"; do
  case $group in
    build)
      program $first_cc; need gcc "a C compiler"
      program $first_cxx; need g++ "a C++ compiler (for Bullet)"
      header c stdio.h; need libc6-dev "the C library's headers"
      header c cjson/cJSON.h; need libcjson-dev "cJSON"
      header c gsl/gsl_sf_elljac.h; need libgsl-dev "GSL (elliptic functions of the validation suite)"
      ;;
    report)
      program gnuplot; need gnuplot-nox "gnuplot"
      ;;
    fetch)
      program python3; need python3 "python3 (to fetch packages)"
      python3 -m pip --version >/dev/null 2>&1; need python3-pip "pip (to fetch packages)"
      ;;
    format)
      program clang-format; need clang-format "clang-format"
      ;;
    ode)
      header c ode/ode.h; need libode-dev "ODE (a baseline engine)"
      ;;
    suitesparse)
      header c suitesparse/umfpack.h; need libsuitesparse-dev "SuiteSparse (sparse factorizations of the engine reference)"
      ;;
    check)
      program clang-format; need clang-format "clang-format"
      program clang-tidy; need clang-tidy "clang-tidy"
      program cppcheck; need cppcheck "cppcheck"
      ;;
    *)
      echo "setup.sh: unknown group \"$group\" (build, report, fetch, check, format, ode, suitesparse)" >&2
      exit 2
      ;;
  esac
done
((${#packages[@]})) || exit 0

list="${packages[*]}"
echo "setup: missing: $(IFS=,; echo "${why[*]}" | sed 's/,/, /g')"
if ! program apt-get; then
  echo "setup: this script knows Debian packages only; please install the equivalents of: $list" >&2
  exit 2
fi
if [[ $(id -u) != 0 ]]; then
  echo "setup: please run this line, then try again:" >&2
  echo "    sudo apt-get install -y --no-install-recommends $list" >&2
  exit 2
fi
export DEBIAN_FRONTEND=noninteractive
echo "setup: installing $list"
log=$(mktemp)
for attempt in 1 2 3; do
  # The package lists of a fresh machine are empty or old: update when the first try fails.
  # -o DPkg::Lock::Timeout waits for another apt that is at work.
  apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${packages[@]}" >"$log" 2>&1 </dev/null && {
    rm -f "$log"
    exit 0
  }
  sleep $((attempt * 2 - 2))
  apt-get update -o DPkg::Lock::Timeout=300 >>"$log" 2>&1 </dev/null
done
tail -n 15 "$log" >&2
rm -f "$log"
echo "setup: could not install: $list" >&2
exit 2
