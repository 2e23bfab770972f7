#!/usr/bin/env bash
# tests/e2e/trace.sh -- --trace of real peers and of a simulation, in the format of tests/golden/traces, and --log-level.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

trace()
{
    python3 "$root/tests/explore/trace.py" "$@"
}

# in_order FILE PATTERN...: checks that the file has lines that match the patterns, in this order.
in_order()
{
    local file=$1
    shift
    awk 'BEGIN { for (i = 1; i < ARGC - 1; i++) { want[i] = ARGV[i]; ARGV[i] = "" } n = ARGC - 2; k = 1 }
        k <= n && $0 ~ want[k] { k++ }
        END { if (k <= n) print "# no line matches: " want[k]; exit k <= n }' "$@" "$file"
}

# refuses PATTERN ARGUMENT...: checks that hearsay ends with code 2 and one matching line.
refuses()
{
    local pattern=$1
    shift
    bounded "$HEARSAY" "$@" >refused.out 2>refused.err
    [ $? = 2 ] && grep -qE -- "$pattern" refused.err && [ "$(wc -l <refused.err)" = 1 ]
}

# phases FILE PEER: prints the phases of a peer, each once. The consensus phase is left out: its length depends on time, so
# it differs between TCP and the simulator.
phases()
{
    sed -nE "s/^ *[0-9.]+  $2  at [0-9]+: ([a-z]+).*/\1/p" "$1" | uniq | grep -v consensus
}

# levels FILE: prints the different levels of the messages that have the form of --log-level.
levels()
{
    grep -E '^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z|[0-9]+\.[0-9]{6}) ' "$1" | cut -d' ' -f2 | sort -u | xargs
}

run=(--model logreg --rounds 60 --batch 64 --seed "$seed")

# ---- Traces of peers over TCP ----

check "three peers over TCP with --trace" eval 'bounded "$HEARSAY" local --peers 3 "${run[@]}" --out tcp --trace >tcp.out 2>tcp.err'
files=(tcp/peer-0/protocol.trace tcp/peer-1/protocol.trace tcp/peer-2/protocol.trace)
check "  the reader of golden traces reads the trace of each peer" trace check "${files[@]}"
check "  events are in order" in_order tcp/peer-0/protocol.trace '^# hearsay trace of peer-0 since 20' 'peer-0  starts$' \
    'peer-0  session with (peer-1|#)' 'peer-0  <- peer-1  HELLO round 0' 'peer-0  at 0: joining.* peer-1 open' \
    'peer-0  at 0: training, peer-1 open, peer-2 open' 'peer-0  <- peer-[12]  DELTA e[12] round 0 codec [0-9]+ beat 1' \
    'peer-0  at 60: finishing' 'peer-0  at 60: left' 'peer-0  ends with exit code 0'
check "  deltas that follow each other are left out" [ "$(grep -c DELTA tcp/peer-0/protocol.trace)" -lt 20 ]
check "  the merged trace is in order of time" eval 'trace merge "${files[@]}" >merged && trace check merged'
check "  and has the events of all peers" [ "$(grep -c 'ends with exit code 0' merged)" = 3 ]
check "the same peers in the simulator" eval 'bounded "$HEARSAY" sim --peers 3 "${run[@]}" --trace sim.trace >sim.out 2>sim.err'
check "  the reader reads the trace" trace check sim.trace
for i in 0 1 2; do
    check "  phases of peer-$i are those over TCP" [ "$(phases sim.trace "peer-$i" | xargs)" = "$(phases "${files[i]}" "peer-$i" | xargs)" ]
done
cp sim.trace first.trace
check "  a repeated simulation replaces the trace by the same one" \
    eval '"$HEARSAY" sim --peers 3 "${run[@]}" --trace sim.trace >sim2.out 2>/dev/null && cmp -s first.trace sim.trace'
check "  diff finds no difference" trace diff first.trace sim.trace
sed 's/at 60: finishing/at 59: finishing/' first.trace >other.trace
check "  diff finds a changed event" eval '! trace diff first.trace other.trace >/dev/null'
sed '5s/  /, /' first.trace >broken.trace
check "  check finds a broken line" eval '! trace check broken.trace >/dev/null'
check "  --trace does not change the result" eval \
    '"$HEARSAY" sim --peers 3 "${run[@]}" >sim3.out 2>/dev/null && diff <(grep -E "^drift|^consensus" sim.out) <(grep -E "^drift|^consensus" sim3.out)'

# ---- Files that are refused, and write errors ----

check "key" eval '"$HEARSAY" key new ours.key 2>/dev/null'
alone=(peer --key ours.key --listen 127.0.0.1:0 --name one "${run[@]}")
echo 'a,b' >data.csv
check "a file that is no trace is refused" refuses '^hearsay peer: --trace data.csv: .*no trace' "${alone[@]}" --out a --trace data.csv
check "  and is not changed" [ "$(cat data.csv)" = a,b ]
check "a directory is refused" refuses '^hearsay peer: --trace tcp: .*directory' "${alone[@]}" --out a --trace tcp
check "a file of a run is refused" refuses 'a run writes a file of this name' "${alone[@]}" --out a --trace a/metrics.jsonl
mkfifo pipe
check "a pipe without a reader is refused, and does not stop the program" refuses 'no process reads' "${alone[@]}" --out a --trace pipe
check "local needs --out for --trace" refuses '^hearsay local: --trace: needs --out' local --peers 2 "${run[@]}" --trace
check "a peer takes the file from HEARSAY_TRACE" eval 'HEARSAY_TRACE=env.trace bounded "$HEARSAY" "${alone[@]}" --out b >b.out 2>b.err'
check "  and writes a trace" trace check env.trace
check "  a later start appends" eval \
    'bounded "$HEARSAY" "${alone[@]}" --out b --fresh --trace env.trace >b.out 2>b.err && [ "$(grep -c "^# hearsay trace" env.trace)" = 2 ]'
check "  and the reader reads both starts" trace check env.trace
if [ -w /dev/full ]; then
    check "a full disk does not stop the run" eval 'bounded "$HEARSAY" "${alone[@]}" --out c --trace /dev/full >c.out 2>c.err'
    check "  and is reported once" [ "$(grep -c 'cannot write the trace /dev/full: No space left on device' c.err)" = 1 ]
    check "  also in a simulation" eval '"$HEARSAY" sim --peers 2 "${run[@]}" --trace /dev/full >/dev/null 2>full.err && [ "$(grep -c "cannot write the trace" full.err)" = 1 ]'
fi

# ---- Levels of --log-level ----

check "--log-level debug" eval 'bounded "$HEARSAY" "${alone[@]}" --out d --log-level debug >d.out 2>d.err'
check "  reports each phase with a reason" in_order d.err 'Z debug phase_log one: phase JOINING -> TRAINING [(].+[)]$' \
    'Z debug phase_log one: phase TRAINING -> CONSENSUS [(]all 60 rounds are done[)]$' \
    'Z debug phase_log one: phase [A-Z]+ -> FINISHING [(].+[)]$' 'Z debug phase_log one: phase FINISHING -> LEFT [(].+[)]$'
check "  has messages of the command, with the same columns" grep -qE '^[0-9T:.-]+Z info command hearsay peer: one is [0-9a-f]{64}$' d.err
check "--log-level debug of local prints the messages of its peers" eval \
    'bounded "$HEARSAY" local --peers 3 "${run[@]}" --out e --checkpoint 0.05 --log-level debug >e.out 2>e.err && [[ "$(levels e.err)" == "debug info"* ]]'
for i in 0 1 2; do
    check "  sessions, edges, checkpoints and phases of peer-$i" in_order e.err "Z debug sessions peer-$i: session with .* is up, dialled by" \
        "Z debug edges peer-$i: edge to .*: ASKING -> OPEN [(]the first epoch begins[)]" \
        "Z debug resume peer-$i: checkpoint of round [0-9]+ taken" "Z debug phase_log peer-$i: phase TRAINING -> CONSENSUS"
done
check "--log-level debug of sim has simulated times" eval \
    'bounded "$HEARSAY" sim --peers 3 "${run[@]}" --log-level debug >f.out 2>f.err && grep -qE "^[0-9]+\.[0-9]{6} debug phase_log peer-2: phase JOINING -> TRAINING" f.err'
for level in info warning error; do
    check "--log-level $level prints no lower level" eval \
        'bounded "$HEARSAY" sim --peers 3 "${run[@]}" --cut-rate 0.05 --log-level $level >g.out 2>g.err; case $level in
            info) [[ " $(levels g.err) " != *" debug "* ]] ;; warning) [[ " $(levels g.err) " != *" info "* ]] ;; error) [ -z "$(levels g.err)" ] ;; esac'
done
check "an error is printed at each level" eval \
    '! "$HEARSAY" sim --peers 3 "${run[@]}" --log-level error --scenario missing >/dev/null 2>h.err && grep -qE "^[0-9T:.-]+Z error command hearsay sim: --scenario: " h.err'
check "HEARSAY_LOG_LEVEL has the same effect" eval \
    'HEARSAY_LOG_LEVEL=debug bounded "$HEARSAY" sim --peers 2 "${run[@]}" >/dev/null 2>i.err && [[ " $(levels i.err) " == *" debug "* ]]'
check "an unknown level is refused" refuses 'log-level.*error\|warning\|info\|debug' sim --peers 2 "${run[@]}" --log-level loud
check "without the option, messages have no columns" eval 'bounded "$HEARSAY" "${alone[@]}" --out j >j.out 2>j.err && [ -z "$(levels j.err)" ] && grep -qE "^hearsay peer: one: " j.err'
e2e_end
