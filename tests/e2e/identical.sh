#!/usr/bin/env bash
# tests/e2e/identical.sh -- the result of a synchronous run depends only on its options and seed: hearsay local (over TCP) and
# hearsay sim give the same models, bit for bit.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# equal NAME ARGS...: runs hearsay local and hearsay sim with ARGS, and compares the models.
equal()
{
    local name=$1 run
    shift
    run=(--peers 4 --model lenet5 --data glyphs --rounds 30 --policy sync --seed "$seed" "$@")
    for way in local sim; do
        bounded "$HEARSAY" $way "${run[@]}" --json --out "$way-$name" >"$way.out" 2>"$way.err" </dev/null
        check "$name: hearsay $way ends with 0" [ $? = 0 ]
    done
    for i in 0 1 2 3; do
        check "$name: peer $i, TCP and simulated: the same model" \
            cmp "local-$name/peer-$i/model.safetensors" "sim-$name/peer-$i/model.safetensors"
    done
    read -r _ relative _ < <(figures drift "sim-$name"/peer-{0,1,2,3}/model.safetensors)
    echo "# $name: relative drift ${relative-none}"
    check "$name: the same figures in the same form" python3 - "$name" <<'PY'
import json, sys
figures = ("loss", "accuracy", "drift", "relative_drift", "drift_round", "own_distance", "gamma", "settle_rounds",
    "rung", "drift_excess", "drift_target")
closing = [json.load(open(way + ".out")) for way in ("local", "sim")]
for key in ("estimated_relative_drift", "accuracy_min", "accuracy_max", "rounds", "settle_rounds"):
    assert closing[0][key] == closing[1][key], (key, closing[0][key], closing[1][key])
for one, other in zip(*(c["peers"] for c in closing)):
    for key in ("loss", "accuracy", "test_loss", "relative_drift", "own_distance", "rung", "drift_excess", "drift_target"):
        assert one[key] == other[key], (one["name"], key, one[key], other[key])
assert closing[1]["bytes_sent"] >= closing[1]["bytes_received"], "received more than was sent"
for i in range(4):
    local, sim = ([json.loads(line) for line in open(f"{way}-{sys.argv[1]}/peer-{i}/metrics.jsonl")][1:]
                  for way in ("local", "sim"))
    assert len(local) == len(sim), (len(local), len(sim))
    for a, b in zip(local, sim):
        differ = {key for key in figures if a[key] != b[key]}
        assert not differ, (i, a["round"], differ)
PY
}

equal topk:0.05 --topology ring --compress topk:0.05
equal qsgd:4 --topology ring --compress qsgd:4
# With --topology base:2, neighbours and mixing weights change from round to round.
equal base --topology base:2 --peers 5
# The consensus phase uses the graph base:1, which gives the exact mean after one pass over its rounds.
equal one-pass --topology ring --final-topology base:1 --compress topk:0.05
equal average --topology complete --mixer average --compress topk:0.05 --factor-masking true --clip 4
equal dpsgd --topology ring --mixer dpsgd
equal dpsgd-half --topology complete --mixer dpsgd --compress fp16 --local-steps 3 --overlap 1
equal no-memory --topology ring --mixer average --compress randk:0.1 --error-feedback false
# Byzantine-robust mixing depends on all neighbours of a round, so the neighbours and their distances must
# be the same over TCP and in the simulator.
equal tolerate --topology complete --peers 5 --byzantine 1 --compress qsgd:4
equal pull --topology complete --peers 5 --byzantine 1 --max-pull 0.5 --compress qsgd:4
# With --overlap 1, deltas are sent before the local steps of a round end.
equal overlap --topology ring --overlap 1 --compress topk:0.05 --local-steps 3
equal overlap-norms --topology ring --overlap 1 --compress qsgd:4 --model resnet:8 --rounds 10 --batch 8
# Deltas are sent layer by layer. Over TCP a layer is sent when it is encoded, in the simulator at a computed time.
equal layers --topology ring --overlap layer --compress qsgd:8
check "layers: bytes were sent early, in the simulator most of them" python3 - <<'PY'
import json
for way, least in (("local", 0), ("sim", 0.5)):
    ahead = [json.loads(open(f"{way}-layers/peer-{i}/metrics.jsonl").read().splitlines()[-1])["bytes_ahead"] for i in range(4)]
    assert sum(ahead) > least * 4 * 2 * 50 * 61706, (way, ahead)
PY
equal layers-norms --topology ring --overlap layer --compress topk:0.3+qsgd:4 --model resnet:8 --rounds 10 --batch 8
# Batch norms: running statistics are sent in addition to the weights.
equal norms --topology ring --compress topk:0.05 --model resnet:8 --rounds 10 --batch 8
# --compress auto chooses the codec by the consensus distance. Each peer must choose the same codecs over TCP and in the
# simulator.
equal auto --topology ring --compress auto --drift-target 0.05 --rounds 100
# rungs WAY PEER: prints the codec of each round, one line per round.
rungs()
{
    sed -n 's/.*"round": *\([0-9]*\),.*"rung": *"\([^"]*\)".*/\1 \2/p' "$1-auto/peer-$2/metrics.jsonl"
}
for way in local sim; do
    bounded "$HEARSAY" $way --peers 4 --model logreg --data glyphs --rounds 3 --seed "$seed" >few.out 2>few.err </dev/null
    check "$way: the last message names the codec that auto chose" \
        grep -q '^codec of the last rounds: qsgd:4, chosen by --compress auto$' few.out
    check "  and that three rounds were too few for the target" grep -q 'the consensus distance was not known during training' few.out
done
for i in 0 1 2 3; do
    rungs local $i >local.rungs
    rungs sim $i >sim.rungs
    check "auto: peer $i chooses the same levels, $(cut -d ' ' -f 2 sim.rungs | uniq | tr '\n' ' ')" cmp local.rungs sim.rungs
    check "  of which it has changed some" [ "$(cut -d ' ' -f 2 sim.rungs | uniq | wc -l)" -ge 2 ]
done
# Each process trains several learners.
equal learners --topology ring --compress topk:0.05 --learners 3
equal learners-sma --mixer sma --learners 2 --learner-momentum 0.5 --local-steps 2
equal learners-norms --topology ring --overlap 1 --compress qsgd:4 --learners 2 --model resnet:8 --rounds 10 --batch 4
# The peers of a TCP cluster find each other in any order. Short runs are repeated to test that the order has no effect.
short=(--peers 4 --topology ring --model logreg --data glyphs --rounds 5 --policy sync --compress topk:0.05
    --final-drift 0 --seed "$seed")
bounded "$HEARSAY" sim "${short[@]}" --out short-sim >short.out 2>short.err </dev/null
check "short: hearsay sim ends with 0" [ $? = 0 ]
same=0 times=${TIMES:-20}
for _ in $(seq "$times"); do
    bounded "$HEARSAY" local "${short[@]}" --out short --json >short.out 2>short.err </dev/null
    equal=yes
    for i in 0 1 2 3; do
        cmp -s short/peer-$i/model.safetensors short-sim/peer-$i/model.safetensors || equal=no
    done
    if [ $equal = yes ]; then
        same=$((same + 1))
    else
        echo "# one that differs: exchanges $(figures json short.out peers.0.exchanges), resets" \
            "$(for i in 0 1 2 3; do figures json short.out peers.$i.resets; done | tr '\n' ' ')"
    fi
done
check "$same of $times short runs are equal to the simulated one" [ "$same" = "$times" ]
check "and another compressor gives another model" \
    eval '! cmp -s sim-topk:0.05/peer-0/model.safetensors sim-qsgd:4/peer-0/model.safetensors'

e2e_end
