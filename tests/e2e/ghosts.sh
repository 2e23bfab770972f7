#!/usr/bin/env bash
# tests/e2e/ghosts.sh -- an attacker with the cluster key invents 300 members. No honest peer may lose an edge.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

insider=$(dirname "$HEARSAY")/tests/e2e_insider
[ -x "$insider" ] || skip "there is no $insider here"
ghosts=${GHOSTS:-300}
read -r pa pb pc < <(free_ports 3)
port=([0]=$pa [1]=$pb [2]=$pc)
"$HEARSAY" key new cluster.key 2>keygen.err
for i in 0 1 2; do
    start "log-$i" "$HEARSAY" peer --listen "127.0.0.1:${port[$i]}" --key cluster.key --name "peer-$i" \
        --bootstrap "127.0.0.1:$pa,127.0.0.1:$pb,127.0.0.1:$pc" --data glyphs --shard "$((i + 1))/3" \
        --model logreg --topology complete --rounds "${ROUNDS:-12000}" --min-peers 3 --seed "$seed" --out "peer-$i"
    pid[i]=$started
done
check "three peers train" wait_until 60 round_at_least peer-0/metrics.jsonl 50
memory=$(awk '/^VmRSS/ { print $2 }' "/proc/${pid[0]}/status")

start insider "$insider" "$pa" cluster.key "$ghosts" "${SECONDS_OF_IT:-12}"
insider_pid=$started
observe=(--bootstrap "127.0.0.1:$pb" --key cluster.key --json)

# honest_edges: succeeds if all edges between honest peers are open.
# shellcheck disable=SC2317 # This function is called indirectly, by check.
honest_edges()
{
    bounded "$HEARSAY" status "${observe[@]}" >status.out 2>status.err
    python3 -c '
import json, sys
honest = {"peer-0", "peer-1", "peer-2"}
seen = {m["name"]: m for m in json.load(open("status.out"))["members"]}
sys.exit(any(honest - {n} - {e["name"] for e in seen.get(n, {}).get("edges", []) if e["state"] == "open"}
             for n in honest))'
}
for k in 1 2 3; do
    at=$(last_round peer-0/metrics.jsonl)
    check "$ghosts ghosts, look $k: training resumes from round $at" \
        wait_until 60 round_at_least peer-0/metrics.jsonl $((at + 100))
    check "  every honest edge is open" wait_until 20 honest_edges
done
live=$(tail -n 1 peer-1/metrics.jsonl | sed -n 's/.*"live": *\([0-9]*\).*/\1/p')
check "  so many live, by peer-1: $live" within "$live" 3 5
check "the insider was heard" finish "$insider_pid" 120
echo "# $(cat insider.out)"
after=$(awk '/^VmRSS/ { print $2 }' "/proc/${pid[0]}/status" 2>/dev/null)
check "memory: $memory KiB before, ${after:-gone} after" within "${after:-$memory}" 0 $((memory + 8192))
for i in 0 1 2; do
    check "peer-$i ends with 0" finish "${pid[$i]}" 240
done
# 3 to 5 members are right: the attacker and one invented member may be counted, too.
check "in consensus: $(tail -n 1 log-0.err)" grep -qE 'consensus of 3 of [345] peers' log-0.err log-0.out
e2e_end
