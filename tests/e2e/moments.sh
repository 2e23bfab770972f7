#!/usr/bin/env bash
# tests/e2e/moments.sh -- peers with different files of a table agree on means, scales and categories of the columns before
# round 0. The values equal those of all files together, to the last digit, and the accuracy is as good.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

tools="$root/tests/e2e"
check "tables are drawn" python3 "$tools/tables.py" data
check "keygen" eval '"$HEARSAY" key new key 2>keygen.err'
theirs=63.00 # Accuracy of logistic regression by scikit-learn 1.2.1, in percent.
for python in python3 /usr/bin/python3 ""; do
    [ -n "$python" ] && "$python" -c 'import sklearn' 2>/dev/null && break
done
[ -z "$python" ] || theirs=$("$python" "$tools/tables_sklearn.py" data/cover -1 logreg)

# data_of DIR: prints the line "data=..." of the run description in DIR.
data_of()
{
    grep '^data=' "$1/run.txt"
}

percent()
{
    python3 -c 'import json, sys; print(100 * json.load(open(sys.argv[1]))["accuracy"])' "$1"
}

below()
{
    awk -v x="$1" 'BEGIN { print x - 1 }'
}

# peers SET SHARD SPEC N ARGS...: starts N peers, the last one first. In SHARD and SPEC, %i is a peer's number from 0, %n from
# 1.
peers()
{
    local set=$1 shard=$2 spec=$3 n=$4 i one
    shift 4
    read -ra port < <(free_ports "$n")
    for ((i = n - 1; i >= 0; i--)); do
        one=${spec//%i/$i}
        start "$set-$i" bounded "$HEARSAY" peer --name "p$i" --listen "127.0.0.1:${port[i]}" --key key \
            --shard "${shard//%n/$((i + 1))}" --bootstrap "127.0.0.1:${port[0]},127.0.0.1:${port[n - 1]}" \
            --seed "$seed" --data "$one" --out "$set-$i" "$@"
        pid[i]=$started
    done
}

# ---- Numbers: the files have different ranges in the first column. ----

flags=(--min-peers 4 --rounds 3000 --batch 128 --lr 0.1 --model logreg)
peers own own csv:data/own/%i.csv,test=data/cover/test.csv 4 "${flags[@]}"
for i in 0 1 2 3; do
    check "peer $i with a file of its own ends in consensus" finish "${pid[i]}" 60
done
check "the first of them fixes the run, by what all say" \
    grep -q 'p0: the run uses the column statistics of 4 members: p0, p1, p2, p3' own-0.err
check "  and no other" [ "$(cat own-?.err | grep -c 'the run uses the column statistics')" = 1 ]
check "  which they say at the start" [ "$(cat own-?.err | grep -c 'the run starts once the column statistics of 4 members')" = 4 ]
bounded "$HEARSAY" train --model logreg --data csv:data/cover --rounds 1 --out whole >whole.out 2>whole.err
for i in 0 1 2 3; do
    check "peer $i has the means and scales of the whole set" [ "$(data_of "own-$i")" = "$(data_of whole)" ]
    bounded "$HEARSAY" train --model logreg --data "csv:data/own/$i.csv" --rounds 1 --out "alone-$i" >alone.out 2>alone.err
    check "  which are not those of its file" [ "$(data_of "alone-$i")" != "$(data_of whole)" ]
done

# Computes the expected means and scales of the columns without hearsay. A mean is rounded to the second digit of the
# standard deviation, so it must be right to half a unit of this digit.
check "as these are by another count" python3 - "$(data_of own-0)" <<'END'
import glob, math, sys
rows = [[float(v) for v in line.split(",")[:-1]] for f in glob.glob("data/own/*.csv") for line in open(f)]
words = sys.argv[1].split(":", 1)[1].split(",")
assert len(words) == len(rows[0]) == 54
for i, word in enumerate(words):
    column = [r[i] for r in rows]
    mean = math.fsum(column) / len(column)
    scale = math.sqrt(math.fsum((v - mean) ** 2 for v in column) / len(column))
    ours, _, by = word.partition("~")
    step = 10.0 ** (math.floor(math.log10(scale)) - 1)
    assert abs(float(ours or 0) - mean) <= 0.500001 * step, (i, word, mean, scale)
    assert abs(float(by or 1) - scale) <= 0.500001 * step, (i, word, mean, scale)
END

peers part %n/4 csv:data/cover 4 "${flags[@]}"
for i in 0 1 2 3; do
    check "peer $i with a part of one file ends in consensus" finish "${pid[i]}" 60
done
one=$(percent part-0/summary.json)
for i in 0 1 2 3; do
    ours=$(percent "own-$i/summary.json")
    check "peer $i: $ours %, within a point of the $one % of one file" within "$ours" "$(below "$one")" 100
    check "  and of scikit-learn's $theirs %" within "$ours" "$(below "$theirs")" 100
done

# ---- Columns with a small deviation and a large mean, which float32 sums would get wrong. ----

mkdir near
awk -F, '{ print >"near/" (NR % 2) ".csv" }' data/near/train.csv
peers near own csv:near/%i.csv,test=data/near/test.csv 2 --min-peers 2 --rounds 1000 --lr 0.1 --model logreg
for i in 0 1; do
    check "peer $i with half of the timestamps ends in consensus" finish "${pid[i]}" 60
    ours=$(percent "near-$i/summary.json")
    check "  at $ours %" within "$ours" 96 100
done
bounded "$HEARSAY" train --model logreg --data csv:data/near --rounds 1 --out near-whole >near.out 2>near.err
check "  with the means and scales of all rows" [ "$(data_of near-0)" = "$(data_of near-whole)" ]

# ---- Labels: the run has all classes that at least one peer has. ----

mkdir labels
for k in 0 1 all; do
    awk -v k="$k" 'BEGIN { srand(7); for (i = 0; i < 900; i++) { split(k == "all" ? "0 1 5 9" : k ? "1 5 9" : "0 1 5", c, " ")
        l = c[1 + i % (k == "all" ? 4 : 3)]; printf "%.3f,%.3f,%d\n", l + rand(), l * l + rand(), l } }' >"labels/$k.csv"
done
peers labels own csv:labels/%i.csv,test=labels/all.csv 2 --min-peers 2 --rounds 300 --model logreg
for i in 0 1; do
    check "peer $i, which lacks a label of the other, ends in consensus" finish "${pid[i]}" 60
    check "  of a run with the labels of both: $(data_of "labels-$i" | cut -c 1-30)" grep -q '^data=csv/2x4/in-0-1.5.9/' "labels-$i/run.txt"
done

# ---- Categories and missing values: the files have different words. One peer joins late. ----

mkdir towns
awk -F, 'NR == 1 { for (i = 0; i < 3; i++) print >"towns/" i ".csv"; next }
    { k = $1 == "Ulm" || $1 == "Bonn" ? 0 : $1 == "Kiel" ? 1 : $1 == "Jena" ? 2 : NR % 3; print >"towns/" k ".csv" }' data/gaps/train.csv
cp towns/1.csv towns/3.csv
peers towns own csv:towns/%i.csv,test=data/gaps/test.csv 3 --min-peers 3 --rounds 4000 --model logreg --lr 0.1
check "the run is fixed" wait_until 60 grep -q 'uses the column statistics of 3 members' towns-0.err
start late bounded "$HEARSAY" peer --name late --listen 127.0.0.1:0 --key key --shard own --bootstrap "127.0.0.1:${port[0]}" \
    --data csv:towns/3.csv,test=data/gaps/test.csv --out late
late=$started
for i in 0 1 2; do
    check "peer $i with words of its own ends in consensus" finish "${pid[i]}" 60
done
check "a late peer, too" finish "$late" 60
bounded "$HEARSAY" train --model logreg --data csv:data/gaps --rounds 1 --out gaps >gaps.out 2>gaps.err
for one in towns-0 towns-1 towns-2 late; do
    check "$one has the words of the whole set: $(data_of "$one" | cut -c 1-40)" [ "$(data_of "$one")" = "$(data_of gaps)" ]
done

# A peer recognises that its run has finished, even if the files of other peers determined the columns of the run.
bounded "$HEARSAY" peer --name p0 --listen 127.0.0.1:0 --key key --shard own --seed "$seed" --min-peers 3 --rounds 4000 \
    --model logreg --lr 0.1 --data csv:towns/0.csv,test=data/gaps/test.csv --out towns-0 >again.out 2>again.err
code=$?
check "the same again has finished: $(head -c 100 again.err)" [ $code = 0 ]

# ---- With --epochs, files of different sizes give different numbers of rounds. The peer that creates the run decides. ----

for i in 0 1 2; do
    head -n $((300 + 150 * i)) "data/own/$i.csv" >"sized-$i.csv"
done
peers sized own csv:sized-%i.csv 3 --min-peers 3 --epochs 2 --batch 32 --lr 0.1 --model logreg
for i in 0 1 2; do
    check "--epochs and files of different sizes: peer $i ends in consensus" finish "${pid[i]}" 60
done

# ---- Tables that do not fit together are refused. ----

awk -F, -v OFS=, '{ $3 = NR > 1 ? "much" : $3; print }' towns/1.csv >unlike.csv
read -ra port < <(free_ports 2)
start first "$HEARSAY" peer --name a --listen "127.0.0.1:${port[0]}" --key key --shard own --min-peers 2 --rounds 100 \
    --model logreg --seed "$seed" --data csv:towns/0.csv --out first
first=$started
bounded "$HEARSAY" peer --name b --listen "127.0.0.1:${port[1]}" --key key --shard own --bootstrap "127.0.0.1:${port[0]}" \
    --data csv:unlike.csv --out unlike >unlike.out 2>unlike.err
code=$?
check "columns of another sort are refused: $(grep -o 'data csv.*' unlike.err | head -n 1 | cut -c 1-100)" \
    eval '[ $code = 2 ] && grep -q "data csv:unlike.csv: column \"[a-z]*\": found categories, expected numbers (according to a, which creates the run)" unlike.err'
check "  and left out" wait_until 60 grep -q 'the data of b do not match this peer.s data: column "[a-z]*": found categories, expected numbers' first.err
check "  and the peer reports that it waits for them" wait_until 60 grep -q 'waiting for members: the column statistics of 1 of 2 (--min-peers) have arrived' first.err
kill -TERM "$first"
check "a waiting peer ends when it is stopped" finish "$first" 60

# ---- The first peer has no row with one of the label names. That peer ends, and not the complete ones. ----

for i in 0 1 2; do
    python3 - "$i" >"labels-$i.csv" <<'PY'
import random, sys
r = random.Random(int(sys.argv[1]))
print("size,weight,class")
for _ in range(300):
    x, y = r.gauss(0, 1), r.gauss(0, 1)
    print(f"{x:.3f},{y:.3f},{'low' if x + y < 0 else 'middle' if x + y < 1 or sys.argv[1] == '0' else 'high'}")
PY
done
peers incomplete own csv:labels-%i.csv 3 --min-peers 2 --rounds 200 --model logreg
finish "${pid[0]}" 60
expected='data csv:labels-0.csv: labels: found 2 label names, expected 3: every file .*according to p[12], which creates the run'
expected+='|labels-0.csv: labels: found 2 label names .*, expected exactly the 3 names that the run started with: every file must'
# The message depends on whether the others have created the run when this peer reads their statistics.
check "a file without a label name: exit code $code, $(grep -o 'data.*labels:.*' incomplete-0.err | tail -n 1)" \
    eval '[ $code = 2 ] && grep -qE "$expected" incomplete-0.err'
for i in 1 2; do
    check "  peer $i with the complete file ends in consensus" finish "${pid[i]}" 60
done

e2e_end
