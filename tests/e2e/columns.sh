#!/usr/bin/env bash
# tests/e2e/columns.sh -- table columns are matched by name: in held-out files, by eval, predict and --init, in the files
# of a directory, and among peers with their own files.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

tools="$root/tests/e2e"
check "tables are drawn" python3 "$tools/columns.py" draw "$seed"
model=(--model logreg --lr 0.1)

accuracy()
{
    python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); print(100 * s.get("accuracy_min", s.get("accuracy")))' "$1"
}

# refused TEXT PATTERN ARGS...: the program ends with exit code 2 and one line that matches PATTERN.
refused()
{
    local text=$1 pattern=$2 code
    shift 2
    bounded "$HEARSAY" "$@" >refused.out 2>refused.err </dev/null
    code=$?
    check "$text: $(head -c 200 refused.err)" eval \
        '[ "$code" = 2 ] && [ "$(grep -c . refused.err)" = 1 ] && grep -qE -- "$pattern" refused.err'
}

# ---- A model file describes its columns. ----

bounded "$HEARSAY" train "${model[@]}" --data csv:train.csv,test=test.csv --rounds 500 --out m --json >train.json 2>train.err
check "a table is learnt: $(accuracy train.json) %" within "$(accuracy train.json)" 93 100
m=m/model.safetensors
check "the model file names its columns" python3 "$tools/columns.py" named $m 'a,"b",Größe,d' label
check "  which inspect shows" eval '"$HEARSAY" inspect $m | grep -qF "columns    \"a,\\\"b\\\"\", \"Größe\", \"d\", \"word\" (3 categories); label \"label\""'
check "  in JSON, too" eval '"$HEARSAY" inspect $m --json | python3 -c "
import json, sys
j = json.load(sys.stdin)
assert [(c[\"name\"], c[\"kind\"], c[\"inputs\"]) for c in j[\"columns\"]] == [(\"a,\\\"b\\\"\", \"numbers\", 1), (\"Größe\", \"numbers\", 1), (\"d\", \"numbers\", 1), (\"word\", \"categories\", 3)]
assert j[\"label\"] == \"label\""'
printf 'x,y\n1,Gemüse\n2,"a ""b"""\n' >classes.csv
bounded "$HEARSAY" train "${model[@]}" --data csv:classes.csv,test=classes.csv --rounds 1 --out classes >classes.out 2>&1
check "inspect shows the names of classes in UTF-8" eval \
    '"$HEARSAY" inspect classes/model.safetensors | grep -qxF "classes    2: \"Gemüse\", \"a \\\"b\\\"\""'
bounded "$HEARSAY" eval $m --data csv:train.csv,test=test.csv --json >test.json 2>eval.err
bounded "$HEARSAY" predict $m --data csv:train.csv,test=test.csv --probabilities --out want.csv 2>want.err
check "predict gives the labels that Python computes with columns matched by name" python3 "$tools/columns.py" answers $m test.csv want.csv
for table in turned label_first extra trailing latin1; do
    bounded "$HEARSAY" eval $m --data "csv:train.csv,test=$table.csv" --json >eval.json 2>eval.err
    check "eval of $table.csv: $(accuracy eval.json) %, $(tail -n 1 eval.err)" \
        eval '[ "$(accuracy eval.json)" = "$(accuracy test.json)" ]'
    bounded "$HEARSAY" predict $m --data "csv:train.csv,test=$table.csv" --probabilities --out got.csv 2>predict.err
    check "  predict gives the same bytes" cmp -s want.csv got.csv
    bounded "$HEARSAY" train "${model[@]}" --data "csv:train.csv,test=$table.csv" --rounds 500 --json >again.json 2>again.err
    check "  and so does test= in training" eval '[ "$(accuracy again.json)" = "$(accuracy train.json)" ]'
done
check "a note says that the columns are in another order" grep -q 'turned.csv: columns are in another order, and are matched by name' \
    <("$HEARSAY" eval $m --data csv:train.csv,test=turned.csv 2>&1)
check "a note names an ignored column" grep -q 'extra.csv: column "e" is ignored' \
    <("$HEARSAY" eval $m --data csv:train.csv,test=extra.csv 2>&1)
bounded "$HEARSAY" predict $m --data csv:bare.csv --probabilities --out got.csv 2>predict.err
check "rows without a label, in another order: the same bytes" cmp -s want.csv got.csv
bounded "$HEARSAY" predict $m --data csv:turned.csv,label=none --probabilities --out got.csv 2>predict.err
check "  with a label column that is ignored" eval 'cmp -s want.csv got.csv && grep -q "column \"label\" is ignored" predict.err'
bounded "$HEARSAY" predict $m --data csv:train.csv,test=plain.csv --probabilities --out got.csv 2>predict.err
check "without a header: in order, with a note" eval 'cmp -s want.csv got.csv && grep -q "plain.csv: found no header" predict.err'
lists='no column "d"; found "d \[K\]", .*, expected "a,.*"d"'
refused "eval of other columns" "$lists" eval $m --data csv:train.csv,test=unit.csv
refused "predict of other columns" "$lists" predict $m --data csv:unit.csv
refused "test= of other columns" "$lists" train --data csv:train.csv,test=unit.csv --model logreg
refused "a column in another case" 'no column "d" \(case counts\)' predict $m --data csv:case.csv
refused "a name twice" 'columns 1 and 5 both named "d"' predict $m --data csv:twice.csv
check "a note names a column whose values are all new" grep -q 'none of the values of column "word" were seen in training' \
    <("$HEARSAY" eval $m --data csv:train.csv,test=unseen.csv 2>&1)

check "an older model file has no column names" python3 "$tools/columns.py" forget $m old.safetensors
bounded "$HEARSAY" eval old.safetensors --data csv:train.csv,test=test.csv --json >eval.json 2>eval.err
check "  its columns are taken in order, with a note" \
    eval '[ "$(accuracy eval.json)" = "$(accuracy test.json)" ] && grep -q "does not name its columns" eval.err'
check "  inspect prints that the model file does not name its columns" grep -q '^columns    the model file does not name its columns' <("$HEARSAY" inspect old.safetensors)

bounded "$HEARSAY" train --model logreg --lr 1e-9 --init $m --data csv:own1_turned.csv,test=test.csv --rounds 1 --out init >init.out 2>init.err
bounded "$HEARSAY" eval init/model.safetensors --data csv:train.csv,test=turned.csv --json >init.json 2>init.err
check "--init on another order: $(accuracy init.json) %" within "$(accuracy init.json)" 95 100
refused "--init on other columns" "$lists" train --model logreg --init $m --data csv:unit.csv --rounds 1

# ---- All peers read the same files. ----

mkdir one two
cp own0.csv one/0.csv && cp own1.csv one/1.csv
cp own0.csv two/0.csv && cp own1_turned.csv two/1.csv
for set in one two; do
    bounded "$HEARSAY" local --peers 2 "${model[@]}" --data "csv:$set,test=test.csv" --rounds 200 --seed "$seed" --json --out "local-$set" >"local-$set.json" 2>"local-$set.err"
    check "local on the files of $set/ ends in consensus" [ $? = 0 ]
    bounded "$HEARSAY" sim --peers 2 "${model[@]}" --data "csv:$set,test=test.csv" --rounds 200 --seed "$seed" --json >"sim-$set.json" 2>"sim-$set.err"
done
# tensors FILE: prints the bytes of the tensors in a model file, without the header, which names the training files.
tensors()
{
    python3 -c 'import sys; b = open(sys.argv[1], "rb").read(); sys.stdout.buffer.write(b[8 + int.from_bytes(b[:8], "little"):])' "$1"
}
check "files with columns in different orders give the same bits as files in one order" \
    cmp -s <(tensors local-one/peer-1/model.safetensors) <(tensors local-two/peer-1/model.safetensors)
check "  in the simulator, too" eval '[ -s sim-one.json ] && [ "$(accuracy sim-one.json)" = "$(accuracy sim-two.json)" ]'

# ---- Each peer has its own files. ----

check "keygen" eval '"$HEARSAY" key new key 2>keygen.err'
# peers SET SPEC...: starts one peer for each table SPEC.
peers()
{
    local set=$1 i n
    shift
    n=$#
    read -ra port < <(free_ports "$n")
    for ((i = n - 1; i >= 0; i--)); do
        spec=("$@")
        start "$set-$i" bounded "$HEARSAY" peer --name "p$i" --listen "127.0.0.1:${port[i]}" --key key --shard own \
            --bootstrap "127.0.0.1:${port[0]}" --seed "$seed" --data "csv:${spec[i]}" --out "$set-$i" --min-peers "$n" \
            --rounds 400 "${model[@]}" --quorum-timeout 10
        pid[i]=$started
    done
}

# learnt SET N: checks that N peers end in consensus, with accurate models on the same columns.
learnt()
{
    local i
    for ((i = 0; i < $2; i++)); do
        check "$1: peer $i ends in consensus" finish "${pid[i]}" 60
        bounded "$HEARSAY" eval "$1-$i/model.safetensors" --data csv:train.csv,test=test.csv --json >eval.json 2>eval.err
        check "  with $(accuracy eval.json) %" within "$(accuracy eval.json)" 93 100
        check "  on the same columns" [ "$(grep '^data=' "$1-$i/run.txt")" = "$(grep '^data=' same-0/run.txt)" ]
    done
}
peers same own0.csv,test=test.csv own1.csv,test=test.csv
learnt same 2
peers turned own0.csv,test=test.csv own1_turned.csv,test=turned.csv
learnt turned 2
peers more own0.csv,test=test.csv own1_extra.csv,test=extra.csv
learnt more 2
check "more: a note names a column that the run does not have" \
    grep -q 'own1_extra.csv: columns are in another order, and are matched by name; column "e" is ignored' more-1.err
peers three own0.csv,test=test.csv own1_turned.csv,test=turned.csv own1_first.csv,label=label,test=label_first.csv
for i in 0 1 2; do
    check "three: peer $i ends in consensus" finish "${pid[i]}" 60
    bounded "$HEARSAY" eval "three-$i/model.safetensors" --data csv:train.csv,test=test.csv --json >eval.json 2>eval.err
    check "  with $(accuracy eval.json) %" within "$(accuracy eval.json)" 93 100
done
peers other own0.csv,test=test.csv unit.csv,test=unit.csv
finish "${pid[1]}" 30
check "a peer with other columns ends with code 2" [ "$code" = 2 ]
check "  and prints both lists of columns: $(grep 'no column' other-1.err | head -c 200)" grep -qE "$lists" other-1.err
pkill -P "${pid[0]}" 2>/dev/null # The command `timeout`, which passes the signal on.
finish "${pid[0]}" 30

# A peer that joins a run knows only the run description, not the other peers' column names.
read -ra port < <(free_ports 2)
start late-0 bounded "$HEARSAY" peer --name p0 --listen "127.0.0.1:${port[0]}" --key key --shard own --seed "$seed" \
    --data csv:own0.csv,test=test.csv --out late-0 --min-peers 1 --rounds 60000 "${model[@]}"
first=$started
has_run() { [ -s late-0/run.txt ]; }
wait_until 20 has_run
start late-1 bounded "$HEARSAY" peer --name p1 --listen "127.0.0.1:${port[1]}" --key key --shard own \
    --bootstrap "127.0.0.1:${port[0]}" --data csv:own1_turned.csv,test=turned.csv --out late-1
check "a peer that joins a run ends in consensus" finish "$started" 60
check "  its columns are matched with the run description" \
    grep -q 'own1_turned.csv: columns are in another order, and are matched by name' late-1.err
finish "$first" 60
bounded "$HEARSAY" eval late-1/model.safetensors --data csv:train.csv,test=turned.csv --json >eval.json 2>eval.err
check "  and its model is accurate: $(accuracy eval.json) %" within "$(accuracy eval.json)" 93 100

e2e_end
