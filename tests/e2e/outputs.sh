#!/usr/bin/env bash
# tests/e2e/outputs.sh -- output files of commands, by the rule in nn/files/replace.h: regular files are replaced, links are
# followed, devices, pipes and sockets are written to, and directories and input files are refused.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
take_lab

# ---- Inputs: a model, its rows and a run. ----

python3 - "$seed" <<'PY'
import random, sys
r = random.Random(int(sys.argv[1]))
with open("rows.csv", "w") as f:
    f.write("x,y,label\n")
    for i in range(200):
        c = i % 2
        f.write("%.3f,%.3f,%d\n" % (r.gauss(c, 0.3), r.gauss(-c, 0.3), c))
PY
bounded "$HEARSAY" train --model logreg --data csv:rows.csv --rounds 20 --seed "$seed" --out run >train.out 2>train.err
check "a model is trained" [ $? = 0 ]
cp run/model.safetensors m.safetensors
for name in rows.csv m.safetensors run/metrics.jsonl; do
    cp "$name" "kept.${name##*/}"
done

# The commands that write one file. The last argument is the output file.
commands=(predict eval report-page report-csv)
write()
{
    case $1 in
    predict) bounded "$HEARSAY" predict m.safetensors --data csv:rows.csv --out "$2" ;;
    eval) bounded "$HEARSAY" eval m.safetensors --data csv:rows.csv --logits "$2" ;;
    report-page) lab report run --force --out "$2" ;;
    report-csv) lab report run --force --csv "$2" ;;
    esac >write.out 2>write.err </dev/null
}

# same FILE COMMAND: compares FILE with the output of COMMAND.
same()
{
    cmp -s "$1" "whole.$2"
}

# refused WHAT COMMAND PATH: COMMAND with the output PATH ends with exit code 2 and a reason.
refused()
{
    write "$2" "$3"
    code=$?
    check "$2: $1 is refused: $(head -c 90 write.err)" eval '[ "$code" = 2 ] && grep -q "cannot write" write.err'
}

listener()
{
    python3 - "$1" "$2" <<'PY'
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.bind(sys.argv[1])
    s.listen(1)
    print("listens", flush=True)
    c, _ = s.accept()
    with open(sys.argv[2], "wb") as f:
        while True:
            b = c.recv(65536)
            if not b:
                break
            f.write(b)
PY
}

mkdir directory there
mknod null c 1 3 2>/dev/null && mknod full c 1 7 2>/dev/null && : >null 2>/dev/null && devices=1 || devices=
[ -n "$devices" ] || echo "# device files are not tested: this script may not make them"
for c in "${commands[@]}"; do
    write "$c" "whole.$c"
    check "$c writes a new file" [ $? = 0 -a -s "whole.$c" ]
    echo old >"old.$c"
    chmod 600 "old.$c"
    ln "old.$c" "hard.$c"
    write "$c" "old.$c"
    check "$c replaces a regular file and keeps its mode; another hard link keeps the old bytes" eval \
        'same "old.$c" "$c" && [ "$(stat -c %a "old.$c")" = 600 ] && [ "$(cat "hard.$c")" = old ]'

    echo old >"there/target.$c"
    ln -s "there/target.$c" "link.$c"
    ln -s "link.$c" "link-of-link.$c"
    write "$c" "link-of-link.$c"
    check "$c follows links" eval 'same "there/target.$c" "$c" && [ -L "link.$c" ] && [ -L "link-of-link.$c" ]'
    ln -s "there/new.$c" "dangling.$c"
    write "$c" "dangling.$c"
    check "$c makes the file to which a dangling link points" eval 'same "there/new.$c" "$c" && [ -L "dangling.$c" ]'

    mkfifo "pipe.$c"
    start "cat.$c" cat "pipe.$c"
    write "$c" "pipe.$c"
    code=$?
    finish "$started" 20
    check "$c writes to a pipe" eval '[ "$code" = 0 ] && [ -p "pipe.$c" ] && same "cat.$c.out" "$c"'
    start "socket.$c" listener "socket.$c" "got.$c"
    wait_until 20 grep -q listens "socket.$c.out"
    write "$c" "socket.$c"
    code=$?
    finish "$started" 20
    check "$c writes to a socket" eval '[ "$code" = 0 ] && [ -S "socket.$c" ] && same "got.$c" "$c"'
    write "$c" "socket.$c"
    code=$?
    check "$c reports a socket without a listener" eval '[ "$code" = 1 ] && grep -q "Connection refused" write.err && [ -S "socket.$c" ]'

    refused "a directory" "$c" directory
    for input in m.safetensors rows.csv run/metrics.jsonl; do
        case $c,$input in
        report-*,m.safetensors | report-*,rows.csv | [pe]*,run/*) continue ;;
        esac
        ln -f "$input" hard
        ln -sfn "$input" soft
        for path in "$input" hard soft "./there/../$input"; do
            refused "$path, an input," "$c" "$path"
        done
        check "  and $input is unchanged" cmp "$input" "kept.${input##*/}"
    done

    [ -n "$devices" ] || continue
    write "$c" null
    check "$c writes to a device, which stays a device" [ $? = 0 -a -c null ]
    write "$c" full
    code=$?
    check "$c reports a full device, which stays a device: $(tail -n 1 write.err)" eval \
        '[ "$code" = 1 ] && [ -c full ] && grep -q "No space left on device" write.err'
    ln -sfn full soft
    write "$c" soft
    code=$?
    check "  also behind a link" eval '[ "$code" = 1 ] && [ -c full ] && [ -L soft ]'
done

# If the reader of a pipe ends, the command reports an error. SIGPIPE must not kill the command.
start reader head -c 1 pipe.eval
python3 -c 'print("x,y,label"); [print("%d,%d,%d" % (i, i % 7, i % 2)) for i in range(40000)]' >many.csv
bounded "$HEARSAY" eval m.safetensors --data csv:many.csv,test=many.csv --logits pipe.eval >many.out 2>many.err
code=$?
check "a pipe without a reader is reported: $(tail -n 1 many.err)" eval '[ "$code" = 1 ] && grep -q "Broken pipe" many.err'
check "no temporary file is left" [ -z "$(find . -name '*.tmp-*')" ]

# ---- --check refuses an --out that the command without --check refuses. ----

echo mine >taken
ln -s nowhere dangling-out
mkdir -p lock-out/.lock peer-out && echo mine >peer-out/peer-0
for c in sim local train; do
    run=("$c" --model logreg --data glyphs --rounds 1)
    [ "$c" = train ] || run+=(--peers 2)
    for place in taken taken/x dangling-out lock-out peer-out "$(printf 'n%.0s' {1..300})"; do
        [ "$c:$place" != train:peer-out ] || continue # `train` makes no directories of peers.
        bounded "$HEARSAY" "${run[@]}" --out "$place" --check >checked.out 2>checked.err </dev/null
        code=$?
        bounded "$HEARSAY" "${run[@]}" --out "$place" >started.out 2>started.err </dev/null
        [ $? != 0 ] || not_ok "$c runs in ${place:0:20}"
        check "$c --check refuses ${place:0:20}: $(head -c 110 checked.err)" [ $code = 2 ]
    done
done
bounded "$HEARSAY" sim --model logreg --data glyphs --rounds 1 --peers 2 --out piped-out >piped-out.log 2>&1 </dev/null
for file in summary.json run.txt; do
    rm -f "piped-out/$file" && mkfifo "piped-out/$file"
    for flag in --check --fresh; do
        bounded "$HEARSAY" sim --model logreg --data glyphs --rounds 1 --peers 2 --out piped-out $flag >piped.out 2>piped.err </dev/null
        code=$?
        check "a pipe as $file, $flag: $(head -c 110 piped.err)" [ $code = 2 ]
    done
done

# A pipe in the directory of a peer must not block the command, which reads these files before it starts the peers.
local=("$HEARSAY" local --peers 2 --model logreg --data glyphs --rounds 1 --out piped-peer)
for file in metrics.jsonl checkpoint-0.safetensors checkpoint-1.safetensors summary.json run.txt .lock identity.key; do
    rm -rf piped-peer
    bounded "${local[@]}" >piped.out 2>piped.err </dev/null
    rm -f piped-peer/summary.json piped-peer/peer-0/{summary.json,"$file"}
    mkfifo "piped-peer/peer-0/$file"
    bounded "${local[@]}" >piped.out 2>piped.err </dev/null
    code=$?
    check "a pipe as peer-0/$file: $(grep -m 1 piped-peer/peer-0 piped.err | head -c 110)" \
        eval '[ $code = 2 ] && grep -q "piped-peer/peer-0[:/]" piped.err'
    [ $file != identity.key ] || continue # identity.key is not a file of the run.
    bounded "${local[@]}" --check >piped.out 2>piped.err </dev/null
    check "  with --check" [ $? = 2 ]
done
"$HEARSAY" key new piped.key 2>write.err
mkdir piped-identity && mkfifo piped-identity/identity.key
for option in "--out piped-identity" "--out other-identity --identity piped-identity/identity.key"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds two or four words.
    bounded "$HEARSAY" peer --key piped.key --listen 127.0.0.1:0 --model logreg --rounds 1 $option >piped.out 2>piped.err </dev/null
    code=$?
    check "a pipe as identity, $option: $(head -c 110 piped.err)" \
        eval '[ $code = 2 ] && grep -q "identity.key: found a named pipe, expected a regular file" piped.err'
done

# An input that is no regular file is refused at once.
mkfifo piped-input && ln -s piped-input linked-input && mkdir held-input
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket-input")'
for option in "sim --peers 2 --scenario" "sim --peers 2 --topology edges:" "sim --peers 2 --config" "sim --peers 2 --init" "sim --peers 2 --data csv:" \
    "peer --key" "peer --key piped.key --members" "peer --key piped.key --token @" "peer --key piped.key --identity"; do
    for pair in "piped-input,named pipe" "linked-input,named pipe" "held-input,directory" "socket-input,socket"; do
        [ "$option,${pair%%,*}" != "sim --peers 2 --data csv:,held-input" ] || continue # A directory of CSV files is an input.
        file=${pair%%,*}
        [[ $option = *[@:] ]] || file=" $file"
        # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
        timeout -k 5 $((10 * patience)) "$HEARSAY" $option$file --rounds 1 --out no-such-out >piped.out 2>piped.err </dev/null
        code=$?
        check "$option$file: $(head -c 110 piped.err)" \
            eval '[ $code = 2 ] && grep -q "${pair%%,*}: found a ${pair#*,}, expected a regular file" piped.err'
    done
done

# If a directory has the name of an output file, the run would fail only at its end. Such a directory must be refused
# at the start.
for file in run.txt summary.json model.safetensors metrics.jsonl promise; do
    rm -rf held && mkdir -p "held/$file"
    for c in "train" "peer --key piped.key --listen 127.0.0.1:0"; do
        # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
        timeout -k 5 $((10 * patience)) "$HEARSAY" $c --model logreg --data glyphs --rounds 1 --out held >piped.out 2>piped.err </dev/null
        code=$?
        check "${c%% *}, a directory as $file: $(head -c 110 piped.err)" eval \
            '[ $code = 2 ] && grep -q "held/$file: found a directory, expected a regular file" piped.err && [ "$(ls -A held)" = "$file" ]'
    done
done

# ---- Secrets are written to new files only. ----

for c in new identity; do
    for path in "old.predict" "pipe.predict" "dangling-$c" "directory" ${devices:+null}; do
        [ "${path%-*}" != dangling ] || ln -s "nowhere-$c" "$path"
        bounded "$HEARSAY" key "$c" "$path" >write.out 2>write.err </dev/null
        code=$?
        check "key $c refuses $path: $(head -c 90 write.err)" [ "$code" != 0 -a ! -e "nowhere-$c" ]
    done
done
check "  and all outputs are unchanged" eval 'same old.predict predict && [ -p pipe.predict ] && { [ -z "$devices" ] || [ -c null ]; }'

e2e_end
