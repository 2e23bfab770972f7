#!/usr/bin/env bash
# tests/e2e/resume.sh -- all processes of a run are killed, and the same command continues it. The models equal those of a
# run that was not interrupted, bit for bit.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

run=(local --peers 3 --model mlp:784-32-10 --rounds 3000 --seed 5 --checkpoint 0.1s)

# tensors DIR: prints one hash of the tensors of all peers. The headers of the files are left out, because they may
# differ.
tensors()
{
    python3 -c '
import glob, hashlib, struct, sys
h = hashlib.sha256()
for path in sorted(glob.glob(sys.argv[1] + "/peer-*/model.safetensors")):
    b = open(path, "rb").read()
    h.update(b[8 + struct.unpack("<Q", b[:8])[0]:])
print(h.hexdigest())' "$1"
}

# lines FILE N: checks whether FILE has at least N lines.
lines()
{
    [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

# killed DIR ROUNDS: starts the run, and kills all processes when peer 0 has done ROUNDS more rounds.
killed()
{
    local dir=$1 more=$2 from=0 pid
    [ -f "$dir/peer-0/metrics.jsonl" ] && from=$(wc -l <"$dir/peer-0/metrics.jsonl")
    setsid "$HEARSAY" "${run[@]}" --out "$dir" >>"$dir.out" 2>>"$dir.err" </dev/null &
    pid=$!
    wait_until 60 lines "$dir/peer-0/metrics.jsonl" $((from + more))
    kill -9 -- "-$pid" # Kills the process group of the parent, which contains the peers.
    wait "$pid" 2>/dev/null
}

check "never interrupted" eval 'bounded "$HEARSAY" "${run[@]}" --out whole >whole.out 2>whole.err'

SEED=${SEED:-$RANDOM}
RANDOM=$SEED
for k in 1 2 3; do
    killed killed $((200 + RANDOM % 500))
done
check "the same command continues the run (SEED=$SEED)" eval \
    'bounded "$HEARSAY" "${run[@]}" --out killed >killed.out 2>killed.err'
check "and reports it" grep -q "resuming the run in killed" killed.err
check "from a checkpoint" eval \
    '[ "$(sed -n "/\"start\"/{n;p}" killed/peer-0/metrics.jsonl | tail -n 1 | jq .round)" -gt 100 ]'
check "to the same models, bit for bit (SEED=$SEED)" eval '[ "$(tensors whole)" = "$(tensors killed)" ]'
check "consensus, and no round skipped" grep -q "consensus of 3 of 3 .*no round skipped" killed.out
told=$(jq -r '"\(.checkpoints) checkpoints, \(.checkpoint_s) s"' killed/peer-0/summary.json)
check "the time for checkpoints is reported: $told" eval \
    'jq -e ".checkpoints > 0 and .checkpoint_s > 0 and .checkpoint_s < .time_s" killed/peer-0/summary.json >/dev/null'
check "no checkpoint remains at the end" eval '! ls killed/peer-*/checkpoint-* 2>/dev/null'

# ---- A damaged checkpoint: all peers resume from the older one. ----

killed damaged 500
python3 -c '
import os, struct, sys
def beat(path):
    import json
    b = open(path, "rb").read()
    return int(json.loads(b[8:8 + struct.unpack("<Q", b[:8])[0]])["__metadata__"]["beat"])
paths = [p for p in ("damaged/peer-1/checkpoint-0.safetensors", "damaged/peer-1/checkpoint-1.safetensors")
         if os.path.exists(p)]
newest = max(paths, key=beat)
b = bytearray(open(newest, "rb").read())
b[len(b) // 2] ^= 1
open(newest, "wb").write(b)'
check "a flipped bit is reported" eval \
    'bounded "$HEARSAY" "${run[@]}" --out damaged >damaged.out 2>damaged.err;
     grep -q "a checkpoint is damaged and will not be used" damaged.err'
check "and changes nothing" eval '[ "$(tensors whole)" = "$(tensors damaged)" ]'

# Peer 1 loses its disk and its identity. A peer without a checkpoint must wait for those that have one.
killed wiped 500
rm -rf wiped/peer-1
newest=$(find wiped/peer-2 -name 'checkpoint-*' | head -n 1)
rm "$newest" && mkdir "$newest"
check "one disk is wiped, and a directory lies in a checkpoint's place" eval \
    'bounded "$HEARSAY" "${run[@]}" --out wiped >wiped.out 2>wiped.err'
check "  the others' training is not lost" eval \
    '[ "$(sed -n "/\"start\"/{n;p}" wiped/peer-0/metrics.jsonl | tail -n 1 | jq .round)" -gt 100 ]'
check "  consensus of all" grep -q "consensus of 3 of 3" wiped.out

# ---- Checkpoints of another run are refused. ----

killed other 200
check "flags that contradict the checkpoint's run are refused" eval \
    '! bounded "$HEARSAY" "${run[@]}" --seed 6 --out other >other.out 2>other.err &&
    grep -q "has another run: seed" other.err'

# ---- Checkpoints of another peer are refused. ----

# newer DIR FILE: checks whether DIR has a checkpoint that is newer than FILE.
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
newer()
{
    [ -n "$(find "$1" -name 'checkpoint-?.safetensors' -newer "$2" 2>/dev/null)" ]
}

# refused TEXT REGEX ARGS...: the program ends with exit code 2 and a matching error, and changes no file in "mixed".
refused()
{
    local text=$1 regex=$2 code
    shift 2
    find mixed -type f ! -name .lock -exec sha256sum {} + | sort >mixed.before
    bounded "$HEARSAY" "$@" >mixed.out 2>mixed.err </dev/null
    code=$?
    find mixed -type f ! -name .lock -exec sha256sum {} + | sort >mixed.after
    check "$text is refused: $(tail -n 1 mixed.err | cut -c 1-150)" eval \
        '[ "$code" = 2 ] && grep -qE -e "$regex" mixed.err && cmp mixed.before mixed.after'
}

# mixed: copies the directory "other" to "mixed".
mixed()
{
    rm -rf mixed
    cp -r other mixed
}

local_mixed=("${run[@]}" --out mixed)
mixed
mv mixed/peer-0 mixed/x && mv mixed/peer-1 mixed/peer-0 && mv mixed/x mixed/peer-1
refused "two peers' directories that changed places" \
    'mixed/peer-0/checkpoint-.*: found a checkpoint of peer-1, expected one of peer-0;.*--fresh' "${local_mixed[@]}"
mixed
rm mixed/peer-2/checkpoint-*
cp other/peer-1/checkpoint-* mixed/peer-2
refused "a checkpoint that lies in another peer's directory" 'peer-2/checkpoint-.*: found a checkpoint of peer-1' "${local_mixed[@]}"
killed second 200
mixed
cp second/peer-1/checkpoint-* mixed/peer-1
refused "the checkpoint of a peer of that name in another start" \
    'found a checkpoint of peer-1 \(key [0-9a-f]{8}\), expected one of peer-1 \(key [0-9a-f]{8}\)' "${local_mixed[@]}"
mixed
rm -r mixed/peer-1
cp -r second/peer-1 mixed
refused "one peer's directory of another start" 'mixed/peer-0 and mixed/peer-1 belong to different runs' "${local_mixed[@]}"
mixed
rm mixed/peer-1/identity.key
refused "a checkpoint without its identity.key" 'found a checkpoint of peer-1 .*no identity.key' "${local_mixed[@]}"
mixed
sed -i 's/^lr=.*/lr=0.5/' mixed/peer-1/run.txt
refused "one peer's directory of another run" 'mixed/peer-1 has another run than mixed: lr=0.5 there, 0.02 here;' "${local_mixed[@]}"
for value in 0 -1 1d x "" 1e99; do
    check "--checkpoint '$value'" eval \
        '"$HEARSAY" "${run[@]}" --checkpoint "$value" --out value 2>value.err >value.out; [ $? = 2 ] &&
        grep -q -e "--checkpoint: found" value.err'
done
check "--member-ttl '5d'" eval \
    '"$HEARSAY" "${run[@]}" --member-ttl 5d --out value 2>value.err >value.out; [ $? = 2 ] &&
    grep -q -e "--member-ttl: found" value.err'
# ---- Stops by SIGINT. ----

# With the options of this test, the next regular checkpoint would be written after an hour, and there is no evaluation
# before the end of the run. The stop must write a checkpoint.
setsid "$HEARSAY" "${run[@]}" --checkpoint 1h --evaluate-every 0 --out asked --json >>asked.out 2>>asked.err </dev/null &
pid=$!
wait_until 60 lines asked/peer-0/metrics.jsonl 500
echoed INT "$pid" "-$pid" # SIGINT to the process and to its group, as timeout(1) sends it, must count as one request.
wait "$pid" 2>/dev/null
check "Ctrl-C ends with 130" [ $? = 130 ]
check "  a message says that the peers stop" grep -q 'stopping: each peer finishes its step and takes a checkpoint' asked.err
check "  which is not taken for two requests" eval '! grep -q "killing all peers now" asked.err'
check "  and how to go on: $(tail -n 1 asked.err | cut -c 1-120)" grep -qE \
    '^hearsay local: interrupted at round [0-9]+ of [0-9]+: the same command resumes from round [0-9]+$' asked.err
at=$(jq .resumes_at asked.out)
check "  from a round that all agreed on while they stopped: $at of $(jq .rounds asked.out)" eval \
    '[ "$at" -ge 500 ] && [ "$at" -ge $(($(jq .rounds asked.out) - 20)) ] && grep -q "from round $at\$" asked.err'
check "  --json says that it was interrupted, and what is not known is null" jq -e '.interrupted and (.finished | not) and
    .exit_code == 130 and .accuracy_min == null and .relative_drift == null and .verdict.kind == "stopped" and
    ([.peers[] | .interrupted] | all)' asked.out
check "  each had the time to store a model" [ -s asked/peer-0/model.safetensors -a -s asked/peer-2/model.safetensors ]
sed -n '/^```python$/,/^```$/p' "$root/peer/checkpoints/README.md" | sed '1d;$d' >read.py
newest=$(find asked/peer-1 -name 'checkpoint-*' | head -n 1)
check "a checkpoint is read by the lines of peer/checkpoints/README.md: $(python3 read.py "$newest" | cut -c 1-80)" \
    eval 'python3 read.py "$newest" | grep -qE "^peer-1 [0-9]+ .*manifest:U8"'
python3 -c 'import sys
b = bytearray(open(sys.argv[1], "rb").read())
b[len(b) // 3] ^= 4
open("flipped", "wb").write(b)' "$newest"
check "  and a flipped bit is found" eval '! python3 read.py flipped >flipped.out 2>&1 && grep -q damaged flipped.out'
first=$(tail -qn 1 asked/peer-?/metrics.jsonl | jq -s 'map(.bytes_sent) | add')
check "the same command continues the run" eval \
    'bounded "$HEARSAY" "${run[@]}" --out asked --json >asked.out 2>asked.err'
check "  to the same models, bit for bit" eval '[ "$(tensors whole)" = "$(tensors asked)" ]'
check "  from there" grep -q "^hearsay local: resuming the run in asked, from round $at of " asked.err
# A jq program of peer/docs/json.md: of the lines of rounds that were done twice, it keeps the last ones.
once='reduce .[] as $l ([]; if $l.start then map(select(.round + .settle_rounds <= $l.from_round))
    else . + [$l] end) | .[] | [.round, .settle_rounds, .loss]'
jq -cs "$once" whole/peer-1/metrics.jsonl >whole.lines
jq -cs "$once" asked/peer-1/metrics.jsonl >asked.lines
check "  each round has a line once, with the same figures" eval '[ "$(wc -l <whole.lines)" -gt 3000 ] && cmp whole.lines asked.lines'
check "  and counts the bytes of both starts: $first and $(jq .bytes_sent asked.out)" eval \
    '[ "$(jq .starts asked.out)" = 2 ] &&
     [ "$(jq .bytes_sent_in_all asked.out)" = $((first + $(jq .bytes_sent asked.out))) ] &&
     jq -e ".seconds_in_all > .seconds" asked.out >/dev/null'
check "  which a finished run says, too" eval '"$HEARSAY" "${run[@]}" --out asked >again.out 2>/dev/null; [ -s again.out ]'
# Each round takes seconds, so the peers are still in their local steps when the second signal arrives.
setsid "$HEARSAY" "${run[@]}" --local-steps 200000 --out twice >>twice.out 2>>twice.err </dev/null &
pid=$!
wait_until 60 test -e twice/peer-0/metrics.jsonl
wait_until 60 eval 'mapfile -t children < <(children_of "$pid"); [ ${#children[@]} -ge 2 ]'
pids+=("${children[@]}")
kill -INT "$pid"
wait_until 20 grep -q 'Ctrl-C again' twice.err
insist() { kill -INT "$pid" 2>/dev/null; grep -q 'killing all peers now' twice.err; }
wait_until 20 insist
wait "$pid" 2>/dev/null
check "Ctrl-C twice ends them at once" eval 'grep -q "killing all peers now" twice.err && none_alive "${children[@]}"'
bounded "$HEARSAY" peer --name f --listen 127.0.0.1:0 --key killed/cluster.key --model logreg \
    --data glyphs --epochs 1 --out alone >alone.out 2>alone.err
alone=(peer --name s --listen 127.0.0.1:0 --key killed/cluster.key --model logreg --data glyphs --rounds 1000000 --out single)
start single "$HEARSAY" "${alone[@]}"
wait_until 60 lines single/metrics.jsonl 50
echoed INT "$started" # Several signals within milliseconds count as one request.
finish "$started" 30
check "a single peer reports from which round it continues: $(tail -n 1 single.err)" eval \
    'at=$(jq .resumes_at single/summary.json) && [ "$at" = "$(jq .round single/summary.json)" ] && jq -e .interrupted single/summary.json >single.jq &&
    grep -q "s: the same command resumes from round $at$" single.err'
start single "$HEARSAY" "${alone[@]}"
check "  and continues there" eval 'wait_until 30 grep -q "resuming from the checkpoint of round $at " single.err'
kill -KILL "$started"
wait "$started" 2>/dev/null
forget "$started"
rm -rf mixed && cp -r single mixed
mixed_peer=(peer --listen 127.0.0.1:0 --key killed/cluster.key --model logreg --data glyphs --rounds 1000000 --out mixed)
start renamed "$HEARSAY" "${mixed_peer[@]}" --name t
check "peer: the same identity continues under another name" eval 'wait_until 30 grep -q "resuming from the checkpoint of round $at " renamed.err'
kill -KILL "$started"
wait "$started" 2>/dev/null
forget "$started"
cp other/peer-0/identity.key mixed
refused "peer: the checkpoint of another identity" \
    'found a checkpoint of [st] \(key .*expected one of s \(key .*its own directory and identity.key; --fresh' "${mixed_peer[@]}" --name s
refused "  and without --name" 'found a checkpoint of [st] .*expected one of this peer' "${mixed_peer[@]}"
rm mixed/identity.key
refused "peer: checkpoints without identity.key" \
    'identity: mixed/identity.key is missing, but there are checkpoints of the peer with key [0-9a-f]{8}; restore this file; --fresh' \
    "${mixed_peer[@]}" --name s
check "  and no new key is made" [ ! -e mixed/identity.key ]
# A checkpoint of an older version does not record which peer wrote it: the field `owner` is missing.
cp single/identity.key mixed
python3 - mixed/checkpoint-?.safetensors <<'PY'
import hashlib, json, struct, sys
for path in sys.argv[1:]:
    raw = open(path, "rb").read()
    n = 8 + struct.unpack_from("<Q", raw)[0]
    head = json.loads(raw[8:n])
    del head["__metadata__"]["owner"]
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    begin, end = head["manifest"]["data_offsets"]
    first = struct.pack("<Q", len(text)) + text
    hashed = lambda b: hashlib.blake2b(b, digest_size=16).digest()
    sums = hashed(first) + raw[n + begin + 16:n + end - 16]
    open(path, "wb").write(first + raw[n:n + begin] + sums + hashed(sums))
PY
start mixed "$HEARSAY" "${mixed_peer[@]}" --name s
check "peer: checkpoints without an owner are used" wait_until 30 grep -q "resuming from the checkpoint of round" mixed.err
check "  with a note" grep -q "note: mixed: its checkpoints name no owner, because an older version of hearsay wrote them" mixed.err
kill -KILL "$started"
wait "$started" 2>/dev/null
forget "$started"
# Both peers are killed near the end of the run, and only one is restarted. The restarted peer
# cannot know whether the other one finished the run, so it must not claim consensus.
"$HEARSAY" key new end.key 2>/dev/null
read -r port < <(free_ports 1)
pair=(peer --key end.key --model mlp:784-32-10 --data glyphs --rounds 3000 --local-steps 10 --min-peers 2 --checkpoint 0.1s
    --quorum 0.6 --quorum-timeout 2)
start gone "$HEARSAY" "${pair[@]}" --name gone --listen "127.0.0.1:$port" --shard 1/2 --out gone
gone=$started
back=("$HEARSAY" "${pair[@]}" --name back --listen 127.0.0.1:0 --bootstrap "127.0.0.1:$port" --shard 2/2 --out back)
start back "${back[@]}"
wait_until 60 lines back/metrics.jsonl 100
kill -TERM "$started"
finish "$started" 60
cp back/model.safetensors earlier.safetensors
start back "${back[@]}"
wait_until 60 round_at_least back/metrics.jsonl 2500
kill -KILL "$gone" "$started"
for pid in "$gone" "$started"; do
    wait "$pid" 2>/dev/null
    forget "$pid"
done
start back "${back[@]}"
finish "$started" 60
check "a peer that returns alone claims no consensus: $(tail -n 1 back.err | cut -c 1-100)" eval \
    '[ "$code" = 3 ] && grep -q "no consensus: the run ended without this peer.* gone; .*no round" back.err'
check "  and replaces the model that it stored when it was stopped earlier: $(grep 'not stored' back.err)" eval \
    '[ -s earlier.safetensors ] && ! cmp -s earlier.safetensors back/model.safetensors && ! grep -q "not stored" back.err'

# Two peers finish a run without checkpoints. One of them then looks as if it had been killed after it had stored its final
# model: it has no summary.json. It must not train alone from round 0, although --min-peers is 1, and must not replace the
# model, with which the other peer has ended.
"$HEARSAY" key new ended.key 2>/dev/null
read -r port < <(free_ports 1)
pair=(peer --key ended.key --model logreg --data glyphs --rounds 4000 --checkpoint off --quorum-timeout 3)
start stays "$HEARSAY" "${pair[@]}" --min-peers 1 --name stays --listen "127.0.0.1:$port" --shard 1/2 --out stays
stays=$started
ended=("$HEARSAY" "${pair[@]}" --name ended --listen 127.0.0.1:0 --bootstrap "127.0.0.1:$port" --shard 2/2 --out ended)
start ended "${ended[@]}" --min-peers 1
finish "$started" 60
finish "$stays" 60
rm ended/summary.json
cp ended/model.safetensors final.safetensors
start ended "${ended[@]}" --min-peers 1
check "a peer with a final model waits" wait_until 30 grep -q "has stored its final model: waiting for the other members" ended.err
kill -TERM "$started"
finish "$started" 60
check "  keeps the model if it is stopped: exit code $code" eval '[ "$code" = 0 ] && cmp -s final.safetensors ended/model.safetensors'
start ended "${ended[@]}" --min-peers 1
finish "$started" 60
check "  and ends without training: $(tail -n 1 ended.err)" eval \
    '[ "$code" = 3 ] && grep -q "no consensus: the run ended without this peer" ended.err && cmp -s final.safetensors ended/model.safetensors'
check "  with a result" [ "$(jq -c '[.finished, .exit_code, .model, .verdict.kind]' ended/summary.json)" \
    = '[true,3,"model.safetensors","ended-elsewhere"]' ]
# A peer that has neither a checkpoint nor a model ends without them, too. The summary of an earlier start does not remain.
rm ended/model.safetensors
sed -i s/min-peers=1/min-peers=2/ ended/run.txt
echo '{"finished": false, "exit_code": 0, "model": null}' >ended/summary.json
for try in first second; do
    start ended "${ended[@]}" --min-peers 2
    finish "$started" 60
    check "a peer without checkpoint and model ends, $try start: exit code $code" \
        [ "$code $(jq -c '[.finished, .exit_code, .model, .verdict.kind]' ended/summary.json)" = '3 [true,3,null,"ended-elsewhere"]' ]
done
check "  the second one only prints the result" grep -q "this run has already finished, in ended" ended.err

printf 'a,b,c\n1,2,0\n2,1,1\n' >other.csv
check "other data than those of --out, and no flags" eval \
    '"$HEARSAY" peer --name f --listen 127.0.0.1:0 --key killed/cluster.key --data csv:other.csv \
        --bootstrap 127.0.0.1:9 --out alone >alone.out 2>alone.err; [ $? = 2 ] &&
    grep -q -e "--out alone belongs to a run on other data" alone.err'

# The files of --data change between two starts, but not their data kind.
for i in {1..60}; do echo "$((i % 7)),$((i % 5)),$((i % 2))"; done >rows.csv
rows=(--model logreg --data csv:rows.csv,scale=none --rounds 100000000 --checkpoint 0.1s)
for command in train "peer --name f --listen 127.0.0.1:0 --key killed/cluster.key"; do
    name=rows-${command%% *}
    sed -i '1s/.*/1,1,1/' rows.csv
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    for expected in 0 0 1; do
        [ $expected = 0 ] || sed -i '1s/.*/2,1,1/' rows.csv
        touch "$name.before"
        start "$name" "$HEARSAY" $command "${rows[@]}" --out "$name"
        wait_until 60 newer "$name" "$name.before"
        kill -KILL "$started"
        wait "$started" 2>/dev/null
        forget "$started"
        check "${command%% *}: --data has changed: $expected" \
            [ "$(grep -c 'warning: --data has changed since the checkpoint' "$name.err")" = $expected ]
    done
    check "  and the run was continued" grep -q "resuming from the checkpoint" "$name.err"
done

check "off writes none" eval \
    'bounded "$HEARSAY" "${run[@]}" --rounds 50 --checkpoint off --out off >off.out 2>off.err &&
    ! grep -q checkpoint off.err && grep -q "\"checkpoints\": 0" off/peer-0/summary.json'

e2e_end
