#!/usr/bin/env bash
# tests/e2e/schedules.sh -- what differs from "momentum of one's own, and the same steps each round":
# the models of a cluster over TCP and of the simulator are equal, a killed run goes on to the bits that
# it would have had, and what does not go together is refused by name.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# tensors DIR: one hash of all peers' tensors. (The headers say more than the model.)
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

# equal NAME ARGS...: the same run, over TCP and simulated.
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

# refuses TEXT REGEX ARGS...: exit code 2 and a line that matches.
refuses()
{
    local text=$1 regex=$2
    shift 2
    bounded "$HEARSAY" sim --rounds 100 "$@" >refused.out 2>refused.err </dev/null
    check "$text" test $? = 2
    check "  $(cut -c 1-120 refused.err)" grep -qE -- "$regex" refused.err
}

# lines FILE N: has it so many?
lines()
{
    [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

# goes_on NAME ARGS...: all processes are killed on the way, and the same command goes on.
goes_on()
{
    local name=$1 run pid
    shift
    run=(local --peers 3 --model mlp:784-32-10 --rounds 2500 --seed "$seed" --checkpoint 0.1s "$@")
    check "$name: never interrupted" eval \
        'bounded "$HEARSAY" "${run[@]}" --out "whole-$name" >"whole-$name.out" 2>"whole-$name.err"'
    setsid "$HEARSAY" "${run[@]}" --out "killed-$name" >"killed-$name.out" 2>"killed-$name.err" </dev/null &
    pid=$!
    wait_until 60 lines "killed-$name/peer-0/metrics.jsonl" 700
    kill -9 -- "-$pid" # The peers are in its group, and on its leash.
    wait "$pid" 2>/dev/null
    check "$name: killed, the same command goes on" eval \
        'bounded "$HEARSAY" "${run[@]}" --out "killed-$name" >"killed-$name.out" 2>"killed-$name.err"'
    check "  from a checkpoint" eval \
        '[ "$(sed -n "/\"start\"/{n;p}" "killed-$name/peer-0/metrics.jsonl" | tail -n 1 | figures_round)" -gt 100 ]'
    check "  to the same models, bit for bit" [ "$(tensors "whole-$name")" = "$(tensors "killed-$name")" ]
}

figures_round()
{
    python3 -c 'import json, sys; print(json.load(sys.stdin)["round"])'
}

# ---- quasi-global momentum ----

equal qg --topology ring --momentum-kind qg --skew label:2 --local-steps 3
equal qg-dpsgd --topology ring --mixer dpsgd --gamma 1 --momentum-kind qg --nesterov false --overlap 1
equal local-dpsgd --topology ring --mixer dpsgd --gamma 1 --nesterov false --overlap 1
check "qg: it is another training than with momentum of one's own" \
    [ "$(tensors sim-qg-dpsgd)" != "$(tensors sim-local-dpsgd)" ]
check "qg: under label skew models are nearer to each other" python3 - "$HEARSAY" "$seed" <<'PY'
import json, subprocess, sys
def apart(kind):
    subprocess.run([sys.argv[1], "sim", "--peers", "8", "--topology", "ring", "--mixer", "dpsgd", "--gamma", "1",
        "--model", "logreg", "--data", "glyphs", "--skew", "label:1", "--rounds", "200", "--schedule", "constant",
        "--momentum-kind", kind, "--seed", sys.argv[2], "--out", "skew-" + kind], check=True, capture_output=True)
    drift = [json.loads(line).get("relative_drift") for line in open(f"skew-{kind}/peer-0/metrics.jsonl")]
    drift = [d for d in drift[100:200] if d]
    return sum(drift) / len(drift)
local, qg = apart("local"), apart("qg")
print(f"# relative drift in training: {local:.3g} with momentum of one's own, {qg:.3g} with qg")
assert qg < 0.7 * local
PY
goes_on qg --momentum-kind qg --compress qsgd:4
refuses "qg without momentum" 'momentum-kind qg: needs a --momentum over 0' --momentum-kind qg --momentum 0
refuses "qg of Adam" 'momentum-kind: only with --optimiser sgd' --momentum-kind qg --optimiser adam
refuses "qg where each does what it can" 'momentum-kind qg: needs a number of --local-steps' \
    --momentum-kind qg --local-steps auto
refuses "qg with factor masking" 'momentum-kind qg: not with --factor-masking' --momentum-kind qg \
    --mixer average --compress topk:0.1 --factor-masking true
refuses "qg and an exchange that overshoots" 'momentum-kind qg: needs a --gamma of at most 1' \
    --momentum-kind qg --mixer dpsgd --peers 8

# ---- pairs that take their mean ----

equal gossip --mixer gossip --peers 5
equal gossip-random --mixer gossip --topology matching:3 --compress fp16 --local-steps 2 --momentum-kind qg
bounded "$HEARSAY" sim --peers 8 --mixer gossip --model logreg --rounds 60 --final-drift 0 --seed "$seed" --json >pairs.out 2>pairs.err
bounded "$HEARSAY" sim --peers 8 --mixer dpsgd --model logreg --rounds 60 --final-drift 0 --seed "$seed" --json >ring.out 2>ring.err
half=$(python3 -c 'import json; print(json.load(open("pairs.out"))["bytes_sent"] / json.load(open("ring.out"))["bytes_sent"])')
check "gossip: half the bytes of a ring, $half" within "$half" 0.45 0.56
refuses "gossip on a ring" 'topology ring: not with --mixer gossip: .*expected rotation:R' --mixer gossip --topology ring
refuses "gossip with more than one partner a round" 'topology base:2: not with --mixer gossip' --mixer gossip --topology base:2
refuses "gossip that goes part of the way" 'gamma 0.5: not with --mixer gossip' --mixer gossip --gamma 0.5
refuses "gossip of what is no model" 'expected none or fp16' --mixer gossip --compress qsgd:4

e2e_end
