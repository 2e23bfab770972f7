#!/usr/bin/env bash
# tests/e2e/lab_sweep.sh -- hearsay-lab sweep: every run equals the same run started alone, means are of finished runs,
# and no run is repeated.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
take_lab

python3 "$root/tests/e2e/idx.py" digits 400 200
run=(local --peers 2 --model logreg --data mnist:digits --batch 4)
short=("${run[@]}" --rounds 30)

# sweep NAME ARGS...: runs hearsay-lab sweep ARGS. Output in NAME.out and NAME.err, exit code in $code.
sweep()
{
    local name=$1
    shift
    lab sweep "$@" >"$name.out" 2>"$name.err" </dev/null
    code=$?
}

# refused TEXT PATTERN ARGS...: the command ends with exit code 2 and one matching line, and makes no directory.
refused()
{
    local text=$1 pattern=$2
    shift 2
    sweep refused --out none "$@"
    check "$text: $(head -c 120 refused.err)" eval \
        '[ "$code" = 2 ] && [ ! -s refused.out ] && [ "$(wc -l <refused.err)" = 1 ] && grep -qE -- "$pattern" refused.err && [ ! -e none ]'
}

# ---- A sweep over a grid of settings. ----

sweep grid lr=0.001,0.05 momentum=0,0.9 --seeds 2 --out grid --json -- "${short[@]}" --seed "$seed"
check "a grid of four settings and two seeds ends with 0" [ "$code" = 0 ]
bounded "$HEARSAY" "${short[@]}" --lr 0.05 --momentum 0 --seed $((seed + 1)) --out alone >alone.out 2>alone.err
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
page=$root/peer/api/python/hearsay/lab/README.md
check "every field that the page names of --json is there" python3 "$root/tests/e2e/fields.py" "$page" sweep grid.out
stat -c '%n %Y %i' grid/*/*/peer-*/model.safetensors >before
sweep again --seeds 2 --out grid lr=0.001,0.05 momentum=0,0.9 -- "${short[@]}" --seed="$seed"
check "again: nothing is trained" eval \
    '[ "$code" = 0 ] && stat -c "%n %Y %i" grid/*/*/peer-*/model.safetensors | cmp - before && [ "$(grep -c "done before" again.err)" = 8 ]'
check "  and the table has a line for each setting, and the best" eval \
    '[ "$(grep -cE "^lr=0\.[0-9]+,momentum=[0-9.]+ +2 of 2 +[0-9.]+ % \+- [0-9]+\.[0-9]+ " again.out)" = 4 ] &&
     grep -q "^best accuracy: $(figures json grid.out best)," again.out && grep -q "^runs: 8 of 8 done$" again.out'
sweep csv --seeds 2 --out grid lr=0.001,0.05 momentum=0,0.9 --csv grid.csv -- "${short[@]}" --seed="$seed"
check "  and CSV in a file, in addition to the table" eval '[ "$code" = 0 ] && cmp again.out csv.out && [ "$(wc -l <grid.csv)" = 9 ]'
for form in "--csv -" --csv; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    sweep csv2 --seeds 2 --out grid lr=0.001,0.05 momentum=0,0.9 $form -- "${short[@]}" --seed="$seed"
    check "  and on stdout by $form" cmp grid.csv csv2.out
done
sweep more lr=0.001,0.05 momentum=0.9 --seeds 3 --out grid --json -- "${short[@]}" --seed "$seed"
check "one more seed: only that is trained" eval \
    '[ "$code" = 0 ] && [ "$(grep -c "done before" more.err)" = 4 ] && [ "$(figures json more.out n_done)" = 6 ]'
sweep seeds --seeds 1 --out seeds --json -- "${short[@]}"
check "one seed has no deviation, and that is null" eval \
    '[ "$code" = 0 ] && [ -s seeds/seed-1/summary.json ] && [ "$(figures json seeds.out settings.0.accuracy_deviation)" = None ] && [ "$(figures json seeds.out settings.0.setting)" = "" ]'
sweep one --seeds 1 --out seeds -- "${short[@]}"
check "  and the table says that noise is unknown" grep -q '^best accuracy: as given, .*(one seed: noise unknown)$' one.out

# ---- Runs that are excluded from the means. ----

mkdir -p bad/lr=0.05/seed-2
python3 - bad/lr=0.05/seed-2/.lock <<'PY' &
import fcntl, sys, time
held = open(sys.argv[1], "w")
fcntl.flock(held, fcntl.LOCK_EX)
time.sleep(600)
PY
holder=$!
pids+=("$holder")
check "another process has a directory" wait_until 10 eval '! flock -n bad/lr=0.05/seed-2/.lock true'
sweep bad lr=0.05,900 --seeds 2 --out bad --json -- "${run[@]}" --rounds 40
check "a run that failed: exit code 1, and the others continue" eval '[ "$code" = 1 ] && [ "$(figures json bad.out exit_code)" = 1 ]'
check "  what diverged or failed is counted, and in no mean" python3 - bad.out <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
good, wild = j["settings"]
assert (j["n_done"], j["n_apart"], j["n_failed"]) == (1, 2, 1), j
assert (good["n_done"], good["n_failed"]) == (1, 1) and good["accuracy_mean"] == good["runs"][0]["accuracy"]
assert good["runs"][1]["state"] == "failed" and good["runs"][1]["exit_code"] == 2 and good["runs"][1]["accuracy"] is None
assert "in use by" in good["runs"][1]["verdict"], good["runs"][1]
assert wild["n_apart"] == 2 and wild["accuracy_mean"] is None and wild["accuracy_best"] is None, wild
assert all(r["state"] == "apart" and r["exit_code"] == 3 and "diverged" in r["verdict"] for r in wild["runs"]), wild
assert j["best"] is None
PY
kill "$holder"
wait "$holder" 2>/dev/null
forget "$holder"
sweep repaired lr=0.05,900 --seeds 2 --out bad -- "${run[@]}" --rounds 40
check "  again: exit code 3, the failed one has run, and a best one is named" eval \
    '[ "$code" = 3 ] && [ "$(grep -c "^excluded from the means: lr=900, seed [12]: without consensus or diverged: " repaired.out)" = 2 ] &&
     grep -q "^best accuracy: lr=0.05, " repaired.out && grep -q "^runs: 2 of 4 done, 2 without" repaired.out'

# ---- A sweep that is interrupted by Ctrl-C, or killed. ----

long=(rounds=30,200000 --out long --json --hearsay "$HEARSAY" -- "${run[@]}" --local-steps 20 --checkpoint 1s)
HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python start long "$python" -m hearsay.lab sweep "${long[@]}"
pid=$started
check "the second run trains" wait_until 30 round_at_least long/rounds=200000/seed-1/peer-0/metrics.jsonl 50
kill -INT "$pid"
finish "$pid" 30
check "Ctrl-C: exit code 130, and what was done is shown" eval \
    '[ "$code" = 130 ] && [ "$(figures json long.out n_done) $(figures json long.out n_left) $(figures json long.out interrupted)" = "1 1 True" ]'
check "  no mean of what was not done" [ "$(figures json long.out settings.1.accuracy_mean)" = None ]
HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python start killed "$python" -m hearsay.lab sweep "${long[@]}"
pid=$started
check "it continues from its checkpoint" wait_until 30 grep -q 'resuming the run' long/rounds=200000/seed-1.log
inner=$(children_of "$pid")
kill -KILL "$pid"
wait "$pid" 2>/dev/null
forget "$pid"
check "killed, it leaves no process behind" eval '[ -n "$inner" ] && wait_until 30 none_alive $inner'
HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python start gone "$python" -m hearsay.lab sweep rounds=200000,300000 --out gone \
    --hearsay "$HEARSAY" -- "${run[@]}" --local-steps 20
pid=$started
check "another run trains" wait_until 30 round_at_least gone/rounds=200000/seed-1/peer-0/metrics.jsonl 50
inner=$(children_of "$pid")
# mv removes the directory in one step. While rm runs, the run could make new files in the
# directory.
mv gone trash
finish "$pid" 30
check "--out is deleted: exit code 1 and an error: $(tail -n 1 gone.err)" eval \
    '[ "$code" = 1 ] && grep -q "^hearsay-lab: --out: gone was deleted or replaced during the runs" gone.err && [ ! -s gone.out ]'
check "  the runs end, and nothing makes it again" eval 'wait_until 30 none_alive $inner && [ ! -e gone ]'

# ---- Settings from a file; train and sim. ----

printf 'momentum = 0.5\n' >file.toml
sweep file lr=0.05 --seeds 2 --out file --json -- "${short[@]}" --config file.toml
check "settings from a file of --config" eval '[ "$code" = 0 ] && grep -qx momentum=0.5 file/lr=0.05/seed-2/run.txt && [ "$(figures json file.out n_done)" = 2 ]'
sweep train lr=0.001,0.05 --seeds 2 --out train --json --jobs 2 -- train --model logreg --data mnist:digits --batch 4 --rounds 30
check "train" eval \
    '[ "$code" = 0 ] && [ "$(figures json train.out n_done)" = 4 ] && [ "$(figures json train.out settings.0.bytes_sent_mean)" = None ] &&
     [ "$(figures json train.out settings.1.runs.0.accuracy)" = "$(figures json train/lr=0.05/seed-1/summary.json test_accuracy)" ]'
sweep sim 'compress="topk:0.1,scope=layer"' peers=2,4 --out sim --json -- sim --model logreg --data mnist:digits --batch 4 --rounds 10
check "sim, and a value with a comma" eval \
    '[ "$code" = 0 ] && [ "$(figures json sim.out settings.1.setting)" = "compress=topk:0.1,scope=layer,peers=4" ] &&
     [ "$(figures json sim.out settings.1.runs.0.seconds)" = "$(figures json "sim/compress=topk:0.1,scope=layer,peers=4/seed-1/summary.json" simulated_s)" ]'

# ---- Settings that are refused before the first run. ----

refused "an unknown key" "^hearsay-lab: sweep: found the key 'lrr', which is no flag of hearsay local, did you mean lr\?" lrr=1 -- "${short[@]}"
refused "seeds as an axis" 'sweep: seed: --seeds N' seed=1,2 -- "${short[@]}"
refused "a directory as an axis" 'sweep: out: each run has its own' out=a,b -- "${short[@]}"
refused "a bad value among good ones" "^hearsay-lab: lr=many: --lr: found 'many', expected a number" lr=0.1,many -- "${short[@]}"
refused "a topology for others" '^hearsay-lab: topology=torus:3x3: --topology: torus:3x3 is for 9 peers' topology=ring,torus:3x3 -- "${short[@]}"
refused "a model for other data" '^hearsay-lab: model=lstm:8: --model: ' model=logreg,lstm:8 -- local --data mnist:digits --rounds 3
refused "a time that is none" "^hearsay-lab: checkpoint=2x: --checkpoint: found '2x'" checkpoint=1s,2x -- "${short[@]}"
refused "a value given twice over" 'sweep: found lr=... and the flag --lr after the --' lr=1,2 -- "${short[@]}" --lr 1
refused "--out after the --" 'sweep: --out after the --: each run' lr=1,2 -- "${short[@]}" --out x
refused "--csv that takes the values" '--csv: found lr=1,2, expected a file' --csv lr=1,2 -- "${short[@]}"
refused "nothing between commas" 'sweep: lr: found no value' lr=1,,2 -- "${short[@]}"
refused "a value twice" "sweep: lr: found '0.10' twice" lr=0.1,0.10 -- "${short[@]}"
refused "a key twice" "sweep: found the key lr twice" lr=0.1 lr=0.2 -- "${short[@]}"
refused "no seeds" "--seeds: found '0'" --seeds 0 -- "${short[@]}"
refused "no command" 'found nothing after the --, expected local, sim or train' lr=1
refused "another command" "found 'peer' after the --" lr=1 -- peer
refused "too many runs" 'found 12000 runs, expected at most 10000' --seeds 1000 "lr=$(seq -s , 12)" -- "${short[@]}"
sweep other lr=0.001,0.05 momentum=0,0.9 --out grid -- "${short[@]}" --batch 8
check "the directories of other settings: $(head -c 150 other.err)" eval \
    '[ "$code" = 2 ] && [ "$(wc -l <other.err)" = 1 ] && grep -q "^hearsay-lab: lr=0.001,momentum=0: --out grid/.* has another run: batch=4 there, 8 here" other.err && stat -c "%n %Y %i" grid/*/*/peer-*/model.safetensors | grep -qFf before'
for command in local sim train; do
    bounded "$HEARSAY" "$command" --model logreg --rounds 3 --check --out "checked-$command" >checked.out 2>checked.err
    code=$?
    check "hearsay $command --check writes nothing" eval '[ "$code" = 0 ] && [ ! -e "checked-$command" ] && [ "$(cat checked.out)" = "checked: the run can start" ]'
done
bounded "$HEARSAY" train --check --json --model logreg --data mnist:digits --batch 4 --rounds 30 --lr 0.05 --out train/lr=0.05/seed-1 >finished.out 2>finished.err
check "  and finds a finished run" [ "$(cat finished.out)" = '{"finished":true}' ]

e2e_end
