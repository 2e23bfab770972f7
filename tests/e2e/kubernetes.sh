#!/usr/bin/env bash
# tests/e2e/kubernetes.sh -- tests deploy/kubernetes without a Kubernetes cluster. Checks that the references in the objects
# have targets, and runs the start script of a container. Each pod is a network namespace with a directory as volume. A name
# server resolves one name to the addresses of all pods, as a headless service does. The addresses change: a pod is deleted
# and comes back with its volume at another address, two pods are added, and one finishes. The probes run as a kubelet runs
# them. Needs root.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
python3 -c 'import yaml' 2>/dev/null || skip "there is no python3-yaml here"
objects()
{
    python3 "$root/tests/e2e/kubernetes.py" "$1" "$root/deploy/kubernetes"
}
check "the objects fit together" objects check
if command -v kubectl >/dev/null; then
    cp -r "$root/deploy/kubernetes" made && echo key >made/cluster.key
    check "kubectl makes one text of them" eval 'HOME=$work kubectl kustomize made >made.yaml 2>kubectl.err'
    check "  of seven objects" [ "$(grep -c '^kind:' made.yaml)" = 7 ]
    python3 -c 'import kubernetes_validate' 2>/dev/null \
        && check "  all as the schemas have it" python3 "$root/tests/e2e/kubernetes.py" schema made.yaml
    command -v kubeconform >/dev/null && check "  by kubeconform, too" kubeconform -strict made.yaml
else
    echo "# no kubectl here: what it makes of the folder is not seen"
fi
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
at_exit remove_hosts

# A bridge that connects all pods, and the file from which the name server reads the addresses of `peers`.
switch=hs$$-switch
hosts+=("$switch")
{ ip netns add "$switch" && ip -n "$switch" link add br0 type bridge && ip -n "$switch" link set br0 up; } 2>hosts.err \
    || skip "no hosts: $(head -n 1 hosts.err)"
ip -n "$switch" link set lo up && ip -n "$switch" addr add 10.79.0.1/24 dev br0
echo "127.0.0.1 localhost" >hosts
printf 'nameserver 10.79.0.1\nsearch hearsay.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n' >resolv.conf
: >names
start dns ip netns exec "$switch" python3 "$root/tests/e2e/dns.py" 10.79.0.1 names
check "a name server" wait_until 20 grep -q '^ready' dns.out
declare -A address
# resolve: makes the name server return the addresses in ${address[@]}.
resolve()
{
    local i text=
    for i in "${!address[@]}"; do
        text+="peers.hearsay.svc.cluster.local ${address[$i]}"$'\n'
    done
    echo "$text" >names.new && mv names.new names
}
# inside I COMMAND...: runs a command in the namespace of pod I, with a resolv.conf as in a Kubernetes cluster.
inside()
{
    local i=$1
    shift
    ip netns exec "hs$$-$i" unshare --mount sh -c 'mount --bind hosts /etc/hosts && mount --bind resolv.conf /etc/resolv.conf && exec "$@"' pod "$@"
}

# add_host I: makes the namespace of pod I and connects it to the bridge.
add_host()
{
    local h=hs$$-$1
    hosts+=("$h")
    ip netns add "$h" && ip -n "$h" link set lo up && ip -n "$h" link add eth0 type veth peer name "p$1" netns "$switch" \
        && ip -n "$switch" link set "p$1" master br0 && ip -n "$switch" link set "p$1" up && ip -n "$h" link set eth0 up
}

mapfile -t env < <(objects env)
objects start >start.sh
objects live >live.sh
read -r metrics_port ready_path < <(objects ready)
mkdir bin && ln -s "$HEARSAY" bin/hearsay
"$HEARSAY" key new cluster.key 2>keygen.err
# Kubernetes mounts the key from a secret volume, in which the group of the pod may read all files.
chmod 440 cluster.key

# start_pod I ADDRESS: starts pod I in the background, and adds its address to the name server. The process id of the pod is
# ${pod[I]}.
start_pod()
{
    local i=$1 h=hs$$-$1
    ip -n "$h" addr flush dev eth0 && ip -n "$h" addr add "$2/24" dev eth0 || return 1
    mkdir -p "out-$i" "memory-$i"
    # The run is simpler than the one in the example, because all pods share few cores.
    start "pod-$i" ip netns exec "$h" unshare --mount sh -c \
        'mount --bind hosts /etc/hosts && mount --bind resolv.conf /etc/resolv.conf && exec "$@"' pod env -i PATH="$work/bin:$PATH" "${env[@]}" HEARSAY_NAME="peer-$i" HEARSAY_OUT="$work/out-$i" \
        HEARSAY_KEY="$work/memory-$i/cluster.key" SECRET_KEY="$work/cluster.key" HEARSAY_MODEL=logreg HEARSAY_EPOCHS= \
        HEARSAY_ROUNDS=1000000 HEARSAY_SEED="$seed" sh start.sh
    pod[i]=$started
    address[$i]=$2
    resolve
}
# stop_pod I: stops pod I as a kubelet does (SIGTERM), and removes its address from the name server.
stop_pod()
{
    kill -TERM "${pod[$1]}"
    finish "${pod[$1]}" 30
    unset "address[$1]"
    resolve
}
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
status()
{
    inside 0 "$HEARSAY" status --bootstrap peers:7100 --key memory-0/cluster.key --json >status.json 2>status.err
}
# lives I, ready I: run the liveness probe inside pod I, and the readiness probe of pod I from another namespace.
# shellcheck disable=SC2317
lives()
{
    inside "$1" env -i PATH="$PATH" "${env[@]}" HEARSAY_OUT="$work/out-$1" timeout 5 bash live.sh >live.out 2>&1
}
# shellcheck disable=SC2317
ready()
{
    ip netns exec "$switch" python3 "$root/tests/e2e/metrics.py" get "http://${address[$1]}:$metrics_port$ready_path" 2>/dev/null \
        | head -n 1 | grep -qx 200
}
# alive_peers N: checks that N members are alive.
# shellcheck disable=SC2317
alive_peers()
{
    status && [ "$(python3 -c 'import json; print(sum(p["state"] == "alive" for p in json.load(open("status.json"))["members"]))')" = "$1" ]
}

pod=()
for i in 0 1 2 3; do
    add_host $i 2>>hosts.err || skip "no hosts: $(tail -n 1 hosts.err)"
done
start_pod 0 10.79.0.10
check "a pod that waits for others lives" wait_until 60 lives 0
check "  and is not ready" eval '! ready 0'
for i in 1 2 3; do
    start_pod $i 10.79.0.1$i
done
check "four pods find each other by the service's name" wait_until 60 alive_peers 4
check "  and train" wait_until 60 round_at_least out-2/metrics.jsonl 5
check "  with a copy of the key that only they read" [ "$(stat -c %a memory-0/cluster.key)" = 600 ]
for i in 0 1 2 3; do
    check "  pod $i is ready" wait_until 60 ready $i
    check "    and lives" lives $i
done
check "  by the name server's answers" grep -q '^peers.hearsay.svc.cluster.local A 4$' dns.out
kill -STOP "${pod[3]}"
check "the liveness probe of a pod with a stopped process fails" eval '! lives 3'
kill -CONT "${pod[3]}"
check "  and succeeds when the process continues" wait_until 30 lives 3

check "a pod that is deleted leaves at SIGTERM, with 0" stop_pod 2
at=$(last_round out-2/metrics.jsonl)
check "  and the others continue" wait_until 60 round_at_least out-0/metrics.jsonl $((at + 5))
start_pod 2 10.79.0.22
check "it comes back at another address with its volume" wait_until 60 alive_peers 4
check "  and continues after round $at" wait_until 60 round_at_least out-2/metrics.jsonl $((at + 1))
check "  as the same member" [ "$(grep -oE 'peer-2 is [0-9a-f]{64}' pod-2.err)" = "peer-2 is $("$HEARSAY" key identity out-2/identity.key)" ]

for i in 4 5; do
    add_host $i && start_pod $i 10.79.0.1$i
done
check "scaled to six" wait_until 60 alive_peers 6
check "  and the sixth trains" wait_until 60 round_at_least out-5/metrics.jsonl 1

# The run of the tests above lasts too long to wait for its end. A short run of one peer tests what a pod does when its run
# has finished.
for i in 0 1 2 3 4 5; do
    stop_pod $i || not_ok "pod $i ends with $code"
done
check "all leave at SIGTERM" [ ${#address[@]} = 0 ]
mkdir ended && "$HEARSAY" peer --listen 127.0.0.1:0 --key memory-0/cluster.key --name peer-0 --data glyphs --model logreg \
    --rounds 5 --out ended >ended.out 2>ended.err
check "a run of one ends" [ $? = 0 ]
start again env -i PATH="$work/bin:$PATH" HEARSAY_OUT="$work/ended" HEARSAY_KEY="$work/none/key" SECRET_KEY=none sh start.sh
check "a pod of a finished run reports it" wait_until 20 grep -q '^this run has finished: "text"' again.out
check "  and stays" alive "$started"
check "    and lives for the probe" inside 0 env -i PATH="$PATH" "${env[@]}" HEARSAY_OUT="$work/ended" bash live.sh
check "    and the probe of a pod that has ended fails" eval '! lives 0'
kill -TERM "$started"
check "  until it is deleted, at once" finish "$started" 5
e2e_end
