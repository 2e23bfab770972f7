#!/usr/bin/env bash
# tests/e2e/compare.sh -- hearsay compare: arms and seeds from one file; killed, it goes on; figures are those of
# the runs.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

python3 "$root/tests/e2e/idx.py" digits 400 200
cat >arms.toml <<'FILE'
data = mnist:digits
model = logreg
peers = 2
batch = 4
rounds = 600
evaluate-every = 50
seeds = 2
lr = 0.001, 0.05
budget = bytes
[choco]
compress = topk:0.3, qsgd:4
[exact]
compress = none
FILE

# compare NAME ARGS...: its stdout and stderr in NAME.out and NAME.err, its exit code in $code.
compare()
{
    local name=$1
    shift
    bounded "$HEARSAY" compare "$@" >"$name.out" 2>"$name.err" </dev/null
    code=$?
}

# refused TEXT PATTERN ARGS...: exit code 2, one line that fits, and no directory.
refused()
{
    local text=$1 pattern=$2
    shift 2
    compare refused "$@" --out none
    check "$text: $(head -c 140 refused.err)" eval \
        '[ "$code" = 2 ] && [ ! -s refused.out ] && [ "$(wc -l <refused.err)" = 1 ] && grep -qE -- "$pattern" refused.err && [ ! -e none ]'
}

# ---- A comparison that is killed, and goes on. ----

start killed "$HEARSAY" compare arms.toml --out out --jobs 1
pid=$started
check "it trains" wait_until 60 eval 'ls out/*/*/*/summary.json 2>/dev/null | grep -q .'
compare second arms.toml --out out
check "a second one in the same directory is refused" eval '[ "$code" = 2 ] && grep -q "^hearsay compare: --out: .*in use by process $pid" second.err'
inner=$(children_of "$pid")
kill -KILL "$pid"
wait "$pid" 2>/dev/null
forget "$pid"
check "killed, it leaves no process behind" wait_until 30 none_alive $inner
stat -c '%n %Y %i' out/*/*/*/summary.json >before
compare again arms.toml --out out --jobs 2 --json
check "it goes on: exit code 0" [ "$code" = 0 ]
check "  what had finished is not done again" eval '[ -s before ] && [ "$(stat -c "%n %Y %i" out/*/*/*/summary.json | grep -cFxf before)" = "$(wc -l <before)" ]'
check "figures are those of the summaries" python3 - again.out <<'PY'
import csv, json, os, statistics, sys
j = json.load(open(sys.argv[1]))
assert [a["arm"] for a in j["arms"]] == ["choco,compress=topk:0.3", "choco,compress=qsgd:4", "exact"], j
assert j["n_done"] == 6 and j["n_apart"] == j["n_failed"] == j["n_left"] == 0 and not j["interrupted"]
close = lambda a, b: abs(a - b) < 1e-9 * max(1, abs(b))
for a in j["arms"]:
    tried = a["choices"]
    assert [t["lr"] for t in tried] == ["0.001", "0.05"] and a["lr_at_edge"]
    for t in tried:
        text = open(t["out"] + "/run.txt").read()
        assert "data=mnist:digits,validate=0.1" in text and "choose-seed-1" in t["out"], text
    assert a["lr"] == max(tried, key=lambda t: (t["accuracy"], -t["test_loss"]))["lr"], a
    ends = [json.load(open(r["out"] + "/summary.json")) for r in a["runs"]]
    assert [r["seed"] for r in a["runs"]] == [1, 2] and all("/lr-" + a["lr"] + "/" in r["out"] for r in a["runs"])
    assert "validate" not in open(a["runs"][0]["out"] + "/run.txt").read()
    x = [e["accuracy_min"] for e in ends]
    assert close(a["accuracy"]["mean"], statistics.mean(x)) and close(a["accuracy"]["deviation"], statistics.stdev(x))
    assert close(a["bytes_sent"]["mean"], statistics.mean(e["bytes_sent"] for e in ends))
    assert close(a["seconds"]["mean"], statistics.mean(e["simulated_s"] for e in ends))
    assert close(a["relative_drift"]["most"], max(e["relative_drift"] for e in ends))
    assert a["accuracy_at_budget_1"]["mean"] is not None
best = j["best"][0]
means = {a["arm"]: a["accuracy"]["mean"] for a in j["arms"]}
assert means[best["arm"]] == max(means.values()) and j["best"][1]["bytes"] > 0
rows = list(csv.DictReader(open("out/compare.csv")))
assert len(rows) == 6 and all(r["state"] == "done" for r in rows)
page = open("out/compare.html").read()
assert page.startswith("<!DOCTYPE html>\n<!-- made by hearsay compare -->") and "<script" not in page
PY
bounded "$HEARSAY" sim --data mnist:digits --model logreg --peers 2 --batch 4 --rounds 600 --lr "$(figures json again.out arms.2.lr)" \
    --compress none --seed 2 --evaluate-every 1 --out alone >alone.out 2>alone.err
check "a run is what hearsay sim does with its flags, bit for bit" \
    cmp alone/peer-0/model.safetensors "$(figures json again.out arms.2.runs.1.out)/peer-0/model.safetensors"
compare table arms.toml --out out
check "done again: a table, and nothing is trained" eval \
    '[ "$code" = 0 ] && [ "$(grep -cE "^(choco|exact).* 2 of 2 +0\.[0-9]+ \* " table.out)" = 3 ] && grep -q "^best accuracy: " table.out &&
     [ "$(grep -c "done before" table.err)" = 12 ]'

# ---- What does not count, and what is refused. ----

compare wild arms.toml --set lr=900 --set rounds=40 --set seeds=1 --out wild
check "runs that diverge: exit code 3, named, and in no mean" eval \
    '[ "$code" = 3 ] && [ "$(grep -c "^in no mean: .*diverged" wild.out)" = 3 ] && grep -q "^best accuracy: unknown" wild.out'
refused "a key that nobody knows" "--set: found the key 'lrr', which is no flag of hearsay sim, did you mean lr\?" arms.toml --set lrr=1
refused "a value that a flag refuses" "^hearsay compare: choco, lr 0.001: --topology: " arms.toml --set topology=torus:3x3 --set compress=none
printf 'model = logreg\n[a]\nseeds = 2\n' >bad.toml
refused "a key in the wrong place" '^hearsay compare: bad.toml line 3: seeds: found in an arm' bad.toml
refused "no file" 'cannot open' nothing.toml
printf '# nothing\n' >empty.toml
refused "an empty file" 'empty.toml: found nothing, expected settings' empty.toml
printf 'command = sim\nscenario = gone.toml\n' >bad.toml
refused "a scenario that is not there" '--scenario: gone.toml: No such file' bad.toml
printf 'at = "1 kill 1"\nat = "2 restart 1"\n' >kill.toml
compare scenario arms.toml --set scenario=kill.toml --set seeds=1 --set lr=0.05 --set rounds=400 --out scenario
check "with a scenario, as any flag" eval '[ "$code" = 0 ] && grep -q "joined" scenario/*/lr-0.05/seed-1/summary.json'
refused "jobs beside each other over TCP" '--jobs: found 2 with command = local' arms.toml --set command=local --jobs 2

# ---- Over TCP; and Ctrl-C. ----

compare tcp arms.toml --set command=local --set seeds=1 --set lr=0.05 --set "compress=qsgd:4" --out tcp --json
check "over TCP" eval '[ "$code" = 0 ] && [ "$(figures json tcp.out n_done)" = 2 ]'
check "  the simulator's models, bit for bit" eval \
    'cmp tcp/exact/lr-0.05/seed-1/peer-0/model.safetensors tcp/choco/lr-0.05/seed-1/peer-0/model.safetensors'
start long "$HEARSAY" compare arms.toml --set lr=0.05 --set rounds=200000 --set seeds=1 --out long --json
pid=$started
check "a long run trains" wait_until 60 eval 'ls long/*/*/seed-1/peer-0/metrics.jsonl 2>/dev/null | grep -q .'
kill -INT "$pid"
finish "$pid" 30
check "Ctrl-C: exit code 130, and the result so far" eval '[ "$code" = 130 ] && [ "$(figures json long.out interrupted) $(figures json long.out n_left)" = "True 3" ]'

# ---- Who was not evaluated before a budget is in no figure of it, and that is said. ----

compare early arms.toml --set lr=0.05 --set evaluate-every=500 --out early
check "an arm that got to the budget unevaluated is counted: $(grep 'unknown of' early.out)" grep -qE \
    '^best accuracy at .* MB: choco,compress=[^ ]*, .*; unknown of [12] of 3 arms' early.out
check "  in the page, too" grep -qE 'unknown of [12] of 3 arms' early/compare.html
compare other arms.toml --set lr=0.05 --set evaluate-every=500 --set rounds=500 --out early
check "another file in the same place is refused, with what helps" eval \
    '[ "$code" = 2 ] && grep -q "rounds=600 there, 500 here.*; give another --out" other.err'

# ---- What an attempt took that was begun anew from round 0 is in no curve. ----

python3 - early/choco,compress=qsgd:4/lr-0.05/seed-1/peer-*/metrics.jsonl <<'PY'
import json, sys
for path in sys.argv[1:]:
    lines = open(path, encoding="utf-8").read().splitlines(keepends=True)
    begin = json.loads(lines[0])
    assert begin["start"] and begin["from_round"] == 0, begin
    open(path, "w", encoding="utf-8").write("".join(lines[: len(lines) // 2]) + "".join(lines))
PY
cp early/compare.csv before.csv
compare again arms.toml --set lr=0.05 --set evaluate-every=500 --out early
check "a run that was begun twice has the figures of one" cmp before.csv early/compare.csv
"$HEARSAY" compare arms.toml --set lr=0.05 --out closed >&- 2>closed.err </dev/null
code=$?
check "a closed stdout is no file of ours: exit code $code" eval '[ "$code" = 1 ] && ! grep -q accuracy closed/.lock'

mkdir theirs && echo mine >theirs/compare.html
compare theirs arms.toml --set lr=0.05 --out theirs
check "a page of somebody else's stays" eval '[ "$code" = 2 ] && [ "$(cat theirs/compare.html)" = mine ]'
rm theirs/compare.html && mkfifo theirs/compare.csv
compare theirs arms.toml --set lr=0.05 --out theirs
check "  and a table that is none: $(cat theirs.err)" eval '[ "$code" = 2 ] && [ -p theirs/compare.csv ]'

# ---- The surveys' files, and those of the answer. ----

for file in "$root"/tests/bench/surveys/*.toml "$root"/tests/bench/answer/*.toml; do
    name=$(basename "$(dirname "$file")")-$(basename "$file" .toml)
    few=()
    [ "$name" = answer-many ] && few=(--set peers=8 --set scenario="$root/tests/bench/answer/uplinks.txt")
    compare "$name" "$file" --set data=mnist:digits --set model=logreg --set batch=4 --set rounds=4 --set seeds=1 --set lr=0.02 "${few[@]}" --out "$name"
    check "tests/bench/$name runs" eval '[ "$code" = 0 ] || [ "$code" = 3 ]'
done

e2e_end
