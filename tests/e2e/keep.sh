#!/usr/bin/env bash
# tests/e2e/keep.sh -- results are not overwritten: a directory of --out belongs to one run. A second start of the command
# continues an unfinished run, and does nothing if the run has finished.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# ends TEXT CODE REGEX ARGS...: hearsay ARGS ends with exit code CODE, and stderr matches REGEX.
ends()
{
    local text=$1 code=$2 regex=$3 status
    shift 3
    bounded "$HEARSAY" "$@" >ends.out 2>ends.err </dev/null
    status=$?
    if [ "$status" = "$code" ] && grep -qE -- "$regex" ends.err; then
        ok "$text: $(grep -E -- "$regex" ends.err | head -n 1 | cut -c 1-150)"
    else
        not_ok "$text: exit code $status, wanted $code and /$regex/: $(tail -n 2 ends.err | cut -c 1-300)"
    fi
}

# contents DIR: prints a checksum of each file in a directory, except the lock file.
contents()
{
    find "$1" -type f ! -name .lock -print0 | sort -z | xargs -0 sha256sum
}

# unchanged TEXT DIR: checks that the contents of DIR are those in the file "before".
unchanged()
{
    contents "$2" >after
    check "$1" cmp before after
}

value()
{
    figures json "$1" "$2"
}

# ---- Directories of hearsay train. ----

run=(train --model logreg --data glyphs --rounds 30 --seed "$seed")
ends "train" 0 '^epoch' "${run[@]}" --out alone
contents alone >before
ends "train, finished" 0 'already finished, in alone; --fresh starts it again$' "${run[@]}" --out alone --json
check "  with the same result, as JSON" [ "$(value ends.out test_accuracy)" = "$(value alone/summary.json test_accuracy)" ]
ends "  and for people" 0 'already finished' "${run[@]}" --out alone
check "  with its accuracy" grep -qE '^accuracy +[0-9.]+ %$' ends.out
ends "train, another run" 2 '^hearsay train: --out alone has another run: lr=0.02 there, 0.05 here; --fresh moves it aside$' \
    "${run[@]}" --lr 0.05 --out alone
ends "train, two keys" 2 'rounds=30 there, 31 here; seed=.* there, .* here' "${run[@]}" --rounds 31 --seed $((seed + 1)) --out alone
for command in "sim --peers 2" "local --peers 2"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    ends "${command%% *} there" 2 "command=train there, ${command%% *} here; " $command --model logreg --rounds 30 --out alone
done
unchanged "none of them has changed a thing" alone
ends "train --fresh" 0 'moved the earlier run to alone/old.1' "${run[@]}" --lr 0.05 --out alone --fresh
grep -v /run.txt before | sed 's, alone/, alone/old.1/,' | sha256sum --check --quiet >moved.out 2>&1
check "  which is all there" [ $? = 0 ]
ends "  and a run still" 0 'already finished' "${run[@]}" --out alone/old.1
check "  while the new one is another" eval '! cmp -s alone/model.safetensors alone/old.1/model.safetensors'

mkdir foreign && cp alone/model.safetensors foreign
contents foreign >before
ends "files of nobody" 2 '--out foreign: found model.safetensors, but run.txt is missing or damaged, .* move the files aside with --fresh$' "${run[@]}" --out foreign
unchanged "  are left alone" foreign
check "  and no lock is made" [ ! -e foreign/.lock ]
ends "  but for --fresh" 0 'moved the earlier run to foreign/old.1' "${run[@]}" --out foreign --fresh
mkdir -p foreign-peers/peer-5 && cp alone/model.safetensors foreign-peers/peer-5
ends "a peer's files of nobody" 2 'found peer-5, but run.txt is missing or damaged' sim --peers 2 --model logreg --rounds 5 --out foreign-peers

ends "a run that diverged" 3 'the run diverged' train --model logreg --rounds 60 --lr 1000 --seed "$seed" --out diverged
ends "  has finished, too, with its exit code" 3 'already finished' train --model logreg --rounds 60 --lr 1000 --seed "$seed" --out diverged

start stopped "$HEARSAY" train --model logreg --rounds 100000000 --epochs 1 --out stopped
finish "$started" 20
check "a mistake in a flag makes no directory" [ "$code" = 2 -a ! -e stopped ]
start stopped "$HEARSAY" train --model logreg --rounds 100000000 --out stopped
pid=$started
check "a long run" wait_until 60 test -s stopped/metrics.jsonl
ends "its directory is its own" 2 "--out: stopped is in use by process $pid$" train --model logreg --rounds 100000000 --out stopped
ends "  for --fresh, too" 2 "--out: stopped is in use by process $pid$" train --model logreg --rounds 100000000 --out stopped --fresh
kill -INT "$pid"
finish "$pid" 20
check "interrupted, it has a model and has not finished" [ "$code" = 130 -a -s stopped/model.safetensors -a ! -e stopped/summary.json ]
printf '{"round": 1, "torn' >>stopped/metrics.jsonl
start stopped "$HEARSAY" train --model logreg --rounds 100000000 --out stopped
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
twice()
{
    [ "$(figures starts "$1" 2>/dev/null)" = 2 ]
}
check "started again, it writes behind its lines, and no line is torn" wait_until 60 twice stopped/metrics.jsonl
kill -KILL "$started"
wait "$started" 2>/dev/null
forget "$started"
check "  all of which can be read: $(figures lines stopped/metrics.jsonl 2>&1)" figures lines stopped/metrics.jsonl >/dev/null

# ---- hearsay sim and hearsay local. ----

several=(--model logreg --data glyphs --rounds "${ROUNDS:-60}" --local-steps 300 --policy sync --seed "$seed")
bounded "$HEARSAY" sim --peers 3 "${several[@]}" --out sim --json >sim.out 2>sim.err </dev/null
check "sim" [ $? = 0 ]
contents sim >before
ends "sim, finished" 0 'already finished' sim --peers 3 "${several[@]}" --out sim --json
check "  with the same result" [ "$(value ends.out relative_drift)" = "$(value sim.out relative_drift)" ]
ends "sim of other links" 2 '--latency-us=200 there, 300 here; ' sim --peers 3 "${several[@]}" --out sim --latency-us 300
ends "sim of fewer peers" 2 '--peers=3 there, 2 here; ' sim --peers 2 --min-peers 2 "${several[@]}" --out sim
unchanged "  and nothing has changed" sim

start killed "$HEARSAY" local --peers 3 "${several[@]}" --out killed
parent=$started
check "local" wait_until 60 round_at_least killed/peer-0/metrics.jsonl 5
mapfile -t children < <(children_of "$parent")
# The peers are stopped, so that the run cannot end during the next steps, even on a slow machine.
kill -STOP "${children[@]}"
pids+=("${children[@]}")
ends "  its directory is its own" 2 "--out: killed is in use by process $parent$" local --peers 3 "${several[@]}" --out killed
ends "  and a peer's its" 2 "--out: killed/peer-1 is in use by process [0-9]+$" local --peers 1 "${several[@]}" --out killed/peer-1 --fresh
kill -KILL "$parent"
wait "$parent" 2>/dev/null
forget "$parent"
kill -CONT "${children[@]}"
# The children of a killed parent end a short time after it. A new start of the command must wait for these
# children, and must not fail.
ends "killed and started again" 0 'everything in killed$' local --peers 3 "${several[@]}" --out killed --json
cp ends.out killed.out
for i in 0 1 2; do
    check "  peer $i: two starts, of $(figures lines killed/peer-$i/metrics.jsonl) lines" \
        [ "$(figures starts killed/peer-$i/metrics.jsonl)" = 2 ]
    check "  and the model of a run that was not" cmp killed/peer-$i/model.safetensors sim/peer-$i/model.safetensors
done
contents killed >before
ends "local, finished" 0 'already finished' local --peers 3 "${several[@]}" --out killed --json
check "  with the same verdict" [ "$(value ends.out verdict.text)" = "$(value killed.out verdict.text)" ]
ends "  and for people" 0 'already finished' local --peers 3 "${several[@]}" --out killed
check "  in words" grep -q '^consensus of 3 of 3 peers' ends.out
ends "a smaller run over it" 2 '--peers=3 there, 2 here; min-peers=3 there, 2 here' local --peers 2 "${several[@]}" --out killed
unchanged "  has changed nothing" killed
rm killed/summary.json
ends "killed behind the end of the peers" 0 'all peers of this run have finished before' local --peers 3 "${several[@]}" --out killed
check "  the result is found again" grep -q '^consensus of 3 of 3 peers' ends.out
rm killed/summary.json killed/peer-1/summary.json
ends "killed when some had finished" 0 'moved the earlier run to killed/peer-2/old.1' local --peers 3 "${several[@]}" --out killed
rm killed/summary.json killed/peer-?/summary.json
ends "killed when all had stored their final models" 0 'moved the earlier run to killed/peer-1/old' local --peers 3 "${several[@]}" --out killed
for i in 0 1 2; do
    check "  peer $i: the same model" cmp killed/peer-$i/model.safetensors sim/peer-$i/model.safetensors
done
ends "a smaller run --fresh" 0 'moved the earlier run to killed/old.1' local --peers 2 --model logreg --rounds 5 --out killed --fresh
check "  has its own peers only" [ -s killed/peer-1/model.safetensors -a ! -e killed/peer-2 ]
check "  the directories of the larger run are moved" cmp killed/old.1/peer-2/model.safetensors sim/peer-2/model.safetensors

# ---- Directories of hearsay peer. ----

# shellcheck disable=SC2016 # eval expands the variables in the string.
check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'
read -r pa pb < <(free_ports 2)
peer=(peer --key cluster.key --bootstrap "127.0.0.1:$pa,127.0.0.1:$pb")
# Peer b joins the cluster without any flag of the run.
guest=("${peer[@]}" --listen "127.0.0.1:$pb" --name b --shard 2/2 --out b)
founder=("${peer[@]}" --listen "127.0.0.1:$pa" --name a --shard 1/2 --out a
    --model mlp:784-64-10 --rounds 2000 --min-peers 2 --seed "$seed")
start a "$HEARSAY" "${founder[@]}"
a=$started
start b "$HEARSAY" "${guest[@]}"
b=$started
check "two peers" wait_until 60 round_at_least b/metrics.jsonl 5
ends "a second process there" 2 "--out: b is in use by process $b$" "${guest[@]}" --listen 127.0.0.1:0
kill -KILL "$b"
wait "$b" 2>/dev/null
forget "$b"
ends "another run there" 2 '--out b has another run: (lr=0.02 there, 0.1 here); --fresh moves it aside$' "${guest[@]}" --lr 0.1
start b2 "$HEARSAY" "${guest[@]}"
b=$started
check "killed and started again, it trains" wait_until 60 twice b/metrics.jsonl
check "peer a ends with 0" finish "$a" 240
check "peer b ends with 0" finish "$b" 60
contents a >before
contents b >>before
# No other peer runs now. A peer whose run has finished must print its result and end at once.
ends "a, finished" 0 '^hearsay peer: this run has already finished, in a; ' "${founder[@]}" --json
check "  with the same verdict" [ "$(value ends.out verdict.text)" = "$(value a/summary.json verdict.text)" ]
ends "b, finished" 0 '^hearsay peer: this run has already finished, in b; ' "${guest[@]}"
ends "a of another run" 2 'rounds=2000 there, 30 here; ' "${founder[@]}" --rounds 30
contents a >after
contents b >>after
check "nothing has changed" cmp before after

cp -r b damaged && rm damaged/.lock
sed -i 's/^rounds=.*/rounds=many/' damaged/run.txt
ends "a damaged run.txt" 2 '--out damaged: cannot read its run.txt: .*rounds.*many.*; --fresh moves the run aside$' \
    "${peer[@]}" --listen "127.0.0.1:$pb" --name b --shard 2/2 --out damaged
rm -r damaged && cp -r b damaged && rm damaged/.lock
truncate -s 100 damaged/summary.json
contents damaged >before
ends "a damaged summary.json" 2 '--out damaged: summary.json is damaged: line .*; the run may have finished, so its model is not replaced: ' \
    "${peer[@]}" --listen "127.0.0.1:$pb" --name b --shard 2/2 --out damaged
unchanged "  has changed nothing" damaged

# Peer b joins a cluster with another run than the one in b's directory. Peer b can detect the difference of the runs
# only after it has joined.
cp -r b late && rm late/summary.json late/.lock
start other "$HEARSAY" "${founder[@]}" --seed $((seed + 1)) --rounds 1000000 --min-peers 1 --out other --identity other.key
a=$started
check "a cluster of another run" wait_until 60 round_at_least other/metrics.jsonl 5
contents late >before
ends "a peer of the former one" 2 '--out late has another run: .*rounds=2000 there, 1000000 here' \
    "${peer[@]}" --listen "127.0.0.1:$pb" --name b --shard 2/2 --out late
unchanged "  leaves its files alone" late
start late "$HEARSAY" "${peer[@]}" --listen "127.0.0.1:$pb" --name b --shard 2/2 --out late --fresh
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
joined()
{
    [ -s late/old.1/model.safetensors ] && round_at_least late/metrics.jsonl 5
}
check "  but for --fresh, by which it joins" wait_until 60 joined
kill -TERM "$a" "$started"
finish "$started" 60
finish "$a" 60

# ---- Files that cannot be written. ----

# limit PID BYTES: limits the size of files that a process may write. -1: no limit.
limit()
{
    python3 -c 'import resource, sys
resource.prlimit(int(sys.argv[1]), resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))' "$1" "$2"
}

full=(--model mlp:784-64-10 --data glyphs --rounds 15 --local-steps 1500 --seed "$seed")
start full "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key "${full[@]}" --name full --out full
pid=$started
check "a peer trains" wait_until 60 round_at_least full/metrics.jsonl 1
limit "$pid" 100000
check "if its model cannot be written, the peer warns" wait_until 120 grep -q 'full: warning: the final model is not stored, retrying for 600 s (--quorum-timeout): .*model.safetensors: cannot write: File too large$' full.err
check "  and continues" alive "$pid"
check "  and leaves no incomplete file" eval '! ls full | grep -q tmp'
limit "$pid" -1
check "  until there is room: it ends with 0" finish "$pid" 60
check "  and reports the late write" grep -q 'full: warning: the final model is stored, after retries for [0-9]* s$' full.err
# shellcheck disable=SC2016
check "  it is a model" eval '"$HEARSAY" eval full/model.safetensors --data glyphs >eval.out 2>eval.err'
ends "  and that run has finished" 0 'already finished' peer --listen 127.0.0.1:0 --key cluster.key "${full[@]}" --name full --out full

# Of all files, only metrics.jsonl cannot be written for a while. The lines of metrics.jsonl are
# written later, and the run succeeds.
start part "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key "${full[@]}" --name part --out part
pid=$started
check "a peer trains" wait_until 60 round_at_least part/metrics.jsonl 1
# The next line of metrics.jsonl has more than 100 bytes, so only a part of the line is written.
limit "$pid" $(($(stat -c %s part/metrics.jsonl) + 100))
check "if its metrics cannot be written, the peer warns" wait_until 120 grep -q 'part: warning: cannot write part/metrics.jsonl: file too large; its lines are kept in memory$' part.err
check "  no line is torn" figures lines part/metrics.jsonl
sleep 1
limit "$pid" -1
finish "$pid" 120
check "  when there is room again, it reports the number of late lines and ends with 0: $(grep 'late' part.err)" eval \
    '[ "$code" = 0 ] && [ "$(grep -c "part: part/metrics.jsonl can be written again: [0-9]* lines\\? written late$" part.err)" = 1 ]'
# shellcheck disable=SC2016
check "  all rounds have a line" eval \
    '[ "$(jq -s "[.[] | select(.start | not) | select(.settle_rounds == 0) | .round] | unique | length" part/metrics.jsonl)" -ge 15 ]'
check "  and prints no other message about them" [ "$(grep -c 'metrics.jsonl' part.err)" = 2 ]

# metrics.jsonl cannot be written until the end of the run. The peer stores its model and waits for space for the lines.
# In this run the lines of metrics.jsonl need more space than the model.
small=(--listen 127.0.0.1:0 --key cluster.key --model logreg --data glyphs --rounds 500 --local-steps 100 --checkpoint off --seed "$seed")
start lasting "$HEARSAY" peer "${small[@]}" --name lasting --out lasting
pid=$started
check "a peer trains" wait_until 60 round_at_least lasting/metrics.jsonl 60
limit "$pid" "$(stat -c %s lasting/metrics.jsonl)"
check "its model is written, its lines wait" wait_until 120 grep -q 'lasting: warning: cannot write metrics.jsonl: its new lines stay in memory; retrying for [56][0-9]* s$' lasting.err
check "  the model is stored, and the peer still waits" eval 'alive "$pid" && [ -s lasting/model.safetensors ] && [ ! -e lasting/summary.json ]'
limit "$pid" -1
finish "$pid" 60
check "  then all is written: exit code $code" eval '[ "$code" = 0 ] && grep -q "lines\\? written late$" lasting.err'

# metrics.jsonl cannot be written at all: the run reports the lost lines and fails.
start lossy "$HEARSAY" peer "${small[@]}" --name lossy --out lossy --quorum-timeout 1
pid=$started
check "a peer trains" wait_until 60 round_at_least lossy/metrics.jsonl 60
limit "$pid" "$(stat -c %s lossy/metrics.jsonl)"
finish "$pid" 60
check "the last lines are lost, which is reported, and the exit code is 1: $(tail -n 1 lossy.err)" eval \
    '[ "$code" = 1 ] && grep -q "lossy: failed: [0-9]* lines of metrics.jsonl could not be written; the model is stored$" lossy.err'
check "  the run has finished: $(figures json lossy/summary.json finished) $(figures json lossy/summary.json exit_code)" \
    [ "$(figures json lossy/summary.json finished) $(figures json lossy/summary.json exit_code)" = "True 1" ]
contents lossy >before
ends "  started again it says so, with the same exit code" 1 'already finished' peer "${small[@]}" --name lossy --out lossy --quorum-timeout 1
unchanged "  and touches nothing" lossy

# A stop request does not wait for space on the disk.
start hasty "$HEARSAY" peer "${small[@]}" --name hasty --out hasty
pid=$started
check "a peer trains" wait_until 60 round_at_least hasty/metrics.jsonl 60
limit "$pid" "$(stat -c %s hasty/metrics.jsonl)"
check "its lines wait" wait_until 120 grep -q 'its new lines stay in memory' hasty.err
kill -TERM "$pid"
finish "$pid" 20
check "  until it is stopped: exit code $code" eval '[ "$code" = 1 ] && grep -q "lines of metrics.jsonl could not be written; the model is stored$" hasty.err'

# hearsay sim also reports lost metrics lines and fails.
lossy=(sim --peers 2 --model logreg --data glyphs --rounds 300 --seed "$seed" --out lossy-sim)
bounded bash -c 'ulimit -Sf 70; exec "$@"' - "$HEARSAY" "${lossy[@]}" >lossy-sim.out 2>lossy-sim.err </dev/null
code=$?
check "sim: lines are lost, models are not: exit code $code" eval \
    '[ "$code" = 1 ] && grep -q "lines of metrics.jsonl could not be written; the models are stored$" lossy-sim.err'
contents lossy-sim >before
ends "  started again" 1 'already finished' "${lossy[@]}"
unchanged "  it touches nothing" lossy-sim

# A directory has the name of a peer's model file, so the peer cannot store its model. This peer fails after
# --quorum-timeout, and the other peers end without it.
start local "$HEARSAY" local --peers 3 "${full[@]}" --quorum-timeout 1 --out local
check "local" wait_until 60 round_at_least local/peer-1/metrics.jsonl 1
mkdir local/peer-1/model.safetensors
finish "$started" 120
check "a peer's disk takes no model: exit code $code" [ "$code" = 1 ]
check "  one warning" [ "$(grep -c 'peer-1: .*the final model is not stored, retrying for 1 s (--quorum-timeout): .*model.safetensors: cannot write: ' local.err)" = 1 ]
check "  and one error" [ "$(grep -c 'peer-1: .*the final model is lost, .*model.safetensors: cannot write: ' local.err)" = 1 ]
check "  the peer fails: $(value local/summary.json peers.1.verdict.text)" \
    [ "$(value local/summary.json peers.1.verdict.text)" = "failed: model.safetensors could not be written" ]
for i in 0 2; do
    check "  peer $i: $(value local/summary.json peers.$i.verdict.text)" \
        eval 'value local/summary.json peers.$i.verdict.text | grep -q "^consensus of 2 of 3 peers (dead: peer-1) at relative drift "'
done
check "  and local: $(grep '^models in' local.out)" grep -q '^models in  *local, of 2 of 3 peers; missing: peer-1$' local.out
check "  the verdict is that of a failure" [ "$(value local/summary.json exit_code)" = 1 ]
rmdir local/peer-1/model.safetensors
ends "that run has not finished" 0 'everything in local$' local --peers 3 "${full[@]}" --quorum-timeout 1 --out local

# A directory has the name of a model file again, but is removed while the peer retries. All three peers then end with the
# same consensus.
start later-local "$HEARSAY" local --peers 3 "${full[@]}" --out later-local
check "local" wait_until 60 round_at_least later-local/peer-1/metrics.jsonl 1
mkdir later-local/peer-1/model.safetensors
check "a peer's disk takes no model" wait_until 120 grep -q 'peer-1: .*the final model is not stored, retrying for 600 s' later-local.err
rmdir later-local/peer-1/model.safetensors
finish "$started" 120
check "  until later: exit code $code" [ "$code" = 0 ]
check "  it reports the late write" grep -q 'peer-1: .*the final model is stored, after retries for ' later-local.err
check "  $(value later-local/summary.json verdict.text)" \
    eval 'value later-local/summary.json verdict.text | grep -q "^consensus of 3 of 3 peers "'

e2e_end
