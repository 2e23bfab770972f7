#!/usr/bin/env bash
# tests/e2e/smoke.sh -- a short run of three peers, for builds with sanitizers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

python3 "$root/tests/e2e/idx.py" data 300 100
for policy in sync async; do
    bounded "$HEARSAY" local --peers 3 --model mlp:784-16-10 --data mnist:data --rounds 80 --batch 16 \
        --policy $policy --compress topk:0.05+qsgd:4 --seed "$seed" --out $policy --json \
        >$policy.out 2>$policy.err </dev/null
    check "$policy: ends with 0" [ $? = 0 ]
    check "$policy: no sanitizer speaks" \
        eval "! grep -E 'Sanitizer|runtime error' $policy.out $policy.err"
    worst=$(figures json $policy.out accuracy_min)
    check "$policy: accuracy of the worst peer: $worst" within "$worst" 0.6 1
done
bounded "$HEARSAY" sim --peers 8 --topology torus --model logreg --data mnist:data --rounds 20 \
    --compress qsgd:4 --seed "$seed" --out sim >sim.out 2>sim.err </dev/null
check "sim: ends with 0" [ $? = 0 ]

e2e_end
