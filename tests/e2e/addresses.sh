#!/usr/bin/env bash
# tests/e2e/addresses.sh -- the addresses on which peers listen and that they announce, and the warnings
# for announced addresses that cannot be called. Each host is a network namespace.
# shellcheck source=tests/lib.sh
[ -n "${ADDRESSES_NS-}" ] || { [ "$(id -u)" = 0 ] && flags=-n || flags=-rn
    unshare "$flags" true 2>/dev/null || { echo "skipped: no network namespaces here"; exit 77; }
    command -v ip >/dev/null || { echo "skipped: there is no ip here (Debian: iproute2)"; exit 77; }
    ADDRESSES_NS=1 exec unshare "$flags" bash "$0"; }
. "$(dirname "$0")/../lib.sh"
e2e_begin

ip link set lo up
check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'
train=(--key cluster.key --data glyphs --model logreg --seed "$seed" --topology complete)

# peer NAME ARGUMENTS...: starts a peer that trains until it is stopped, on the host $host if that is set.
peer()
{
    local name=$1
    shift
    start "$name" ${host:+nsenter -t "${pid[$host]}" -n} "$HEARSAY" peer --name "$name" "${train[@]}" "$@"
    pid[$name]=$started
}
declare -A pid

# gone NAME...: stops the peers with these names.
gone()
{
    local name
    for name in "$@"; do
        kill -KILL "${pid[$name]}"
        finish "${pid[$name]}" 10
    done
}

# says SECONDS REGEX FILE...: waits until one of the files has a line that matches REGEX. Fails after SECONDS seconds.
says()
{
    local seconds=$1 regex=$2
    shift 2
    wait_until "$seconds" grep -qEh -- "$regex" "$@" 2>/dev/null
}

# ---- the default port, twice on one machine ----

there=(--bootstrap 127.0.0.1:7100 --rounds 100000000 --min-peers 2)
peer a "${there[@]}"
check "the first peer takes the default port" wait_until 20 eval 'bounded "$HEARSAY" probe 127.0.0.1:7100 >probe.out 2>&1'
peer b "${there[@]}"
check "the second peer, with the same arguments, listens on another port and prints it" \
    says 20 "port 7100 is in use on this machine, .* listens on port 7101; --listen" b.err
check "  they train" wait_until 60 round_at_least hearsay-b/metrics.jsonl 20
peer c --bootstrap 10.1.2.3:7100 --rounds 5
finish "${pid[c]}" 30
check "if --bootstrap does not name this machine, the error names the remedy: $(tail -n 1 c.err)" \
    eval '[ "$code" = 2 ] && grep -q "cannot listen on 0.0.0.0:7100: address already in use; .*--listen 0.0.0.0:7102" c.err'
peer c "${there[@]}" --listen 127.0.0.1:7100
finish "${pid[c]}" 30
check "  and so it does if --listen names a port that is in use: $(tail -n 1 c.err)" \
    eval '[ "$code" = 2 ] && grep -q "cannot listen on 127.0.0.1:7100: .*--listen 127.0.0.1:7102" c.err'
peer c "${there[@]}" --listen 10.1.2.3:7100
finish "${pid[c]}" 30
check "  and for an address of another machine: $(tail -n 1 c.err)" \
    eval '[ "$code" = 2 ] && grep -q "cannot listen on 10.1.2.3:7100: .*expected an address of this machine" c.err'
gone a b

# ---- hosts with two addresses each ----

# host N: makes a namespace on a bridge, with the addresses 10.9.0.N and 10.9.0.1N. Connections leave from 10.9.0.N.
host()
{
    start "host-$1" unshare -n sleep 1000
    pid[$1]=$started
    wait_until 10 eval '[ "$(readlink /proc/$started/ns/net)" != "$(readlink /proc/$$/ns/net)" ]'
    ip link add "p$1" type veth peer name eth0 netns "$started"
    ip link set "p$1" master br0 up
    nsenter -t "$started" -n sh -c "ip link set lo up; ip link set eth0 up; ip addr add 10.9.0.$1/24 dev eth0
        ip addr add 10.9.0.1$1/24 dev eth0; ip addr add fd09::$1/64 dev eth0 nodad; ip addr add fd09::1$1/64 dev eth0 nodad"
}
ip link add br0 type bridge && ip link set br0 up && ip addr add 10.9.0.1/24 dev br0 || skip "no bridge here"
for n in 2 3 4 5 6; do host $n; done

# five ARGUMENTS...: starts a peer on each host. N in the arguments is replaced by the number of the host.
five()
{
    local n
    for n in 2 3 4 5 6; do
        rm -rf "hearsay-h$n"
        host=$n peer "h$n" --min-peers 5 --topology ring "${@//N/$n}"
    done
}
five --listen 10.9.0.1N:7100 --bootstrap 10.9.0.12:7100 --rounds 20
for n in 2 3 4 5 6; do finish "${pid[h$n]}" 60 && codes="${codes-}$code "; done
check "five peers that listen at the second address of their host reach consensus: $(tail -n 1 h6.err | cut -c 1-60)" \
    [ "${codes-}" = "0 0 0 0 0 " ]

# told FILE MEMBER FIGURE...: prints values of a member from FILE, the output of `hearsay status --json`.
told()
{
    python3 -c 'import json, sys
m = {m["name"]: m for m in json.load(open(sys.argv[1]))["members"]}
print(*(m[sys.argv[2]][f] for f in sys.argv[3:]))' "$@"
}
status()
{
    bounded nsenter -t "${pid[2]}" -n "$HEARSAY" status --bootstrap "$1" --key cluster.key "${@:2}" 2>status.err
}
endless=(--rounds 100000000 --min-peers 4)
# h3 announces an address that refuses calls, h4 a name that does not resolve, h5 a host that does not answer, h2 an address that works.
names=(--bootstrap "10.9.0.12:7100,10.9.0.13:7100,10.9.0.14:7100,10.9.0.15:7100")
rm -rf hearsay-h*
host=2 peer h2 --listen 10.9.0.12:7100 "${endless[@]}" "${names[@]}"
host=3 peer h3 --listen 10.9.0.13:7100 --advertise 10.9.0.3:7100 "${endless[@]}" "${names[@]}"
host=4 peer h4 --listen 10.9.0.14:7100 --advertise nowhere.invalid:7100 "${endless[@]}" "${names[@]}"
host=5 peer h5 --listen 10.9.0.15:7100 --advertise 10.9.0.99:7100 "${endless[@]}" "${names[@]}"
check "another member warns of an address that refuses calls, within 10 s" \
    says 10 "h3 cannot be called at 10.9.0.3:7100: nothing listens at that address .connection refused.; start it with --advertise" h[245].err
check "  and so does the peer itself, with the remedy" \
    says 10 "no member can call this peer at 10.9.0.3:7100, .*refused.* .reported by h[245].; start this peer with --advertise HOST:PORT" h3.err
check "  a name that does not resolve" \
    eval 'says 10 "h4 cannot be called at nowhere.invalid:7100: the name does not resolve" h[235].err && says 10 "no member .*nowhere.invalid" h4.err'
check "  a host that does not answer" \
    eval 'says 10 "h5 cannot be called at 10.9.0.99:7100: " h[234].err && says 10 "no member .*10.9.0.99" h5.err'
check "  no warning of an address that works" eval '! grep -hE "h2 cannot|h2: warning: .*call this peer" h?.err'
status 10.9.0.12:7100 --json >status.json
check "status shows the error: $(told status.json h3 addresses call_error)" \
    [ "$(told status.json h2 callable call_error) $(told status.json h3 callable call_error)" = \
    "True None False nothing listens at that address (connection refused)" ]
status 10.9.0.12:7100 >status.out
check "  in a line of its text: $(grep -m 1 '^h3 cannot' status.out)" \
    grep -q "^h3 cannot be called from here at 10.9.0.3:7100, its announced address: nothing listens at that address" status.out
bounded nsenter -t "${pid[2]}" -n "$HEARSAY" probe 10.9.0.13:7100 --key cluster.key >probe.out 2>&1
check "probe shows the error: $(grep -m 1 announce probe.out | cut -c 1-110)" \
    grep -q "^announce FAILED .*announced to other peers: 10.9.0.3:7100 (nothing listens at that address" probe.out
bounded nsenter -t "${pid[3]}" -n "$HEARSAY" probe 10.9.0.12:7100 --key cluster.key >probe.out 2>&1
check "  and an address that works" grep -q "^announce ok .*announced to other peers: 10.9.0.12:7100 (it answers there)" probe.out
gone h2 h3 h4 h5

# A peer that listens on a wildcard address announces the address that other peers see on its connections. A host name and
# port 0 are announced as numbers.
rm -rf hearsay-h*
host=2 peer h2 --listen 10.9.0.12:7100 --rounds 100000000 --min-peers 5
host=3 peer h3 --listen 10.9.0.13:0 --bootstrap 10.9.0.12:7100
host=4 peer h4 --listen '[fd09::14]:0' --bootstrap 10.9.0.12:7100
host=5 peer h5 --listen 0.0.0.0:7105 --bootstrap 10.9.0.12:7100
host=6 peer h6 --listen localhost:0 --bootstrap 10.9.0.12:7100
listed() { status 10.9.0.12:7100 --json >status.json && [ "$(grep -o '"addresses"' status.json | wc -l)" = 5 ]; }
check "five peers meet" wait_until 20 listed
# tells NAME REGEX: checks that a peer announces one address, which matches REGEX. With a wildcard, neighbours report to the
# peer which address they see.
tells() { listed && told status.json "$1" addresses | grep -qE "^\['$2'\]$"; }
check "  --listen HOST:0 is announced with the real port" wait_until 20 tells h3 '10\.9\.0\.13:[1-9][0-9]+'
check "  an IPv6 address, too" wait_until 20 tells h4 '\[fd09::14\]:[1-9][0-9]+'
# h5 also has an IPv6 address, which other peers see when h5 connects to h4.
v6="\[fd09::1?5\]:7105"
check "  a wildcard: the addresses seen on connections" wait_until 20 tells h5 "($v6', ')?10\.9\.0\.5:7105(', '$v6)?"
check "  a name: its address" wait_until 20 tells h6 '(127\.0\.0\.1|\[::1\]):[1-9][0-9]+'
check "  and members warn of an address that only that host can call" says 10 "h6 cannot be called at (127.0.0.1|.::1.):" h[2345].err
gone h2 h3 h4 h5 h6

# refused TEXT ERROR ARGUMENTS...: a peer with these arguments ends with exit code 2 and the text ERROR.
refused()
{
    local regex=$2
    bounded "$HEARSAY" peer --name x "${train[@]}" "${@:3}" >x.out 2>x.err
    code=$?
    check "$1: $(tail -n 1 x.err)" eval '[ "$code" = 2 ] && grep -qF -- "$regex" x.err'
}
refused "a name that is none" "--listen: cannot look up 'nowhere.invalid'" --listen nowhere.invalid:7100
refused "no port" "--listen: found 'localhost', expected HOST:PORT" --listen localhost
refused "a wildcard cannot be called" "--advertise: found '0.0.0.0:7100', expected an address that other peers can call" --advertise 0.0.0.0:7100
refused "  nor the other one" "--advertise: found '[::]:7100', expected an address" --advertise '[::]:7100'
for group in 224.0.0.1 255.255.255.255 '[ff02::1]' '[::ffff:239.1.2.3]'; do
    refused "  nor $group" "--advertise: found '$group:7100', expected an address" --advertise "$group:7100"
    refused "no peer listens at $group" "--listen: found '$group:7100', a multicast or broadcast" --listen "$group:7100"
done

e2e_end
