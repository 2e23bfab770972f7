#!/usr/bin/env bash
# tests/lint_mutants.sh -- checks that the sources contain each line that a mutation test (tests/mutants) changes.
#
# If a line was edited, its mutant can no longer be applied. tests/mutants/run, which takes an hour, would only then report it.
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
