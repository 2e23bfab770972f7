#!/usr/bin/env bash
# tests/e2e/diverged.sh -- a run that diverges ends by itself, reports it, and does not count as success.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

run=(--peers 4 --model logreg --data glyphs --rounds 30 --compress topk:0.1 --gamma 2 --seed "$seed")
for way in sim local; do
    bounded "$HEARSAY" "$way" "${run[@]}" --out "$way" --json >"$way.out" 2>"$way.err" </dev/null
    check "$way: --gamma 2 ends by itself with 3" [ $? = 3 ]
    check "  and says why" grep -q 'the run diverged: the models diverged from each other in the consensus phase at gamma 2' "$way.err"
    check "  and reports no consensus" within "$(figures json "$way.out" relative_drift)" 1 1e30
    said=$(figures json "$way.out" peers.0.diverged)
    check "  and in JSON: $said" [ "$said" = "the models diverged from each other in the consensus phase at gamma 2" ]
    check "  soon: $(figures json "$way.out" settle_rounds) rounds of the consensus phase" \
        within "$(figures json "$way.out" settle_rounds)" 1 500
done

# With a learning rate of 1000 the loss grows without bound. The run returns once to the model of an earlier round, diverges
# again, and ends early. The stored model is from before the divergence.
for way in sim local; do
    bounded "$HEARSAY" $way --peers 3 --model lenet5 --data glyphs --rounds 1000 --lr 1000 --seed "$seed" \
        --out "$way-early" --json >early.out 2>early.err </dev/null
    check "$way: --lr 1000 ends with 3" [ $? = 3 ]
    check "  soon: $(figures json early.out rounds) rounds" within "$(figures json early.out rounds)" 1 20
    check "  after one return to an earlier model" grep -q 'training diverged (the loss is .*) and returns to the model of round 0; if training diverges again' early.err
    check "  the verdict reports the divergence, and that the loss began near 2.3" \
        grep -q 'the run diverged: the training loss ended at [0-9.e+]*, having begun at 2\.[0-9]*; the model is of round 0\.' early.err
    check "  in JSON, too" grep -q '"diverged": *"the training loss ended at' early.out
    check "  the stored model is usable: loss $(figures json early.out peers.0.test_loss)" \
        within "$(figures json early.out peers.0.test_loss)" 2 3
    check "  in a file" "$HEARSAY" eval "$way-early/peer-0/model.safetensors" --data glyphs
done

# If the loss grows more slowly, the run does all its rounds and is reported as diverged at the end.
timeout -k 5 60 "$HEARSAY" sim --peers 2 --model logreg --data glyphs --rounds 60 --lr 3 --seed "$seed" \
    --json >slow.out 2>slow.err
check "60 rounds at --lr 3 end with 3" [ $? = 3 ]
check "  by their losses" grep -q 'the training loss ended at [0-9.e+]*, having begun at 2\.[0-9]*\.' slow.err

# `hearsay train` that diverges also ends by itself with exit code 3, and reports the divergence.
"$HEARSAY" train --model logreg --data glyphs --rounds 60 --lr 1000 --seed "$seed" --out train --json >train.out 2>train.err
check "train at --lr 1000 ends with 3" [ $? = 3 ]
check "  and says why" \
    grep -q 'the run diverged: the training loss ended at [0-9.e+]*, having begun at 2\.[0-9]*; the model is of round 0\.' train.err
check "  and prints the accuracy of the stored model" within "$(figures json train.out test_loss)" 2 3
check "  in JSON, too" grep -q '"diverged": "the training loss ended at' train.out
check "  and keeps the model" [ -s train/model.safetensors ]
"$HEARSAY" train --model logreg --data glyphs --rounds 60 --seed "$seed" --json >train.out 2>train.err
check "train at the default --lr ends with 0" [ $? = 0 ]
check "  and diverged is null" [ "$(figures json train.out diverged)" = None ]

check "  and unlearnt is null" [ "$(figures json train.out unlearnt)" = None ]

# With a learning rate of 1e-9 the model does not change. The run must end with exit code 0 and say
# that the model is no better than guessing.
for way in train "sim --peers 2" "local --peers 2"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    bounded "$HEARSAY" $way --model lenet5 --data glyphs --rounds 100 --lr 1e-9 --seed "$seed" --json \
        >flat.out 2>flat.err </dev/null
    check "$way: --lr 1e-9 ends with 0" [ $? = 0 ]
    check "  and says that nothing was learnt" \
        grep -q 'warning: the model is no better than guessing: the training loss ended at 2\.3[0-9]*, and guessing has a loss of 2\.303' flat.err
    check "  in JSON, too" grep -q '"unlearnt": *"the training loss ended at' flat.out
done

# Of 4,000 rows, one in twenty has the label 1, and the learning rate is too low to learn it. The program must print that
# the accuracy is the share of the most frequent label, and end with exit code 0.
awk 'BEGIN { srand(3); for (i = 0; i < 4000; i++) { y = i % 20 == 0; printf "%.3f,%.3f,%d\n", y + 2 * rand(), rand(), y } }' >rare.csv
for way in train "sim --peers 2" "local --peers 2"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    bounded "$HEARSAY" $way --model logreg --data csv:rare.csv,test=rare.csv --rounds 300 --lr 0.001 --seed "$seed" --json --out "rare-${way%% *}" \
        >rare.out 2>rare.err </dev/null
    check "$way: with a label that 5 % of the samples have, the exit code is 0" [ $? = 0 ]
    check "  and says that nothing was learnt" \
        grep -q 'warning: the model is no better than guessing: the accuracy is [0-9.]* %, and always guessing the most frequent label gives 95\.[0-9]* %' rare.err
    check "  in JSON, too" grep -q '"unlearnt": *"the accuracy is [0-9.]* %' rare.out
done

# The warning is about the final model, which is evaluated on all held-out rows. The evaluations during training have
# 1,000 rows each, of which 94.7 % have the most frequent label.
awk 'BEGIN { srand(3); for (i = 0; i < 4000; i++) { y = i % 20 == 0 || i == 1 || i == 2 || i == 3; printf "%.3f,%.3f,%d\n", y + 2 * rand(), rand(), y } }' \
    >first.csv
"$HEARSAY" key new rare.key 2>rare.err
for shard in auto own; do
    bounded "$HEARSAY" peer --key rare.key --listen 127.0.0.1:0 --shard $shard --model logreg --data csv:first.csv,test=first.csv \
        --rounds 300 --evaluate-every 100 --evaluate-samples 1000 --lr 0.001 --seed "$seed" --out "shard-$shard" >shard.out 2>shard.err </dev/null
    final=$(sed -n 's/^finished .* accuracy \([0-9.]*\) % on 4000 .*/\1/p' shard.err)
    n=$(grep -c "guessing: the accuracy is $final %, and always guessing the most frequent label gives 94\.9[0-9] %" shard.err)
    # One line for the warning and one for the verdict.
    [ $shard = own ] && expected=0 || expected=2
    check "--shard $shard: the final accuracy is compared with the most frequent label only if the held-out rows are common" \
        [ "$n: $(grep -c 'no better than guessing' shard.err)" = "$expected: $expected" ]
done
"$HEARSAY" eval rare-train/model.safetensors --data csv:rare.csv,test=rare.csv --json >rare.out 2>rare.err
check "eval prints the same warning" grep -q 'warning: the model is no better than guessing: the accuracy is [0-9.]* %, and always guessing the most frequent label gives 95\.00 %' rare.err
check "  and the share of the most frequent label in JSON" [ "$(figures json rare.out majority)" = 0.95 ]

e2e_end
