#!/usr/bin/env bash
# tests/e2e/api_docs.sh -- the reference of libhearsay is built from the header without a warning. Each function has a
# manual page and an HTML entry with the text of the header, its errors, and the rules for all functions.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

header=$root/peer/api/hearsay.h
check "the reference is made" eval '"$root/deploy/reference/make" "$work/reference" 1.2.3 >make.out 2>make.err'
if command -v doxygen >/dev/null; then
    check "  doxygen warns of nothing: $(head -n 1 make.err)" [ ! -s make.err ]
    html=("$work/reference/html")
    check "  no page has a script" eval '! grep -rl "<script" reference/html'
    check "  all links lead to a page that is there" eval \
        '[ -z "$(grep -rhoE "href=\"[a-z_0-9]+\.html" reference/html | sed "s/.*\"//" | sort -u | (cd reference/html && xargs ls 2>&1 >/dev/null))" ]'
else
    html=()
    echo "# left out: there is no doxygen here (Debian: doxygen), and so no HTML"
fi
check "each function has the header's text, says how it fails, and has the rules" \
    python3 "$root/tests/e2e/api_docs.py" "$header" reference/man ${html[@]+"${html[@]}"}
check "libhearsay(3) lists all of them" eval \
    '[ "$(grep -oE "fBhearsay_[a-z_]+.fR\(3\)" reference/man/libhearsay.3 | sort -u | wc -l)" -ge "$(find reference/man -name "hearsay_*" | wc -l)" ]'
if command -v man >/dev/null; then
    for page in reference/man/*.3; do
        man --warnings -l -Tutf8 "$page" 2>&1 >/dev/null | sed "s,^,$page: ,"
    done >warnings
    check "man warns of nothing: $(head -n 1 warnings)" [ ! -s warnings ]
    check "  and knows what a page is about" eval \
        'man -l reference/man/hearsay_round.3 2>/dev/null | tr -s " \n" " " | grep -q "hearsay_round - the local steps are done"'
fi
e2e_end
