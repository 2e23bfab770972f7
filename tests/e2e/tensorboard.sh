#!/usr/bin/env bash
# tests/e2e/tensorboard.sh -- --tensorboard while a run goes on: read during it by records and checksums,
# held against metrics.jsonl, gone on with after a stop, begun anew, and a disk that takes no more.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
reader()
{
    python3 "$root/tests/e2e/report.py" "$@"
}
tensorboard=no
python3 -c 'import tensorboard' 2>/dev/null && tensorboard=yes || echo "# no tensorboard here: it is not asked"

# Bytes of all files of a logdir, by name.
sums()
{
    find "$1" -type f -exec sha256sum {} + | sort -k 2
}
# shellcheck disable=SC2317 # By wait_until.
points_at_least()
{
    [ "$(reader scalars "$1" "$2" 2>/dev/null | grep -c .)" -ge "$3" ]
}

# ---- Several peers, stopped on the way and gone on with. ----

run=(local --peers 3 --model logreg --data glyphs --local-steps 20 --policy sync --seed "$seed" --evaluate-every 10
    --evaluate-samples 200 --checkpoint 1s --out out --tensorboard logs/deep)
start first "$HEARSAY" "${run[@]}" --rounds 100000000
check "the run's figures come while it goes on" wait_until 60 points_at_least logs/deep/peer-1 loss 20
check "  its drift too" wait_until 60 points_at_least logs/deep/peer-1 relative_drift 2
check "  and it goes on" alive "$started"
check "  with a directory for each peer" [ "$(ls logs/deep | tr '\n' ' ')" = "peer-0 peer-1 peer-2 " ]
kill -INT "$started"
finish "$started" 60
check "interrupted" [ "$code" = 130 ]
for i in 0 1 2; do
    check "  the numbers of peer-$i are those of its lines" reader live "logs/deep/peer-$i" "out/peer-$i"
done
sums logs >before
start second "$HEARSAY" "${run[@]}" --rounds 100000000
sleep_until=$(($(last_round out/peer-1/metrics.jsonl) + 20))
check "gone on with" wait_until 60 round_at_least out/peer-1/metrics.jsonl "$sleep_until"
kill -INT "$started"
finish "$started" 60
check "  in the same directories" [ "$(ls logs/deep | tr '\n' ' ')" = "peer-0 peer-1 peer-2 " ]
check "  in files of their own" [ "$(find logs/deep/peer-1 -type f | wc -l)" = 2 ]
sums logs >after
check "  and what was there is as it was" [ -z "$(grep -vxFf after before)" ]
for i in 0 1 2; do
    check "  both files of peer-$i are one curve" reader live "logs/deep/peer-$i" "out/peer-$i"
    [ $tensorboard = no ] || check "  as TensorBoard has it" reader live-tensorboard "logs/deep/peer-$i" "out/peer-$i"
done

# ---- To an end, and begun anew. ----

short=(local --peers 2 --model logreg --data glyphs --rounds 30 --policy sync --seed "$seed" --tensorboard logs/short)
bounded "$HEARSAY" "${short[@]}" --out short --json >short.out 2>short.err
check "a run to its end" [ $? = 0 ]
check "  has the exact drift" within "$(reader scalars logs/short/all end/exact_relative_drift)" \
    "$(figures json short.out relative_drift | awk '{ print $1 * 0.999999 }')" "$(figures json short.out relative_drift | awk '{ print $1 * 1.000001 }')"
check "  and the last phase" reader live logs/short/peer-0 short/peer-0
sums logs/short >before
bounded "$HEARSAY" "${short[@]}" --out short >again.out 2>again.err
check "the same again has finished, and writes nothing" [ "$? $(sums logs/short | cmp - before && echo same)" = "0 same" ]
bounded "$HEARSAY" "${short[@]}" --out short --fresh >again.out 2>again.err
check "begun anew" [ $? = 0 ]
check "  it has directories of its own" [ "$(ls logs/short | tr '\n' ' ')" = "all all@2 peer-0 peer-0@2 peer-1 peer-1@2 " ]
sums logs/short >after
check "  and what was there is as it was" [ -z "$(grep -vxFf after before)" ]
check "  the new one has its own figures" reader live logs/short/peer-1@2 short/peer-1

# ---- One peer, and training alone. ----

"$HEARSAY" key new ours.key 2>/dev/null
bounded env HEARSAY_TENSORBOARD=logs/alone "$HEARSAY" peer --listen 127.0.0.1:0 --key ours.key --name one --data glyphs \
    --model logreg --rounds 20 --seed "$seed" --out one >one.out 2>one.err
check "a peer" [ $? = 0 ]
check "  says where its file is" grep -qF "TensorBoard's file is logs/alone/one/events.out.tfevents." one.err
bounded "$HEARSAY" train --model logreg --data glyphs --epochs 2 --seed "$seed" --tensorboard logs/alone --json >train.out 2>train.err
check "train" [ $? = 0 ]
check "  has its loss and its evaluations" [ "$(reader scalars logs/alone/train accuracy | wc -l)" -ge 2 ]
check "  the last of which is the result's" within "$(reader scalars logs/alone/train accuracy | tail -n 1)" \
    "$(figures json train.out test_accuracy | awk '{ print $1 - 1e-6 }')" "$(figures json train.out test_accuracy | awk '{ print $1 + 1e-6 }')"

# ---- What cannot be written. ----

echo mine >notes
for command in "local --peers 2" train "peer --listen 127.0.0.1:0 --key ours.key --name q --out q"; do
    # shellcheck disable=SC2086 # Words.
    bounded "$HEARSAY" $command --model logreg --data glyphs --rounds 5 --tensorboard notes/below >bad.out 2>bad.err
    check "${command%% *} into a file: exit code 2" [ $? = 2 ]
    check "  and one line" [ "$(grep -c . bad.err) $(grep -c 'tensorboard: cannot write to notes/below: Not a directory' bad.err)" = "1 1" ]
done
check "  which is as it was" [ "$(cat notes)" = mine ]
mkdir disk
if unshare -rm bash -c 'mount -t tmpfs -o size=64k none disk' 2>/dev/null; then
    # shellcheck disable=SC2016
    bounded unshare -rm bash -c 'mount -t tmpfs -o size=16k none disk && "$@"; code=$?; cp -r disk full; exit $code' full \
        "$HEARSAY" local --peers 2 --model logreg --data glyphs --rounds 300 --policy sync --seed "$seed" --tensorboard disk >full.out 2>full.err
    check "a disk that fills up stops nobody" [ $? = 0 ]
    check "  each says it once" [ "$(grep -c "cannot write disk/peer-[01]/events.*: No space left on device; training goes on" full.err)" = 2 ]
    for i in 0 1; do
        check "  what there is of peer-$i is whole" eval "[ \"\$(reader scalars full/peer-$i loss | wc -l)\" -ge 5 ]"
    done
else
    echo "# skipped: no disk can be made here"
fi
e2e_end
