#!/usr/bin/env bash
# tests/e2e/train_keep.sh -- `hearsay train` is killed, stopped, or has no space for its model. The same command
# continues, and ends with the model of a run that was not interrupted, bit for bit.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
command -v jq >/dev/null || skip "there is no jq here"

run=(train --model mlp:784-32-10 --rounds 20000 --batch 10 --seed "$seed" --checkpoint 0.05s
    --optimiser adam --lr 0.001 --evaluate-every 3 --local-steps 2 --outer nesterov:0.7:0.5)

# there DIR: succeeds if DIR has a checkpoint. newer DIR FILE: succeeds if DIR has a checkpoint that is newer than FILE.
there()
{
    ls "$1"/checkpoint-?.safetensors >/dev/null 2>&1
}

newer()
{
    [ -n "$(find "$1" -name 'checkpoint-?.safetensors' -newer "$2" 2>/dev/null)" ]
}

# tensors DIR: prints a hash of the tensors of the model. The header of the file is left out, because it may differ.
tensors()
{
    python3 -c '
import hashlib, struct, sys
b = open(sys.argv[1], "rb").read()
print(hashlib.sha256(b[8 + struct.unpack("<Q", b[:8])[0]:]).hexdigest())' "$1/model.safetensors"
}

same()
{
    check "$1: the model of a run that was never interrupted, bit for bit" [ "$(tensors whole)" = "$(tensors "$2")" ]
}

# once DIR: prints the lines of metrics.jsonl, without lines of rounds that a later start did again.
once()
{
    jq -s 'reduce .[] as $l ([];
      if $l.start then map(select(.round + (.settle_rounds // 0) <= $l.from_round)) else . + [$l] end)' "$1/metrics.jsonl"
}

check "never interrupted" eval 'bounded "$HEARSAY" "${run[@]}" --out whole >whole.out 2>whole.err'
check "  no checkpoint remains" eval '! there whole'

# ---- A run that is killed. ----

for k in 1 2 3; do
    touch mark
    start "killed$k" "$HEARSAY" "${run[@]}" --out killed
    wait_until 60 newer killed mark
    kill -KILL "$started"
    wait "$started" 2>/dev/null
    forget "$started"
done
check "killed three times, the same command continues the run" eval \
    'bounded "$HEARSAY" "${run[@]}" --out killed >killed.out 2>killed.err'
check "  $(head -n 1 killed.err)" grep -qE '^hearsay train: resuming from the checkpoint of round [1-9][0-9]* of 20000 in killed$' killed.err
same "  and ends" killed
once whole | jq -c '.[] | [.round, .loss, .test_loss]' >whole.lines
once killed | jq -c '.[] | [.round, .loss, .test_loss]' >killed.lines
check "  each epoch's line once, with the same figures" cmp whole.lines killed.lines
check "  its start lines say from where: $(jq -c 'select(.start).from_round' killed/metrics.jsonl | tr '\n' ' ')" eval \
    '[ "$(jq "select(.start).from_round" killed/metrics.jsonl | tail -n 1)" -gt 0 ]'

# ---- A run that is stopped. ----

start stopped "$HEARSAY" "${run[@]}" --out stopped --checkpoint 1h --json
wait_until 60 test -s stopped/metrics.jsonl
echoed TERM "$started" # Several signals within milliseconds, as from timeout(1), count as one request.
finish "$started" 60
at=$(jq .round stopped.out)
check "SIGTERM at round $at: exit code 130" [ "$code" = 130 ]
check "  $(tail -n 1 stopped.err)" grep -q "^hearsay train: interrupted at round $at of 20000, .*; the same command resumes from round $at$" stopped.err
check "  --json reports it" jq -e '.interrupted and .resumes_at == .round and (.test_loss == null) == (.test_round == null) and .exit_code == 130 and (.finished | not)' stopped.out
check "  and continues there" eval 'bounded "$HEARSAY" "${run[@]}" --out stopped --json >again.out 2>again.err;
    grep -q "checkpoint of round $at of 20000" again.err && jq -e "(.interrupted | not) and .resumes_at == null" again.out >again.jq'
same "  and ends" stopped
start none "$HEARSAY" "${run[@]}" --out none --checkpoint off
wait_until 60 test -s none/metrics.jsonl
kill -INT "$started"
finish "$started" 60
check "--checkpoint off writes no checkpoint, and a message says so" eval '! there none && grep -q "the same command starts again" none.err'

# ---- Damaged checkpoints, and checkpoints that cannot be written. ----

touch mark
start bad "$HEARSAY" "${run[@]}" --out bad
wait_until 60 newer bad mark
kill -INT "$started"
finish "$started" 60
cp -r bad other
python3 -c '
import glob
for path in glob.glob("bad/checkpoint-?.safetensors"):
    b = bytearray(open(path, "rb").read())
    b[len(b) // 2] ^= 1
    open(path, "wb").write(b)'
check "damaged checkpoints are reported, and training begins again" eval 'bounded "$HEARSAY" "${run[@]}" --out bad >bad.out 2>bad.err;
    grep -q "a checkpoint is damaged and will not be used" bad.err && grep -q "has no checkpoint: it begins again" bad.err'
same "  and ends" bad
start peer "$HEARSAY" local --peers 2 --model mlp:784-32-10 --rounds 1000000 --seed "$seed" --checkpoint 0.1s --out peers
wait_until 60 there peers/peer-0
kill -KILL "$started"
wait "$started" 2>/dev/null
forget "$started"
rm other/checkpoint-*
cp "$(find peers/peer-0 -name 'checkpoint-?.safetensors' | head -n 1)" other/checkpoint-0.safetensors
bounded "$HEARSAY" "${run[@]}" --out other >other.out 2>other.err
code=$?
check "one of another run is refused: $(tail -n 1 other.err | cut -c 1-120)" eval \
    '[ "$code" = 2 ] && grep -q "cannot be used: a peer of a cluster wrote the checkpoint; --fresh starts the run again$" other.err'

# told NAME LINES ARGS...: trains with checkpoints that cannot be written, about twenty per second, until metrics.jsonl has LINES
# lines. Checks that the first failure is reported at once, and later ones at growing intervals.
lines()
{
    [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}


told()
{
    local name=$1 lines=$2 n begin
    shift 2
    mkdir -p "$name/checkpoint.tmp/full"
    begin=$(now_ms)
    start "$name" "$HEARSAY" "$@" --out "$name"
    wait_until 60 grep -q 'cannot write: File exists' "$name.err"
    wait_until 60 lines "$name/metrics.jsonl" "$lines"
    kill -KILL "$started"
    wait "$started" 2>/dev/null
    forget "$started"
    n=$(grep -c 'cannot write: File exists.*(1*[0-9] so far)$' "$name.err")
    check "$1: checkpoints that cannot be written are reported $n times" \
        [ "$n" -ge 1 -a "$n" -le $((2 + ($(now_ms) - begin) / 10000)) ]
}
told no-room 15 "${run[@]}" --rounds 100000000
check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'
told no-room-peer 3000 peer --listen 127.0.0.1:0 --key cluster.key --name a --model mlp:784-32-10 --rounds 100000000 --checkpoint 0.05s

# ---- A model that cannot be written. ----

# During training a directory gets the name of the model file, so the model cannot be stored at the end.
start full "$HEARSAY" "${run[@]}" --out full --disk-timeout 600
wait_until 60 there full
mkdir full/model.safetensors
check "a model that cannot be stored stays in memory" wait_until 120 grep -q \
    'the model stays in memory; retrying for 600 s$' full.err
rmdir full/model.safetensors
finish "$started" 120
check "  until it can be: $(grep "after a retry" full.err)" eval '[ "$code" = 0 ] && grep -q "wrote the model to full after a retry$" full.err'
same "  and it is" full
start lost "$HEARSAY" "${run[@]}" --out lost --disk-timeout 0.1
wait_until 60 there lost
mkdir lost/model.safetensors
finish "$started" 120
check "beyond --disk-timeout it is lost: $(tail -n 1 lost.err | cut -c 1-160)" eval \
    '[ "$code" = 1 ] && grep -q "the model is lost, and the same command resumes from a checkpoint$" lost.err'
rmdir lost/model.safetensors
check "  which it does" eval 'bounded "$HEARSAY" "${run[@]}" --out lost >lost.out 2>lost.err; grep -q "^hearsay train: resuming from" lost.err'
same "  and ends" lost

e2e_end
