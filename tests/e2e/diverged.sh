#!/usr/bin/env bash
# tests/e2e/diverged.sh -- a run that goes apart ends by itself, says so, and is no success.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

run=(--peers 4 --model logreg --data glyphs --rounds 30 --compress topk:0.1 --gamma 2 --seed "$seed")
for way in sim local; do
    timeout -k 5 60 "$HEARSAY" "$way" "${run[@]}" --out "$way" --json >"$way.out" 2>"$way.err" </dev/null
    check "$way: --gamma 2 ends by itself with 1" [ $? = 1 ]
    check "  and says why" grep -q 'the run diverged: in the last phase the models went apart at gamma 2' "$way.err"
    check "  and not that it agreed" within "$(figures json "$way.out" relative_drift)" 1 1e30
    said=$(figures json "$way.out" peers.0.diverged)
    check "  and in JSON: $said" [ "$said" = "in the last phase the models went apart at gamma 2" ]
    check "  soon: $(figures json "$way.out" settle_rounds) rounds of the last phase" \
        within "$(figures json "$way.out" settle_rounds)" 1 500
done

e2e_end
