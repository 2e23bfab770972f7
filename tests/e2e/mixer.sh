#!/usr/bin/env bash
# tests/e2e/mixer.sh -- --mixer average: effect of error feedback and of momentum factor masking (Deep Gradient Compression),
# and refused combinations of flags.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# accuracy NAME ARGS...: runs a simulation and prints the final accuracy of the first peer.
accuracy()
{
    local name=$1
    shift
    bounded "$HEARSAY" sim --peers 4 --topology complete --mixer average --model logreg --data glyphs \
        --rounds 600 --momentum 0 --lr 0.02 --seed "$seed" --json "$@" >"$name.out" 2>"$name.err" </dev/null ||
        echo "# $name: exit code $?: $(tail -n 1 "$name.err")" >&2
    figures json "$name.out" accuracy_min
}

# apart LESS MORE: prints the difference of two accuracies, MORE - LESS, in percentage points.
apart()
{
    awk -v a="$1" -v b="$2" 'BEGIN { print (b - a) * 100 }'
}

dense=$(accuracy dense --compress none)
top=$(accuracy top --compress topk:0.01)
top_plain=$(accuracy top-plain --compress topk:0.01 --error-feedback false)
rand=$(accuracy rand --compress randk:0.01)
rand_plain=$(accuracy rand-plain --compress randk:0.01 --error-feedback false)
echo "# dense $dense; top-1 % $top, without memory $top_plain; random 1 % $rand, without $rand_plain"
check "dense learns" within "$dense" 0.7 0.9
check "top-1 % with error feedback: within a point of dense" within "$(apart "$top" "$dense")" -3 1
check "top-1 % without: at least four points less" within "$(apart "$top_plain" "$dense")" 4 100
check "random 1 % with error feedback: within 1.5 points" within "$(apart "$rand" "$dense")" -3 1.5
check "random 1 % without: at least twenty less" within "$(apart "$rand_plain" "$dense")" 20 100

dgc=$(accuracy dgc --compress topk:0.01 --momentum 0.9 --lr 0.005 --factor-masking true --clip 4)
echo "# DGC: momentum 0.9, factor masking, clipping: $dgc"
check "DGC learns, too" within "$(apart "$dgc" "$dense")" -5 4
clipped=$(accuracy clipped --compress none --clip 0.01)
check "a gradient clipped to nearly nothing learns less" within "$(apart "$clipped" "$dense")" 5 100

check "models are equal at the end" within "$(figures json top.out relative_drift)" 0 0.001

# refuses TEXT REGEX ARGS...: hearsay sim ARGS ends with exit code 2 and a line that matches REGEX.
refuses()
{
    local text=$1 regex=$2
    shift 2
    bounded "$HEARSAY" sim --rounds 1 "$@" >refused.out 2>refused.err </dev/null
    check "$text" test $? = 2
    check "$text: $(cut -c 1-120 refused.err)" grep -qE -- "$regex" refused.err
}

refuses "error feedback with CHOCO" 'error-feedback.*built in' --error-feedback true
refuses "factor masking with CHOCO" 'factor-masking.*average' --factor-masking true
refuses "averaging without lock step" 'policy sync' --mixer average --policy async
refuses "a lossy codec of whole models" 'expected none or fp16' --mixer dpsgd --compress qsgd:4
refuses "whole models in parts" 'overlap 1' --mixer dpsgd --overlap layer
refuses "a mixer of no kind" 'choco\|average' --mixer mean

e2e_end
