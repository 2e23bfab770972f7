#!/usr/bin/env bash
# tests/e2e/kubernetes.sh -- deploy/kubernetes without a cluster: its objects fit together, and its start
# script does what a cluster asks of it. A pod is a host in a namespace of the network with a volume; one
# name resolves to all of them, and what it resolves to changes: a pod is deleted and comes back with
# its volume at another address, two more are added, and a finished one stays. Needs root.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
python3 -c 'import yaml' 2>/dev/null || skip "there is no python3-yaml here"
objects()
{
    python3 "$root/tests/e2e/kubernetes.py" "$1" "$root/deploy/kubernetes"
}
check "the objects fit together" objects check
for need in ip unshare; do
    command -v "$need" >/dev/null || skip "there is no $need here"
done

hosts=()
remove_hosts()
{
    local h
    for h in ${hosts[@]+"${hosts[@]}"}; do
        ip netns del "$h" 2>/dev/null
    done
    return 0
}
trap 'code=$?; remove_hosts; (exit $code); e2e_clean' EXIT

# A switch, and the file that says which addresses `peers` has.
switch=hs$$-switch
hosts+=("$switch")
{ ip netns add "$switch" && ip -n "$switch" link add br0 type bridge && ip -n "$switch" link set br0 up; } 2>hosts.err \
    || skip "no hosts: $(head -n 1 hosts.err)"
echo "127.0.0.1 localhost" >names
declare -A address
# resolve: what stands in ${address[@]}, in the file that the pods have mounted.
resolve()
{
    local i text="127.0.0.1 localhost"
    for i in "${!address[@]}"; do
        text+=$'\n'"${address[$i]} peers"
    done
    echo "$text" >names
}

# add_host I: the host of pod I, cabled.
add_host()
{
    local h=hs$$-$1
    hosts+=("$h")
    ip netns add "$h" && ip -n "$h" link set lo up && ip -n "$h" link add eth0 type veth peer name "p$1" netns "$switch" \
        && ip -n "$switch" link set "p$1" master br0 && ip -n "$switch" link set "p$1" up && ip -n "$h" link set eth0 up
}

mapfile -t env < <(objects env)
objects start >start.sh
mkdir bin && ln -s "$HEARSAY" bin/hearsay
"$HEARSAY" keygen cluster.key 2>keygen.err
chmod 440 cluster.key # As a volume of a secret has it, for the pod's group.

# start_pod I ADDRESS: in the background, its pid in ${pod[I]}; and the name resolves to it.
start_pod()
{
    local i=$1 h=hs$$-$1
    ip -n "$h" addr flush dev eth0 && ip -n "$h" addr add "$2/24" dev eth0 || return 1
    mkdir -p "out-$i" "memory-$i"
    # The run is shorter than that of the example, and easy: the hosts share two cores.
    start "pod-$i" ip netns exec "$h" unshare --mount sh -c 'mount --bind names /etc/hosts && exec "$@"' pod env -i \
        PATH="$work/bin:$PATH" "${env[@]}" HEARSAY_NAME="peer-$i" HEARSAY_OUT="$work/out-$i" \
        HEARSAY_KEY="$work/memory-$i/cluster.key" SECRET_KEY="$work/cluster.key" HEARSAY_MODEL=logreg HEARSAY_EPOCHS= \
        HEARSAY_ROUNDS=1000000 HEARSAY_SEED="$seed" sh start.sh
    pod[i]=$started
    address[$i]=$2
    resolve
}
# stop_pod I: as a kubelet does, and its name goes with it.
stop_pod()
{
    kill -TERM "${pod[$1]}"
    finish "${pod[$1]}" 30
    unset "address[$1]"
    resolve
}
# shellcheck disable=SC2317 # By wait_until.
status()
{
    ip netns exec "hs$$-0" unshare --mount sh -c 'mount --bind names /etc/hosts && exec "$@"' status \
        "$HEARSAY" status --bootstrap peers:7100 --key memory-0/cluster.key --json >status.json 2>status.err
}
# alive N: N peers say that they train together.
# shellcheck disable=SC2317
alive_peers()
{
    status && [ "$(python3 -c 'import json; print(sum(p["state"] == "alive" for p in json.load(open("status.json"))["members"]))')" = "$1" ]
}

pod=()
for i in 0 1 2 3; do
    add_host $i 2>>hosts.err || skip "no hosts: $(tail -n 1 hosts.err)"
    start_pod $i 10.79.0.1$i
done
check "four pods find each other by the service's name" wait_until 60 alive_peers 4
check "  and train" wait_until 60 round_at_least out-2/metrics.jsonl 5
check "  with a copy of the key that only they read" [ "$(stat -c %a memory-0/cluster.key)" = 600 ]

check "a pod that is deleted leaves at SIGTERM, with 0" stop_pod 2
at=$(last_round out-2/metrics.jsonl)
check "  and the others go on" wait_until 60 round_at_least out-0/metrics.jsonl $((at + 5))
start_pod 2 10.79.0.22
check "it comes back at another address with its volume" wait_until 60 alive_peers 4
check "  behind round $at" wait_until 60 round_at_least out-2/metrics.jsonl $((at + 1))
check "  as the same member" [ "$(grep -oE 'peer-2 is [0-9a-f]{64}' pod-2.err)" = "peer-2 is $("$HEARSAY" identity out-2/identity.key)" ]

for i in 4 5; do
    add_host $i && start_pod $i 10.79.0.1$i
done
check "scaled to six" wait_until 60 alive_peers 6
check "  and the sixth trains" wait_until 60 round_at_least out-5/metrics.jsonl 1

# The first run's end is far: a short one of its own shows what a pod does that has finished.
for i in 0 1 2 3 4 5; do
    stop_pod $i || not_ok "pod $i ends with $code"
done
check "all leave at SIGTERM" [ ${#address[@]} = 0 ]
mkdir ended && "$HEARSAY" peer --listen 127.0.0.1:0 --key memory-0/cluster.key --name peer-0 --data glyphs --model logreg \
    --rounds 5 --out ended >ended.out 2>ended.err
check "a run of one ends" [ $? = 0 ]
start again env -i PATH="$work/bin:$PATH" HEARSAY_OUT="$work/ended" HEARSAY_KEY="$work/none/key" SECRET_KEY=none sh start.sh
check "a pod of a finished run says so" wait_until 20 grep -q '^this run has finished: "text"' again.out
check "  and stays" alive "$started"
kill -TERM "$started"
check "  until it is deleted, at once" finish "$started" 5
e2e_end
