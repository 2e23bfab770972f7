#!/usr/bin/env bash
# tests/e2e/early.sh -- a peer reads its data before it contacts other peers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'
python3 -c '
with open("bad.csv", "w") as f:
    for i in range(400):
        f.write("%d,%d,%s\n" % (i % 7, i % 5, "x" if i == 300 else i % 2))'
read -r dead < <(free_ports 1)

# No peer answers at the bootstrap address. The peer must detect its bad data nevertheless, although
# it does not know the run.
bounded "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key --bootstrap "127.0.0.1:$dead" --name late \
    --data csv:bad.csv --shard own --out bad >bad.out 2>bad.err
code=$?
check "a peer with bad data ends before it contacts another peer: $(tail -n 1 bad.err | cut -c 1-120)" eval \
    '[ "$code" = 2 ] && grep -q "^hearsay peer: --data: .*bad.csv.* 301" bad.err'

# A peer that cannot take part in the run must not become a member.
read -r port < <(free_ports 1)
start first "$HEARSAY" peer --listen "127.0.0.1:$port" --key cluster.key --name first --model logreg --rounds 10000000 --out first
check "a peer trains" wait_until 60 round_at_least first/metrics.jsonl 5
# wrong TEXT REGEX ARGS...: a peer with these arguments ends with exit code 2 and a matching message.
wrong()
{
    local text=$1 regex=$2
    shift 2
    bounded "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key --bootstrap "127.0.0.1:$port" --name wrong --out wrong "$@" \
        >wrong.out 2>wrong.err
    code=$?
    check "$text: $(tail -n 1 wrong.err | cut -c 1-120)" eval '[ $code = 2 ] && grep -qE -- "$regex" wrong.err'
}
wrong "another model" "^hearsay peer: --model lenet5 contradicts the cluster's run, which has model=logreg" --model lenet5
head -n 200 bad.csv >some.csv
wrong "other data" "^hearsay peer: --data csv contradicts the cluster's run, which has data=glyphs" --data csv:some.csv
wrong "a share that is none of it" "^hearsay peer: --threads: found 64, expected at most the value of --batch, 32" --threads 64
check "the first peer has had no other member" eval '! grep -q "\"live\": [2-9]" first/metrics.jsonl'
start right "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key --bootstrap "127.0.0.1:$port" --name right --out right --model logreg
check "  until a peer with valid data joined" wait_until 60 grep -q '"live": 2,' first/metrics.jsonl
kill -KILL "$started"
finish "$started" 10

e2e_end
