#!/usr/bin/env bash
# tests/e2e/tables.sh -- compares the accuracy on tables with that of scikit-learn: columns of very different ranges, missing
# values, categories. (moments.sh tests peers with different files.) If the variable MUSHROOMS names a directory with
# agaricus.txt.train and agaricus.txt.test, this data set is tested, too.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

tools="$root/tests/e2e"
check "tables are drawn" python3 "$tools/tables.py" data ${MUSHROOMS:+"$MUSHROOMS"}
for python in python3 /usr/bin/python3 ""; do
    [ -n "$python" ] && "$python" -c 'import sklearn' 2>/dev/null && break
done
[ -n "$python" ] || echo "# no scikit-learn here: its figures are those of version 1.2.1"

# percent FILE: prints the smallest accuracy in a summary, in percent.
percent()
{
    python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); print(100 * s.get("accuracy_min", s.get("accuracy")))' "$1"
}

# near TEXT FILE THEIRS: checks that our accuracy is at most one percentage point below THEIRS.
near()
{
    local ours
    ours=$(percent "$2")
    check "$1: $ours %, scikit-learn $3 %" within "$ours" "$(awk -v x="$3" 'BEGIN { print x - 1 }')" 100
}

# learns SET LABEL THEIRS MODEL SPEC ARGS...: four peers train on a table. THEIRS: accuracy of scikit-learn in percent, which is
# measured again if scikit-learn is installed.
learns()
{
    local set=$1 label=$2 theirs=$3 model=$4 spec=$5 arm=logreg again
    shift 5
    [ "${model%%:*}" = mlp ] && arm="mlp 64"
    # shellcheck disable=SC2086 # Unquoted, because the variable holds two words.
    if [ -n "$python" ]; then
        again=$("$python" "$tools/tables_sklearn.py" "data/$set" "$label" $arm)
        check "$set, $arm: scikit-learn has $again %, $theirs % is on record" \
            within "$again" "$(awk -v x="$theirs" 'BEGIN { print x - 0.5 }')" "$(awk -v x="$theirs" 'BEGIN { print x + 0.5 }')"
    fi
    bounded "$HEARSAY" local --peers 4 --model "$model" --data "$spec" --seed "$seed" --json --out "$set-$model" "$@" \
        >"$set.json" 2>"$set.err"
    check "$set, $model: four peers end in consensus" [ $? = 0 ]
    near "$set, $model" "$set.json" "$theirs"
}
learns cover -1 63.00 logreg csv:data/cover --lr 0.1
learns cover -1 65.45 mlp:54-64-7 csv:data/cover
learns gaps -1 86.42 logreg csv:data/gaps --lr 0.1
learns gaps -1 85.58 mlp:7-64-3 csv:data/gaps
learns near -1 97.38 logreg csv:data/near --lr 0.1
if [ -n "${MUSHROOMS:-}" ]; then
    learns mushrooms 0 100.00 logreg csv:data/mushrooms,label=1 --lr 0.1
    learns mushrooms 0 100.00 mlp:116-64-2 csv:data/mushrooms,label=1
    check "letters become inputs, with a note" \
        grep -q 'categories in 22 columns .*116 inputs in total; 2480 empty cells in column 12' mushrooms.err
fi
check "missing cells are reported" grep -q 'the label is column "class"; categories in column "town".*2421 empty cells in 4 columns ("town", "height", "income", "share")' gaps.err

# Means and scales come from the model file. Any file with the same columns can be evaluated.
mkdir one
head -n 500 data/cover/test.csv | awk -F, '$1 > 3000' >one/few.csv
check "eval of other rows" eval 'bounded "$HEARSAY" eval cover-logreg/peer-2/model.safetensors --data csv:one/few.csv,test=one/few.csv --json >few.json 2>few.err'
check "  takes the run's scales: $(percent few.json) %" within "$(percent few.json)" 50 100
check "  as it says" grep -q '"data": "csv/54x7/1/standard:2960~280,' few.json

bounded "$HEARSAY" eval near-logreg/peer-2/model.safetensors --data csv:data/near/test.csv,test=data/near/test.csv --json \
    >near.json 2>near.err
check "eval keeps the accuracy for columns with a small deviation and a large mean: $(percent near.json) %" within "$(percent near.json)" 97 100

# Cells with a decimal comma or a thousands separator are numbers, never categories.
awk -F, -v OFS=';' '{ gsub(/[.]/, ",", $1); gsub(/[.]/, ",", $2); $3 = substr($3, 1, 3) "." substr($3, 4, 3) "." substr($3, 7, 3) "." substr($3, 10); print }' \
    data/near/test.csv >comma.csv
check "a file with decimal commas: $(head -n 1 comma.csv)" eval 'bounded "$HEARSAY" eval near-logreg/peer-2/model.safetensors \
    --data csv:comma.csv,test=comma.csv --json >comma.json 2>comma.err'
check "  gives the accuracy of the file with decimal points: $(percent comma.json) %" [ "$(percent comma.json)" = "$(percent near.json)" ]

# Without scaling, the table cannot be learnt, and a warning says so before the training.
bounded "$HEARSAY" train --model logreg --data csv:data/cover,scale=none --rounds 200 --out raw --json >raw.json 2>raw.err
check "missing scaling is reported: $(head -n 1 raw.err | cut -c 1-90)" \
    grep -q 'warning: the values of column [0-9]* are [0-9]* times as large as those of column [0-9]*, and nothing is scaled' raw.err

printf 'x,day,y\n1,2019-03-04,0\n2,2019-03-05,1\n' >dates.csv
bounded "$HEARSAY" train --model logreg --data csv:dates.csv --rounds 1 >dates.out 2>dates.err
code=$?
check "a date is refused: $(cut -c 1-150 dates.err)" \
    eval '[ $code = 2 ] && grep -q "dates.csv: line 2, column 2 (\"day\"): found \"2019-03-04\", expected a number or a category" dates.err'

e2e_end
