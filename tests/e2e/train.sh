#!/usr/bin/env bash
# tests/e2e/train.sh -- hearsay train: files, seeds, --init, threads. Also tests each data format with train, eval and a cluster.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# run NAME ARGS...: hearsay ARGS ends with 0. Output in NAME.out and NAME.err.
run()
{
    local name=$1
    shift
    bounded "$HEARSAY" "$@" >"$name.out" 2>"$name.err" </dev/null
    check "$name: hearsay $1 ends with 0" [ $? = 0 ]
}

# value NAME PATH: prints a value of the JSON object at the end of NAME.out.
value()
{
    figures json "$1.out" "$2"
}

# same TEXT A B: checks that two numbers are equal to the last digit.
same()
{
    check "$1: $2" [ "$2" = "$3" ]
}

# ---- Files and figures. ----

glyphs=(--model logreg --data glyphs --batch 50 --seed "$seed")
run plain train "${glyphs[@]}" --rounds 60 --out plain
check "plain: the result is for people" grep -qE '^accuracy +[0-9.]+ %$' plain.out
check "plain: a line an epoch, on stderr" grep -q '^epoch' plain.err
bounded "$HEARSAY" train --model mlp:784-512-10 --batch 5000 --epochs 1.1 --lr 1000 --warmup 0 --schedule constant \
    >huge.out 2>huge.err </dev/null
code=$?
check "huge: a loss beyond all measure ends it, with the last good model" eval \
    '[ $code = 3 ] && grep -q "^round 1: training diverged .* the run ends$" huge.err && grep -qE "^loss +2[.][0-9]+$" huge.out'
bounded "$HEARSAY" train --model logreg --batch 5000 --epochs 1.1 >parts.out 2>parts.err </dev/null
check "parts: the last epoch is the one that was asked for" eval \
    'grep -o "^epoch.*round" parts.err | tail -n 1 | grep -q "^epoch 1.10/1.10  100 %  round"'
check "plain: files" [ -s plain/model.safetensors -a -s plain/metrics.jsonl ]

python3 "$root/tests/e2e/idx.py" digits 600 200
mnist=(--model mlp:784-32-10 --data mnist:digits --batch 30 --seed "$seed")
run epochs train "${mnist[@]}" --epochs 3 --out epochs --json
check "epochs: 3 of 600 samples in batches of 30 are 60 rounds" [ "$(value epochs rounds)" = 60 ]
check "epochs: a line each" [ "$(figures lines epochs/metrics.jsonl)" = 3 ]
same "epochs: the last line is the result" "$(figures last epochs/metrics.jsonl test_accuracy)" "$(value epochs test_accuracy)"
for key in round epoch lr loss accuracy test_loss test_accuracy seconds samples_per_s; do
    check "epochs: metrics have $key" within "$(figures last epochs/metrics.jsonl $key)" 0 1e9
done
check "epochs: it has learnt: $(value epochs test_accuracy)" within "$(value epochs test_accuracy)" 0.9 1
for key in ms_per_step train_seconds peak_rss_bytes n_params; do
    check "epochs: $key" within "$(value epochs $key)" 1e-6 1e12
done
run epochs-eval eval epochs/model.safetensors --data mnist:digits --json
same "eval of the file gives the same accuracy" "$(value epochs test_accuracy)" "$(value epochs-eval accuracy)"
# train and eval evaluate with different batch sizes, so their sums are rounded differently.
check "and the same loss, but for rounding" within \
    "$(awk -v a="$(value epochs test_loss)" -v b="$(value epochs-eval loss)" 'BEGIN { print a / b }')" 0.99999 1.00001

run seldom train "${mnist[@]}" --epochs 3 --evaluate-every 0 --out seldom
check "--evaluate-every 0: held-out figures at the end only" \
    [ "$(grep -c '"test_loss": null' seldom/metrics.jsonl)" = 2 ]
check "  and the model does not depend on it" cmp epochs/model.safetensors seldom/model.safetensors

# ---- Seeds, runs of one peer, threads. ----

run again train "${mnist[@]}" --epochs 3 --out again
check "the same seed gives the same file" cmp epochs/model.safetensors again/model.safetensors
run other train --model mlp:784-32-10 --data mnist:digits --batch 30 --epochs 3 --seed $((seed + 1)) --out other
check "another seed does not" eval '! cmp -s epochs/model.safetensors other/model.safetensors'
run sim sim --peers 1 "${mnist[@]}" --epochs 3 --out sim
check "a simulated peer alone makes the same file" cmp epochs/model.safetensors sim/peer-0/model.safetensors
run local local --peers 1 "${mnist[@]}" --epochs 3 --out local
check "a real peer alone, too" cmp epochs/model.safetensors local/peer-0/model.safetensors
for i in 1 2; do
    run "two-$i" train "${mnist[@]}" --epochs 3 --threads 2 --out "two-$i"
done
check "two threads: the same file each time" cmp two-1/model.safetensors two-2/model.safetensors
run adam train "${mnist[@]}" --epochs 3 --optimiser adamw --lr 0.002 --weight-decay 0.01 --label-smoothing 0.1 \
    --clip 5 --schedule step --out adam --json
check "AdamW and smoothed labels: $(value adam test_accuracy)" within "$(value adam test_accuracy)" 0.9 1
for i in 1 2; do
    run "crop-$i" train "${glyphs[@]}" --rounds 60 --augment crop --out "crop-$i"
done
check "augmented images give another model" eval '! cmp -s plain/model.safetensors crop-1/model.safetensors'
check "  the same each time" cmp crop-1/model.safetensors crop-2/model.safetensors

# ---- --data without a kind; logits; Ctrl-C. ----

run sniffed train --model mlp:784-32-10 --data digits --batch 30 --seed "$seed" --epochs 3 --out sniffed
run sniffed-kind inspect sniffed/model.safetensors --json
check "a directory without KIND: the kind is detected, with mean and deviation of the pixels" python3 - <<'PY'
import json
pixels = open("digits/train-images-idx3-ubyte", "rb").read()[16:]
mean = sum(pixels) / len(pixels) / 255
deviation = (sum((p / 255 - mean) ** 2 for p in pixels) / len(pixels)) ** 0.5
kind = json.load(open("sniffed-kind.out"))["data"]
assert kind == "idx/1x28x28/10/%.4f~%.4f" % (mean, deviation), kind
PY
run logits eval epochs/model.safetensors --data digits --logits logits.f32 --json
check "--logits agree with the accuracy" python3 - "$(value logits accuracy)" <<'PY'
import array, sys
v = array.array("f", open("logits.f32", "rb").read())
assert len(v) == 200 * 10
rows = [v[i:i + 10] for i in range(0, len(v), 10)]
right = sum(max(range(10), key=r.__getitem__) == i % 10 for i, r in enumerate(rows))
sys.exit(abs(right / 200 - float(sys.argv[1])) > 1e-9)
PY
run by-hand eval epochs/model.safetensors --model mlp:784-32-10 --data mnist:digits --json
same "--model in place of the file's run" "$(value logits loss)" "$(value by-hand loss)"

start stopped "$HEARSAY" train "${mnist[@]}" --rounds 100000000 --out stopped
pid=$started
check "a long run writes metrics" wait_until 30 test -s stopped/metrics.jsonl
kill -INT "$pid"
finish "$pid" 10
check "Ctrl-C: exit code 130" [ "$code" = 130 ]
run stopped-eval eval stopped/model.safetensors --data mnist:digits --json
check "  and the model so far is good" within "$(value stopped-eval accuracy)" 0.3 1

# ---- The option --init. ----

still=(--lr 0 --rounds 2 --warmup 0)
run init train "${mnist[@]}" "${still[@]}" --init epochs/model.safetensors --out init --json
same "--init, and no step: the loss of what it began with" "$(value init test_loss)" "$(value epochs test_loss)"
run init-sim sim --peers 2 "${mnist[@]}" "${still[@]}" --final-drift 0 --init epochs/model.safetensors --json
same "sim --init" "$(value init-sim accuracy_min)" "$(value epochs test_accuracy)"
run init-local local --peers 2 "${mnist[@]}" "${still[@]}" --final-drift 0 --init epochs/model.safetensors --json \
    --out init-local
same "local --init" "$(value init-local accuracy_min)" "$(value epochs test_accuracy)"
run further train "${mnist[@]}" --rounds 5 --init epochs/model.safetensors --out further --json
check "--init continues from that model: $(value further test_loss)" \
    within "$(value further test_loss)" 0 "$(awk "BEGIN { print 1.2 * $(value epochs test_loss) + 0.02 }")"
check "  and its run description names the model" grep -aq 'init=[0-9a-f]\{16\}' further/model.safetensors

check "keygen" "$HEARSAY" key new cluster.key
read -r port spare < <(free_ports 2)
alone=(--key cluster.key --shard own)
start first "$HEARSAY" peer --listen "127.0.0.1:$port" "${alone[@]}" "${mnist[@]}" --rounds 1000000 \
    --final-drift 0 --threads 2 --init epochs/model.safetensors --out first
first=$started
check "a peer with --init trains" wait_until 30 round_at_least first/metrics.jsonl 1
join=(peer --listen "127.0.0.1:$spare" --bootstrap "127.0.0.1:$port" "${alone[@]}" --out second)
# joins TEXT REGEX ARGS...: a peer that joins the run with ARGS is refused with exit code 2 and a message that matches
# REGEX.
joins()
{
    local text=$1 regex=$2
    shift 2
    bounded "$HEARSAY" "${join[@]}" "$@" >joins.out 2>joins.err </dev/null
    check "$text: exit code 2" [ $? = 2 ]
    check "  in words: $(grep -m 1 -E -- "$regex" joins.err | cut -c 1-140)" grep -qE -- "$regex" joins.err
}
joins "a peer without the file" '--init is missing.*[0-9a-f]{16}' --data mnist:digits
joins "a peer with another" 'found the model [0-9a-f]{16}.*starts with [0-9a-f]{16}' --data mnist:digits \
    --init other/model.safetensors
joins "a peer with other data" '--data.*glyphs.*mnist' --data glyphs --init epochs/model.safetensors
start third "$HEARSAY" "${join[@]}" --data mnist:digits --init epochs/model.safetensors
third=$started
check "a peer with the same file joins" wait_until 30 round_at_least second/metrics.jsonl 2
for pid in "$third" "$first"; do
    kill -TERM "$pid"
    check "SIGTERM ends it" finish "$pid" 10
done

# ---- Training on tables, sparse rows and text. ----

python3 "$root/tests/e2e/rows.py" rows
# data NAME LEAST MODEL SPEC ARGS...: uses the data with train, with eval, and with two peers. LEAST: smallest accuracy.
data()
{
    local name=$1 least=$2 model=$3 spec=$4
    shift 4
    run "$name" train --model "$model" --data "$spec" --batch 20 --seed "$seed" --out "$name" --json "$@"
    check "$name: accuracy $(value "$name" test_accuracy)" within "$(value "$name" test_accuracy)" "$least" 1
    run "$name-eval" eval "$name/model.safetensors" --data "$spec" --json
    same "$name: eval agrees" "$(value "$name" test_loss)" "$(value "$name-eval" loss)"
    run "$name-local" local --peers 2 --model "$model" --data "$spec" --batch 10 --seed "$seed" \
        --compress qsgd:8 --json --out "$name-local" "$@"
    check "$name: two peers: $(value "$name-local" accuracy_min)" \
        within "$(value "$name-local" accuracy_min)" "$least" 1
    echo "# $name: the run's data are $(value "$name" data)"
}
data csv 0.9 logreg csv:rows/table.csv --epochs 10
data csv-mlp 0.9 mlp:4-16-3 rows/table.csv,label=class --epochs 10
data libsvm 0.9 logreg libsvm:rows/sparse.svm,test=rows/sparse.svm.t --epochs 10 --lr 0.1
data libsvm-own 0.8 mlp:21-8-2 rows/sparse.svm --epochs 10 --lr 0.1
data gpt 0.5 gpt:1x32 text:rows/text.txt,context=32 --rounds 150 --optimiser adam --lr 0.003
data lstm 0.3 lstm:32 rows/text.txt --rounds 100 --optimiser adam --lr 0.01
check "a text has bits a character" python3 - "$(value gpt-eval loss)" "$(value gpt-eval bits_per_character)" <<'PY'
import math, sys
loss, bits = map(float, sys.argv[1:])
sys.exit(not abs(loss / math.log(2) - bits) < 1e-6)
PY
for spec in text:rows/table.csv libsvm:rows/table.csv csv:rows/sparse.svm; do
    bounded "$HEARSAY" eval csv/model.safetensors --data $spec >conflict.out 2>conflict.err </dev/null
    code=$?
    check "eval on $spec is refused: $(cut -c 1-120 conflict.err)" [ $code = 2 ]
done

# Peers of one run may have different files of the same kind. A peer with data of another kind is refused.
rm -r second # Files of a run that is finished. The peer that joins below uses this directory, too.
start founder "$HEARSAY" peer --listen "127.0.0.1:$port" "${alone[@]}" --model logreg --data rows/table.csv \
    --rounds 1000000 --final-drift 0 --out founder
founder=$started
check "a peer on a table trains" wait_until 30 round_at_least founder/metrics.jsonl 1
head -n 200 rows/table.csv >part.csv
joins "a peer with sparse rows" '--data.*libsvm.*csv/4x3/0' --data libsvm:rows/sparse.svm
awk -F, -v OFS=, '{ print $1, $2, $NF }' rows/table.csv >narrow.csv
joins "a peer with another table" 'narrow.csv' --data narrow.csv
start member "$HEARSAY" "${join[@]}" --data part.csv
member=$started
check "a peer with its own file of the kind joins" wait_until 30 round_at_least second/metrics.jsonl 2
for pid in "$member" "$founder"; do
    kill -TERM "$pid"
    check "SIGTERM ends it" finish "$pid" 10
done

e2e_end
