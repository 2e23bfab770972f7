#!/usr/bin/env bash
# tests/e2e/diverged.sh -- a run that goes apart ends by itself, says so, and is no success.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

run=(--peers 4 --model logreg --data glyphs --rounds 30 --compress topk:0.1 --gamma 2 --seed "$seed")
for way in sim local; do
    bounded "$HEARSAY" "$way" "${run[@]}" --out "$way" --json >"$way.out" 2>"$way.err" </dev/null
    check "$way: --gamma 2 ends by itself with 3" [ $? = 3 ]
    check "  and says why" grep -q 'the run diverged: in the last phase the models went apart at gamma 2' "$way.err"
    check "  and not that it agreed" within "$(figures json "$way.out" relative_drift)" 1 1e30
    said=$(figures json "$way.out" peers.0.diverged)
    check "  and in JSON: $said" [ "$said" = "in the last phase the models went apart at gamma 2" ]
    check "  soon: $(figures json "$way.out" settle_rounds) rounds of the last phase" \
        within "$(figures json "$way.out" settle_rounds)" 1 500
done

# An explosion within the first rounds must not pass for where the loss began.
for rounds in 100 3; do
    timeout -k 5 60 "$HEARSAY" sim --peers 2 --model logreg --data glyphs --rounds $rounds --lr 1000 --seed "$seed" \
        --json >early.out 2>early.err
    check "$rounds rounds at --lr 1000 end with 3" [ $? = 3 ]
    check "  and say that it began near 2.4" \
        grep -q 'the run diverged: the training loss ended at [0-9.e+]*, having begun at 2\.[0-9]*\.' early.err
    check "  in JSON, too" grep -q '"diverged": "the training loss ended at' early.out
done

# Training alone is judged alike.
"$HEARSAY" train --model logreg --data glyphs --rounds 60 --lr 1000 --seed "$seed" --out train --json >train.out 2>train.err
check "train at --lr 1000 ends with 3" [ $? = 3 ]
check "  and says why" grep -q 'the run diverged: the training loss ended at [0-9.e+]*, having begun at 2\.[0-9]*\.' train.err
check "  in JSON, too" grep -q '"diverged": "the training loss ended at' train.out
check "  and keeps the model" [ -s train/model.safetensors ]
"$HEARSAY" train --model logreg --data glyphs --rounds 60 --seed "$seed" --json >train.out 2>train.err
check "train at the default --lr ends with 0" [ $? = 0 ]
check "  and diverged is null" [ "$(figures json train.out diverged)" = None ]

e2e_end
