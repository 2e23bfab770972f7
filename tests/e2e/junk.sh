#!/usr/bin/env bash
# tests/e2e/junk.sh -- thousands of connections without the cluster key during a run. The only effect on the peer must be a
# counter of refused connections.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

count=${COUNT:-3000}
rounds=${ROUNDS:-8000}
check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'

# pair NAME: starts two peers of one synchronous run. Sets $pa to the port of the first, and $a and $b to the process ids.
pair()
{
    read -r pa pb < <(free_ports 2)
    mkdir "$1"
    local run=(--key cluster.key --data glyphs --model lenet5 --rounds "$rounds" --min-peers 2
        --bootstrap "127.0.0.1:$pa,127.0.0.1:$pb" --compress topk:0.05 --policy sync --seed "$seed")
    start "$1/a" "$HEARSAY" peer --listen "127.0.0.1:$pa" --name peer-0 --shard 1/2 --out "$1/peer-0" "${run[@]}"
    a=$started
    start "$1/b" "$HEARSAY" peer --listen "127.0.0.1:$pb" --name peer-1 --shard 2/2 --out "$1/peer-1" "${run[@]}"
    b=$started
}

# memory PID: prints the resident memory of a process, in KiB.
memory()
{
    awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}

pair quiet
check "undisturbed: peer 0 ends with 0" finish "$a" 240
check "undisturbed: peer 1 ends with 0" finish "$b" 60

pair noisy
check "the run has begun" wait_until 60 round_at_least noisy/peer-0/metrics.jsonl 5
before=$(memory "$a")
start junk python3 "$root/tests/e2e/junk.py" "$pa" "$count" "$seed"
junk=$started
check "$count connections without the key get no byte" finish "$junk" 200
echo "# $(cat junk.out)"
during=$(last_round noisy/peer-0/metrics.jsonl)
check "the run is not over yet (round $during)" alive "$a"
after=$(memory "$a")
check "memory: $before KiB before, $after KiB after" within $((after - before)) -1000000 4096
check "disturbed: peer 0 ends with 0" finish "$a" 300
check "disturbed: peer 1 ends with 0" finish "$b" 60
strangers=$(figures json noisy/peer-0/summary.json strangers)
check "connections without the key that it counted: $strangers" within "$strangers" $((count * 9 / 10)) "$count"
check "  and without any: 0" [ "$(figures json quiet/peer-0/summary.json strangers)" = 0 ]
for i in 0 1; do
    check "peer $i: the same model as undisturbed" \
        cmp quiet/peer-$i/model.safetensors noisy/peer-$i/model.safetensors
done

e2e_end
