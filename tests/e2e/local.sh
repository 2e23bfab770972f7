#!/usr/bin/env bash
# tests/e2e/local.sh -- hearsay local: the files that it writes, its output, and that all its processes end.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# ---- Output of a short run, checked by an independent reader. ----

bounded "$HEARSAY" local --peers 4 --topology ring --model logreg --data glyphs --rounds 300 \
    --compress topk:0.05 --seed "$seed" --out out --json >run.out 2>run.err </dev/null
check "hearsay local ends with 0" [ $? = 0 ]
models=()
for i in 0 1 2 3; do
    lines=$(figures lines out/peer-$i/metrics.jsonl)
    check "peer $i: metrics.jsonl, ${lines:-no} lines" within "$lines" 300 100000
    models+=("out/peer-$i/model.safetensors")
done
check "there are no other peers" [ ! -e out/peer-4 ]
read -r _ relative n_params _ < <(figures drift "${models[@]}")
check "the models read as safetensors: ${n_params-no} parameters" [ "${n_params-0}" = 7850 ]
said=$(figures json run.out relative_drift)
check "exact relative drift ${relative-none} <= 1.15e-3" within "${relative-none}" 0 1.15e-3
check "the JSON object at the end has the same drift: $said" \
    within "$(awk -v a="$said" -v b="${relative-0}" 'BEGIN { print (b > 0 ? a / b : "none") }')" 0.999 1.001
check "the closing object has 4 peers" [ "$(figures json run.out peers)" = 4 ]
worst=$(figures json run.out accuracy_min)
check "accuracy of the worst peer: $worst" within "$worst" 0.6 1
for i in 0 1 2 3; do
    "$HEARSAY" eval "out/peer-$i/model.safetensors" --data glyphs --json >eval.out 2>eval.err
    evaluated=$(figures json eval.out accuracy)
    check "peer $i: the accuracy by eval, $evaluated, equals that of the run" \
        within "$(awk -v a="$evaluated" -v b="$(figures json run.out peers.$i.accuracy)" 'BEGIN { print a - b }')" -1e-6 1e-6
done
"$HEARSAY" eval out/peer-0/model.safetensors --data glyphs >eval.out 2>eval.err
check "eval says what it was given" grep -q '^samples .* of glyphs: generated separately from the training samples$' eval.out
printf '1,2,0\n2,1,1\n1,3,0\n2,0,1\n' >rows.csv
"$HEARSAY" train --data csv:rows.csv --model logreg --batch 1 --rounds 1 --out rows >train.out 2>train.err
"$HEARSAY" eval rows/model.safetensors --data csv:rows.csv >eval.out 2>eval.err
check "  a share of the files" \
    grep -q ' 1 of csv/2x2/0/standard: a share of 0.1 of the files, held out when the model was trained on these files$' eval.out
"$HEARSAY" eval rows/model.safetensors --data csv:rows.csv,test=rows.csv >eval.out 2>eval.err
check "  or all of one" grep -q ' 4 of csv/2x2/0/standard: the held-out files that --data names$' eval.out
for key in drift rounds seconds bytes_sent bytes_received; do
    value=$(figures json run.out $key)
    check "$key: $value" within "$value" 1e-9 1e12
done

# ---- A run without --out leaves no files. ----

mkdir scratch
few=(--peers 2 --model logreg --data glyphs --rounds 20 --seed "$seed" --json)
TMPDIR=$PWD/scratch bounded "$HEARSAY" local "${few[@]}" >few.out 2>few.err </dev/null
check "without --out it ends with 0" [ $? = 0 ]
check "  leaves nothing behind" [ -z "$(ls scratch)" ]
check "  and the result names no directory: out is $(figures json few.out out)" grep -q '"out": *null' few.out
check "  and announces that at its start" grep -q 'deleted if the run ends in consensus' few.err
TMPDIR=$PWD/scratch bounded "$HEARSAY" local "${few[@]}" --lr 1000 >few.out 2>few.err </dev/null
check "without consensus it ends with 3" [ $? = 3 ]
check "  and its models are kept" [ -s "$(figures json few.out out)/peer-0/model.safetensors" ]

# ---- No process remains after the parent. ----

# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
begun()
{
    ! alive "$parent" || round_at_least "$1/peer-0/metrics.jsonl" 5
}

# endless NAME: starts a run that does not end by itself, and waits for its first rounds. The process ids of the run are
# $parent and ${children[@]}.
endless()
{
    start "$1" "$HEARSAY" local --peers 4 --model logreg --data glyphs --rounds 10000000 \
        --seed "$seed" --out "$1"
    parent=$started
    if ! wait_until 60 begun "$1" || ! alive "$parent"; then
        not_ok "$1: no rounds, or over too early"
        exit 1
    fi
    mapfile -t children < <(children_of "$parent")
    # If children outlive their parent, this script kills them when it ends.
    pids+=("${children[@]}")
    check "$1: 4 children" [ ${#children[@]} = 4 ]
}

endless interrupted
kill -INT "$parent"
check "Ctrl-C: the parent ends" wait_until 60 none_alive "$parent"
check "  and no child is alive" wait_until 60 none_alive "${children[@]}"

endless terminated
kill -TERM "$parent"
check "SIGTERM: the parent ends" wait_until 60 none_alive "$parent"
check "  and no child is alive" wait_until 60 none_alive "${children[@]}"
check "  and the models are there" [ -s terminated/peer-3/model.safetensors ]

endless hungup
# As a closing terminal does, the script sends SIGHUP to the parent and to all children.
kill -HUP "$parent" "${children[@]}"
check "SIGHUP to all: the parent ends" wait_until 60 none_alive "$parent"
check "  and no child is alive" wait_until 60 none_alive "${children[@]}"
check "  and the models are there" [ -s hungup/peer-3/model.safetensors ]

start alone "$HEARSAY" train --model logreg --data glyphs --rounds 10000000 --out alone
wait_until 60 test -s alone/metrics.jsonl
kill -HUP "$started"
finish "$started" 60
check "SIGHUP: hearsay train ends as by Ctrl-C" [ "$code" = 130 ]
check "  and its model is there" [ -s alone/model.safetensors ]

# lines_of DIR: prints the number of lines in all metrics.jsonl files below DIR.
lines_of()
{
    find "$1" -name metrics.jsonl -exec cat {} + 2>/dev/null | wc -l
}

# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
more_lines_than()
{
    [ "$(lines_of "$2")" -gt "$1" ]
}

# A run that nohup starts continues after a SIGHUP to all of its processes.
start nohup nohup "$HEARSAY" local --peers 2 --model logreg --data glyphs --rounds 10000000 --out nohup
parent=$started
wait_until 60 more_lines_than 5 nohup
mapfile -t children < <(children_of "$parent")
pids+=("${children[@]}")
kill -HUP "$parent" "${children[@]}"
check "nohup: a run continues after SIGHUP" wait_until 20 more_lines_than $(($(lines_of nohup) + 20)) nohup
kill -TERM "$parent"
check "  and SIGTERM ends it" wait_until 60 none_alive "$parent" "${children[@]}"

# start_blocked ARGS...: runs hearsay ARGS with blocked signals, as a parent process may leave them. hearsay must still
# react to these signals.
# shellcheck disable=SC2317 # This function is called indirectly, by start.
start_blocked()
{
    exec python3 -c '
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT, signal.SIGCHLD])
os.execv(sys.argv[1], sys.argv[1:])' "$HEARSAY" "$@"
}
start blocked start_blocked local --peers 2 --model logreg --data glyphs --rounds 10000000 --out blocked
parent=$started
check "started with signals blocked: the run is under way" wait_until 60 round_at_least blocked/peer-0/metrics.jsonl 5
mapfile -t children < <(children_of "$parent")
pids+=("${children[@]}")
kill -TERM "$parent"
check "  and SIGTERM ends it" wait_until 60 none_alive "$parent" "${children[@]}"

endless killed
kill -KILL "$parent"
check "SIGKILL of the parent: no child remains" wait_until 60 none_alive "${children[@]}"

endless bereft
kill -KILL "${children[2]}"
at=$(last_round bereft/peer-0/metrics.jsonl)
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
decided()
{
    ! alive "$parent" || round_at_least bereft/peer-0/metrics.jsonl $((at + 100))
}
# Whether the run ends or continues after one child was killed, no process may remain at the end.
check "one child killed: the run ends or continues" wait_until 120 decided
if alive "$parent"; then
    ok "one child killed: the others go on"
    kill -TERM "$parent"
    check "  and end on SIGTERM" wait_until 60 none_alive "$parent" "${children[@]}"
else
    check "one child killed: nothing is left" none_alive "${children[@]}"
fi

e2e_end
