#!/usr/bin/env bash
# tests/e2e/addresses.sh -- where peers listen, which addresses they tell others, and what is said of
# addresses that cannot be called. Hosts are network namespaces.
# shellcheck source=tests/lib.sh
[ -n "${ADDRESSES_NS-}" ] || { [ "$(id -u)" = 0 ] && flags=-n || flags=-rn
    unshare "$flags" true 2>/dev/null || { echo "skipped: no network namespaces here"; exit 77; }
    command -v ip >/dev/null || { echo "skipped: there is no ip here (Debian: iproute2)"; exit 77; }
    ADDRESSES_NS=1 exec unshare "$flags" bash "$0"; }
. "$(dirname "$0")/../lib.sh"
e2e_begin

ip link set lo up
check "keygen" eval '"$HEARSAY" keygen cluster.key 2>keygen.err'
train=(--key cluster.key --data glyphs --model logreg --seed "$seed" --topology complete)

# peer NAME ARGUMENTS...: it trains until it is stopped; $host, if set, is its host.
peer()
{
    local name=$1
    shift
    start "$name" ${host:+nsenter -t "${pid[$host]}" -n} "$HEARSAY" peer --name "$name" "${train[@]}" "$@"
    pid[$name]=$started
}
declare -A pid

# gone NAME...: ends these peers.
gone()
{
    local name
    for name in "$@"; do
        kill -KILL "${pid[$name]}"
        finish "${pid[$name]}" 10
    done
}

# says SECONDS REGEX FILE...: one of the files comes to hold the line.
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
check "the second by the same line listens on another, and says so" \
    says 20 "port 7100 is in use on this machine, .* listens on port 7101; --listen" b.err
check "  they train" wait_until 60 round_at_least hearsay-b/metrics.jsonl 20
peer c --bootstrap 10.1.2.3:7100 --rounds 5
finish "${pid[c]}" 30
check "without a bootstrap list of this machine the error says what to write: $(tail -n 1 c.err)" \
    eval '[ "$code" = 2 ] && grep -q "cannot listen on 0.0.0.0:7100: address already in use; .*--listen 0.0.0.0:7102" c.err'
peer c "${there[@]}" --listen 127.0.0.1:7100
finish "${pid[c]}" 30
check "  nor is a port that was asked for left: $(tail -n 1 c.err)" \
    eval '[ "$code" = 2 ] && grep -q "cannot listen on 127.0.0.1:7100: .*--listen 127.0.0.1:7102" c.err'
peer c "${there[@]}" --listen 10.1.2.3:7100
finish "${pid[c]}" 30
check "  an address of another machine: $(tail -n 1 c.err)" \
    eval '[ "$code" = 2 ] && grep -q "cannot listen on 10.1.2.3:7100: .*expected an address of this machine" c.err'
gone a b

e2e_end
