#!/usr/bin/env bash
# tests/e2e/probe.sh -- if a peer reaches no other peer, `hearsay probe` and the messages of the peer give the reason.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# probe CODE PATTERN ARGUMENT...: checks that hearsay probe ends with this code and a matching line.
probe()
{
    local code=$1 pattern=$2 got
    shift 2
    bounded "$HEARSAY" probe "$@" >probe.out 2>probe.err
    got=$?
    if [ "$got" != "$code" ] || ! grep -qE -- "$pattern" probe.out probe.err; then
        echo "# exit code $got, expected $code and '$pattern'"
        sed 's/^/# /' probe.out probe.err
        return 1
    fi
}

check "keygen" eval '"$HEARSAY" key new ours.key 2>/dev/null && "$HEARSAY" key new theirs.key 2>/dev/null'
read -r good none mute http other < <(free_ports 5)
run=(--data glyphs --model logreg --rounds 100000000 --seed "$seed")
start good "$HEARSAY" peer --listen "127.0.0.1:$good" --name good --key ours.key "${run[@]}" --out good
good_pid=$started
check "a peer trains" wait_until 60 round_at_least good/metrics.jsonl 1

python3 - "$mute" >mute.out 2>&1 <<'END' &
import socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
kept = []
while True:
    kept.append(s.accept())
END
mute_pid=$!
pids+=("$mute_pid")
python3 -m http.server --bind 127.0.0.1 "$http" >http.out 2>&1 &
http_pid=$!
pids+=("$http_pid")
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
check "a listener that sends nothing" wait_until 20 listens "$mute"
check "an HTTP server" wait_until 20 listens "$http"

# ---- hearsay probe ----

check "probe: a good peer: every step" probe 0 '^clock +ok' "127.0.0.1:$good" --key ours.key
for step in name tcp key version run members; do
    check "  $step is ok" grep -qE "^$step +ok" probe.out
done
check "  and the run of the peer" grep -q 'good trains run [0-9a-f]\{16\}: model=logreg data=glyphs' probe.out
check "  in JSON" eval '"$HEARSAY" probe "127.0.0.1:$good" --key ours.key --json >good.json'
check "    all is well" [ "$(figures json good.json failed)" = None ]
check "    its clock is ours" within "$(figures json good.json clock_s)" -5 5
check "    its name" [ "$(figures json good.json name)" = good ]
check "probe: without a key it is not more than TCP" probe 0 'give --key' "127.0.0.1:$good"
check "probe: another key" probe 1 '^key +FAILED.*does not have the same cluster key' "127.0.0.1:$good" --key theirs.key
check "  tcp is ok" grep -qE '^tcp +ok' probe.out
check "  and the peer reports it" wait_until 20 grep -q 'not encrypted with this cluster key' good.err
check "  but not of the probe that only connected" [ "$(grep -c 'was refused' good.err)" = 1 ]
check "probe: nothing listens" probe 1 '^tcp +FAILED.*connection refused' "127.0.0.1:$none" --key ours.key
check "probe: a mute listener" probe 1 '^key +FAILED.*sends nothing' "127.0.0.1:$mute" --key ours.key --timeout 1
check "probe: an HTTP server" probe 1 '^key +FAILED' "127.0.0.1:$http" --key ours.key --timeout 2
check "probe: a name that does not resolve" probe 1 '^name +FAILED' no-such-host.invalid:7100 --key ours.key
check "  in JSON: the step" eval '! "$HEARSAY" probe "127.0.0.1:$none" --key ours.key --json >none.json &&
    [ "$(figures json none.json failed)" = tcp ]'
check "probe: no port" probe 2 'expected HOST:PORT' 127.0.0.1 --key ours.key
check "probe: no such key file" probe 2 'no.key' "127.0.0.1:$good" --key no.key
check "probe: no address" probe 2 'HOST:PORT|missing' --key ours.key

# ---- messages of peers that cannot connect ----

start lost "$HEARSAY" peer --listen "127.0.0.1:$other" --name lost --key theirs.key "${run[@]}" --out lost \
    --bootstrap "127.0.0.1:$good,127.0.0.1:$none,127.0.0.1:$mute"
lost_pid=$started
check "a peer with another cluster key reports it" wait_until 60 grep -q "no session with 127.0.0.1:$good: .*same cluster key" lost.err
check "  and that nothing listens elsewhere" wait_until 60 grep -q "no session with 127.0.0.1:$none: .*refused" lost.err
check "  and that another address sends nothing" wait_until 60 grep -q "no session with 127.0.0.1:$mute: .*sends nothing" lost.err
kill -TERM "$lost_pid"
check "  it ends" finish "$lost_pid" 60
check "  alone, and reports it" grep -q 'alone during the whole run' lost.err
check "  with the addresses, and what to check" \
    grep -q "no peer was reached at 127.0.0.1:$good, 127.0.0.1:$none.* (--bootstrap): check address, port and cluster key by hearsay probe" lost.err
check "a peer that waits for a run reports a path that does not exist at once" eval \
    'bounded "$HEARSAY" peer --listen 127.0.0.1:0 --name typo --key ours.key --data mnist:no-such-dir --out typo \
        --bootstrap "127.0.0.1:$none" 2>typo.err; [ $? = 2 ] && grep -q "cannot read no-such-dir" typo.err'
start few "$HEARSAY" peer --listen 127.0.0.1:0 --name few --key ours.key "${run[@]}" --out few --min-peers 8 \
    --bootstrap "127.0.0.1:$none"
few_pid=$started
check "a peer that waits for members reports their number and the addresses that it contacts" wait_until 60 \
    grep -q "waiting for members: 1 of 8 (--min-peers) are here; looking for more at 127.0.0.1:$none" few.err
for pid in "$few_pid" "$good_pid"; do
    kill -TERM "$pid"
    check "SIGTERM ends it with 0" finish "$pid" 60
done
start own "$HEARSAY" peer --listen "127.0.0.1:$other" --name own --key ours.key "${run[@]}" --out own \
    --bootstrap "127.0.0.1:$other"
own_pid=$started
check "a peer whose bootstrap list has only itself gets a warning" wait_until 60 \
    grep -q "names only this peer (127.0.0.1:$other)" own.err
kill -TERM "$own_pid"
check "  it ends with 0" finish "$own_pid" 60
check "a peer without a bootstrap list gets no warning" eval '! grep -q "alone from" good.err'
kill "$mute_pid" "$http_pid"

e2e_end
