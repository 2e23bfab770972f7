#!/usr/bin/env bash
# tests/e2e/progress.sh -- the progress of a run: one line that is redrawn on a terminal, a few plain lines elsewhere,
# accuracy during the run, and the state after Ctrl-C.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
command -v jq >/dev/null || skip "there is no jq here"
command -v script >/dev/null || skip "there is no script(1) here"

run=(--model mlp:784-32-10 --data glyphs --batch 50 --seed "$seed")

plain() { ! grep -q "$(printf '[\033\r]')" "$1"; }

# on_terminal NAME COMMAND: runs a command in a terminal of 132 columns. The output of the command is
# in NAME.screen.
on_terminal()
{
    TERM=${3-xterm} script -qec "stty cols 132 rows 20; exec $2" "$1.screen" >/dev/null 2>&1 </dev/null
    sed -i '1d;$d' "$1.screen"
}

# ---- Evaluations during the run: on by default, short, and without effect on the model. ----

for how in "train" "local --peers 2" "sim --peers 2"; do
    name=${how%% *}
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    bounded "$HEARSAY" $how "${run[@]}" --rounds 300 --json --out "$name" >"$name.out" 2>"$name.err" </dev/null
    check "$name ends with 0" [ $? = 0 ]
    # shellcheck disable=SC2086
    bounded "$HEARSAY" $how "${run[@]}" --rounds 300 --evaluate-every 0 --out "$name-0" >"$name-0.out" 2>&1 </dev/null
    check "$name --evaluate-every 0 ends with 0" [ $? = 0 ]
    dir=$name off=$name-0 round=.accuracy_round samples=.accuracy_samples
    if [ "$name" = train ]; then
        round=.test_round samples=.test_samples
    else
        dir=$name/peer-1 off=$name-0/peer-1
    fi
    check "$name: evaluations change no bit of the model" cmp "$dir/model.safetensors" "$off/model.safetensors"
    on_the_way() { jq -c "select($round != null and $round < 300) | [$round, $samples]" "$1/metrics.jsonl"; }
    check "$name: nine evaluations on the way, of known rounds and samples: $(on_the_way "$dir" | tr '\n' ' ')" eval \
        '[ "$(on_the_way "$dir" | wc -l)" = 9 ] && [ "$(on_the_way "$dir" | head -n 1)" = "[30,100]" ]'
    check "  and none where 0 is asked for" [ "$(on_the_way "$off" | wc -l)" = 0 ]
    check "$name: no control character in a file" plain "$name.err"
    check "  and few lines: $(wc -l <"$name.err")" [ "$(wc -l <"$name.err")" -le 40 ]
    check "  no nan or inf" eval '! grep -qiwE "nan|inf" "$name.err" "$name.out" "$dir/metrics.jsonl"'
done
check "options select other rounds and samples" eval '
    bounded "$HEARSAY" sim --peers 2 "${run[@]}" --rounds 30 --evaluate-every 7 --evaluate-samples 33 --out asked >asked.out 2>&1 &&
    [ "$(jq -c "select(.accuracy_round != null and .accuracy_round < 30) | [.accuracy_round, .accuracy_samples]" \
        asked/peer-0/metrics.jsonl | tr "\n" " ")" = "[7,33] [14,33] [21,33] [28,33] " ]'

# ---- Progress on a terminal. ----

endless() { echo "timeout -s INT $1 '$HEARSAY' $2 ${run[*]} --rounds 100000000"; }
on_terminal train "$(endless 4 train)"
check "train: a bar, a rate, and what is left" \
    grep -qaE '\[[=> ]+\] .* [0-9]+ %  .*[0-9.]+(e\+[0-9]+)?( rounds)?/s  .* left' train.screen
check "  on one line that is redrawn: $(tr -cd '\r' <train.screen | wc -c) times" eval \
    '[ "$(grep -ac "^.*rounds/s\|/s  " train.screen)" -le 2 ] && [ "$(tr "\r" "\n" <train.screen | grep -ac "/s  ")" -ge 5 ]'
check "  never wider than the terminal" eval \
    '! tr "\r" "\n" <train.screen | sed "s/\x1b\[[0-9]*[A-Z]//g" | grep -a "^\[" | grep -qaE "^.{132}"'
check "  Ctrl-C leaves the result so far" grep -qa '^trained  *[0-9]* rounds' train.screen
on_terminal peers "timeout -s INT 6 '$HEARSAY' local --peers 2 ${run[*]} --rounds 100000000 --out peers"
check "local: a line for each peer under it" eval 'grep -qa "peer-0 .*training" peers.screen && grep -qa "peer-1 .*training" peers.screen'
on_terminal dumb "'$HEARSAY' train ${run[*]} --rounds 100" dumb
check "TERM=dumb: no escape" eval '! grep -qa "$(printf "\033")" dumb.screen && grep -qa "round 100/100" dumb.screen'
export NO_COLOR=1
on_terminal nocolor "'$HEARSAY' train ${run[*]} --rounds 100"
unset NO_COLOR
check "NO_COLOR: no colour" eval '! grep -qaE "$(printf "\033")\[[0-9;]*m" nocolor.screen'

# ---- Interrupting with Ctrl-C. ----

# interrupt NAME FILE ARGS...: runs hearsay ARGS and sends SIGINT when FILE is not empty. The exit code must be 130.
interrupt()
{
    local name=$1 file=$2
    shift 2
    start "$name" "$HEARSAY" "$@"
    wait_until 60 test -s "$file"
    kill -INT "$started"
    finish "$started" 60
    check "$name: Ctrl-C ends it with 130" [ "$code" = 130 ]
}
many=(--rounds 100000000 --evaluate-every)
interrupt s-train st/metrics.jsonl train "${run[@]}" "${many[@]}" 1 --out st
check "  the result so far: $(head -n 1 s-train.out)" eval 'grep -qE "^accuracy  [0-9.]+ %$" s-train.out && grep -q "^trained" s-train.out'
check "  by the model of some round" grep -qE 'held out(, evaluated with the model of round [0-9]+)?$' s-train.out
interrupt s-local sl/peer-1/metrics.jsonl local --peers 2 "${run[@]}" "${many[@]}" 1 --out sl
check "  the table of what is known: $(grep '^accuracy ' s-local.out)" eval \
    'grep -qE "^peer-1 +[0-9.]+ %" s-local.out && grep -qE "^accuracy .* at round [0-9]+, on 1000 samples$" s-local.out'
check "  which says that it was stopped: $(tail -n 1 s-local.out)" grep -q '^stopped at round' s-local.out
interrupt s-sim ss/peer-1/metrics.jsonl sim --peers 2 "${run[@]}" "${many[@]}" 1 --out ss
check "  what is known, with the exact drift" eval 'grep -qE "^accuracy +[0-9.]+ % to" s-sim.out &&
    grep -qE "^drift +[0-9.e+-]+, relative [0-9.e+-]+ \(exact\)" s-sim.out && grep -q "^stopped at round" s-sim.out'
interrupt s-json sj/metrics.jsonl train "${run[@]}" "${many[@]}" 1 --out sj --json
check "  --json has it, and of which round" jq -e \
    '.interrupted and .exit_code == 130 and .test_round <= .round and .test_samples > 0 and .test_accuracy > 0' s-json.out

# ---- Progress of a resumed run. ----

resumable() { start "$1" "$HEARSAY" local --peers 2 --model logreg --data glyphs --batch 1 --lr 0.0001 --seed "$seed" --rounds 40000 --out again; }
stop_it() { kill -INT "$started" && finish "$started" 60; }
has_10000_lines() { [ "$(cat again/peer-1/metrics.jsonl 2>/dev/null | wc -l)" -ge 10000 ]; }
resumable first-start
check "a run is stopped after 10000 rounds" wait_until 60 has_10000_lines
stop_it
resumable second-start
check "  and resumed, with a rate in its progress" wait_until 60 grep -q 'rounds/s' second-start.err
stop_it
line=$(grep -m 1 'rounds/s' second-start.err)
check "  that counts the rounds of this start only: $line" python3 - "$line" again/peer-1/metrics.jsonl <<'END'
import json, re, sys

found = re.search(r"round (\d+)/\d+  ([\d.]+) rounds/s", sys.argv[1])
shown = (int(found[1]), float(found[2]))
first = last = (0, 0)  # (round, seconds): of the first metrics line since the last start, and of the round in the progress line.
before = -1
for text in open(sys.argv[2]):
    line = json.loads(text)
    if "round" not in line:
        continue
    now = (line["round"], line["time_s"])
    first = now if now[1] < before else first
    last = now if now[0] == shown[0] else last
    before = now[1]
assert first[0] >= 10000 and last[1] > first[1], (first, last)
rate = (last[0] - first[0]) / (last[1] - first[1])
assert shown[1] < 2 * rate, f"found {shown[1]} rounds/s, expected about {rate:.0f}"
END

# ---- Simulations of many peers. ----

bounded "$HEARSAY" sim --peers 100 --model logreg --data glyphs --rounds 5 --topology ring --compress qsgd:4 \
    --seed "$seed" >big.out 2>big.err </dev/null
check "sim --peers 100 prints $(wc -l <big.err) lines of progress" [ "$(wc -l <big.err)" -le 40 ]

# ---- Values that are not finite. ----

# Writes a model whose weights are finite, but so large that products of them are not.
python3 -c '
import array, struct
b = bytearray(open("train/model.safetensors", "rb").read())
at = 8 + struct.unpack("<Q", b[:8])[0]
n = (len(b) - at) // 4
b[at:] = array.array("f", [3e38 if i % 2 else -3e38 for i in range(n)]).tobytes()
open("wild.safetensors", "wb").write(b)'
bounded "$HEARSAY" train "${run[@]}" --rounds 30 --init wild.safetensors --json >nan.out 2>nan.err </dev/null
check "a loss that is no number ends with 3" [ $? = 3 ]
check "  in words: $(tail -n 1 nan.err | cut -c 1-160)" eval \
    'grep -qE "the run diverged: the loss is (not a number|infinite) since round [0-9]+" nan.err && ! grep -qwiE "nan|inf" nan.err'
check "  and JSON has no nan" eval 'jq -e ".diverged != null" nan.out >nan.jq && ! grep -qwiE "nan|inf" nan.out'

e2e_end
