#!/usr/bin/env bash
# tests/e2e/metrics.sh -- --metrics: four real peers serve over HTTP the values that they write to files. Prometheus reads
# the values, if it is installed.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

metrics()
{
    python3 "$root/tests/e2e/metrics.py" "$@"
}

# says URL STATUS PATTERN [METHOD]: checks that the answer has this status and a matching text.
says()
{
    local got
    got=$(metrics get "$1" "${4-GET}" 2>&1)
    [ "${got%%$'\n'*}" = "$2" ] && grep -qE -- "$3" <<<"$got" || { sed 's/^/# /' <<<"$got" | head -n 3; false; }
}

# refuses CODE PATTERN ARGUMENT...: checks that hearsay ends with this code and one matching line.
refuses()
{
    local code=$1 pattern=$2
    shift 2
    bounded "$HEARSAY" "$@" >refused.out 2>refused.err
    [ $? = "$code" ] && grep -qE -- "$pattern" refused.err && [ "$(wc -l <refused.err)" = 1 ]
}

check "keygen" eval '"$HEARSAY" key new ours.key 2>/dev/null'
read -r -a port < <(free_ports 5)
bootstrap=$(printf '127.0.0.1:%s,' "${port[@]:0:4}")
run=(--data glyphs --model logreg --batch 256 --rounds 100000000 --min-peers 4 --evaluate-every 20 --key ours.key
    --seed "$seed" --evaluate-samples 200 --bootstrap "${bootstrap%,}" --shard auto)

# begin I: starts peer I with --metrics and port 0, and stores the URL that it prints in ${at[I]}.
declare -a at peer
begin()
{
    start "p$1" "$HEARSAY" peer --name "p$1" --listen "127.0.0.1:${port[$1]}" "${run[@]}" --metrics 0 --out "p$1"
    peer[$1]=$started
    check "peer $1 prints the URL of its figures" wait_until 60 grep -q 'figures are at http://127' "p$1.err"
    at[$1]=$(sed -nE 's|.*figures are at (http://127.0.0.1:[0-9]+)/metrics.*|\1|p' "p$1.err" | head -n 1)
}

# ---- A peer that waits for members ----

begin 0
check "  /healthz while it is alone" says "${at[0]}/healthz" 200 'alive|starting'
check "  /readyz has the number of peers that this peer waits for" wait_until 60 says "${at[0]}/readyz" 503 'joining: 1 of 4 members are present'
check "  /metrics" says "${at[0]}/metrics" 200 '^hearsay_phase\{phase="joining"\} 1$'
check "  /status.json has no drift" [ "$(metrics field "${at[0]}/status.json" relative_drift)" = None ]
check "  the address is taken" refuses 2 'metrics: cannot listen on .*in use' peer --key ours.key --name q \
    --listen 127.0.0.1:0 --metrics "${at[0]#http://}" --out q
for junk in nonsense 70000 '::1:7200' 127.0.0.1 :; do
    check "  --metrics $junk is refused" refuses 2 "^hearsay peer: --metrics: found '$junk', expected" peer \
        --key ours.key --name q --listen 127.0.0.1:0 --metrics "$junk" --out q
done
check "  local wants a port that leaves room" refuses 2 'from 1 to 65528' local --metrics 65530

# ---- Four peers train ----

for i in 1 2 3; do
    begin "$i"
done
for i in 0 1 2 3; do
    check "peer $i is ready" wait_until 60 says "${at[$i]}/readyz" 200 '^training: round [0-9]+ of 100000000$'
done
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
drifts()
{
    [ "$(metrics field "$1/status.json" relative_drift)" != None ]
}
for i in 0 1 2 3; do
    check "peer $i knows its drift" wait_until 60 drifts "${at[$i]}"
    check "  its history and figures are those of metrics.jsonl" metrics lines "${at[$i]}/status.json" "p$i/metrics.jsonl"
    check "  /metrics is what /status.json is" metrics text "${at[$i]}"
done
check "members, edges and their bytes agree" metrics edges "${at[@]}"
check "hearsay status shows the same members" eval '"$HEARSAY" status --bootstrap "127.0.0.1:${port[0]}" \
    --key ours.key --json >status.json'
for i in 0 1 2 3; do
    check "  the id of $i" grep -q "\"name\":\"p$i\",\"id\":\"$(metrics field "${at[$i]}/status.json" id)\"" status.json
done
check "  its timers are those of /status.json" metrics timers "${at[0]}/status.json" status.json
check "  without --json it prints no timer" eval '"$HEARSAY" status --bootstrap "127.0.0.1:${port[0]}" --key ours.key >status.txt \
    && grep -q "^p0 " status.txt && ! grep -qE "_US|timer" status.txt'
check "  one run" [ "$(for i in 0 1 2 3; do metrics field "${at[$i]}/status.json" run_id; done | sort -u | wc -l)" = 1 ]
check "other paths are 404" says "${at[0]}/nothing" 404 'metrics'
check "  so is one that ends early" says "${at[0]}/metrics%00" 404 'metrics'
check "other methods are 405" says "${at[0]}/metrics" 405 'GET' POST
check "HEAD has no body" [ "$(metrics get "${at[0]}/metrics" HEAD)" = 200 ]
check "port 7200 stands for the loopback alone" [ "$(grep -c 'http://0.0.0.0' p0.err)" = 0 ]

# A connection without the cluster key is counted by the reason of its refusal.
printf 'GET / HTTP/1.1\r\n%0500d' 0 >"/dev/tcp/127.0.0.1/${port[0]}"
check "a refused connection is counted" wait_until 30 eval \
    'metrics get "${at[0]}/metrics" | grep -qE "^hearsay_refused_connections_total.reason=.unsealed.. [1-9]"'

# ---- Prometheus reads the metrics ----

if command -v promtool >/dev/null; then
    metrics get "${at[0]}/metrics" | tail -n +2 >served.txt
    check "promtool finds nothing to say of /metrics" eval 'promtool check metrics <served.txt >promtool.out 2>&1 && [ ! -s promtool.out ]'
    check "promtool takes the configuration" eval 'promtool check config "$root/deploy/monitoring/prometheus.yml" >/dev/null'
    check "promtool takes the rules" eval 'promtool check rules "$root/deploy/monitoring/alerts.yml" >/dev/null'
    python3 "$root/tests/e2e/alerts.py" "$root/deploy/monitoring/alerts.yml" >alerts.yml
    check "each rule fires when it should, and no other" eval 'promtool test rules alerts.yml >rules.out 2>&1'
    [ "$failed" = 0 ] || sed 's/^/# /' promtool.out rules.out
else
    echo "# skipped: there is no promtool here (Debian package prometheus)"
fi

# page_ns: prints the CPU time that the HTTP thread of peer 0 has used, in nanoseconds.
page_ns()
{
    local task
    for task in "/proc/${peer[0]}/task"/*; do
        grep -q '^MHD' "$task/comm" && cut -d' ' -f1 "$task/schedstat"
    done
}

if command -v prometheus >/dev/null; then
    targets=$(printf '"%s",' "${at[@]#http://}")
    sed -E "/dns_sd_configs/,\$d; s/_interval: 5s/_interval: 1s/; s#- alerts.yml#- $root/deploy/monitoring/alerts.yml#" \
        "$root/deploy/monitoring/prometheus.yml" >prometheus.yml
    echo "    static_configs: [{targets: [${targets%,}]}]" >>prometheus.yml
    prometheus=http://127.0.0.1:${port[4]}
    before=$(page_ns) begun=$(now_ms)
    start prometheus prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --log.level=warn \
        --web.listen-address="127.0.0.1:${port[4]}"
    # shellcheck disable=SC2317
    asked()
    {
        metrics queries "$prometheus" "$root/deploy/monitoring/dashboard.json" "$root/deploy/monitoring/alerts.yml" \
            >queries.out 2>queries.err
    }
    check "every query of dashboard and rules returns series" wait_until 60 asked
    [ -s queries.out ] || tail -n 2 queries.err | sed 's/^/# /'
    check "the drift that it has is one that the peer wrote" metrics value "$prometheus" \
        "hearsay_relative_drift{instance=\"${at[1]#http://}\"}" p1/metrics.jsonl
    busy=$(awk -v ns="$(($(page_ns) - before))" -v ms="$(($(now_ms) - begun))" 'BEGIN { printf "%.4f", ns / ms / 1e4 }')
    check "its scrapes took $busy % of a core" within "$busy" 0 1
    kill "$started"
    finish "$started" 60
else
    echo "# skipped: there is no prometheus here"
fi

# ---- The end of the run ----

kill -TERM "${peer[@]}"
for i in 0 1 2 3; do
    check "SIGTERM ends peer $i with 0" finish "${peer[$i]}" 60
done
compose=$(command -v docker-compose) && check "compose.yml with its profile is valid" eval \
    '"$compose" -f "$root/deploy/compose.yml" --profile monitoring config -q >/dev/null 2>compose.err'
start local "$HEARSAY" local --peers 2 --model logreg --rounds 100000000 --metrics "${port[4]}" --out local
check "local: peer-0 has the port that was given" wait_until 60 says "http://127.0.0.1:${port[4]}/readyz" 200 training
check "  and peer-1 the next" wait_until 60 says "http://127.0.0.1:$((port[4] + 1))/metrics" 200 'name="peer-1"'
# A second run whose ports are partly in use announces no page, which would be the page of the first run.
bounded "$HEARSAY" local --peers 2 --model logreg --rounds 20 --metrics "$((port[4] + 1))" >second.out 2>second.err
code=$?
check "local: a port in use is refused: $(head -n 1 second.err)" eval '[ "$code" = 2 ] &&
    grep -qE "cannot listen on 127.0.0.1:$((port[4] + 1)): .*in use.* \(port of peer-0 of 2\); try --metrics 127.0.0.1:[0-9]+$" second.err'
check "  before a page is announced" eval '! grep -q "a live page" second.err'
kill -TERM "$started"
finish "$started" 60
e2e_end
