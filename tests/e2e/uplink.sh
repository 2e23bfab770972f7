#!/usr/bin/env bash
# tests/e2e/uplink.sh -- two hosts with a fast link that becomes slow: --compress auto adapts its codec level. Hosts are
# network namespaces, so root is needed.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

for need in ip tc; do
    command -v "$need" >/dev/null || skip "there is no $need here"
done
host=(hs$$-a hs$$-b)
remove_hosts()
{
    local h
    for h in "${host[@]}"; do
        ip netns del "$h" 2>/dev/null
    done
    return 0
}
at_exit remove_hosts

# shape KBIT: limits both directions of the link to KBIT kbit/s. The token bucket, whose bytes pass without delay, is small
# compared with a delta.
shape()
{
    local h bucket=$(($1 / 4 > 1600 ? $1 / 4 : 1600))
    for h in "${host[@]}"; do
        tc -n "$h" qdisc replace dev eth0 root tbf rate "$1kbit" burst "$bucket" latency 400ms || return 1
    done
}
make_hosts()
{
    ip netns add "${host[0]}" && ip netns add "${host[1]}" \
        && ip -n "${host[0]}" link add eth0 type veth peer name eth0 netns "${host[1]}" \
        && ip -n "${host[0]}" addr add 10.78.0.1/24 dev eth0 && ip -n "${host[1]}" addr add 10.78.0.2/24 dev eth0 \
        && ip -n "${host[0]}" link set eth0 up && ip -n "${host[1]}" link set eth0 up && shape 100000
}
make_hosts 2>hosts.err || skip "no hosts: $(head -n 1 hosts.err)"

check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'
# 40 local steps make a round at least 0.1 s long, so that other load of the machine has little effect on the measurement.
for i in 0 1; do
    start "log-$i" ip netns exec "${host[$i]}" "$HEARSAY" peer --listen "10.78.0.$((i + 1)):7100" --key cluster.key \
        --bootstrap 10.78.0.1:7100,10.78.0.2:7100 --data glyphs --shard "$((i + 1))/2" --model lenet5 \
        --local-steps 40 --rounds 100000 --min-peers 2 --seed "$seed" --name "peer-$i" --out "peer-$i"
done

# last FIELD: prints a field of the newest complete metrics line of peer 0.
last()
{
    tail -n 2 peer-0/metrics.jsonl 2>/dev/null | grep '}$' | tail -n 1 | python3 -c '
import json, sys
line = sys.stdin.read()
print(json.loads(line).get(sys.argv[1]) if line else None)' "$1"
}
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
dense()
{
    [ "$(last rung_by)" = link ] && [[ $(last rung) =~ ^(qsgd:4|qsgd:8|fp16)$ ]]
}
# shellcheck disable=SC2317
sparse()
{
    [[ $(last rung) =~ ^topk ]]
}

check "100 Mbit/s: the link takes a precise codec" wait_until 60 dense
echo "# $(last rung), $(last goodput) bytes/s"
shape 1000
check "1 Mbit/s: a sparser one" wait_until 60 sparse
from=$(last_round peer-0/metrics.jsonl)
check "  and 20 rounds more" wait_until 60 round_at_least peer-0/metrics.jsonl $((from + 20))
# --compress auto uses only spare bandwidth: the link must be able to send each delta in a tenth of
# a round's computing time. On this link only the codec topk is so sparse.
check "  in which the link asks for no more than it takes" python3 - "$from" <<'END'
import json, sys
lines = [json.loads(l) for l in open("peer-0/metrics.jsonl") if l.endswith("}\n")]
after = [l for l in lines if l.get("round", 0) > int(sys.argv[1])]
print("#", sorted({(l["rung"], l["rung_by"]) for l in after}))
sys.exit(any(l["rung_by"] == "link" and not l["rung"].startswith("topk") for l in after))
END
goodput=$(last goodput)
check "  and what it takes was measured: $goodput bytes/s" within "$goodput" 30000 250000
for i in 0 1; do
    kill -TERM "${pids[0]}"
    finish "${pids[0]}" 30
done
check "a denser codec than that has to be worth its time" python3 - "$from" <<'END'
import json, sys
lines = [json.loads(l) for l in open("peer-0/metrics.jsonl") if l.endswith("}\n")]
after = [l for l in lines if l.get("round", 0) > int(sys.argv[1])]
sys.exit(not after or any(l["rung"] in ("qsgd:8", "fp16") for l in after[-5:]))
END
check "the codec levels are reported" grep -q '^codec of the last rounds: .* chosen by --compress auto' log-0.err
e2e_end
