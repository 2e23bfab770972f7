#!/usr/bin/env bash
# tests/e2e/library_out.sh -- a program with its own model (tests/examples/least_squares.c) writes to "out" and serves at
# "metrics" the same as `hearsay peer`: the same keys and pages, which the same commands can read.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

command -v cc >/dev/null || skip "there is no cc here"
build=$(dirname "$HEARSAY")
[ -e "$build/libhearsay.so" ] || skip "there is no $build/libhearsay.so"
! "$HEARSAY" --version | grep -qE '^sanitizers +[^n ]' || skip "a build with sanitizers has a library that wants them"
e2e_begin
take_lab
cc -I"$root/peer/api" "$root/tests/examples/least_squares.c" -L"$build" -lhearsay -lm -Wl,-rpath,"$build" -o least_squares
"$HEARSAY" key new cluster.key 2>/dev/null
# shellcheck disable=SC2034 # The variables are used by name: port_N and page_N for peer N.
read -r port_0 port_1 page_0 page_1 < <(free_ports 4)

# peer N ROUNDS: starts peer N in the background. The process id of the peer is $started.
peer()
{
    local port=port_$1 page=page_$1
    start "peer-$1" ./least_squares "$1" listen=127.0.0.1:"${!port}" bootstrap=127.0.0.1:"$port_0",127.0.0.1:"$port_1" \
        key=cluster.key name="p$1" rounds="$2" out="run/p$1" checkpoint=0.2 metrics="${!page}"
}

metrics()
{
    python3 "$root/tests/e2e/metrics.py" "$@"
}

# keys FILE: prints the keys of each JSON object in FILE, each set of keys once.
keys()
{
    python3 -c 'import json, sys
for line in sorted({" ".join(sorted(json.loads(t))) for t in open(sys.argv[1]).read().split("\n")[:-1]}): print(line)' "$1"
}

summary_keys()
{
    python3 -c 'import json, sys
j = json.load(open(sys.argv[1])); print(*sorted(j), *sorted(j["verdict"]), sep="\n")' "$1"
}

# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
shows()
{
    metrics get "$1/metrics" >metrics.out 2>&1 && grep -qE '^hearsay_round [1-9][0-9]+$' metrics.out &&
        grep -qx 'hearsay_phase{phase="training"} 1' metrics.out && grep -qx 'hearsay_lines_missing 0' metrics.out
}

# of_lines URL FILE: checks that the history in /status.json at URL agrees with the lines of the metrics file FILE.
of_lines()
{
    python3 - "$@" <<'PY'
import json, sys, urllib.request
history = json.load(urllib.request.urlopen(sys.argv[1]))["history"]
lines = {j["round"]: j for j in map(json.loads, open(sys.argv[2]).read().split("\n")[:-1]) if "round" in j}
both = [p for p in history if p["round"] in lines]
assert len(both) > 10 and all(lines[p["round"]][k] == p[k] for p in both for k in ("time_s", "loss", "bytes_sent")), both
PY
}

starts()
{
    grep -c '"start"' "run/p$1/metrics.jsonl"
}

"$HEARSAY" peer --key cluster.key --listen 127.0.0.1:0 --model logreg --data glyphs --rounds 3 --name ref --out ref >ref.out 2>ref.err
check "hearsay peer leaves lines: $(wc -l <ref/metrics.jsonl)" [ -s ref/metrics.jsonl ]

# ---- Two programs train together. ----

for i in 0 1; do
    peer $i 100000000
    ours[i]=$started
done
for i in 0 1; do
    page=page_$i
    at[i]=http://127.0.0.1:${!page}
    check "peer $i writes lines" wait_until 60 round_at_least "run/p$i/metrics.jsonl" 50
    check "  /metrics has its figures" wait_until 20 shows "${at[i]}"
    check "  and /status.json those of the lines" of_lines "${at[i]}/status.json" "run/p$i/metrics.jsonl"
    check "  the page answers" eval 'metrics get "${at[i]}/" | grep -q "<title>hearsay</title>"'
    check "  it is ready" eval 'metrics get "${at[i]}/readyz" | grep -q "^training: round"'
done
check "members and edges agree" metrics edges "${at[@]}"
./least_squares 3 listen=127.0.0.1:0 key=cluster.key rounds=3 min-peers=1 metrics="$page_0" >taken.out 2>taken.err
code=$?
check "a port in use is reported: $(cat taken.err)" \
    [ "$code $(cat taken.err)" = "2 --metrics: cannot listen on $page_0: Address already in use; choose a free port with --metrics" ]
check "an invalid address, too" eval '! ./least_squares 3 key=cluster.key rounds=3 metrics=nowhere 2>none.err &&
    grep -q "^--metrics: found .nowhere., expected PORT or HOST:PORT$" none.err'

# ---- The programs are killed and started again. ----

check "they keep checkpoints" wait_until 60 eval '[ -e run/p0/checkpoint-0.safetensors -a -e run/p1/checkpoint-0.safetensors ]'
for i in 0 1; do
    forget "${ours[i]}"
    kill -KILL "${ours[i]}"
    wait "${ours[i]}" 2>/dev/null
done
cp -r run mixed
mv mixed/p0/checkpoint-0.safetensors mixed/p1/checkpoint-0.safetensors
bounded ./least_squares 1 listen=127.0.0.1:0 key=cluster.key rounds=100000000 name=p1 out=mixed/p1 >mixed.out 2>mixed.err
code=$?
check "another peer's checkpoint is refused: $(cut -c 1-150 mixed.err)" eval \
    '[ "$code" = 2 ] && grep -q "mixed/p1/checkpoint-0.safetensors: found a checkpoint of .*, expected one of " mixed.err'
for i in 0 1; do
    peer $i 100000000
    ours[i]=$started
done
for i in 0 1; do
    check "peer $i continues its metrics file" wait_until 60 eval '[ "$(starts $i)" = 2 ]'
    check "  after the round of a checkpoint" eval 'grep "\"start\"" run/p$i/metrics.jsonl | tail -n 1 | grep -qE "\"from_round\": [1-9]"'
done
for i in 0 1; do
    forget "${ours[i]}"
    kill -KILL "${ours[i]}"
    wait "${ours[i]}" 2>/dev/null
    keys "run/p$i/metrics.jsonl" >ours.keys
    keys ref/metrics.jsonl >ref.keys
    check "the keys of peer $i's lines are those of hearsay peer" cmp ours.keys ref.keys
done
check "hearsay-lab report draws both" eval 'lab report run --out page.html >report.out 2>report.err &&
    grep -q ">p0<" page.html && grep -q ">p1<" page.html && grep -q "command.*libhearsay" page.html'
check "  with the second start, as a table" eval 'lab report run --csv - 2>csv.err | cut -d, -f2,3 | sort -u | grep -qx p1,1'
check "  and as event files" eval 'lab tensorboard run --logdir logs >events.out 2>&1 && [ -n "$(find logs/p0 -name "*tfevents*")" ]'

# ---- The files of runs that end. ----

bounded ./least_squares 1 listen=127.0.0.1:0 key=cluster.key rounds=300 min-peers=1 out=alone metrics="$page_0" >alone.out 2>alone.err
check "one that ends well: $(cat alone.out)" [ $? = 0 ]
summary_keys alone/summary.json >ours.keys
summary_keys ref/summary.json >ref.keys
check "its summary has the keys of hearsay peer's" cmp ours.keys ref.keys
check "  and says that it has finished" [ "$(figures json alone/summary.json finished)" = True ]
check "  with a line for each round" [ "$(grep -vc '"start"' alone/metrics.jsonl)" -ge 300 ]

# Files may have at most 100 KiB (ulimit): the model fits, the metrics lines do not. The signal SIGXFSZ, sent for a write
# beyond the limit, must not kill the program.
# shellcheck disable=SC2016 # The inner shell, not this one, expands the variables in the string.
bounded bash -c 'ulimit -f 100 && exec ./least_squares "$@"' - 1 listen=127.0.0.1:0 key=cluster.key rounds=300 min-peers=1 \
    out=full patience=0.2 >full.out 2>full.err
code=$?
check "lines that its disk does not take are a failure: $(tail -n 1 full.err)" [ "$code" = 2 ]
check "  which says what is there" grep -qE '[0-9]+ lines of metrics.jsonl could not be written; the model is stored' full.err
check "  and that was warned of before" grep -q 'cannot write full/metrics.jsonl: file too large; its lines are kept in memory' full.err
check "  the model is there" [ -s full/model.safetensors ]
check "  and so is the summary, of a run that has finished" [ "$(figures json full/summary.json finished)" = True ]
check "  with the lines that were taken" eval '[ "$(last_round full/metrics.jsonl)" -ge 100 ]'
mkdir -p dir/model.safetensors
./least_squares 1 listen=127.0.0.1:0 key=cluster.key rounds=3 min-peers=1 out=dir >dir.out 2>dir.err
check "a file that cannot be written is reported at the start: $(cat dir.err)" grep -q 'out: dir/model.safetensors: found a directory, expected a regular file' dir.err

# hearsay inspect shows the model file. hearsay eval refuses the file, because only the program can run the
# model.
check "hearsay inspect names the program of the model: $("$HEARSAY" inspect alone/model.safetensors | grep '^run')" \
    eval '"$HEARSAY" inspect alone/model.safetensors | grep -q "^run .*: model of a program with libhearsay, seed="'
check "  and has the run's number" eval '"$HEARSAY" inspect alone/model.safetensors --json | jq -e ".run_id != null and .model == null" >inspect.jq'
check "hearsay eval refuses it with one sentence" eval \
    '"$HEARSAY" eval alone/model.safetensors --data glyphs 2>eval.err; [ $? = 2 ] && grep -q "belongs to a program that uses the library" eval.err'
e2e_end
