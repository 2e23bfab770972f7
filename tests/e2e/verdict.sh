#!/usr/bin/env bash
# tests/e2e/verdict.sh -- the verdict and the exit code with which a run ends: 0 for consensus, 3 without the required consensus.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# verdict FILE: prints kind, exit code and members of the verdict in the JSON object at the end of FILE.
verdict()
{
    python3 - "$1" <<'PY'
import json, sys
text = open(sys.argv[1], encoding="utf-8").read()
lines = text.splitlines()
first = max(i for i, line in enumerate(lines) if line.startswith("{"))
v = json.loads("\n".join(lines[first:]))["verdict"]
if v["kind"] == "consensus":
    assert v["at_most"] == ("(at most, " in v["text"]), v
print(v["kind"], v["exit_code"], f'{v["n_among"]}/{v["n_members"]}', ",".join(v["dead"]), "exact" if v["exact"] else "estimated")
PY
}

# ends TEXT FILE CODE VERDICT: checks that $code is CODE, and that FILE has this verdict (as verdict() prints it).
ends()
{
    local said
    said=$(verdict "$2")
    check "$1: exit code $code, expected $3; $said" [ "$code $said" = "$3 $4" ]
}

run=(--model logreg --data glyphs --rounds 30 --seed "$seed")

# ---- A run that ends in consensus, one that diverges, and one without a consensus phase. ----

for way in sim local; do
    bounded "$HEARSAY" $way --peers 3 "${run[@]}" --json >well.out 2>well.err </dev/null
    code=$?
    ends "$way: all is well" well.out 0 "consensus 0 3/3  exact"
    bounded "$HEARSAY" $way --peers 3 "${run[@]}" --lr 5 --rounds 60 --json >away.out 2>away.err </dev/null
    code=$?
    ends "$way --lr 5" away.out 3 "diverged 3 3/3  exact"
    bounded "$HEARSAY" $way --peers 3 "${run[@]}" --lr 5 --rounds 60 >away.out 2>away.err </dev/null
    check "  and in words, last" \
        eval "tail -n 1 away.out | grep -q '^no consensus: the run diverged: the training loss ended at'"
    bounded "$HEARSAY" $way --peers 3 "${run[@]}" --model mlp:784-64-10 --lr 1000 --warmup 0 --json >away.out 2>away.err </dev/null
    code=$?
    # Although the last models are not finite, a consensus distance is known: it is the one of the last finite models.
    ends "$way, of figures that are not finite" away.out 3 "diverged 3 3/3  exact"
    bounded "$HEARSAY" $way --peers 3 "${run[@]}" --final-drift 0 --json >unasked.out 2>unasked.err </dev/null
    code=$?
    ends "$way --final-drift 0" unasked.out 0 "not-requested 0 3/3  exact"
done

# ---- A run of one peer ends in consensus. A stopped run claims no consensus. ----

"$HEARSAY" key new cluster.key 2>keygen.err
bounded "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key "${run[@]}" --name alone --out alone \
    >alone.out 2>alone.err </dev/null
code=$?
ends "one peer alone" alone/summary.json 0 "consensus 0 1/1  estimated"
check "  and reports it at the end" \
    eval "tail -n 1 alone.err | grep -q '^hearsay peer: alone: consensus of 1 of 1 peer at relative drift 0'"
start stopped "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key "${run[@]}" --rounds 1000000 --name stopped --out stopped
check "another trains" wait_until 60 round_at_least stopped/metrics.jsonl 5
kill -TERM "$started"
finish "$started" 60
ends "stopped by SIGTERM" stopped/summary.json 0 "stopped 0 1/1  estimated"
check "  at a round that it names" \
    eval "tail -n 2 stopped.err | grep -qE '^hearsay peer: stopped: stopped at round [0-9]+ of 1000000, no consensus claimed$'"

# ---- For a peer without a run, "-" is printed as its rounds, not "0/0". ----

read -r guest nobody < <(free_ports 2)
start guest "$HEARSAY" peer --listen "127.0.0.1:$guest" --bootstrap "127.0.0.1:$nobody" --key cluster.key --name guest --out guest
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
waits()
{
    "$HEARSAY" status --bootstrap "127.0.0.1:$guest" --key cluster.key >waits.out 2>waits.err
    grep -qE '^guest +alive .* joining +- +[0-9.-]+ ' waits.out
}
check "a guest waits for a run" wait_until 60 waits
kill -TERM "$started"
finish "$started" 60
check "  and ends without: $(grep ' round ' guest.err)" grep -qE '^left  round -  [0-9.]+ s  loss -' guest.err
check "  and reports it: $(tail -n 1 guest.err)" \
    eval "tail -n 1 guest.err | grep -q '^hearsay peer: guest: stopped while it waited for a run; alone during the whole run: '"

# ---- All peers end with 0, but one model file is changed before the parent compares the models. ----

# The parent is stopped while the peers train and end. The run has few rounds, so that all output fits in its pipes. The
# rounds are long, so that the parent is stopped before the last one.
start swapped "$HEARSAY" local --peers 3 "${run[@]}" --rounds 15 --local-steps 1500 --out swapped --json
parent=$started
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
all_started()
{
    mapfile -t children < <(children_of "$parent")
    [ ${#children[@]} = 3 ]
}
check "three children" wait_until 60 all_started
pids+=("${children[@]}")
kill -STOP "$parent"
check "they end" wait_until 120 none_alive "${children[@]}"
python3 - swapped/peer-1/model.safetensors <<'PY'
import array, struct, sys
raw = open(sys.argv[1], "rb").read()
(n,) = struct.unpack_from("<Q", raw)
x = array.array("f", raw[8 + n :])
open(sys.argv[1], "wb").write(raw[: 8 + n] + array.array("f", [v + 0.1 for v in x]).tobytes())
PY
kill -CONT "$parent"
finish "$parent" 60
ends "a model that is not the others'" swapped.out 3 "over-target 3 3/3  exact"
for i in 0 1 2; do
    check "  though peer $i ended with 0 and consensus by its estimate" \
        [ "$(figures json swapped.out peers.$i.exit_code) $(figures json swapped.out peers.$i.verdict.kind)" = "0 consensus" ]
done

# ---- A peer that cannot write its model has failed, even if the models agree. ----

# A file that cannot be written from the start is refused. In this test, the file becomes unwritable during
# training.
start unwritable "$HEARSAY" local --peers 3 "${run[@]}" --rounds 15 --local-steps 1500 --quorum-timeout 1 --out unwritable --json
check "they train" wait_until 60 test -s unwritable/peer-1/metrics.jsonl
mkdir unwritable/peer-1/model.safetensors
finish "$started" 120
ends "a model that cannot be written" unwritable.out 1 "failed 1 2/3 peer-1 exact"
check "  by the word of its peer, too: $(figures json unwritable.out peers.1.verdict.text)" \
    [ "$(figures json unwritable.out peers.1.exit_code) $(figures json unwritable.out peers.1.verdict.text)" \
    = "1 failed: model.safetensors could not be written" ]
for i in 0 2; do
    check "  and by that of peer $i: $(figures json unwritable.out peers.$i.verdict.text)" \
        [ "$(figures json unwritable.out peers.$i.verdict.n_among) $(figures json unwritable.out peers.$i.verdict.dead.0)" = "2 peer-1" ]
done

# ---- Peers that are stopped by SIGSTOP. ----

# While the other peers wait for a stopped peer, they print the name of this peer. After --quorum-timeout the peer is killed
# and counts as failed.
start halted "$HEARSAY" local --peers 3 "${run[@]}" --rounds 30 --local-steps 1000 --quorum-timeout 7 --out halted --json
parent=$started
check "three more" wait_until 60 all_started
pids+=("${children[@]}")
check "  of which one is stopped" wait_until 60 round_at_least halted/peer-1/metrics.jsonl 5
kill -STOP "${children[1]}"
finish "$parent" 120
ends "a peer that is stopped for good" halted.out 1 "failed 1 2/3 peer-1 exact"
check "  it was waited for by name: $(grep 'waiting for' halted.err | head -n 1)" \
    grep -q 'waiting for peer-1 (stopped): the run ended for other peers [0-9]* s ago' halted.err
check "  and ended: $(grep 'than --quorum-timeout' halted.err)" \
    grep -q 'peer-1 is stopped, and --quorum-timeout has passed since the run ended: killing it' halted.err
check "  none is left" none_alive "${children[@]}"
check "  the others agree: $(figures json halted.out peers.0.verdict.text)" \
    [ "$(figures json halted.out peers.0.verdict.kind) $(figures json halted.out peers.0.verdict.dead.0)" = "consensus peer-1" ]

# A stopped peer continues (SIGCONT) after the others have ended. The stopped peer must soon detect that the others have
# ended, and is not part of the consensus.
start woken "$HEARSAY" local --peers 3 "${run[@]}" --rounds 30 --local-steps 1000 --out woken --json
parent=$started
check "and three" wait_until 60 all_started
pids+=("${children[@]}")
check "  of which one is stopped" wait_until 60 round_at_least woken/peer-1/metrics.jsonl 5
kill -STOP "${children[1]}"
check "  until the others have ended" wait_until 60 none_alive "${children[0]}" "${children[2]}"
cp woken/peer-0/model.safetensors woken/peer-1/model.safetensors
kill -CONT "${children[1]}"
finish "$parent" 120
ends "a peer that was stopped while the others ended" woken.out 0 "consensus 0 2/3  exact"
check "  is named: $(figures json woken.out verdict.text)" eval \
    'jq -e ".verdict.absent == [\"peer-1\"]" woken.out >woken.jq &&
     figures json woken.out verdict.text | grep -q "consensus of 2 of 3 peers (peer-1: the run ended without this peer) at"'
check "  says that it was away: $(figures json woken.out peers.1.verdict.text)" \
    [ "$(figures json woken.out peers.1.exit_code) $(figures json woken.out peers.1.verdict.kind)" = "3 ended-elsewhere" ]
check "  and does not replace a model of the last round that is stored already" \
    cmp woken/peer-0/model.safetensors woken/peer-1/model.safetensors
check "  and that it stood still: $(grep 'peer-1.*was paused' woken.err)" grep -q 'peer-1: warning: round [0-9]*: this process was paused for [0-9]* s' woken.err

theirs='.accuracy_min == ([.peers[] | select(.verdict.kind == "consensus") | .accuracy] | min)'
check "  the accuracies are those of the others: $(jq -c '[.accuracy_min, .peers[].accuracy]' woken.out)" \
    eval 'jq -e "$theirs" woken.out >woken.jq'

# ---- A peer that is stopped by SIGTERM. ----

# The accuracy of the peer that leaves is from an earlier round, so it must not be in the result of the run.
start leaver "$HEARSAY" local --peers 3 "${run[@]}" --lr 0.0002 --rounds 600 --local-steps 20 --evaluate-every 1 --out leaver --json
parent=$started
check "and three" wait_until 60 all_started
pids+=("${children[@]}")
check "  of which one" wait_until 60 round_at_least leaver/peer-1/metrics.jsonl 5
kill -TERM "${children[1]}"
finish "$parent" 240
ends "  leaves early: consensus of the others" leaver.out 0 "consensus 0 2/2  exact"
theirs='.accuracy_min == ([.peers[] | select(.verdict.kind == "consensus") | .accuracy] | min) and
    .accuracy_min > ([.peers[] | select(.verdict.kind != "consensus") | .accuracy] | min)'
check "  the accuracies are theirs: $(jq -c '[.accuracy_min, .peers[].accuracy]' leaver.out)" \
    eval 'jq -e "$theirs" leaver.out >leaver.jq'

# ---- Peers that are killed early. ----

# killed NAME N RANK...: starts N peers, and kills the peers with these numbers in their first rounds.
killed()
{
    local name=$1 n=$2 rank
    shift 2
    start "$name" "$HEARSAY" local --peers "$n" --model mlp:784-64-10 --data glyphs --rounds "${ROUNDS:-1500}" --seed "$seed" \
        --quorum-timeout 1 --out "$name" --json
    parent=$started
    check "$name: under way" wait_until 60 round_at_least "$name/peer-0/metrics.jsonl" 5
    mapfile -t children < <(children_of "$parent")
    pids+=("${children[@]}")
    for rank in "$@"; do
        kill -KILL "${children[$rank]}"
    done
    finish "$parent" 240
}
killed quorum 4 2
ends "one of four killed: consensus of the others" quorum.out 0 "consensus 0 3/4 peer-2 exact"
check "  its progress is that of the others, and names it: $(grep 'relative drift' quorum.err | tail -n 1)" \
    eval "grep 'relative drift' quorum.err | tail -n 1 | grep -q ' ${ROUNDS:-1500}/.* 3 of 4 peers (dead: peer-2)  loss '"
killed minority 3 1 2
ends "two of three killed: one is no quorum" minority.out 3 "no-quorum 3 1/3 peer-1,peer-2 exact"

# ---- The stored vote of an earlier process. ----

# A peer whose stored vote cannot be read does not vote. --fresh moves the vote away with the other
# files of the run.
voter=(peer --listen 127.0.0.1:0 --key cluster.key "${run[@]}" --name alone --out voter)
cp -r alone voter
# Without its final model, the peer trains again.
rm voter/summary.json voter/model.safetensors
printf x >voter/promise
start voter "$HEARSAY" "${voter[@]}"
check "a stored vote that cannot be read is reported" wait_until 60 grep -q \
    'warning.* the stored vote of this peer on the end of the run cannot be read: this peer does not vote' voter.err
kill -KILL "$started"
finish "$started" 60
check "  and stays in place" [ "$(cat voter/promise)" = x ]
bounded "$HEARSAY" "${voter[@]}" --fresh >fresh.out 2>fresh.err </dev/null
code=$?
ends "  --fresh: a new run" voter/summary.json 0 "consensus 0 1/1  estimated"
check "  and moves the vote away" [ "$(cat voter/old.1/promise)" = x ]

# As if the peer was killed after it stored its model and before it reported the model: the file
# `promise` has the hash of another model. (The bytes below are ballot 1, no accepted proposal, hash 1,
# no earlier ballot.) The new process must detect this, and must be able to replace the model file.
unreported=(peer --listen 127.0.0.1:0 --key cluster.key "${run[@]}" --rounds 400 --local-steps 40 --checkpoint 0.1s
    --name unreported --out unreported)
start unreported "$HEARSAY" "${unreported[@]}"
check "a peer stores a checkpoint" wait_until 20 test -e unreported/checkpoint-0.safetensors
# With a directory in place of summary.json the run cannot end completely, so its checkpoint is not deleted.
mkdir unreported/summary.json
finish "$started" 60
check "  and its model" [ -e unreported/model.safetensors ]
rmdir unreported/summary.json
{
    printf '\1' && head -c 79 /dev/zero && printf '\1' && head -c 48 /dev/zero
} >unreported/promise
# The file ends with the BLAKE2b-128 hash of these bytes.
printf "$(b2sum -l 128 <unreported/promise | cut -c 1-32 | sed 's/../\\x&/g')" >>unreported/promise
bounded "$HEARSAY" "${unreported[@]}" --quorum-timeout 5 >again.out 2>again.err </dev/null
code=$?
ends "  a stored model that was not reported is replaced" unreported/summary.json 0 "consensus 0 1/1  estimated"
check "  and a warning names it" grep -q 'warning: the stored final model is not used, because it does not have the hash' again.err

# ---- A process that starts again after the end of the run. ----

# again_peer I: sets `again` to the command of peer I of three. The run is asynchronous, so that a
# process that continues from a checkpoint computes another model.
read -r port < <(free_ports 1)
again_peer()
{
    again=("$HEARSAY" peer --name "again-$1" --key cluster.key --model logreg --data glyphs --rounds 400 --local-steps 40 --policy async
        --min-peers 3 --shard "$(($1 + 1))/3" --checkpoint 0.3s --out "again-$1" --json --seed "$seed"
        --listen "127.0.0.1:$( [ "$1" = 0 ] && echo "$port" || echo 0)" --bootstrap "127.0.0.1:$port")
}
for i in 0 1 2; do
    again_peer $i
    start "again-$i" "${again[@]}"
    again_pid[i]=$started
done
# A directory in the place of summary.json: peer 1 cannot write its summary, as if it had been killed before that.
check "three peers under way, each with a checkpoint" wait_until 20 test -e again-1/checkpoint-0.safetensors
mkdir again-1/summary.json
for i in 0 1 2; do
    finish "${again_pid[$i]}" 120
done
ends "three peers" again-0.out 0 "consensus 0 3/3  estimated"
check "peer 1 cannot write its summary" grep -q summary.json again-1.err
before=$(sha256sum <again-1/model.safetensors)
rmdir again-1/summary.json
again_peer 1
bounded "${again[@]}" >again.out 2>again.err </dev/null
code=$?
ends "  started again after the others have left: the same certificate" again.out 0 "consensus 0 3/3  estimated"
check "  and the same model" [ "$(sha256sum <again-1/model.safetensors)" = "$before" ]
check "  and a summary" [ -f again-1/summary.json ]

# A peer without run options, which takes the run from another peer, knows the run from its directory when it starts again
# without a checkpoint. After the other peer has left, it ends as a peer with run options does.
read -r port < <(free_ports 1)
start giver "$HEARSAY" peer --name giver --key cluster.key --model logreg --data glyphs --rounds 400 --local-steps 40 --min-peers 2 \
    --listen "127.0.0.1:$port" --out giver --seed "$seed"
giver=$started
taker=("$HEARSAY" peer --name taker --key cluster.key --bootstrap "127.0.0.1:$port" --listen 127.0.0.1:0 --checkpoint off
    --quorum-timeout 5 --out taker --json)
start taker "${taker[@]}"
check "a peer without run options is in the run" wait_until 60 test -e taker/run.txt
mkdir taker/summary.json
finish "$started" 120
finish "$giver" 120
check "  and has stored the certificate, but no summary" eval '[ -s taker/promise ] && grep -q summary.json taker.err'
rmdir taker/summary.json
cp -r taker taker-damaged
bounded "${taker[@]}" >again.out 2>again.err </dev/null
code=$?
ends "  started again after the other has left: the same certificate" again.out 0 "consensus 0 2/2  estimated"
rm taker/summary.json
bounded "${taker[@]}" >again.out 2>again.err </dev/null
code=$?
ends "  started again without a certificate" again.out 3 "ended-elsewhere 3 1/1  estimated"
rm taker/summary.json taker/model.safetensors
bounded "${taker[@]}" >again.out 2>again.err </dev/null
code=$?
ends "  started again without a final model" again.out 3 "ended-elsewhere 3 1/1  estimated"
# One bit of the distance in the certificate is flipped.
python3 - <<'PY'
with open("taker-damaged/promise", "r+b") as f:
    f.seek(132)
    byte = f.read(1)[0]
    f.seek(132)
    f.write(bytes([byte ^ 2]))
PY
bounded "${taker[@]}" --out taker-damaged >again.out 2>again.err </dev/null
code=$?
ends "  started again with a flipped bit in the certificate" again.out 3 "ended-elsewhere 3 1/1  estimated"

# Two of three peers restart one after the other, between the final models and the certificate.
read -r -a port < <(free_ports 3)
python3 "$root/tests/e2e/majority_restarts.py" "$HEARSAY" . "${port[@]}" >majority.out 2>majority.err
code=$?
[ $code = 77 ] && echo "# no try met the moment before the certificate"
check "two of three peers restart before the certificate: all end in consensus: $(cat majority.out)" \
    [ $code = 0 -o $code = 77 ]

e2e_end
