#!/usr/bin/env bash
# tests/e2e/schedules.sh -- kinds of momentum, schedules of local steps, and event-triggered exchange. A TCP cluster and the simulator
# give the same models; a killed run continues and gives the same models; invalid combinations of options are refused.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# tensors DIR: prints one hash of the tensors of all peers. The headers of the files are left out, because they may
# differ.
tensors()
{
    python3 -c '
import glob, hashlib, struct, sys
h = hashlib.sha256()
for path in sorted(glob.glob(sys.argv[1] + "/peer-*/model.safetensors")):
    b = open(path, "rb").read()
    h.update(b[8 + struct.unpack("<Q", b[:8])[0]:])
print(h.hexdigest())' "$1"
}

# equal NAME ARGS...: runs hearsay local and hearsay sim with ARGS, and compares the models.
equal()
{
    local name=$1 run
    shift
    run=(--peers 4 --model mlp:784-32-10 --data glyphs --rounds 60 --seed "$seed" "$@")
    for way in local sim; do
        bounded "$HEARSAY" $way "${run[@]}" --json --out "$way-$name" >"$way-$name.out" 2>"$way-$name.err" </dev/null
        check "$name: hearsay $way ends with 0" [ $? = 0 ]
    done
    check "$name: TCP and simulated, the same models" [ "$(tensors "local-$name")" = "$(tensors "sim-$name")" ]
}

# refuses TEXT REGEX ARGS...: hearsay sim ARGS ends with exit code 2 and a line that matches REGEX.
refuses()
{
    local text=$1 regex=$2
    shift 2
    bounded "$HEARSAY" sim --rounds 100 "$@" >refused.out 2>refused.err </dev/null
    check "$text" test $? = 2
    check "  $(cut -c 1-120 refused.err)" grep -qE -- "$regex" refused.err
}

# lines FILE N: checks whether FILE has at least N lines.
lines()
{
    [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

# goes_on NAME ARGS...: kills all processes of a run, continues it with the same command, and compares the models.
goes_on()
{
    local name=$1 run pid
    shift
    run=(local --peers 3 --model mlp:784-32-10 --rounds 1600 --seed "$seed" --checkpoint 0.1s "$@")
    check "$name: never interrupted" eval \
        'bounded "$HEARSAY" "${run[@]}" --out "whole-$name" >"whole-$name.out" 2>"whole-$name.err"'
    setsid "$HEARSAY" "${run[@]}" --out "killed-$name" >"killed-$name.out" 2>"killed-$name.err" </dev/null &
    pid=$!
    wait_until 60 lines "killed-$name/peer-0/metrics.jsonl" 400
    kill -9 -- "-$pid" # Kills the process group of the parent, which contains the peers.
    wait "$pid" 2>/dev/null
    check "$name: after a kill, the same command continues the run" eval \
        'bounded "$HEARSAY" "${run[@]}" --out "killed-$name" >"killed-$name.out" 2>"killed-$name.err"'
    check "  from a checkpoint" eval \
        '[ "$(sed -n "/\"start\"/{n;p}" "killed-$name/peer-0/metrics.jsonl" | tail -n 1 | figures_round)" -gt 100 ]'
    check "  to the same models, bit for bit" [ "$(tensors "whole-$name")" = "$(tensors "killed-$name")" ]
}

figures_round()
{
    python3 -c 'import json, sys; print(json.load(sys.stdin)["round"])'
}

# ---- momentum from the change of the model over a round ----

equal qg --topology ring --momentum-kind qg --partition label:2 --local-steps 3
equal auto-momentum --topology ring --momentum-kind auto --partition label:2
equal qg-dpsgd --topology ring --mixer dpsgd --gamma 1 --momentum-kind qg --nesterov false --overlap 1
equal qg-adamw --topology ring --optimiser adamw --lr 0.001 --momentum-kind qg --partition label:2 --local-steps 3
equal decentlam --topology ring --momentum-kind decentlam --partition label:2 --local-steps 3 --compress qsgd:4
equal averaged --topology ring --momentum-kind averaged --partition label:2 --local-steps 3
equal averaged-base --topology base:1 --momentum-kind averaged --partition label:2 --compress qsgd:4
equal averaged-adam --topology ring --optimiser adam --lr 0.001 --momentum-kind averaged --partition label:2 --local-steps 3
equal averaged-adamw --topology base:1 --optimiser adamw --weight-decay 0.01 --lr 0.001 --momentum-kind averaged --compress qsgd:4
equal tracking --topology ring --momentum-kind tracking --partition label:2 --local-steps 3
equal tracking-base --topology base:1 --momentum-kind tracking --partition label:2 --compress qsgd:4
equal local-base --topology base:1 --partition label:2 --compress qsgd:4
check "averaged: it is another training than with momentum of one's own" \
    [ "$(tensors sim-averaged-base)" != "$(tensors sim-local-base)" ]
check "tracking: it is another training than with momentum of one's own" \
    [ "$(tensors sim-tracking-base)" != "$(tensors sim-local-base)" ]
equal local-dpsgd --topology ring --mixer dpsgd --gamma 1 --nesterov false --overlap 1
check "qg: it is another training than with momentum of one's own" \
    [ "$(tensors sim-qg-dpsgd)" != "$(tensors sim-local-dpsgd)" ]
check "qg, decentlam: under label skew models are nearer to each other" python3 - "$HEARSAY" "$seed" <<'PY'
import json, subprocess, sys
def apart(kind):
    subprocess.run([sys.argv[1], "sim", "--peers", "8", "--topology", "ring", "--mixer", "dpsgd", "--gamma", "1",
        "--model", "logreg", "--data", "glyphs", "--partition", "label:1", "--rounds", "200", "--schedule", "constant",
        "--momentum-kind", kind, "--seed", sys.argv[2], "--out", "skew-" + kind], check=True, capture_output=True)
    drift = [json.loads(line).get("relative_drift") for line in open(f"skew-{kind}/peer-0/metrics.jsonl")]
    drift = [d for d in drift[100:200] if d]
    return sum(drift) / len(drift)
local, qg, lam = apart("local"), apart("qg"), apart("decentlam")
print(f"# relative drift in training: {local:.3g} with momentum of one's own, {qg:.3g} with qg, {lam:.3g} with decentlam")
assert qg < 0.7 * local and lam < 0.7 * local
PY
goes_on qg-adam --optimiser adam --lr 0.001 --momentum-kind qg --compress qsgd:4 --local-steps 3 --post-local 250 --one-step-last 1100
goes_on decentlam --momentum-kind decentlam --compress qsgd:4
goes_on averaged --momentum-kind averaged --compress qsgd:4
goes_on averaged-adam --momentum-kind averaged --optimiser adam --lr 0.001 --compress qsgd:4
goes_on tracking --momentum-kind tracking --compress qsgd:4
refuses "averaged momentum of Adam without a largest step" 'momentum-kind averaged: needs a --beta2 above the square' \
    --momentum-kind averaged --optimiser adam --beta2 0.5
refuses "tracked momentum of Adam" 'momentum-kind tracking: needs --optimiser sgd' --momentum-kind tracking --optimiser adam
refuses "averaged momentum with other mixers" 'momentum-kind averaged: needs --mixer choco' --momentum-kind averaged --mixer dpsgd
refuses "averaged momentum without lock step" 'momentum-kind averaged: needs --policy sync' --momentum-kind averaged --policy async
refuses "averaged momentum and a delayed exchange" 'momentum-kind averaged: needs --overlap 0' --momentum-kind averaged --overlap 1
refuses "averaged momentum and Byzantine members" 'momentum-kind averaged: cannot be combined with --byzantine' \
    --momentum-kind averaged --byzantine 1 --topology complete
refuses "averaged momentum and outer" 'momentum-kind averaged: cannot be combined with --outer' \
    --momentum-kind averaged --outer nesterov:0.7:0.9
refuses "qg without momentum" 'momentum-kind qg: needs a --momentum above 0' --momentum-kind qg --momentum 0
refuses "decentlam of Adam" 'momentum-kind decentlam: needs --optimiser sgd' --momentum-kind decentlam --optimiser adam
refuses "decentlam on a graph that changes" 'momentum-kind decentlam: needs a --topology with the same edges' \
    --momentum-kind decentlam --topology base:1
refuses "decentlam and a delayed exchange" 'momentum-kind decentlam: cannot be combined with --overlap 1' \
    --momentum-kind decentlam --overlap 1
refuses "decentlam without lock step" 'momentum-kind decentlam: needs --policy sync' --momentum-kind decentlam --policy async
refuses "decentlam and coarse deltas" 'momentum-kind decentlam: needs a precise codec in --compress' \
    --momentum-kind decentlam --compress topk:0.1
refuses "nesterov of decentlam" 'nesterov: only with .*a --momentum-kind other than decentlam' \
    --momentum-kind decentlam --nesterov true
refuses "qg where each does what it can" 'momentum-kind qg: needs a number for --local-steps' \
    --momentum-kind qg --local-steps auto
refuses "qg with factor masking" 'momentum-kind qg: cannot be combined with --factor-masking' --momentum-kind qg \
    --mixer average --compress topk:0.1 --factor-masking true
refuses "qg and an exchange that overshoots" 'momentum-kind qg: needs a --gamma of at most 1' \
    --momentum-kind qg --mixer dpsgd --gamma 1.3 --peers 8

# ---- advice for shards that differ ----

# advises N ARGS...: hearsay ARGS prints N lines of advice on stderr. With --momentum-kind auto the
# advice names only the topology.
advises()
{
    local n=$1 momentum=' --momentum-kind qg' args
    [[ $* == *"momentum-kind auto"* ]] && momentum='[,.]'
    shift
    args=("$@" --model logreg --batch 1 --rounds 1 --final-drift 0 --seed "$seed")
    bounded "$HEARSAY" "${args[@]}" >advice.out 2>advice.err </dev/null
    check "${*:1:7}: advice is given $n times" \
        [ "$?: $(grep -c "note: the data of the peers .*differ .*--topology base:1$momentum" advice.err)" = "0: $n" ]
}
advises 1 sim --peers 6 --partition dirichlet:0.1
check "  with its reason" grep -qF '(--partition dirichlet:0.1)' advice.err
advises 1 local --peers 6 --partition label:2
check "  with the settings for few peers" grep -qF 'or, for at most 32 peers, --mixer average' advice.err
advises 1 sim --peers 40 --partition label:2
check "  without the settings for few peers" [ "$(grep -c 'mixer average' advice.err)" = 0 ]
advises 1 sim --peers 6 --partition label:2 --compress none
check "  without settings that contradict --compress none" [ "$(grep -c 'mixer average' advice.err)" = 0 ]
advises 0 sim --peers 6
advises 0 sim --peers 4 --partition label:2
advises 0 sim --peers 6 --partition label:2 --topology ring
advises 0 sim --peers 6 --partition label:2 --momentum-kind local
advises 1 sim --peers 6 --partition label:2 --momentum-kind auto
check "  with the momentum that auto chose" grep -qF 'momentum-kind auto: if this peer starts the run, the run uses qg' advice.err
check "  without the momentum that is already in use" grep -q 'try --topology base:1[,.].* with qg 53 to 58' advice.err
advises 0 sim --peers 6 --partition label:2 --momentum-kind auto --optimiser adam --lr 0.001
check "  with the reason why auto did not choose qg" grep -qF \
    '(--partition label:2). --momentum-kind auto: chooses qg only with --optimiser sgd' advice.err
advises 0 sim --peers 6 --partition label:2 --momentum-kind auto --outer nesterov:0.7:0.8 --local-steps 10
check "  with the reason why auto did not choose qg" grep -qF \
    '(--partition label:2). --momentum-kind qg: cannot be combined with --outer' advice.err
advises 0 sim --peers 6 --momentum-kind auto
check "  with the momentum that auto chose" grep -qF 'the run uses local, because the shards are a random split' \
    advice.err
advises 0 sim --peers 6 --partition label:2 --momentum 0
advises 0 sim --peers 6 --partition label:2 --mixer allreduce --topology complete --compress none
"$HEARSAY" key new advice.key 2>advice.err
advises 1 peer --shard own --key advice.key --listen 127.0.0.1:0 --out advice-1
check "  with its reason" grep -qF '(--shard own)' advice.err
advises 0 peer --shard own --topology ring --momentum-kind auto --key advice.key --listen 127.0.0.1:0 --out advice-3
check "  with the momentum that auto chose" grep -qx 'momentum-kind=qg' advice-3/run.txt
advises 0 peer --shard own --topology ring --momentum-kind auto --key advice.key --listen 127.0.0.1:0 --out advice-3
check "  and keeps it when the peer is started again" grep -qx 'momentum-kind=qg' advice-3/run.txt
advises 0 peer --shard own --topology ring --key advice.key --listen 127.0.0.1:0 --out advice-2

# ---- runs with an outer optimiser ----

equal outer --topology ring --outer nesterov:0.7:0.9 --local-steps 5 --optimiser adamw --lr 0.002 --compress qsgd:4
equal outer-none --topology ring --local-steps 5 --optimiser adamw --lr 0.002 --compress qsgd:4
check "outer: it is another training than without" [ "$(tensors sim-outer)" != "$(tensors sim-outer-none)" ]
equal outer-overlap --topology ring --outer nesterov:0.7:0.5 --local-steps 3 --overlap 1 --compress topk:0.1
equal outer-allreduce --mixer allreduce --outer nesterov:0.7:0.9 --local-steps 4 --lr 0.003
equal outer-ps --mixer ps --outer nesterov:0.7:0.5 --local-steps 4
goes_on outer-trigger --outer nesterov:0.7:0.5 --trigger 2 --local-steps 3 --compress qsgd:4
for way in train local; do
    peers=() out=one-$way
    [ $way = train ] && out=one-train/peer-0 || peers=(--peers 1)
    bounded "$HEARSAY" $way "${peers[@]}" --model mlp:784-32-10 --rounds 60 --local-steps 4 --outer nesterov:0.7:0.9 \
        --seed "$seed" --out "$out" >one-$way.out 2>one-$way.err </dev/null
    check "outer: hearsay $way of one peer" [ $? = 0 ]
done
check "  the same model" [ "$(tensors one-train)" = "$(tensors one-local)" ]
refuses "an outer optimiser that does not exist" "outer: found 'adam:1:0.9', expected none, or nesterov:LR:MOMENTUM" \
    --outer adam:1:0.9
refuses "outer and layers" 'outer nesterov:0.7:0.9: cannot be combined with --overlap layer' --outer nesterov:0.7:0.9 \
    --overlap layer
refuses "outer and a centre" 'outer nesterov:0.7:0.9: cannot be combined with --mixer sma' --outer nesterov:0.7:0.9 --mixer sma
refuses "outer and qg" 'momentum-kind qg: cannot be combined with --outer' --outer nesterov:0.7:0.9 --momentum-kind qg

# ---- runs with an event trigger ----

equal trigger --topology ring --trigger 2 --compress qsgd:4
equal trigger-off --topology ring --compress qsgd:4
equal trigger-overlap --topology ring --trigger 2 --overlap 1 --compress topk:0.1 --local-steps 3
check "trigger: it is another training than without" [ "$(tensors sim-trigger)" != "$(tensors sim-trigger-off)" ]
# empty FILE: prints the number of empty deltas of all peers in a result.
empty()
{
    python3 -c 'import json, sys; print(sum(p["empty_deltas"] for p in json.load(open(sys.argv[1]))["peers"]))' "$1"
}
check "  with empty deltas, as many over TCP as in the simulation" eval \
    '[ "$(empty sim-trigger.out)" -gt 100 ] && [ "$(empty sim-trigger.out)" = "$(empty local-trigger.out)" ]'
check "  and none without a trigger" [ "$(empty sim-trigger-off.out)" = 0 ]
refuses "trigger of updates" 'trigger 2: needs --mixer choco' --trigger 2 --mixer average
refuses "trigger and auto" 'trigger 2: needs a codec in --compress, not auto' --trigger 2 --compress auto
refuses "trigger and layers" 'trigger 2: cannot be combined with --overlap layer' --trigger 2 --overlap layer
refuses "trigger on a graph that changes" 'trigger 2: needs a --topology with the same edges' --trigger 2 --topology base:1
refuses "trigger and decentlam" 'momentum-kind decentlam: cannot be combined with --trigger' --trigger 2 \
    --momentum-kind decentlam

# ---- several learners in a process ----

goes_on learners --learners 3 --compress qsgd:4
refuses "learners and qg" 'learners 2: needs --momentum-kind local' --learners 2 --momentum-kind qg
refuses "learners and their layers" 'learners 2: cannot be combined with --overlap layer' --learners 2 --overlap layer
refuses "momentum of no centre" 'learner-momentum: only with --learners above 1' --learner-momentum 0.5
refuses "more learners than there may be" 'learners' --learners 65
for learners in 1 4; do
    bounded "$HEARSAY" sim --peers 4 --model logreg --learners $learners --epochs 1 --seed "$seed" --json \
        >learners-$learners.out 2>learners-$learners.err </dev/null
done
# An epoch has 20,000 samples, which are 156.25 steps of four batches of 32.
check "an epoch is 157 rounds of one learner each, or 40 of four" [ \
    "$(figures json learners-1.out rounds) $(figures json learners-4.out rounds)" = "157 40" ]
for threads in 1 3; do
    bounded "$HEARSAY" train --model mlp:784-32-10 --rounds 100 --learners 3 --threads $threads --seed "$seed" \
        --out train-$threads/peer-0 --json >train-$threads.out 2>train-$threads.err </dev/null
    check "train: three learners, $threads threads" [ $? = 0 ]
done
check "  and the models have the same bits" [ "$(tensors train-1)" = "$(tensors train-3)" ]
check "  of as many samples as they saw" [ "$(figures json train-1.out epochs)" = 0.48 ]
for rounds in 1 2; do
    bounded "$HEARSAY" train --model logreg --rounds $rounds --learners 4 --batch 512 --momentum 0 --clip 0.002 --lr 1 \
        --warmup 0 --schedule constant --seed "$seed" --out clip-$rounds --json >clip.out 2>clip.err </dev/null
done
# In each step, the model moves to the mean of four learners, which move in nearly the same direction. With --clip 0.002 and
# learning rate 1, a learner moves by at most 0.002 / sqrt(4 learners) = 0.001. The model therefore moves by at most
# 0.001 in the second step.
check "train: a gradient is cut by the root of the number of learners" python3 - <<'PY'
import array, struct
def model(rounds):
    b = open(f"clip-{rounds}/model.safetensors", "rb").read()
    return array.array("f", b[8 + struct.unpack("<Q", b[:8])[0]:])
way = sum((a - b) ** 2 for a, b in zip(model(1), model(2))) ** 0.5
print(f"# a way of {way:.3g}")
assert 0.0007 < way < 0.001001
PY
bounded "$HEARSAY" train --model logreg --rounds 9 --learners 3 --threads 4 >threads.out 2>threads.err </dev/null
check "train: more threads than learners are refused" [ "$?: $(cat threads.err)" = \
    "2: hearsay train: --threads: found 4, expected at most the value of --learners, 3" ]

# ---- local SGD, with one local step per round at first (post-local SGD) or at the end ----

equal sma --mixer sma --local-steps 2 --centre-momentum 0.8
equal ps --mixer ps
equal ps-coded --mixer ps --compress topk:0.05+qsgd:4
equal post-local --mixer allreduce --local-steps 5 --post-local 20
equal post-local-ring --topology ring --local-steps 4 --post-local 7 --overlap 1 --compress qsgd:4
equal one-step-last --topology base:1 --local-steps 5 --post-local 10 --one-step-last 20 --compress qsgd:4
check "post-local: one step a round, and from round 20 on five" python3 - <<'PY'
import json
for way in "local", "sim":
    for i in range(4):
        lines = [json.loads(line) for line in open(f"{way}-post-local/peer-{i}/metrics.jsonl")][1:]
        of = {line["round"]: (line["local_steps"], line["steps_done"]) for line in lines if line["settle_rounds"] == 0}
        assert all(of[r] == ((1, r) if r <= 20 else (5, 20 + 5 * (r - 20))) for r in range(1, 60)), of
PY
check "one-step-last: one step a round in rounds 1 to 10 and 41 to 60, five in the others" python3 - <<'PY'
import json
for way in "local", "sim":
    for i in range(4):
        lines = [json.loads(line) for line in open(f"{way}-one-step-last/peer-{i}/metrics.jsonl")][1:]
        of = {line["round"]: (line["local_steps"], line["steps_done"]) for line in lines if line["settle_rounds"] == 0}
        for r in range(1, 60):
            assert of[r] == ((1, r) if r <= 10 else (5, 10 + 5 * (r - 10)) if r <= 40 else (1, 160 + r - 40)), (r, of[r])
PY
for post in "0 0" "40 0" "0 40" "15 25"; do
    read -r first last <<<"$post"
    bounded "$HEARSAY" sim --peers 4 --model logreg --local-steps 5 --post-local "$first" --one-step-last "$last" --epochs 1 --seed "$seed" --json \
        >"epochs-$first-$last.out" 2>"epochs-$first-$last.err" </dev/null
done
# An epoch has 20,000 samples, which are 156.25 steps of four batches of 32.
check "an epoch is 32 rounds of 5 steps, or 40 of one and 24 of 5" [ \
    "$(for post in 0-0 40-0 0-40 15-25; do figures json epochs-$post.out rounds; done | xargs)" = "32 64 64 64" ]
refuses "post-local where each round has one step" 'post-local: only with --local-steps above 1' --post-local 5
refuses "post-local and steps by speed" 'post-local: only with --local-steps above 1' --post-local 5 --local-steps auto
refuses "one-step-last and steps by speed" 'one-step-last: only with --local-steps above 1' --one-step-last 5 --local-steps auto
refuses "both for the whole run" 'post-local 50 and --one-step-last 50: expected less than the 100 rounds' --post-local 50 --one-step-last 50 --local-steps 4
refuses "post-local for the whole run" 'post-local 100: expected less than the 100 rounds' --post-local 100 --local-steps 4

# ---- --mixer gossip: pairs of peers average their models ----

equal gossip --mixer gossip --peers 5
equal gossip-random --mixer gossip --topology matching:3 --compress fp16 --local-steps 2 --momentum-kind qg
bounded "$HEARSAY" sim --peers 8 --mixer gossip --model logreg --rounds 60 --final-drift 0 --seed "$seed" --json >pairs.out 2>pairs.err
bounded "$HEARSAY" sim --peers 8 --mixer dpsgd --model logreg --rounds 60 --final-drift 0 --seed "$seed" --json >ring.out 2>ring.err
half=$(python3 -c 'import json; print(json.load(open("pairs.out"))["bytes_sent"] / json.load(open("ring.out"))["bytes_sent"])')
check "gossip: half the bytes of a ring, $half" within "$half" 0.45 0.56
refuses "gossip on a ring" 'topology ring: cannot be combined with --mixer gossip: .*expected rotation:R' --mixer gossip --topology ring
refuses "gossip with more than one partner a round" 'topology base:2: cannot be combined with --mixer gossip' --mixer gossip --topology base:2
refuses "gossip that goes part of the way" 'gamma 0.5: cannot be combined with --mixer gossip' --mixer gossip --gamma 0.5
refuses "gossip of what is no model" 'expected none or fp16' --mixer gossip --compress qsgd:4

e2e_end
