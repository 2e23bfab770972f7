#!/usr/bin/env bash
# tests/lint_mutants.sh -- every line that tests/mutants breaks is in the sources as its table has it.
#
# Else the mutant is tried no more, and nobody hears of it before the next run of an hour.
set -u
cd "$(dirname "$0")/.." || exit
command -v python3 >/dev/null || {
    echo "skipped: there is no python3"
    exit 77
}
out=$(tests/mutants/run --list) && exit
grep '^MISFIT' <<<"$out"
echo "tests/mutants/*.table: change these lines as the sources did"
exit 1
