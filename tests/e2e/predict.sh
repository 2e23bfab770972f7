#!/usr/bin/env bash
# tests/e2e/predict.sh -- hearsay predict labels rows without labels, with the names of the run's classes. The labels are
# the same as for rows that have labels.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# refused TEXT PATTERN ARGS...: hearsay ARGS ends with exit code 2 and one line that matches PATTERN.
refused()
{
    local text=$1 pattern=$2 code
    shift 2
    bounded "$HEARSAY" "$@" >refused.out 2>refused.err </dev/null
    code=$?
    check "$text: $(head -c 120 refused.err)" eval \
        '[ "$code" = 2 ] && [ ! -s refused.out ] && [ "$(wc -l <refused.err)" = 1 ] && grep -qE -- "$pattern" refused.err'
}

# label NAME ARGS...: runs hearsay predict ARGS with the output NAME.csv.
label()
{
    local name=$1 code
    shift
    bounded "$HEARSAY" predict "$@" --out "$name.csv" >"$name.out" 2>"$name.err" </dev/null
    code=$?
    check "predict, $name, ends with 0: $(tail -n 1 "$name.err" | cut -c 1-100)" [ "$code" = 0 ]
}

# Writes a table with columns of very different ranges, categories, missing values and named classes. A model can learn it only
# if the columns are scaled.
python3 - "$seed" <<'PY'
import random, sys
r = random.Random(int(sys.argv[1]))
names = ["plain", "with, comma", 'a "quote"']
files = [open(n, "w") for n in ("old.csv", "rows.csv", "bare.csv", "late.csv", "odd.csv")]
old, rows, bare, late, odd = files
for f in files:
    f.write("x,y,word" + ("" if f in (bare, odd) else ",kind") + "\n")
for i in range(500):
    c = r.randrange(3)
    cells = ["%.3f" % (1000 * (c + r.gauss(0, 0.3))), "" if i % 50 == 7 else "%.6f" % (0.001 * (c + r.gauss(0, 0.3))), "uvw"[r.randrange(3)]]
    name = '"%s"' % names[c].replace('"', '""')
    if i < 400:
        old.write(",".join(cells + [name]) + "\n")
    else:
        rows.write(",".join(cells + [name]) + "\n")
        bare.write(",".join(cells) + "\n")
        if c == 1:
            late.write(",".join(cells + [name]) + "\n")
odd.write("1,2,u\n1,2\n")
PY
bounded "$HEARSAY" local --peers 2 --model logreg --lr 0.1 --data csv:old.csv --epochs 20 --seed "$seed" --out of >of.out 2>of.err
check "two peers learn the table" [ $? = 0 ]
model=of/peer-1/model.safetensors

label labelled "$model" --data csv:old.csv,test=rows.csv --probabilities
label alone "$model" --data csv:bare.csv --probabilities
label told "$model" --data csv:bare.csv,label=none --probabilities
label beside "$model" --data csv:old.csv,test=bare.csv --probabilities
for name in alone told beside; do
    check "  the same to the byte as of the rows with labels" cmp labelled.csv "$name.csv"
done
check "  a message says that there are no labels" grep -q '^100 samples of csv/5x3/names-[0-9a-f]*/standard, without labels$' alone.err
check "names, and probabilities that are ones of three classes" python3 - <<'PY'
import csv
rows, truth = list(csv.DictReader(open("alone.csv"))), list(csv.DictReader(open("rows.csv")))
names = ['a "quote"', "plain", "with, comma"]
assert list(rows[0]) == ["index", "label", "probability"] + ["p_" + n for n in names], list(rows[0])
assert [int(r["index"]) for r in rows] == list(range(100))
for r in rows:
    p = {n: float(r["p_" + n]) for n in names}
    assert abs(sum(p.values()) - 1) < 1e-4 and max(p, key=p.get) == r["label"] and abs(p[r["label"]] - float(r["probability"])) < 1e-5, r
right = sum(r["label"] == t["kind"] for r, t in zip(rows, truth))
assert right >= 80, right # Accuracy in percent. Guessing gives 33, and unscaled columns give little more.
PY
label few "$model" --data csv:old.csv,test=late.csv
bounded "$HEARSAY" eval "$model" --data csv:late.csv,test=late.csv --json >late.json 2>late.err
check "eval of rows of one class: the model file names the others" [ "$(figures json late.json accuracy)" != None -a -s late.json ]
bounded "$HEARSAY" predict "$model" --data csv:bare.csv >plain.out 2>plain.err
check "without --probabilities there are three columns" eval '[ "$(head -n 1 plain.out)" = index,label,probability ] && [ "$(wc -l <plain.out)" = 101 ]'

# A model file of an older version has no names of classes.
python3 - "$model" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
assert header["__metadata__"]["classes"].split("\n") == ['a "quote"', "plain", "with, comma"]
def write(name, meta):
    text = json.dumps(dict(header, __metadata__=meta)).encode()
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + n:])
meta = header["__metadata__"]
write("former.safetensors", {k: v for k, v in meta.items() if k not in ("classes", "trained_on")})
write("false.safetensors", dict(meta, classes="a\nb\nc"))
PY
label former former.safetensors --data csv:bare.csv
check "  classes are then numbers, with a note" eval \
    'grep -q "has no class names; labels are class numbers" former.err && [ "$(cut -d, -f2 former.csv | sed 1d | sort -u | paste -sd,)" = 0,1,2 ]'
label false false.safetensors --data csv:bare.csv
check "  names that are not the run's are left aside, with a warning" eval 'cmp -s false.csv former.csv && grep -q "warning: false.safetensors: its class names do not match its run" false.err'
label former-beside former.safetensors --data csv:old.csv,test=bare.csv
check "  the training file has them" eval 'cut -d, -f1-3 alone.csv | cut -c 1-12 | cmp -s - <(cut -c 1-12 former-beside.csv)'
bounded "$HEARSAY" eval former.safetensors --data csv:old.csv,test=rows.csv >former-eval.out 2>former-eval.err
check "  and eval is as before" [ $? = 0 ]

# used TEXT N SHARE MODEL DATA: checks that eval and predict use N rows of DATA. In the training file, recognised by its hash,
# these are the held-out rows; in any other file all rows.
used()
{
    local text=$1 n=$2 share=$3 of=$4 data=$5
    bounded "$HEARSAY" eval "$of" --data "$data" --json >used.json 2>used.err
    bounded "$HEARSAY" predict "$of" --data "$data" --out used.csv >used.out 2>>used.err
    check "$text: $n rows, $share" [ "$(figures json used.json samples)" = "$n" -a "$(sed 1d used.csv | wc -l)" = "$n" -a "$(figures json used.json held_out)" = "$share" ]
}
gzip -kn old.csv
cp old.csv elsewhere.csv
used "the training file" 40 share "$model" csv:old.csv
used "  packed" 40 share "$model" csv:old.csv.gz
used "  under another name" 40 share "$model" elsewhere.csv
used "labelled rows that were never trained on" 100 other "$model" csv:rows.csv
check "  and predict prints a note" grep -q 'labelled all rows of --data, which are not the training files' used.err
used "  with a share" 50 share "$model" csv:rows.csv,holdout=0.5
used "  as held-out files" 100 files "$model" csv:old.csv,test=rows.csv
bounded "$HEARSAY" train --model logreg --data csv:old.csv,test=rows.csv --rounds 10 --out whole >whole.out 2>whole.err
used "a file of which nothing was held out" 400 none whole/model.safetensors csv:old.csv
bounded "$HEARSAY" train --model logreg --data csv:old.csv,holdout=0.25 --rounds 10 --out quarter >quarter.out 2>quarter.err
used "a file of which a quarter was held out" 100 share quarter/model.safetensors csv:old.csv
used "a model file that sends nothing" 10 share former.safetensors csv:rows.csv

# Test: `hearsay predict` of sparse rows gives the same labels with and without labels in the file.
python3 - <<'PY'
import random
r = random.Random(2)
with open("old.svm", "w") as old, open("rows.svm", "w") as rows, open("bare.svm", "w") as bare:
    for i in range(300):
        c = r.randrange(2)
        entries = "%d:1 %d:0.5" % (1 + c, 3 + r.randrange(3))
        (old if i < 200 else rows).write("%d %s\n" % (2 * c - 1, entries))
        if i >= 200:
            bare.write(entries + "\n")
PY
bounded "$HEARSAY" train --model logreg --lr 0.5 --data libsvm:old.svm,features=5 --epochs 10 --seed "$seed" --out svm >svm.out 2>svm.err
check "train learns sparse rows" [ $? = 0 ]
label svm-labelled svm/model.safetensors --data libsvm:old.svm,test=rows.svm
label svm-alone svm/model.safetensors --data libsvm:bare.svm
check "  the same of sparse rows without labels" cmp svm-labelled.csv svm-alone.csv

# Test: a table with so many columns that the run description has only a hash of the columns.
python3 - <<'PY'
import random
r = random.Random(3)
with open("wide.csv", "w") as old, open("wide-bare.csv", "w") as bare:
    for i in range(80):
        cells = ["%.5f" % r.gauss(10 * (i % 2), 100) for _ in range(200)]
        old.write(",".join(cells + [str(i % 2)]) + "\n")
        if i < 10:
            bare.write(",".join(cells) + "\n")
PY
bounded "$HEARSAY" train --model logreg --batch 8 --data csv:wide.csv,test=wide.csv --rounds 10 --seed "$seed" --out wide >wide.out 2>wide.err
check "a wide table is trained on" [ $? = 0 ]
refused "its rows alone cannot be scaled" 'wide-bare.csv: found no labels, expected KIND:TRAINING,test=PATH with the training files as TRAINING and these files as PATH' \
    predict wide/model.safetensors --data csv:wide-bare.csv,label=none
label wide-labels wide/model.safetensors --data csv:wide.csv,test=wide-bare.csv

refused "one column too few" 'line 3: found 2 cells, expected 3' predict "$model" --data csv:odd.csv
cut -d, -f1,2 bare.csv >short.csv
refused "two too few" 'short.csv: line 1: no column "word"; found "x", "y", expected "x", "y", "word", "kind"' predict "$model" --data csv:short.csv
label ignored "$model" --data csv:rows.csv,label=none --probabilities
check "a label column that is not needed is ignored" eval 'cmp -s ignored.csv alone.csv && grep -q "column \"kind\" is ignored" ignored.err'
refused "train takes no rows without labels" 'label=none|named .none.' train --model logreg --data csv:bare.csv,label=none --rounds 1
refused "eval neither" 'no label "kind"; found "x", "y", "word", expected "x", "y", "word", "kind"' eval "$model" --data csv:bare.csv
refused "an option that is mistyped" 'old.csv,tets=bare.csv: found no such file, and no option "tets", expected .*, did you mean test\?' train --data csv:old.csv,tets=bare.csv --rounds 1
refused "  behind one that is not" 'found option "tets", .*, did you mean test\?' train --data csv:old.csv,label=4,tets=bare.csv --rounds 1

e2e_end
