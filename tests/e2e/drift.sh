#!/usr/bin/env bash
# tests/e2e/drift.sh -- hearsay drift of a cluster that loses a peer: what is missing or old is said.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

read -r pa pb pc < <(free_ports 3)
port=([0]=$pa [1]=$pb [2]=$pc)
"$HEARSAY" keygen cluster.key 2>keygen.err
for i in 0 1 2; do
    start "log-$i" "$HEARSAY" peer --listen "127.0.0.1:${port[$i]}" --key cluster.key \
        --bootstrap "127.0.0.1:$pa,127.0.0.1:$pb,127.0.0.1:$pc" --data glyphs --shard "$((i + 1))/3" \
        --model logreg --rounds 1000000 --min-peers 3 --quorum 1 --seed "$seed" --name "peer-$i" --out "peer-$i"
    pid[i]=$started
done
check "three peers train" wait_until 60 round_at_least peer-0/metrics.jsonl 200
observe=(--bootstrap "127.0.0.1:$pa" --key cluster.key)

bounded "$HEARSAY" drift "${observe[@]}" --exact --round 1000000000 --timeout 1 --json >far.out 2>far.err
code=$?
check "drift of a round that does not come in time: exit code $code" [ "$code" = 1 ]
check "  and says so: $(head -n 1 far.err)" grep -q 'warning: not every peer sent its model in time$' far.err
check "  the estimates are told nevertheless" python3 -c '
import json
j = json.load(open("far.out"))
assert len(j["peers"]) == 3 and j["exact"] is None and j["drift"] > 0, j'

bounded "$HEARSAY" drift "${observe[@]}" >plain.out 2>plain.err
check "drift in words: rounds and ages" \
    [ "$(grep -cE '^peer-[0-2] +of round [0-9]+, [0-9]+ ago +drift [0-9]' plain.out)" = 3 ]
bounded "$HEARSAY" status "${observe[@]}" >status.out 2>status.err
check "status has them, too" [ "$(grep -cE '[0-9] @[0-9]+, [0-9]+ ago +[^ ]+ +[0-9.]+ [kMG]?B' status.out)" = 3 ]

# They wait until one of them is killed under their eyes, and the others have the quorum no more.
start gone "$HEARSAY" drift "${observe[@]}" --exact --round 1000000000 --timeout 20 --json
waiting=$started
at=$(last_round peer-0/metrics.jsonl)
check "time passes" wait_until 60 round_at_least peer-0/metrics.jsonl $((at + 300))
kill -KILL "${pid[2]}"
wait "${pid[2]}" 2>/dev/null
forget "${pid[2]}"
# shellcheck disable=SC2317 # By wait_until.
held()
{
    "$HEARSAY" status "${observe[@]}" --json >status.out 2>status.err
    python3 -c '
import json, sys
sys.exit(sum(m.get("holds", False) for m in json.load(open("status.out"))["members"]) != 2)'
}
check "two of three hold" wait_until 60 held
finish "$waiting" 60
check "a peer that is gone has not sent its model: $(head -n 1 gone.err)" \
    grep -q 'warning: not every peer sent its model in time$' gone.err

# Two that hold may be of different rounds; the last one is not. It estimates no more, so that who
# waits for that waits for a day.
kill -KILL "${pid[1]}"
wait "${pid[1]}" 2>/dev/null
forget "${pid[1]}"
bounded "$HEARSAY" drift "${observe[@]}" --exact --round 1 --timeout 86400 --json >held.out 2>held.err
code=$?
check "drift of a peer that holds: exit code $code, $(tail -n 1 held.err)" [ "$code" = 1 ]
check "  its model came: $(figures json held.out exact.models)" [ "$(figures json held.out exact.models)" = 1 ]

kill -TERM "${pid[0]}"
finish "${pid[0]}" 60
check "it ends with 0" [ "$code" = 0 ]

# Without lock step estimates are of different rounds.
start async "$HEARSAY" local --peers 3 --policy async --model logreg --data glyphs --rounds 1000000 --seed "$seed" --out async
check "three peers of no lock step" wait_until 60 round_at_least async/peer-0/metrics.jsonl 200
first=$(sed -n 's/.*3 peers, \(127.0.0.1:[0-9]*\) .*/\1/p' async.err)
# shellcheck disable=SC2317 # By wait_until.
differ()
{
    bounded "$HEARSAY" drift --bootstrap "$first" --key async/cluster.key --json >differ.out 2>differ.err
    python3 -c '
import json, sys
sys.exit(len(set(p["round"] for p in json.load(open("differ.out"))["peers"] if p["drift"])) < 2)'
}
check "their estimates are of different rounds" wait_until 60 differ
check "  the mean is of the newest" python3 -c '
import json
j = json.load(open("differ.out"))
newest = max(p["round"] for p in j["peers"] if p["drift"])
same = [p["drift"] for p in j["peers"] if p["drift"] and p["round"] == newest]
assert j["round"] == newest and abs(j["drift"] - sum(same) / len(same)) <= 1e-9 * j["drift"], j'
kill -TERM "$started"
finish "$started" 60
# Without lock step peers end with estimates of different rounds: those of the newest have a mean.
bounded "$HEARSAY" sim --peers 8 --policy async --step-spread 2 --model mlp:784-32-10 --rounds 300 \
    --seed "$seed" --json >async.out 2>async.err
check "sim: the closing estimate is of one round: $(figures json async.out estimated_round)" python3 -c '
import json, sys
run = json.load(open("async.out"))
known = [p for p in run["peers"] if p["relative_drift"] is not None]
newest = max(p["drift_round"] for p in known)
of_it = [p["relative_drift"] for p in known if p["drift_round"] == newest]
print("#", sorted(p["drift_round"] for p in known))
sys.exit(not (newest > min(p["drift_round"] for p in known) and run["estimated_round"] == newest and abs(run["estimated_relative_drift"] / (sum(of_it) / len(of_it)) - 1) < 1e-9))'

e2e_end
