#!/usr/bin/env bash
# tests/e2e/valgrind.sh -- one small run of two peers under valgrind.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
command -v valgrind >/dev/null || skip "there is no valgrind here"
e2e_begin

python3 "$root/tests/e2e/idx.py" data 200 50
bounded valgrind --quiet --trace-children=yes --error-exitcode=99 --leak-check=full \
    --errors-for-leak-kinds=definite,indirect --log-file="$work/valgrind.%p" \
    "$HEARSAY" local --peers 2 --model mlp:784-16-10 --data mnist:data --rounds 8 --batch 16 \
    --compress topk:0.05+qsgd:4 --seed "$seed" --out out >run.out 2>run.err </dev/null
check "the run ends with 0" [ $? = 0 ]
logs=(valgrind.*)
check "valgrind watched the parent and both peers" [ ${#logs[@]} -ge 3 ]
grep -hE -A 12 'Invalid|uninitialised|definitely lost|indirectly lost|overlap' "${logs[@]}" | head -n 40 | sed 's/^/# /'
check "and has nothing to say" eval '! cat valgrind.* | grep -qE "^==[0-9]+== [A-Z0-9]"'
for i in 0 1; do
    check "peer $i: its model is there" [ -s out/peer-$i/model.safetensors ]
done

e2e_end
