#!/usr/bin/env bash
# tests/e2e/short.sh -- if file descriptors, memory or disk space run out, a command ends with a message, and no signal
# kills it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'
export HEARSAY # Exported, because the shells that the function full_disk starts use $HEARSAY.
run=(--key cluster.key --model logreg --rounds 1 --out out)

# short TEXT CODE REGEX LIMITS ARGS...: under `ulimit LIMITS`, hearsay ARGS ends with exit code CODE and a matching
# message.
short()
{
    local text=$1 code=$2 regex=$3 limits=$4 status
    shift 4
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    (ulimit $limits && bounded "$HEARSAY" "$@") >short.out 2>short.err </dev/null
    status=$?
    if [ "$status" = "$code" ] && grep -qE -- "$regex" short.err; then
        ok "$text: $(tail -n 1 short.err | cut -c 1-150)"
    else
        not_ok "$text: exit code $status, wanted $code and /$regex/: $(head -c 300 short.err)"
    fi
}

# ---- Invalid descriptors for --listen and --parent-fd. ----

check "a listening descriptor that is no socket" eval \
    '"$HEARSAY" peer "${run[@]}" --listen fd:0 </dev/null >fd.out 2>fd.err; [ $? = 2 ] &&
    grep -q "cannot listen on fd:0: socket operation on non-socket" fd.err'
check "a leash that is no descriptor" eval \
    '"$HEARSAY" peer "${run[@]}" --listen 127.0.0.1:0 --parent-fd 77 </dev/null >fd.out 2>fd.err; [ $? = 2 ] &&
    grep -q -e "--parent-fd 77: bad file descriptor" fd.err'

# ---- Too few file descriptors, too little memory. ----

for n in 6 7 8 9 10 11 12 13; do
    short "peer: $n descriptors" 1 '[Tt]oo many open files' "-n $n" peer "${run[@]}" --listen 127.0.0.1:0
done
for n in 6 9; do
    short "local: $n descriptors" 1 '[Tt]oo many open files' "-n $n" local --peers 2 --model logreg --rounds 1
done
if ! grep -qE "__[at]san_init" "$HEARSAY"; then # With little address space a sanitizer cannot start: it needs terabytes.
    # The address space is enough for the worker thread, but not for libuv's thread pool, whose
    # threads have stacks of 8 MiB. The peer must not be killed by a signal.
    (ulimit -v 100000 && exec timeout -s TERM 2 "$HEARSAY" peer "${run[@]}" --listen 127.0.0.1:0 \
        --bootstrap 127.0.0.1:9) >short.out 2>short.err </dev/null
    status=$?
    check "peer: little memory, and no peer at a numeric address: $status" [ "$status" -le 124 ]
    for command in train "sim --peers 2" "local --peers 2" "peer --listen 127.0.0.1:0 --key cluster.key"; do
        # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
        short "${command%% *}: a model that does not fit" 1 "out of memory for the (trainer|model's activations)" "-v 400000" \
            $command --model mlp:784-8192-8192-10 --rounds 1
    done
fi

# ---- Files that cannot be written, full disks. ----

# Test: if a directory has the name of an output file, the command fails before it trains.
for file in metrics.jsonl model.safetensors; do
    mkdir -p "taken-$file/$file" "taken-$file/peer-0/$file"
    short "train: a directory in the place of $file" 2 "taken-$file/$file: found a directory, expected a regular file" "-c 0" \
        train --model logreg --rounds 2 --out "taken-$file"
    short "sim: likewise" 2 "taken-$file/$file: found a directory, expected a regular file" "-c 0" \
        sim --peers 2 --model logreg --rounds 2 --out "taken-$file"
done
for file in metrics.jsonl model.safetensors summary.json; do
    mkdir -p "taken-$file/$file" "taken-$file/peer-0/$file"
    short "peer: a directory in the place of $file" 2 "taken-$file/$file: found a directory, expected a regular file" \
        "-c 0" peer --key cluster.key --listen 127.0.0.1:0 --model logreg --rounds 2 --out "taken-$file"
    short "local: likewise" 2 "taken-$file/$file: found a directory, expected a regular file" "-c 0" \
        local --peers 2 --model logreg --rounds 2 --out "taken-$file"
done

# Test: the model has 31 KiB, but a limit (ulimit -f) allows only files of at most 16 KiB.
for command in train "sim --peers 2" "peer --listen 127.0.0.1:0 --key cluster.key" "local --peers 2"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    short "${command%% *}: files may not be large enough" 1 'File too large|file too large' "-f 16 -c 0" \
        $command --model logreg --rounds 2 --out "small-${command%% *}"
done
# Test: the limit is set during training, so the model cannot be written although its disk space is reserved.
if command -v prlimit >/dev/null; then
    start limited "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key --model logreg --rounds 60 --local-steps 200 --out limited --quorum-timeout 1
    check "peer: trains" wait_until 60 round_at_least limited/metrics.jsonl 1
    prlimit --pid "$started" --fsize=16384
    finish "$started" 60
    check "  its model may not be written, and it ends by no signal: $code" [ "$code" = 1 ]
    check "  and reports it: $(grep 'model.safetensors' limited.err)" grep -q 'model.safetensors.*File too large' limited.err
    check "  and that it has failed" eval "tail -n 1 limited.err | grep -q ': failed: model.safetensors and [0-9]* lines of metrics.jsonl could not be written'"
fi

# full_disk KIB SCRIPT: runs a script in a directory with a disk of KIB KiB.
full_disk()
{
    mkdir -p disk
    unshare -rm bash -c "mount -t tmpfs -o size=${1}k none disk && { $2; }" >disk.out 2>disk.err </dev/null
}
if full_disk 64 true; then
    # The model has 31 KiB, and the metrics lines of 2,000 rounds fill the rest of the disk.
    # shellcheck disable=SC2016 # The inner shell, not this one, expands the variables in the string.
    full_disk 128 '"$HEARSAY" peer --key cluster.key --listen 127.0.0.1:0 --model logreg --rounds 2000 --batch 1 \
        --quorum-timeout 1 --out disk/a; status=$?; ls -l disk/a >&2; [ $status = 1 ] && [ -s disk/a/model.safetensors ] &&
        [ -s disk/a/summary.json ] && ! ls -A disk/a | grep -q reserve'
    check "peer: metrics fill the disk, the model and the summary are kept" [ $? = 0 ]
    check "  and it says which file suffered" grep -q 'cannot write disk/a/metrics.jsonl: no space left on device' disk.err
    # shellcheck disable=SC2016
    full_disk 64 'dd if=/dev/zero of=disk/b bs=1k count=40 2>/dev/null; "$HEARSAY" train --model logreg --rounds 2 --out disk/a
        [ $? = 1 ]'
    check "train: no room for the model, from the start" grep -q 'no room in disk/a for the model (96936 bytes are needed): No space left' disk.err
    # shellcheck disable=SC2016
    full_disk 256 'run="$HEARSAY local --peers 2 --model logreg --data glyphs --rounds 2000 --quorum-timeout 1 --out disk/l"
        $run >first 2>&1; code=$?; mount -o remount,size=4m disk; $run >second 2>second.err; [ "$code $?" = "1 1" ]'
    check "local: the same command prints the failure of a failed run again, with the same exit code: $(tail -n 1 second)" eval \
        '[ $? = 0 ] && [ "$(tail -n 1 first)" = "$(tail -n 1 second)" ] && ! grep -q "begins again" second.err &&
         grep -q "all peers of this run have finished before" second.err'
    "$HEARSAY" train --model logreg --rounds 2 --out trained >trained.out 2>&1
    # shellcheck disable=SC2016
    full_disk 8 '"$HEARSAY" eval trained/model.safetensors --logits disk/logits; [ $? = 1 ] && [ ! -e disk/logits ]'
    status=$?
    check "eval: no part of the logits is left: $(tail -n 1 disk.err)" eval \
        '[ $status = 0 ] && grep -q "logits: No space left on device" disk.err'
else
    echo "skipped: no disk of our own size"
fi

e2e_end
