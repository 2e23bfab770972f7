#!/usr/bin/env bash
# tests/e2e/lab_compare.sh -- hearsay-lab compare: runs arms and seeds from one file, continues after a kill. The
# output of the comparison must have the values in the files of its runs.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin
take_lab

python3 "$root/tests/e2e/idx.py" digits 400 200
cat >arms.toml <<'FILE'
data = "mnist:digits"
model = "logreg"
peers = 2
batch = 4
rounds = 600
evaluate-every = 50
seeds = 2
lr = [0.001, 0.05]
budget = ["bytes", "seconds"]
[choco]
compress = ["topk:0.3", "qsgd:4"]
[exact]
compress = "none"
FILE

# compare NAME ARGS...: runs hearsay-lab compare ARGS. Output in NAME.out and NAME.err, exit code in $code.
compare()
{
    local name=$1
    shift
    lab compare "$@" >"$name.out" 2>"$name.err" </dev/null
    code=$?
}

# refused TEXT PATTERN ARGS...: the command ends with exit code 2 and one matching line, and makes no directory.
refused()
{
    local text=$1 pattern=$2
    shift 2
    compare refused "$@" --out none
    check "$text: $(head -c 140 refused.err)" eval \
        '[ "$code" = 2 ] && [ ! -s refused.out ] && [ "$(wc -l <refused.err)" = 1 ] && grep -qE -- "$pattern" refused.err && [ ! -e none ]'
}

# unit PART PATH: runs a part of lab_compare.py.
unit()
{
    HEARSAY=$HEARSAY HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python bounded "$python" "$root/tests/e2e/lab_compare.py" "$@"
}

bounded "$HEARSAY" compare arms.toml >moved.out 2>moved.err
code=$?
check "hearsay compare says where it is" eval \
    '[ "$code" = 2 ] && [ "$(cat moved.err)" = "hearsay compare is now hearsay-lab compare (see hearsay-lab compare --help)" ]'
mkdir unit
check "files of settings, and what is refused in them" unit settings unit
check "mean, deviation, the paired t-test, budgets, the choice of lr" unit statistics unit

# ---- A comparison that is killed and continued. ----

HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python start killed "$python" -m hearsay.lab compare arms.toml --hearsay "$HEARSAY" --out out --jobs 1
pid=$started
check "the first run trains" wait_until 60 eval 'ls out/*/*/*/summary.json 2>/dev/null | grep -q .'
compare second arms.toml --out out
check "a second one in the same directory is refused" eval '[ "$code" = 2 ] && grep -q "^hearsay-lab: --out: .*in use by process $pid" second.err'
inner=$(children_of "$pid")
kill -KILL "$pid"
wait "$pid" 2>/dev/null
forget "$pid"
check "killed, it leaves no process behind" wait_until 30 none_alive $inner
stat -c '%n %Y %i' out/*/*/*/summary.json >before
compare again arms.toml --out out --jobs 2 --json
check "it continues: exit code 0" [ "$code" = 0 ]
check "  finished runs are not repeated" eval '[ -s before ] && [ "$(stat -c "%n %Y %i" out/*/*/*/summary.json | grep -cFxf before)" = "$(wc -l <before)" ]'
check "figures are those of the summaries" unit figures out
page=$root/peer/api/python/hearsay/lab/README.md
check "every field that the page names of --json is there" python3 "$root/tests/e2e/fields.py" "$page" compare again.out
bounded "$HEARSAY" sim --data mnist:digits --model logreg --peers 2 --batch 4 --rounds 600 --lr "$(figures json again.out arms.2.lr)" \
    --compress none --seed 2 --evaluate-every 1 --out alone >alone.out 2>alone.err
check "a run is what hearsay sim does with its flags, bit for bit" \
    cmp alone/peer-0/model.safetensors "$(figures json again.out arms.2.runs.1.out)/peer-0/model.safetensors"
compare table arms.toml --out out --latex table.tex
check "again: a table, and nothing is trained" eval \
    '[ "$code" = 0 ] && [ "$(grep -cE "^(choco|exact).* 2 of 2 +0\.[0-9]+ \* " table.out)" = 3 ] && grep -q "^best accuracy: " table.out &&
     [ "$(grep -c "done before" table.err)" = 12 ]'
check "  and a table for LaTeX" eval '[ "$(grep -c "\\\\pm.*\\\\\\\\$" table.tex)" = 3 ] && grep -q "begin{tabular}" table.tex'
compare csv arms.toml --out out --csv
check "  and CSV" cmp csv.out out/compare.csv
compare csvfile arms.toml --out out --csv runs.csv
check "  in a file, in addition to the table" eval '[ "$code" = 0 ] && cmp runs.csv out/compare.csv && cmp table.out csvfile.out'
compare csvstdout arms.toml --out out --csv -
check "  and - is stdout" cmp csvstdout.out out/compare.csv
HEARSAY_LR=0.3 HEARSAY_ROUNDS=3 compare env arms.toml --out out
check "settings of the environment change nothing, and a warning names them" eval \
    '[ "$code" = 0 ] && cmp table.out env.out && grep -q "warning: ignoring HEARSAY_LR, HEARSAY_ROUNDS from the environment" env.err'

# ---- Runs that are excluded from the means, and invalid settings. ----

compare wild arms.toml --set lr=900 --set rounds=40 --set seeds=1 --out wild
check "runs that diverge: exit code 3, named, and in no mean" eval \
    '[ "$code" = 3 ] && [ "$(grep -c "^excluded from the means: .*diverged" wild.out)" = 3 ] && grep -q "^best accuracy: unknown" wild.out'
refused "an unknown key" "^hearsay-lab: --set: found the key 'lrr', which is no flag of hearsay sim, did you mean lr\?" arms.toml --set lrr=1
refused "a value that a flag refuses" "^hearsay-lab: arms.toml: choco, lr 0.001: --topology: torus:3x3 is for 9" arms.toml --set topology=torus:3x3 --set compress=none
sed 's/^compress = "none"/compress = "nothing"/' arms.toml >bad.toml
refused "a bad value in the last arm, before the first run" "^hearsay-lab: bad.toml: exact, lr 0.001: --compress: " bad.toml
printf 'model = "logreg"\n[a]\nseeds = 2\n' >bad.toml
refused "a key in the wrong place" '^hearsay-lab: bad.toml line 3: seeds: found in the section' bad.toml
printf '# old\nmodel = logreg\n' >bad.toml
refused "a file in the former format" '^hearsay-lab: bad.toml line 2: found .model = logreg., expected TOML: model = "logreg"$' bad.toml
refused "no file" 'cannot open nothing.toml' nothing.toml
printf '# nothing\n' >empty.toml
refused "an empty file" 'empty.toml: found no settings, expected' empty.toml
printf 'command = "sim"\nscenario = "gone.toml"\n' >bad.toml
refused "a scenario that is not there" 'bad.toml: run: --scenario: gone.toml: cannot open: No such file' bad.toml
refused "no program" '--hearsay: found .*expected the path of the program hearsay' arms.toml --hearsay ./none
refused "a program without --check" 'lists no flag --check' arms.toml --hearsay /bin/true
refused "jobs at the same time over TCP" '--jobs: found 2 with command = "local"' arms.toml --set command=local --jobs 2
refused "jobs that are no number" "--jobs: found 'x', expected a whole number from 1 to 256" arms.toml --jobs x
echo mine >mine.tex
refused "a file of another program for --latex" 'mine.tex exists' arms.toml --latex mine.tex
refused "a file of another program for --csv" 'mine.tex exists' arms.toml --csv mine.tex
refused "one file for two outputs" '--csv and --latex: found both' arms.toml --csv both --latex ./both
refused "two outputs for stdout" '--json and --csv -: found 2 outputs for stdout' arms.toml --json --csv
printf 'at = "1 kill 1"\nat = "2 restart 1"\n' >kill.toml
compare scenario arms.toml --set scenario=kill.toml --set seeds=1 --set lr=0.05 --set rounds=400 --out scenario
check "with a scenario, as any flag" eval '[ "$code" = 0 ] && grep -q "joined" scenario/*/lr-0.05/seed-1/summary.json'

# ---- Runs over TCP, and Ctrl-C. ----

compare tcp arms.toml --set command=local --set seeds=1 --set lr=0.05 --set "compress=qsgd:4" --out tcp --json
check "over TCP" eval '[ "$code" = 0 ] && [ "$(figures json tcp.out n_done)" = 2 ]'
check "  the simulator's models, bit for bit" eval \
    'cmp tcp/exact/lr-0.05/seed-1/peer-0/model.safetensors tcp/choco/lr-0.05/seed-1/peer-0/model.safetensors'
HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python start long "$python" -m hearsay.lab compare arms.toml --hearsay "$HEARSAY" \
    --set lr=0.05 --set rounds=200000 --set seeds=1 --out long --json
pid=$started
check "a long run trains" wait_until 60 eval 'ls long/*/*/seed-1/peer-0/metrics.jsonl 2>/dev/null | grep -q .'
kill -INT "$pid"
finish "$pid" 30
check "Ctrl-C: exit code 130, and the result so far" eval '[ "$code" = 130 ] && [ "$(figures json long.out interrupted) $(figures json long.out n_left)" = "True 3" ]'

HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python start gone "$python" -m hearsay.lab compare arms.toml --hearsay "$HEARSAY" \
    --set lr=0.05 --set rounds=200000 --set seeds=1 --out gone
pid=$started
check "another long run trains" wait_until 60 eval 'ls gone/*/*/seed-1/peer-0/metrics.jsonl 2>/dev/null | grep -q .'
inner=$(children_of "$pid")
# mv removes the directory in one step. While rm runs, the run could make new files in the
# directory.
mv gone trash
finish "$pid" 30
check "--out is deleted: exit code 1 and an error: $(tail -n 1 gone.err)" eval \
    '[ "$code" = 1 ] && tail -n 1 gone.err | grep -q "^hearsay-lab: --out: gone was deleted or replaced during the runs" && [ ! -s gone.out ]'
check "  the runs end, and nothing makes it again" eval 'wait_until 30 none_alive $inner && [ ! -e gone ]'

# ---- An arm without an evaluation before a budget is reported as unknown for this budget. ----

compare early arms.toml --set lr=0.05 --set evaluate-every=500 --out early
check "an arm that was evaluated first beyond the budget is counted: $(grep 'unknown for' early.out)" grep -qE \
    '^best accuracy at .* MB: choco,compress=[^ ]*, .*; unknown for [12] of 3 arms' early.out
check "  in the page, too" grep -qE 'unknown for [12] of 3 arms' early/compare.html
compare other arms.toml --set lr=0.05 --set evaluate-every=500 --set rounds=500 --out early
check "another file in the same place is refused, with what helps" eval \
    '[ "$code" = 2 ] && grep -q "rounds=600 there, 500 here.*; use another --out" other.err'

# ---- If a run was started again from round 0, curves leave out the bytes and time of the first attempt. ----

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
check "a run that was started twice has the figures of one" cmp before.csv early/compare.csv
printf 'not JSON\n' >"early/choco,compress=qsgd:4/lr-0.05/seed-1/peer-1/metrics.jsonl"
compare torn arms.toml --set lr=0.05 --set evaluate-every=500 --out early --json
check "a run with a broken file has failed, and the file is named" eval \
    '[ "$code" = 1 ] && [ "$(figures json torn.out n_failed)" = 1 ] && grep -q "peer-1/metrics.jsonl: line 1: found no JSON" torn.err'

# ---- Output files do not replace files of the runs. ----

for target in early/compare.html early/exact/lr-0.05/seed-1/summary.json early/.lock early/evaluation.json; do
    cp "$target" target.before
    compare inside arms.toml --set lr=0.05 --set evaluate-every=500 --out early --latex $target --force
    check "--latex does not replace $target" eval '[ "$code" = 2 ] && grep -q "found a file of the runs" inside.err && cmp "$target" target.before'
done
compare other arms.toml --set lr=0.05 --set evaluate-every=200 --out early
check "runs that were evaluated otherwise are refused: $(head -c 150 other.err)" eval \
    '[ "$code" = 2 ] && grep -q "evaluate-every: the runs of .* have 500, and arms.toml has 200; use another --out" other.err'
mkdir -p blocked/exact && echo mine >blocked/exact/lr-0.05
compare blocked arms.toml --set lr=0.05 --out blocked
check "a file in the place of a directory: $(head -c 120 blocked.err)" eval '[ "$code" = 2 ] && [ ! -e blocked/choco* ] && [ "$(cat blocked/exact/lr-0.05)" = mine ]'
mkdir -p piped/exact/lr-0.05 && mkfifo piped/exact/lr-0.05/seed-1.log
compare piped arms.toml --set lr=0.05 --out piped
check "a pipe in the place of a log: $(head -c 120 piped.err)" eval '[ "$code" = 2 ] && [ -p piped/exact/lr-0.05/seed-1.log ] && grep -q "regular file for the log" piped.err'
mkdir locked && mkfifo locked/.lock
compare locked arms.toml --set lr=0.05 --out locked
check "a pipe in the place of the lock: $(head -c 120 locked.err)" eval '[ "$code" = 2 ] && grep -q "locked/.lock: found another kind of file" locked.err'
cp -r early huge && python3 - huge/*/lr-0.05/seed-1/peer-*/metrics.jsonl <<'PY'
import json, sys
for path in sys.argv[1:]:
    rows = [json.loads(line) for line in open(path, encoding="utf-8") if line.startswith("{")]
    open(path, "w", encoding="utf-8").writelines(json.dumps({**row, "time_s": 1e308} if "time_s" in row else row) + "\n" for row in rows)
PY
compare huge arms.toml --set lr=0.05 --set evaluate-every=500 --out huge
check "numbers that no curve can show: the table is there" eval 'grep -q "^arm  *seeds" huge.out && ! grep -q Traceback huge.err'
for closed in '>&-' '2>&-'; do
    (eval "exec $closed"; lab compare arms.toml --set lr=0.05 --set evaluate-every=500 --out early) >closed.out 2>closed.err
    check "$closed: no traceback" eval '! grep -q Traceback closed.err'
done

mkdir theirs && echo mine >theirs/compare.html
compare theirs arms.toml --set lr=0.05 --out theirs
check "a page of another program stays" eval '[ "$code" = 2 ] && [ "$(cat theirs/compare.html)" = mine ]'
rm theirs/compare.html && mkfifo theirs/compare.csv
compare theirs arms.toml --set lr=0.05 --out theirs
check "  and a table that is a pipe: $(cat theirs.err)" eval '[ "$code" = 2 ] && [ -p theirs/compare.csv ]'
HEARSAY=$HEARSAY lab compare arms.toml --set lr=0.05 --set seeds=1 --out out2 >/dev/full 2>full.err </dev/null
code=$?
check "stdout that takes nothing: exit code $code, and one line" eval '[ "$code" = 1 ] && [ "$(tail -n 1 full.err | grep -c "^hearsay-lab: ")" = 1 ] && ! grep -q Traceback full.err'

# ---- The settings files in tests/bench: the arms of each file are checked, and one file is run. ----

for file in "$root"/tests/bench/surveys/*.toml "$root"/tests/bench/answer/*.toml; do
    check "the arms of tests/bench/${file#"$root/tests/bench/"} are accepted" eval '(cd "$root" && unit check "$file") >files.out 2>files.err'
done
compare survey "$root/tests/bench/surveys/local_steps.toml" --set data=mnist:digits --set model=logreg --set batch=4 --set rounds=4 \
    --set seeds=1 --set lr=0.02 --out survey
check "  and one of them runs" [ "$code" = 0 ]

e2e_end
