#!/usr/bin/env bash
# tests/e2e/scenario.sh -- hearsay sim --scenario: each keyword of the scenario file has its effect.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# sim NAME LINE...: simulates with a scenario of these lines, or without a scenario if there are none. Output: NAME.json.
sim()
{
    local name=$1 with=()
    shift
    [ $# = 0 ] || with=(--scenario "$name.toml")
    printf '%s\n' "$@" >"$name.toml"
    # shellcheck disable=SC2086
    bounded "$HEARSAY" sim --data glyphs --model logreg --rounds "${rounds:-100}" --peers 8 \
        --evaluate-every 0 --seed "$seed" --json ${flags:-} "${with[@]}" >"$name.json" 2>"$name.err"
    code=$?
}

of()
{
    jq -r "$2" "$1.json"
}

# takes A LOW HIGH B: run A takes LOW to HIGH times as long as run B, in simulated time.
takes()
{
    local ratio
    ratio=$(jq -n --slurpfile a "$1.json" --slurpfile b "$4.json" '$a[0].simulated_s / $b[0].simulated_s')
    echo "# $1: $ratio times as long as $4"
    within "$ratio" "$2" "$3"
}

command -v jq >/dev/null || skip "there is no jq here"

# ---- actions on the network ----

sim open
check "without a scenario there is consensus" [ "$code" = 0 ]
sim nothing '# nothing is said'
check "one that says nothing changes no model" [ "$(of open .drift)" = "$(of nothing .drift)" ]
sim slow 'peer = "* slow=4"'
check "four times slower peers take so long" takes slow 2.5 4.1 nothing
check "  and train the same models" [ "$(of open .drift)" = "$(of slow .drift)" ]
sim far 'link = "0-3 4-7 latency-us=50000"'
flags='--latency-us 50000' sim all_far
check "latency of some links takes its time" takes far 5 100 nothing
check "  nearly as that of all" takes all_far 0.9 2 far
sim jitter 'link = "* * jitter-us=50000"'
check "jitter does" takes jitter 3 100 nothing
sim thin 'link = "* * bandwidth=1e5"'
sim twice 'link = "* * bandwidth=2e5"'
check "half the bandwidth takes nearly twice as long" takes thin 1.5 2.1 twice
flags='--bandwidth 1e5' sim as_flag '# the flag says it'
check "  the flag says the same" [ "$(of as_flag .simulated_s)" = "$(of thin .simulated_s)" ]
sim later 'link = "* * bandwidth=1e5"' 'link = "* * bandwidth=2e5"'
check "later lines win" [ "$(of later .simulated_s)" = "$(of twice .simulated_s)" ]
sim uplink 'peer = "* uplink=2e5"'
check "two neighbours share an uplink" takes uplink 1.6 2.4 twice
sim downlink 'peer = "3 downlink=2e5"'
check "  and a downlink" takes downlink 1.3 2.4 twice
sim headers 'peer = "* uplink=2e5"' 'link = "* * headers=66"'
check "TCP's headers are on it, too" takes headers 1.03 1.2 uplink
check "  and train the same models" [ "$(of open .drift)" = "$(of headers .drift)" ]
sim loss 'link = "* * loss=0.02"'
check "loss makes it wait" takes loss 3 1000 nothing
check "  and loses nothing" [ "$(of open .drift)" = "$(of loss .drift)" ]

# ---- actions that are faults ----

rounds=400
faults=('link = "* * latency-us=1000"' 'at = "1 cut 0-3 4-7"' 'at = "2.5 heal 0-3 4-7"' 'at = "1 kill 2"'
    'at = "2 restart 2"' 'at = "1.2 stop 7"' 'at = "1.5 go 7"' 'at = "1.3 slow 6 3"')
sim faults "${faults[@]}"
check "a partition, a kill, a stop: consensus of all in the end" [ "$(of faults .verdict.n_among)" = 8 ]
check "  at $(of faults .verdict.relative_drift)" [ "$code" = 0 ]
check "  peer 2 has come again" grep -q 'peer-2 joined at round [1-9]' faults.json
cp faults.json before.json
flags='--threads 1' sim faults "${faults[@]}"
check "  the same with one thread, bit for bit" \
    [ "$(jq -S 'del(.seconds)' before.json | sha256sum)" = "$(jq -S 'del(.seconds)' faults.json | sha256sum)" ]
sim killed 'at = "1 kill 2"'
check "a peer that is killed permanently is dead in the verdict" [ "$(of killed '.verdict.dead[0]')" = peer-2 ]
check "  and of seven figures none is its" [ "$(of killed '.peers[2].killed, (.peers[2]|has("loss"))' | xargs)" = "true false" ]
rounds=4000 flags='--min-peers 4' sim late 'at = "0 kill 5"' 'at = "10 restart 5"'
check "a peer that is killed at time 0 joins late: $(of late .verdict.text)" grep -q 'peer-5 joined at round [1-9]' late.json
sim leaves 'at = "1 leave 4"'
check "a peer that leaves does not delay the others" [ "$(of leaves '.peers[0].exit_code')" = 0 ]
check "  and is no member in the end" [ "$(of leaves '.verdict | "\(.n_among) of \(.n_members) \(.dead | length)"')" = "7 of 7 0" ]
check "  and the table names it" [ "$(of leaves '[.peers[] | select(.left) | .name] | join(" ")')" = peer-4 ]
sim leave 'at = "1 leave 1-6"'
check "two are left of eight: consensus of them ($(of leave .verdict.text))" [ "$code" = 0 ]
check "  at a drift that is theirs" within "$(of leave .relative_drift)" 0 1e-3
check "  and accuracies that are" \
    [ "$(of leave '[.accuracy_min, .accuracy_max] == ([.peers[0, 7].accuracy] | [min, max])')" = true ]
sim left_dead 'at = "1 leave 1-3"' 'at = "1 kill 4"'
check "of a killed peer and a leaving peer, only the killed one is dead" \
    [ "$(of left_dead '.verdict | "\(.n_among) of \(.n_members) \(.dead)"')" = '4 of 5 ["peer-4"]' ]
sim gone 'at = "1 leave *"'
stopped='.verdict.kind == "stopped" and .verdict.n_among == 0 and .accuracy_min == null and
    .accuracy_max == null and .relative_drift == null and .exit_code == 0'
check "all leave: no consensus is claimed" jq -e "$stopped and .rounds > 0 and .rounds < 400" gone.json
sim early 'at = "0.05 leave *"'
check "  nor where no round is done" jq -e "$stopped and .rounds == 0" early.json
check "  the verdict names the round" [ "$(of early .verdict.text)" = "stopped at round 0 of 400, no consensus claimed" ]

# ---- runs that cannot begin ----

sim vain 'at = "0.05 leave 1"'
check "a run without a peer that left before the start ends with 2" [ "$code" = 2 ]
said="failed: the run never starts: 7 of the 8 peers that --min-peers requires are present, and no other peer will start"
check "  that says how many are there" [ "$(of vain .verdict.text)" = "$said" ]
check "  soon" within "$(of vain .simulated_s)" 0 200
check "  and no peer is reported as making no progress" [ ! -s vain.err ]
sim cut_off 'at = "0 cut * *"'
check "  nor does one begin where peers never meet" [ "$code" = 2 ]
sim lone 'at = "0 cut 0 *"'
said="failed: the run never starts: at most 7 of the 8 peers that --min-peers requires find each other"
check "  nor without a peer that never meets the others" [ "$code $(of lone .verdict.text)" = "2 $said" ]
sim mended 'at = "0 cut * *"' 'at = "300 heal * *"'
check "  but where paths are there again, it does" [ "$code $(of mended .verdict.n_among)" = "0 8" ]
sim awaited 'at = "0 kill 1"' 'at = "300 restart 1"'
check "  and a peer that starts later is waited for" [ "$(of awaited '.simulated_s > 300')" = true ]

# ---- kills of all peers ----

sim outage 'at = "1 kill *"' 'at = "2 restart *"'
check "all peers lose power, and the run starts again" [ "$(of outage .verdict.n_among)" = 8 ]
sim dark 'at = "1 kill *"'
check "no peer remains: no success ($code)" [ "$code" = 1 ]

# ---- invalid scenario files ----

# refused LINE TEXT: a scenario with LINE as its second line is refused with the message TEXT.
refused()
{
    sim bad '# the first line' "$1"
    check "refused: $1" [ "$code" = 2 ]
    check "  it says: line 2: $2" grep -qF "bad.toml: line 2: $2" bad.err
}
refused 'at = "1 restart 2"' 'restart: peer 2 has not been killed before'
refused 'at = "1 stop 2"' 'stop: peer 2 needs a later'
refused 'at = "1 explode 2"' "found 'explode', expected one of kill"
refused 'at = "1 kill 2 3"' "found '3' after the last argument, expected the end of the line"
refused 'at = "-1 kill 2"' "seconds: found '-1', expected a number from 0"
refused 'at = "1 slow 2"' "times: found ''"
refused 'at = "1 cut 2"' "found '', expected peers from 0 to 7"
refused 'at = ""' "seconds: found ''"
refused 'link = "0 9 loss=0.1"' "found '9', expected peers from 0 to 7"
refused 'link = "0 1"' 'expected at least one property'
refused 'link = "0 1 loss=0.9"' "loss: found '0.9', expected a number from 0 to 0.5"
refused 'link = "0 1 loss=nan"' "loss: found 'nan'"
refused 'link = "0 1 loss"' "loss: found ''"
refused 'link = "0 1 headers=1001"' "headers: found '1001', expected a number from 0 to 1000"
refused 'link = "0 1 headers=66 headers=40"' 'headers: found twice, expected once'
refused 'peer = "0 slow=2 uplink=9 slow=2"' 'slow: found twice, expected once'
refused 'peer = "0 headers=66"' "found 'headers', expected one of uplink, downlink, slow"
refused 'link = "0 1 bandwidth=0.1"' 'bandwidth: found 0.1, expected 0 (no limit) or at least 1 bytes per second'
refused 'peer = "3-1 slow=2"' "found '3-1'"
refused 'peer = "0 loss=0.1"' "found 'loss', expected one of uplink, downlink, slow"
refused 'machine = "0"' "found 'machine', expected link, peer or at"
refused '[link]' 'found a section'
bounded "$HEARSAY" sim --peers 2 --scenario none.toml 2>none.err
code=$?
check "a file that is not there ends with 2" [ "$code" = 2 ]
check "  and is named" grep -q "none.toml: cannot open: No such file" none.err
flags='--out kept' sim kept '# one'
check "with --out it is kept" [ -s kept/peer-0/model.safetensors ]
flags='--out kept' sim kept '# two'
check "  and another text of the file is another simulation" eval '[ "$code" = 2 ] && grep -q scenario kept.err'
e2e_end
