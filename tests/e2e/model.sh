#!/usr/bin/env bash
# tests/e2e/model.sh -- spin checks the models of the protocol (tests/model) within small limits.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

command -v spin >/dev/null || skip "there is no spin here (Debian: spin)"
check "the properties of all models hold" eval '"$root/tests/model/run" >model.out 2>model.err'
sed 's/^/# /' model.out
check "  with each state searched" [ "$(grep -c ' 0 errors, ' model.out)" = 7 ]
check "  and a broken rule of each model is noticed" [ "$(grep -cE '(NO_PREV|PAIR_REQUESTS|UNFREEZE|EVEN_HALF|COVER_EARLIER) 1 errors' model.out)" = 5 ]
e2e_end
