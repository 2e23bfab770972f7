#!/usr/bin/env bash
# tests/e2e/threads.sh -- hearsay sim gives the same models, metrics and summaries with one thread and with several, bit for bit,
# except for measured seconds. Options that allow only one thread are refused with more.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
command -v jq >/dev/null || skip "there is no jq here"

simulate() # simulate NAME FLAGS...: runs hearsay sim with these flags. Output: NAME.
{
    local name=$1
    shift
    bounded "$HEARSAY" sim --peers 9 --data glyphs --seed "$seed" --json --out "$name" "$@" >"$name.json" 2>"$name.err"
}

same() # same TEXT FLAGS...: checks that one thread and several threads give the same result.
{
    local what=$1 n
    shift
    for n in 1 2; do
        simulate "$what-$n" --threads "$n" "$@"
        check "$what on $n threads ends with 0" [ $? = 0 ]
        jq 'del(.seconds)' "$what-$n.json" >"$what-$n.summary"
    done
    check "$what: summaries of 1 and 2 threads are the same" cmp "$what-1.summary" "$what-2.summary"
    for i in 0 4 8; do
        check "$what: models of peer-$i are the same" cmp "$what"-[12]"/peer-$i/model.safetensors"
        check "$what: metrics of peer-$i are the same" cmp "$what"-[12]"/peer-$i/metrics.jsonl"
    done
}

same torus --topology torus:3x3 --model mlp:784-32-10 --rounds 20 --evaluate-every 10 --compress qsgd:4
same async --policy async --model logreg --rounds 20 --step-spread 2 --local-steps 2
same layers --overlap layer --model lenet5 --rounds 3 --batch 10

simulate auto --model logreg --rounds 5 --shard auto
check "--shard auto takes one thread by itself" [ $? = 0 ]
for flags in "--shard auto" "--attack negated"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    simulate refused --threads 2 --model logreg --rounds 5 $flags
    check "$flags on two threads is refused" [ $? = 2 ]
    check "$flags is named" grep -q -- "--threads: found 2, expected 1 with ${flags%% *}" refused.err
done

e2e_end
