#!/usr/bin/env bash
# tests/e2e/compose.sh -- deploy/compose.yml with a real container engine. Four peers train glyphs, and a second `up`
# changes nothing. Further runs: one container is killed; fewer peers than --min-peers; own data; the policy restart:
# always.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib_docker.sh
. "$root/tests/lib_docker.sh"
docker_answers || skip "no container engine answers here"
compose=$(docker_compose) || skip "there is neither docker compose nor docker-compose"
e2e_begin

project=hearsaytest$$
export IMAGE=hearsay-test PEERS=4
dc()
{
    # shellcheck disable=SC2086 # Unquoted, because the variable holds one or two words.
    bounded $compose -p "$project" -f "$root/deploy/compose.yml" "$@" </dev/null
}
down()
{
    dc down --volumes --remove-orphans >down.out 2>&1
}
at_exit down

if docker_build $IMAGE build.out; then
    ok "the image builds: $(docker image inspect -f '{{.Size}}' $IMAGE | awk '{ printf "%.0f MB", $1 / 1e6 }')"
else
    not_ok "the image does not build"
    tail -n 20 build.out | sed 's/^/# /'
    exit 1
fi
check "its user is not root" [ "$(docker run --rm --network none --entrypoint id $IMAGE -u)" != 0 ]
check "there is no compiler in it" eval "! docker run --rm --network none --entrypoint which $IMAGE gcc cmake"

# begin NAME: removes the previous cluster and starts a new one. Stores the ids of its containers in ${ids[@]}.
begin()
{
    down
    check "$1: up" eval "dc up -d --no-build >$1-up.out 2>&1"
    mapfile -t ids < <(docker ps -aq --no-trunc --filter "label=com.docker.compose.project=$project" \
        --filter label=com.docker.compose.service=peer)
    check "$1: four containers" [ ${#ids[@]} = 4 ]
}

# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
running()
{
    [ "$(docker inspect -f '{{.State.Running}}' "$1" 2>/dev/null)" = true ]
}

# shellcheck disable=SC2317
over()
{
    local id
    for id in "${ids[@]}"; do
        ! running "$id" || return 1
    done
}

# fetch ID: copies a container's directory of the volume to ./HOSTNAME, and stores that name in $host.
fetch()
{
    host=$(docker inspect -f '{{.Config.Hostname}}' "$1")
    rm -rf "$host"
    docker cp "$1:/out/$host" . >/dev/null 2>&1
}

# results NAME ID...: checks that every container ended with 0, that its model has an accuracy of at least 97 % by its own
# summary and by hearsay eval, and that the models agree.
results()
{
    local name=$1 id accuracy evaluated models=()
    shift
    for id in "$@"; do
        check "$name: $(cut -c 1-12 <<<"$id") ends with 0" \
            [ "$(docker inspect -f '{{.State.ExitCode}}' "$id")" = 0 ]
        fetch "$id"
        check "$name:   with consensus of $# peers: $(figures json "$host/summary.json" verdict.text)" \
            [ "$(figures json "$host/summary.json" verdict.kind) $(figures json "$host/summary.json" verdict.n_among)" = "consensus $#" ]
        accuracy=$(figures json "$host/summary.json" accuracy)
        "$HEARSAY" eval "$host/model.safetensors" --data glyphs --json >eval.out 2>eval.err
        evaluated=$(figures json eval.out accuracy)
        check "$name: accuracy $accuracy in its summary" within "$accuracy" 0.97 1
        check "$name: accuracy $evaluated by hearsay eval" within "$evaluated" 0.97 1
        models+=("$host/model.safetensors")
    done
    read -r _ relative _ < <(figures drift "${models[@]}")
    check "$name: exact relative drift ${relative-none} <= 1.15e-3" within "${relative-none}" 0 1.15e-3
}

# The test sets only these four options of the run. All other options have the defaults of
# compose.yml.
export HEARSAY_MODEL=lenet5 HEARSAY_COMPRESS=topk:0.05 HEARSAY_EPOCHS=${EPOCHS:-3} HEARSAY_SEED=$seed
begin four
check "four: all end" wait_until 180 over
results four "${ids[@]}"

# sums: prints checksums of all files that the containers have left.
sums()
{
    local id
    for id in "${ids[@]}"; do
        fetch "$id"
        find "$host" -type f -exec md5sum {} +
    done | sort -k 2
}
before=$(sums)
check "again: up" eval 'dc up -d --no-build >again-up.out 2>&1'
check "again: all end" wait_until 60 over
check "again: each says that it has finished" [ "$(dc logs peer 2>/dev/null | grep -c 'this run has already finished')" = 4 ]
check "again: the exit code is that of the finished run" [ "$(docker inspect -f '{{.State.ExitCode}}' "${ids[@]}" | sort -u)" = 0 ]
check "again: what they left is as it was: $(wc -l <<<"$before") files" [ "$(sums)" = "${before:-nothing}" ]

begin killed
victim=${ids[2]}
survivors=("${ids[0]}" "${ids[1]}" "${ids[3]}")
# shellcheck disable=SC2317
under_way()
{
    fetch "${ids[0]}" && round_at_least "$host/metrics.jsonl" 20
}
check "killed: the run is under way" wait_until 90 under_way
docker kill "$victim" >/dev/null
check "killed: $(cut -c 1-12 <<<"$victim") is dead at round $(last_round "$host/metrics.jsonl")" \
    [ "$(docker inspect -f '{{.State.Running}}' "$victim")" = false ]
check "killed: the others end" wait_until 180 over
results killed "${survivors[@]}"

# Two peers of a run that needs eight: the two peers must report that they wait for members, and for
# how many.
down
PEERS=8 dc up -d --no-build --scale peer=2 >fewer-up.out 2>&1
# shellcheck disable=SC2317
waiting()
{
    [ "$(dc logs peer 2>/dev/null | grep -c 'waiting for members: 2 of 8 (--min-peers) are here')" -ge 2 ]
}
check "fewer: two of eight say that they wait" wait_until 60 waiting

# Test: the peers train on a data set of the user, which is in a directory of the host.
mkdir own
chmod 711 .
awk 'BEGIN { srand(7); for (i = 0; i < 400; i++) { x = rand(); y = rand(); printf "%.4f,%.4f,%s\n", x, y, (x > y ? "above" : "below") } }' >own/table.csv
chmod -R a+rX own
PEERS=4 DATA=$work/own HEARSAY_DATA=csv:/data/table.csv HEARSAY_MODEL=logreg HEARSAY_ROUNDS=40 HEARSAY_EPOCHS='' begin own
check "own: the peers train on it and end" wait_until 90 over
check "own: in consensus of four, and it is learnt" [ "$(dc logs peer 2>/dev/null | grep -c 'consensus of 4 of 4 peers')" -ge 4 ]

# Test: with "restart: always", a process that is killed inside its container is restarted and
# continues from its volume.
printf 'services:\n  peer:\n    restart: always\n' >always.yml
compose="$compose -f $root/deploy/compose.yml -f $work/always.yml"
export HEARSAY_MODEL=logreg HEARSAY_EPOCHS='' HEARSAY_ROUNDS=1000000
begin always
check "always: the run is under way" wait_until 90 under_way
victim=${ids[2]} process=$(docker inspect -f '{{.State.Pid}}' "${ids[2]}")
kill -KILL "$process"
# shellcheck disable=SC2317
back()
{
    [ "$(docker inspect -f '{{.RestartCount}} {{.State.Running}}' "$victim")" = "1 true" ]
}
check "always: the engine starts it again" wait_until 60 back
fetch "$victim"
at=$(last_round "$host/metrics.jsonl")
# shellcheck disable=SC2317
further()
{
    fetch "$victim" && round_at_least "$host/metrics.jsonl" $((at + 20))
}
check "always: it continues after round $at" wait_until 90 further
check "always: it is the same member" [ "$(docker logs "$victim" 2>&1 | grep -oE '[^ ]+ is [0-9a-f]{64}$' | uniq | wc -l)" = 1 ]

e2e_end
