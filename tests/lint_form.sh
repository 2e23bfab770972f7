#!/usr/bin/env bash
# tests/lint_form.sh -- checks the form of the C sources: layout (.clang-format), first line of a file, some names, and some
# comments.
#
#   tests/lint_form.sh [ROOT]
#
# Prints each violation on one line. Exit code 1: there is a violation. 77: clang-format 14 is not installed.
set -u
export LC_ALL=C
cd "${1:-$(dirname "$0")/..}" || exit 1
shopt -s nullglob
bad=0

complain()
{
    printf '%s\n' "$*"
    bad=1
}

# report TEXT REGEX: reports a violation TEXT for each line of the sources that matches REGEX.
report()
{
    local line
    while IFS= read -r line; do
        complain "$(cut -d: -f-2 <<<"$line"): $1"
    done < <(grep -nHE "$2" "${files[@]}")
}

format=
for one in clang-format-14 clang-format; do
    if "$one" --version 2>/dev/null | grep -q 'version 14\.'; then
        format=$one
        break
    fi
done

files=({nn,topology,compress,gossip,peer}/*.[ch] {nn,topology,compress,gossip,peer}/*/*.[ch] {nn,topology,compress,gossip,peer}/*/*/*.[ch]
    tests/{unit,fuzz,bench}/*.[ch])
[ ${#files[@]} -gt 0 ] || complain "no sources in $PWD"
while IFS= read -r file; do
    complain "$file:1: the first line is not '/* $file -- ...'"
done < <(awk 'FNR == 1 && FILENAME ~ /[.]c$/ && !index($0, "/* " FILENAME " -- ") { print FILENAME }' "${files[@]}")
report 'a comment that begins with "Of" is no sentence' '/\*+[[:space:]]+Of([[:space:]]|$)'
report 'an error is called err' '\bint rc\b'
report 'constants are in snake_case' '\bk[A-Z][A-Za-z0-9]+\b'
if [ -z "$format" ]; then
    [ $bad = 0 ] || exit 1
    echo "skipped: there is no clang-format 14 here"
    exit 77
fi
while IFS= read -r file; do
    complain "$file: not as .clang-format has it (clang-format -i $file)"
done < <("$format" --dry-run "${files[@]}" 2>&1 | sed -nE 's/^([^:]+):[0-9]+:[0-9]+: warning: .*/\1/p' | sort -u)
exit $bad
