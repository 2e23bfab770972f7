#!/usr/bin/env bash
# tests/e2e/sweep.sh -- local --sweep and --seeds: every run is what it is alone, means are of what was done, and
# nothing is done twice.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

python3 "$root/tests/e2e/idx.py" digits 400 200
run=(local --peers 2 --model logreg --data mnist:digits --batch 4)
short=("${run[@]}" --rounds 30)

# sweep NAME ARGS...: its stdout and stderr in NAME.out and NAME.err, its exit code in $code.
sweep()
{
    local name=$1
    shift
    bounded "$HEARSAY" "$@" >"$name.out" 2>"$name.err" </dev/null
    code=$?
}

# refused TEXT PATTERN ARGS...: exit code 2, one line that fits, and no directory.
refused()
{
    local text=$1 pattern=$2
    shift 2
    sweep refused "$@" --out none
    check "$text: $(head -c 120 refused.err)" eval \
        '[ "$code" = 2 ] && [ ! -s refused.out ] && [ "$(wc -l <refused.err)" = 1 ] && grep -qE -- "$pattern" refused.err && [ ! -e none ]'
}

# ---- A grid. ----

sweep grid "${short[@]}" --sweep lr=0.001,0.05 --sweep momentum=0,0.9 --seeds 2 --seed "$seed" --out grid --json
check "a grid of four settings and two seeds ends with 0" [ "$code" = 0 ]
sweep alone "${short[@]}" --lr 0.05 --momentum 0 --seed $((seed + 1)) --out alone
dir=grid/lr=0.05,momentum=0/seed-$((seed + 1))
check "a run is what hearsay local does with its flags, bit for bit" eval \
    'for i in 0 1; do cmp "$dir/peer-$i/model.safetensors" alone/peer-$i/model.safetensors || exit 1; done && cmp "$dir/run.txt" alone/run.txt'
check "another setting and another seed are another model" eval \
    '! cmp -s "$dir/peer-0/model.safetensors" "grid/lr=0.05,momentum=0.9/seed-$((seed + 1))/peer-0/model.safetensors" &&
     ! cmp -s "$dir/peer-0/model.safetensors" "grid/lr=0.05,momentum=0/seed-$seed/peer-0/model.safetensors"'
check "figures are those of the summaries" python3 - grid.out "$seed" <<'PY'
import json, statistics, sys
j, seed = json.load(open(sys.argv[1])), int(sys.argv[2])
assert j["sweep"] == {"lr": ["0.001", "0.05"], "momentum": ["0", "0.9"]} and j["seeds"] == [seed, seed + 1]
assert j["n_runs"] == j["n_done"] == 8 and j["n_apart"] == j["n_failed"] == j["n_left"] == 0 and not j["interrupted"]
names = [s["setting"] for s in j["settings"]]
assert names == ["lr=0.001,momentum=0", "lr=0.001,momentum=0.9", "lr=0.05,momentum=0", "lr=0.05,momentum=0.9"], names
means = {}
for s in j["settings"]:
    ends = [json.load(open("%s/seed-%d/summary.json" % (s["out"], k))) for k in (seed, seed + 1)]
    accuracy = [e["accuracy_min"] for e in ends]
    close = lambda a, b: abs(a - b) < 1e-9 * max(1, abs(b))
    assert close(s["accuracy_mean"], statistics.mean(accuracy)) and close(s["accuracy_deviation"], statistics.stdev(accuracy)), s
    assert s["accuracy_worst"] == min(accuracy) and s["accuracy_best"] == max(accuracy)
    assert close(s["relative_drift_worst"], max(e["relative_drift"] for e in ends))
    assert close(s["bytes_sent_mean"], statistics.mean(e["bytes_sent_in_all"] for e in ends))
    assert close(s["seconds_mean"], statistics.mean(e["seconds_in_all"] for e in ends))
    assert [r["seed"] for r in s["runs"]] == [seed, seed + 1] and all(r["verdict"].startswith("consensus of 2 of 2") for r in s["runs"])
    means[s["setting"]] = s["accuracy_mean"]
assert means[j["best"]] == max(means.values()) and min(means.values()) < max(means.values()), (j["best"], means)
PY
stat -c '%n %Y %i' grid/*/*/peer-*/model.safetensors >before
sweep again "${short[@]}" --sweep lr=0.001,0.05 --sweep "momentum=0,0.9" --seeds 2 --seed "$seed" --out grid
check "done again, nothing is trained" eval \
    '[ "$code" = 0 ] && stat -c "%n %Y %i" grid/*/*/peer-*/model.safetensors | cmp - before && [ "$(grep -c "done before" again.err)" = 8 ] && ! grep -q "run . of" again.err'
check "  and the table has a line for each setting, and the best" eval \
    '[ "$(grep -cE "^lr=0\.[0-9]+,momentum=[0-9.]+ +2 of 2 +[0-9.]+ % \+- [0-9]+\.[0-9]+ " again.out)" = 4 ] &&
     grep -q "^best           $(figures json grid.out best): accuracy" again.out && grep -q "^runs           8 of 8 done$" again.out'
sweep more "${short[@]}" --sweep "lr=0.001,0.05 momentum=0.9" --seeds 3 --seed "$seed" --out grid --json
check "one more seed: only that is trained" eval '[ "$code" = 0 ] && [ "$(grep -c "run . of 6:" more.err)" = 2 ] && [ "$(figures json more.out n_done)" = 6 ]'
sweep seeds "${short[@]}" --seeds 1 --out seeds --json
check "one seed has no deviation, and that is null" eval \
    '[ "$code" = 0 ] && [ -s seeds/seed-1/summary.json ] && [ "$(figures json seeds.out settings.0.accuracy_deviation)" = None ] && [ "$(figures json seeds.out settings.0.setting)" = "" ]'
bounded "$HEARSAY" report grid/*/* --csv rounds.csv >report.out 2>report.err
check "hearsay report tells the runs apart by their settings" python3 - "$seed" <<'PY'
import csv, sys
seed = int(sys.argv[1])
found = {row["run"] for row in csv.DictReader(open("rounds.csv"))}
wanted = {"lr=%s,momentum=%s-seed-%d" % (lr, m, k) for lr in ("0.001", "0.05") for m in ("0", "0.9") for k in (seed, seed + 1)}
wanted |= {"lr=%s,momentum=0.9-seed-%d" % (lr, seed + 2) for lr in ("0.001", "0.05")}
assert found == wanted, found
PY

# ---- What does not count. ----

mkdir -p bad/lr=0.05/seed-2
python3 - bad/lr=0.05/seed-2/.lock <<'PY' &
import fcntl, sys, time
held = open(sys.argv[1], "w")
fcntl.flock(held, fcntl.LOCK_EX)
time.sleep(600)
PY
holder=$!
pids+=("$holder")
check "somebody else has a directory" wait_until 10 eval '! flock -n bad/lr=0.05/seed-2/.lock true'
sweep bad "${run[@]}" --rounds 40 --sweep lr=0.05,900 --seeds 2 --out bad --json
check "a run that failed: exit code 1, and the others go on" eval '[ "$code" = 1 ] && [ "$(figures json bad.out exit_code)" = 1 ]'
check "  what diverged or failed is counted, and in no mean" python3 - bad.out <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
good, wild = j["settings"]
assert (j["n_done"], j["n_apart"], j["n_failed"]) == (1, 2, 1), j
assert (good["n_done"], good["n_failed"]) == (1, 1) and good["accuracy_mean"] == good["runs"][0]["accuracy"]
assert good["runs"][1]["state"] == "failed" and good["runs"][1]["exit_code"] == 2 and good["runs"][1]["accuracy"] is None
assert wild["n_apart"] == 2 and wild["accuracy_mean"] is None and wild["accuracy_best"] is None, wild
assert all(r["state"] == "apart" and r["exit_code"] == 3 and "diverged" in r["verdict"] for r in wild["runs"]), wild
assert j["best"] is None
PY
kill "$holder"
wait "$holder" 2>/dev/null
forget "$holder"
sweep mended "${run[@]}" --rounds 40 --sweep lr=0.05,900 --seeds 2 --out bad
check "  done again: exit code 3, the failed one has run, and a best one is named" eval \
    '[ "$code" = 3 ] && grep -q "^lr=900 .* 2 without consensus or diverged (seed 1, 2)$" mended.out && grep -q "^best           lr=0.05:" mended.out && grep -q "^runs           2 of 4 done, 2 without" mended.out'

# ---- Ctrl-C, and a sweep that is killed. ----

long=("${run[@]}" --local-steps 20 --sweep rounds=30,200000 --seeds 1 --checkpoint 1s --out long --json)
start long "$HEARSAY" "${long[@]}"
pid=$started
check "the second run trains" wait_until 30 round_at_least long/rounds=200000/seed-1/peer-0/metrics.jsonl 50
kill -INT "$pid"
finish "$pid" 30
check "Ctrl-C: exit code 130, and what was done is shown" eval \
    '[ "$code" = 130 ] && [ "$(figures json long.out n_done) $(figures json long.out n_left) $(figures json long.out interrupted)" = "1 1 True" ]'
check "  no mean of what was not done" [ "$(figures json long.out settings.1.accuracy_mean)" = None ]
start killed "$HEARSAY" "${long[@]}"
pid=$started
check "it goes on from its checkpoint" wait_until 30 grep -q 'going on with the run' killed.err
inner=$(children_of "$pid")
kill -KILL "$pid"
wait "$pid" 2>/dev/null
forget "$pid"
check "killed, it leaves no process behind" eval '[ -n "$inner" ] && wait_until 30 none_alive $inner'

# ---- Settings from elsewhere; train. ----

HEARSAY_SWEEP="lr=0.05 momentum=0,0.9" sweep env "${short[@]}" --seeds 1 --out env --json
check "from the environment" eval '[ "$code" = 0 ] && [ -d env/lr=0.05,momentum=0/seed-1 ] && [ "$(figures json env.out n_done)" = 2 ]'
printf 'sweep = "lr=0.05"\nseeds = 2\nmomentum = 0.5\n' >file.toml
sweep file "${short[@]}" --config file.toml --out file --json
check "from a file" eval '[ "$code" = 0 ] && grep -qx momentum=0.5 file/lr=0.05/seed-2/run.txt && [ "$(figures json file.out n_done)" = 2 ]'
bounded "$HEARSAY" "${short[@]}" --sweep lr=0.05,0.1 --sweep batch=2 --print-config >print.toml 2>print.err
check "--print-config has all of it" grep -qx 'sweep = "lr=0.05,0.1 batch=2"' print.toml
sweep train train --model logreg --data mnist:digits --batch 4 --rounds 30 --sweep lr=0.001,0.05 --seeds 2 --out train --json
check "train sweeps, too" eval \
    '[ "$code" = 0 ] && [ "$(figures json train.out n_done)" = 4 ] && [ "$(figures json train.out settings.0.bytes_sent_mean)" = None ] &&
     [ "$(figures json train.out settings.1.runs.0.accuracy)" = "$(figures json train/lr=0.05/seed-1/summary.json test_accuracy)" ]'

# ---- What is refused, before the first run. ----

refused "a key that nobody knows" "^hearsay local: --sweep: found the key 'lrr', which is no flag of hearsay local, did you mean lr\?" "${short[@]}" --sweep lrr=1
refused "a flag without a value" '--json takes no value' "${short[@]}" --sweep json=1
refused "seeds as an axis" '--seeds N' "${short[@]}" --sweep seed=1,2
refused "a bad value among good ones" "^hearsay local: lr=many: --lr: found 'many', expected a number" "${short[@]}" --sweep lr=0.1,many
refused "a topology for others" '^hearsay local: topology=torus:3x3: --topology: torus:3x3 is for 9 peers' "${short[@]}" --sweep topology=ring,torus:3x3
refused "a model for other data" '^hearsay local: model=lstm:8: --model: ' local --data mnist:digits --rounds 3 --sweep model=logreg,lstm:8
refused "a time that is none" "^hearsay local: checkpoint=2x: --checkpoint: found '2x'" "${short[@]}" --sweep checkpoint=1s,2x
refused "a value given twice over" '--lr and --sweep lr=... contradict each other' "${short[@]}" --lr 1 --sweep lr=1,2
refused "nothing between commas" '--sweep lr: found no value' "${short[@]}" --sweep lr=1,,2
refused "no seeds" "--seeds: found '0'" "${short[@]}" --seeds 0
sweep other "${short[@]}" --sweep lr=0.001,0.05 --sweep momentum=0,0.9 --batch 8 --out grid
check "the directories of other settings: $(head -c 150 other.err)" eval \
    '[ "$code" = 2 ] && [ "$(wc -l <other.err)" = 1 ] && grep -q "^hearsay local: lr=0.001,momentum=0: --out grid/.* has another run: batch=4 there, 8 here" other.err && stat -c "%n %Y %i" grid/*/*/peer-*/model.safetensors | grep -qFf before'

e2e_end
