#!/usr/bin/env bash
# tests/e2e/drift.sh -- hearsay drift in a cluster that loses a peer. The output must say which models are missing or old.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

read -r pa pb pc < <(free_ports 3)
port=([0]=$pa [1]=$pb [2]=$pc)
"$HEARSAY" key new cluster.key 2>keygen.err
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
check "  with a warning: $(head -n 1 far.err)" grep -q 'warning: not every peer sent its model in time$' far.err
check "  the estimates are printed nevertheless" python3 -c '
import json
j = json.load(open("far.out"))
assert len(j["peers"]) == 3 and j["exact"] is None and j["drift"] > 0, j'

bounded "$HEARSAY" drift "${observe[@]}" >plain.out 2>plain.err
check "drift in words: rounds and ages" \
    [ "$(grep -cE '^peer-[0-2] +of round [0-9]+, [0-9]+ ago +drift [0-9]' plain.out)" = 3 ]
bounded "$HEARSAY" status "${observe[@]}" >status.out 2>status.err
check "status has them, too" [ "$(grep -cE '[0-9] @[0-9]+, [0-9]+ ago +[^ ]+ +[0-9.]+ [kMG]?B' status.out)" = 3 ]

# Text output. With --watch one line per measurement, without escape sequences, with the names of the two peers that are
# farthest apart.
check "  and the measurement of this command, with the two peers that are farthest apart" \
    grep -qE '^farthest +of round [0-9]+ +peer-[0-2] and peer-[0-2]: [0-9]' plain.out
bounded "$HEARSAY" drift "${observe[@]}" --watch --interval 0.2 --count 3 >watch.out 2>watch.err
code=$?
check "--watch: three lines, exit code $code" [ "$code $(grep -cE \
    '^ +[0-9.]+ s  of round [0-9]+, [0-9]+ ago  drift [0-9.e-]+ .* error [0-9.]+ %\)  farthest peer-[0-2] and peer-[0-2]: ' \
    watch.out)" = "0 3" ]
check "  no escapes" eval '! grep -q "$(printf "\033")" watch.out'
bounded "$HEARSAY" drift "${observe[@]}" --watch --interval 0.2 --count 2 --exact --layers --json >watch.json 2>watch.err
check "--watch --exact --layers --json: objects that name round and tensors" python3 -c '
import json
looks = [json.loads(line) for line in open("watch.json")]
assert len(looks) == 2, looks
for j in looks:
    assert j["exact"]["round_min"] == j["exact"]["round_max"] and j["exact"]["models"] == 3, j
    assert sorted(l["name"] for l in j["layers"]) == ["fc1.bias", "fc1.weight"], j["layers"]
    assert j["layers"][0]["drift"] >= j["layers"][1]["drift"] and j["farthest"]["names"], j
assert looks[0]["exact"]["round_max"] < looks[1]["exact"]["round_max"]
assert looks[0]["time_s"] < looks[1]["time_s"]'

# Two commands measure the same future round, one by sketches and one by exact models. The distances of
# a layer by both commands must differ by at most four times the error that the first command prints.
at=$(($(last_round peer-0/metrics.jsonl) + 2000))
start sketched "$HEARSAY" drift "${observe[@]}" --layers --round "$at" --json
sketched=$started
start models "$HEARSAY" drift "${observe[@]}" --layers --exact --round "$at" --json
models=$started
finish "$sketched" 60
check "layers of round $at by sketches: exit code $code" [ "$code" = 0 ]
finish "$models" 60
check "  by models: exit code $code" [ "$code" = 0 ]
check "  $(python3 -c '
import json
s, m = json.load(open("sketched.out")), json.load(open("models.out"))
print("fc1 %.4e by sketches, %.4e exact" % (s["layers"][0]["drift"], m["exact"]["drift"]))')" python3 -c '
import json, math
s, m = json.load(open("sketched.out")), json.load(open("models.out"))
assert s["sketches"]["round"] == m["exact"]["round_max"] == m["exact"]["round_min"], (s, m)
layer, exact = s["layers"][0], math.hypot(*(l["drift"] for l in m["layers"]))
assert layer["name"] == "fc1" and 0.02 < layer["error"] < 0.0443, layer
assert abs(exact - m["exact"]["drift"]) < 1e-9 * exact, (exact, m["exact"])
for got in layer["drift"], s["sketches"]["drift"]:
    assert abs(got / exact - 1) <= 4 * layer["error"], (got, exact)'
bounded "$HEARSAY" drift "${observe[@]}" --layers --round 3 >past.out 2>past.err
code=$?
check "layers of a round that is past: exit code $code, $(cat past.err)" [ "$code" = 1 ]
check "  the error names the round" grep -qE '^hearsay drift: round 3 is over; received sketches of round [0-9]+|of different rounds' past.err
start stopped "$HEARSAY" drift "${observe[@]}" --watch --interval 0.2
watching=$started
check "a measurement is printed" wait_until 60 grep -q 'farthest' stopped.out
kill -INT "$watching"
finish "$watching" 30
check "Ctrl-C ends a watch with what it has: exit code $code" [ "$code" = 130 ]
check "  $(cat stopped.err)" grep -qE 'stopped; the last figure: round [0-9]+, drift [0-9.e-]+, relative [0-9.e-]+ \(by sketches\)$' stopped.err
for wrong in "--count 3" "--round 5" "--watch --round 5 --exact" "--watch peer-0/model.safetensors"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    "$HEARSAY" drift "${observe[@]}" $wrong >wrong.out 2>wrong.err
    code=$?
    check "drift $wrong: exit code $code, $(cat wrong.err)" [ "$code $(wc -l <wrong.err)" = "2 1" ]
done

# drift waits for a future round. Then peer 2 is killed, and the other two peers lack the quorum, so
# the run never reaches this round. drift must warn that a model is missing.
start gone "$HEARSAY" drift "${observe[@]}" --exact --round 1000000000 --timeout 20 --json
waiting=$started
at=$(last_round peer-0/metrics.jsonl)
check "time passes" wait_until 60 round_at_least peer-0/metrics.jsonl $((at + 300))
kill -KILL "${pid[2]}"
wait "${pid[2]}" 2>/dev/null
forget "${pid[2]}"
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
held()
{
    "$HEARSAY" status "${observe[@]}" --json >status.out 2>status.err
    python3 -c '
import json, sys
sys.exit(sum(m.get("holds", False) for m in json.load(open("status.out"))["members"]) != 2)'
}
check "two of three peers lack the quorum" wait_until 60 held
finish "$waiting" 60
check "the model of a dead peer is missing: $(head -n 1 gone.err)" \
    grep -q 'warning: not every peer sent its model in time$' gone.err

# With one live peer left, drift must print its model at once. A single peer makes no estimates, so
# drift must not wait for an estimate until its timeout.
kill -KILL "${pid[1]}"
wait "${pid[1]}" 2>/dev/null
forget "${pid[1]}"
bounded "$HEARSAY" drift "${observe[@]}" --exact --round 1 --timeout 86400 --json >held.out 2>held.err
code=$?
check "drift of a peer without quorum: exit code $code, $(tail -n 1 held.err)" [ "$code" = 1 ]
check "  its model came: $(figures json held.out exact.models)" [ "$(figures json held.out exact.models)" = 1 ]

kill -TERM "${pid[0]}"
finish "${pid[0]}" 60
check "it ends with 0" [ "$code" = 0 ]

# With --policy async, the estimates of the peers are of different rounds.
start async "$HEARSAY" local --peers 3 --policy async --model logreg --data glyphs --rounds 1000000 --seed "$seed" --out async
check "three peers without lock step" wait_until 60 round_at_least async/peer-0/metrics.jsonl 200
first=$(sed -n 's/.*3 peers, \(127.0.0.1:[0-9]*\) .*/\1/p' async.err)
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
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
# With --policy async, the final estimates of the peers are of different rounds. The result is the mean of the estimates for
# the newest round.
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


# drift --watch ends when the run ends. Comparing the stored models then gives the same distance as the run printed.
start run "$HEARSAY" local --peers 3 --model mlp:784-32-10 --data glyphs --rounds 3000 --seed "$seed" --out run --json
running=$started
check "three peers train to the end" wait_until 60 round_at_least run/peer-0/metrics.jsonl 50
first=$(sed -n 's/.*3 peers, \(127.0.0.1:[0-9]*\) .*/\1/p' run.err)
bounded "$HEARSAY" drift --bootstrap "$first" --key run/cluster.key --watch --interval 0.2 >over.out 2>over.err
code=$?
check "a watch ends with the run: exit code $code, $(tail -n 1 over.err)" [ "$code" = 0 ]
check "  and prints the last figure" grep -qE 'the run is over; the last figure: round [0-9]+, drift ' over.err
finish "$running" 60
"$HEARSAY" drift --layers run/peer-*/model.safetensors --json >files.json 2>files.err
check "drift of files: $(figures json files.json relative_drift)" python3 -c '
import json, math
f, run = json.load(open("files.json")), json.load(open("run.out"))
assert f["models"] == 3 and abs(f["drift"] / run["drift"] - 1) < 1e-6, (f, run["drift"])
assert abs(math.hypot(*(l["drift"] for l in f["layers"])) / f["drift"] - 1) < 1e-6, f
assert sorted(l["name"] for l in f["layers"]) == ["fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"], f
assert sum(l["share"] for l in f["layers"]) > 0.999, f
assert all(n.endswith("model.safetensors") for n in f["farthest"]["names"]), f'
head -c 100 run/peer-0/model.safetensors >cut.safetensors
"$HEARSAY" drift run/peer-0/model.safetensors cut.safetensors >bad.out 2>bad.err
code=$?
check "drift of half a file: exit code $code, $(cat bad.err)" [ "$code $(wc -l <bad.err)" = "2 1" ]

e2e_end
