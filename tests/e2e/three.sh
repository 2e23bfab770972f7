#!/usr/bin/env bash
# tests/e2e/three.sh -- three peers with a bootstrap list: one is killed and restarted, and a fourth joins late. All must end in
# consensus.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

rounds=${ROUNDS:-2400}
read -r pa pb pc pd < <(free_ports 4)
port=([0]=$pa [1]=$pb [2]=$pc [3]=$pd)
check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'

# peer I LOG: starts peer I, always with the same command.
peer()
{
    start "$2" "$HEARSAY" peer --listen "127.0.0.1:${port[$1]}" --key cluster.key \
        --bootstrap "127.0.0.1:$pa,127.0.0.1:$pb,127.0.0.1:$pc" --data glyphs --shard "$(($1 + 1))/4" \
        --model lenet5 --rounds "$rounds" --min-peers 3 --topology ring --compress topk:0.05 \
        --final-drift 1e-3 --seed "$seed" --name "peer-$1" --out "peer-$1"
    pid[$1]=$started
}

for i in 0 1 2; do
    peer $i "log-$i"
done
check "three peers find each other and train" wait_until 60 round_at_least peer-0/metrics.jsonl 10
"$HEARSAY" status --bootstrap "127.0.0.1:$pa" --key cluster.key --json >status.out 2>status.err
check "hearsay status knows them: $(figures json status.out members) members" [ "$(figures json status.out members)" = 3 ]
check "  and how far each is, done and skipped, and since when" python3 -c '
import json, sys
members = json.load(open("status.out"))["members"]
sys.exit(not all(m["round"] == m["joined_round"] + m["rounds_done"] + m["rounds_skipped"]
                 and 0 <= m["age_s"] < 60 and m["holds"] is False for m in members))'
check "  and which codec: $(python3 -c 'import json; print(*(m["codec"] for m in json.load(open("status.out"))["members"]))')" python3 -c '
import json, sys
sys.exit(not all(m["codec"] for m in json.load(open("status.out"))["members"]))'
for how in "" --exact; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds one flag or none.
    bounded "$HEARSAY" drift --bootstrap "127.0.0.1:$pa" --key cluster.key --json $how >drift.out 2>drift.err
    relative=$(figures json drift.out relative_drift)
    check "hearsay drift $how answers: $relative" within "$relative" 1e-9 1
done

ratio=$(figures json drift.out ratio)
check "  both figures being of one state: ratio $ratio" within "$ratio" 0.5 2
observe=(--bootstrap "127.0.0.1:$pa" --key cluster.key --exact --round 1)
bounded "$HEARSAY" drift "${observe[@]}" --json >past.out 2>past.err
check "hearsay drift of a round that is over ends with 1" [ $? = 1 ]
check "  and reports it: $(tail -n 1 past.err)" \
    grep -qE '^hearsay drift: round 1 is over; compared round [0-9]+ instead$' past.err
check "hearsay drift of a round that is over: models are compared" \
    within "$(figures json past.out exact.relative_drift)" 1e-9 1
# The next check is only possible if the estimates of the peers are not all of the same round.
check "  and an estimate of another round has no part in mean and ratio" python3 -c '
import json, sys
j = json.load(open("past.out"))
same = [p for p in j["peers"] if j["exact"]["round_min"] <= p["round"] <= j["exact"]["round_max"]]
sys.exit(not same and not j["drift"] == j["relative_drift"] == j["ratio"] == None)'
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
unknown()
{
    bounded "$HEARSAY" drift "${observe[@]}" >past.out 2>past.err
    grep -qE '^ratio +unknown$' past.out
}
check "  in words: unknown" wait_until 10 unknown

check "a third of the rounds done" wait_until 240 round_at_least peer-0/metrics.jsonl $((rounds / 3))
kill -KILL "${pid[1]}"
wait "${pid[1]}" 2>/dev/null
killed=$(now_ms)
at=$(last_round peer-0/metrics.jsonl)
check "peer 1 is killed at round $at: peer 0 continues" wait_until 60 round_at_least peer-0/metrics.jsonl $((at + 5))
check "  and peer 2" wait_until 60 round_at_least peer-2/metrics.jsonl $((at + 5))
echo "# 5 rounds further after $(($(now_ms) - killed)) ms"

check "half of the rounds done" wait_until 240 round_at_least peer-0/metrics.jsonl $((rounds / 2))
at=$(last_round peer-0/metrics.jsonl)
peer 1 log-1-again
check "peer 1 is back at round $at and trains" wait_until 30 round_at_least peer-1/metrics.jsonl "$at"
first=$(figures first peer-1/metrics.jsonl round)
check "  from the others' model: its first round is $first" within "$first" "$at" "$rounds"
check "  and writes behind what it wrote before" [ "$(figures starts peer-1/metrics.jsonl)" = 2 ]

at=$(last_round peer-0/metrics.jsonl)
peer 3 log-3
check "peer 3 joins at round $at and trains" wait_until 30 round_at_least peer-3/metrics.jsonl "$at"
first=$(figures first peer-3/metrics.jsonl round)
check "  from the others' model: its first round is $first" within "$first" "$at" "$rounds"

end=$(($(now_ms) + 300000))
for i in 0 1 2 3; do
    left=$(((end - $(now_ms)) / 1000))
    check "peer $i ends with 0" finish "${pid[$i]}" $((left > 1 ? left : 1))
    [ "$failed" = 0 ] || end=$(now_ms) # After a failure the loop ends at once.
done
read -r _ relative _ < <(figures drift peer-{0,1,2,3}/model.safetensors)
check "exact relative drift of the four models: ${relative-none} <= 1.15e-3" within "${relative-none}" 0 1.15e-3
for i in 0 1 2 3; do
    check "peer $i: $(figures json peer-$i/summary.json verdict.text)" \
        [ "$(figures json peer-$i/summary.json verdict.kind) $(figures json peer-$i/summary.json verdict.n_among)" = "consensus 4" ]
    accuracy=$(figures json peer-$i/summary.json accuracy)
    check "peer $i: accuracy $accuracy" within "$accuracy" 0.95 1
done

e2e_end
