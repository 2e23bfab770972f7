#!/usr/bin/env bash
# tests/e2e/lab_sinks.sh -- hearsay-lab tensorboard: event files of finished runs, and of a run that is followed, stopped
# and continued, are compared with metrics.jsonl. Also tests on_round of a Peer.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
take_lab
"$python" -c 'import google.protobuf' 2>/dev/null || "$python" -c 'import tensorboard' 2>/dev/null \
    || skip "$python has neither protobuf (Debian: python3-protobuf) nor tensorboard"

reader()
{
    python3 "$root/tests/e2e/lab_report.py" "$@"
}
tensorboard=no
python3 -c 'import tensorboard' 2>/dev/null && tensorboard=yes || echo "# TensorBoard itself is not installed, and not tested"

# ---- Sending finished runs ----

few=(--model logreg --data glyphs --evaluate-every 10 --seed "$seed")
bounded "$HEARSAY" local --peers 3 "${few[@]}" --rounds 30 --out ring >ring.out 2>ring.err </dev/null
check "a run of 3" [ $? = 0 ]
bounded "$HEARSAY" sim --peers 5 "${few[@]}" --rounds 20 --out simulated >sim.out 2>sim.err </dev/null
check "a simulated run of 5" [ $? = 0 ]
lab tensorboard ring simulated --logdir logs >logs.out 2>logs.err
check "event files of both" [ "$? $(cat logs.out)" = "0 logs" ]
check "  their scalars are the numbers of the lines" reader events logs ring simulated
find logs -type f -exec sha256sum {} + | sort >before
lab tensorboard ring simulated --logdir logs >logs.out 2>logs.err
check "  the same again gives the same files" eval 'find logs -type f -exec sha256sum {} + | sort | cmp - before'
[ $tensorboard = no ] || check "  as TensorBoard reads them" reader tensorboard logs/ring/peer-0 ring/peer-0
for file in logs/ring/peer-0/*; do
    echo "my notes" >"$file"
done
lab tensorboard ring --logdir logs/ring >logs.out 2>logs.err
check "a file of another program is not replaced" [ "$? $(cat logs/ring/peer-0/*)" = "2 my notes" ]
bounded "$HEARSAY" train --model logreg --data glyphs --epochs 2 --seed "$seed" --out alone --json >train.out 2>train.err
lab tensorboard alone --logdir train >logs.out 2>logs.err
check "training alone: the last accuracy is that of the result" within "$(reader scalars train/alone accuracy | tail -n 1)" \
    "$(figures json train.out test_accuracy | awk '{ print $1 - 1e-6 }')" "$(figures json train.out test_accuracy | awk '{ print $1 + 1e-6 }')"

# ---- A run that is still training (--follow) ----

# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
points_at_least()
{
    [ "$(reader scalars "$1" "$2" 2>/dev/null | grep -c .)" -ge "$3" ]
}
run=(local --peers 3 --model logreg --data glyphs --local-steps 20 --policy sync --seed "$seed" --evaluate-every 10
    --evaluate-samples 200 --checkpoint 1s --out out)
# The shell starts background jobs with SIGINT ignored, so the handler is set here.
start follow env HEARSAY_LIBRARY="$library" PYTHONPATH="$root/peer/api/python" "$python" -c 'import signal, sys
from hearsay.lab import cli
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(cli.main())' tensorboard out --logdir live --follow --every 0.1
follower=$started
start first "$HEARSAY" "${run[@]}" --rounds 100000000
first=$started
check "the figures of a run come while it trains" wait_until 60 points_at_least live/peer-1 loss 20
check "  and its drift" wait_until 60 points_at_least live/peer-1 relative_drift 2
check "  the run continues" alive "$first"
kill -INT "$first"
finish "$first" 60
check "interrupted" [ "$code" = 130 ]
start second "$HEARSAY" "${run[@]}" --rounds 100000000
second=$started
more=$(($(last_round out/peer-1/metrics.jsonl) + 20))
check "continued" wait_until 60 round_at_least out/peer-1/metrics.jsonl "$more"
kill -INT "$second"
finish "$second" 60
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
all_are_live()
{
    local i
    for i in 0 1 2; do
        reader live "live/peer-$i" "out/peer-$i" >live.log 2>&1 || return 1
    done
}
check "  both starts are one curve, with the numbers of the lines" wait_until 60 all_are_live
[ $tensorboard = no ] || check "  as TensorBoard reads it" reader live-tensorboard live/peer-1 out/peer-1
check "  the follower still waits" alive "$follower"
kill -INT "$follower"
finish "$follower" 60
check "  until Ctrl-C: exit code 130, no traceback" [ "$code $(grep -c Traceback follow.err)" = "130 0" ]
lab tensorboard out --logdir idle --follow --every 0.1 --idle 2 >idle.out 2>idle.err </dev/null
check "a run that was interrupted: --idle ends the follower, with a message" eval \
    '[ "$(wc -l <idle.err)" = 1 ] && grep -q "^hearsay-lab: out: no metrics.jsonl has grown for 2 s and there is no summary.json" idle.err'
check "  with all rounds" reader live idle/peer-1 out/peer-1
start short env HEARSAY_LIBRARY="$library" PYTHONPATH="$root/peer/api/python" "$python" -m hearsay.lab tensorboard short --logdir ended \
    --follow --every 0.1
bounded "$HEARSAY" local --peers 2 --model logreg --data glyphs --rounds 30 --policy sync --seed "$seed" --out short --json >short.json 2>short.err
finish "$started" 60
check "a run that ends: so does the follower" [ "$code" = 0 ]
check "  with all rounds" reader live ended/peer-0 short/peer-0
check "  and the exact drift" within "$(reader scalars ended/all end/exact_relative_drift)" \
    "$(figures json short.json relative_drift | awk '{ print $1 * 0.999999 }')" "$(figures json short.json relative_drift | awk '{ print $1 * 1.000001 }')"

# ---- Wrong usage is refused ----

echo mine >notes
lab tensorboard ring --logdir notes/below >bad.out 2>bad.err
check "a logdir in a file fails" [ "$? $(wc -l <bad.err) $(cat notes)" = "1 1 mine" ]
for bad in "nowhere --logdir x" "ring simulated --logdir x --follow" "ring --logdir x --every 0" "ring --logdir x --idle -1" \
    "ring --logdir x --idle nan"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    lab tensorboard $bad >bad.out 2>bad.err
    check "$bad: exit code 2 and one line" [ "$? $(wc -l <bad.err)" = "2 1" ]
done
for package in wandb mlflow; do
    mkdir -p "bare/$package" && echo 'raise ImportError("hidden")' >"bare/$package/__init__.py"
    bounded env HEARSAY_LIBRARY="$library" PYTHONPATH="$PWD/bare:$root/peer/api/python" "$python" -m hearsay.lab $package ring \
        $([ $package = wandb ] || echo --uri x) >bad.out 2>bad.err
    check "$package that is missing is named" [ "$? $(grep -c "$package is not installed (pip install $package" bad.err)" = "2 1" ]
done

# ---- The callback on_round ----

cat >rounds.py <<'PY'
import hearsay, numpy
from hearsay.lab.sinks import TensorBoard

calls = []


def train(rank, connect):
    model = hearsay.packed({"w": numpy.zeros(5, numpy.float32)})
    peer = connect(model)
    while not peer.over:
        model["w"] += 0.1 * (rank + 1 - model["w"])
        peer.step(1.0 / (1 + rank), 4)


def told(name, step, figures):
    calls.append((name, step, figures["round"] + figures["settle_rounds"], figures["loss"]))


if __name__ == "__main__":
    hearsay.simulate(3, train, rounds=6, on_round=told, seed=1)
    for rank in range(3):
        mine = [call for call in calls if call[0] == f"peer-{rank}"]
        steps = [step for _, step, _, _ in mine]
        # The last call of on_round is after the consensus phase.
        assert steps[:5] == [1, 2, 3, 4, 5] and len(steps) == 6 and steps[5] > 6, mine
        assert all(step == counted and loss == 1.0 / (1 + rank) for _, step, counted, loss in mine), mine
    hearsay.local(2, train, rounds=5, on_round=TensorBoard("hooked").on_round)

    failures = []
    names = []

    def failing(name, step, figures):
        names.append(name)
        if step == 3:
            raise KeyError("of on_round")

    hearsay.keygen("own.key")
    model = {"w": numpy.zeros(5, numpy.float32)}
    peer = hearsay.Peer(model, key="own.key", listen="127.0.0.1:0", name="me", rounds=6, on_round=failing, progress=False)
    while not peer.over:
        try:
            peer.step(1.0)
        except KeyError as error:
            failures.append((peer.round, str(error)))
    assert failures == [(3, "'of on_round'")] and set(names) == {"me"} and len(names) == 6, (failures, names)
    assert peer.finish().startswith("consensus") and peer.name == "me"
    try:
        hearsay.Peer(model, key="own.key", rounds=6, on_round=3)
    except TypeError as error:
        assert "on_round: found 3, expected a function or None" in str(error)
    else:
        raise AssertionError("on_round=3 was accepted")
PY
HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python bounded "$python" rounds.py >rounds.out 2>rounds.err
check "on_round" [ $? = 0 ]
check "  a sink in it: one file for each process of local()" [ "$(reader scalars hooked/rank-0 loss | tr '\n' ' ')" = "1.0 1.0 1.0 1.0 1.0 " ]
check "  with the figures of that process" [ "$(reader scalars hooked/rank-1 loss | head -n 1)" = 0.5 ]

e2e_end
