#!/usr/bin/env bash
# tests/e2e/cli.sh -- every invalid input ends the program with one clear line and exit code 2.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# refuses TEXT REGEX ARGS...: hearsay ARGS ends with exit code 2, prints nothing to stdout, and prints one line to stderr
# that matches REGEX. A line in which a peer prints its identity does not count.
refuses()
{
    local text=$1 regex=$2 status lines
    shift 2
    bounded "$HEARSAY" "$@" >refused.out 2>refused.err </dev/null
    status=$?
    sed -Ei '/^hearsay peer: [^ ]+ is [0-9a-f]{64}$/d' refused.err
    lines=$(wc -l <refused.err)
    if [ "$status" = 2 ] && [ "$lines" = 1 ] && [ ! -s refused.out ] && grep -qiE -- "$regex" refused.err; then
        ok "$text: $(cut -c 1-150 refused.err)"
    else
        not_ok "$text: exit code $status, $lines lines, wanted /$regex/: $(head -c 300 refused.err)"
    fi
}

# ---- How flags are checked. ----

check "keygen" eval '"$HEARSAY" key new keygen.key 2>keygen.err'

refuses "unknown command" 'lcal.*local' lcal
refuses "unknown flag" '--no-such-flag' local --no-such-flag
refuses "flag without its value" '--peers' local --peers
refuses "--peers 0" '--peers.*0' local --peers 0
refuses "--peers -1" '--peers' local --peers -1
refuses "--peers 3x" '--peers.*3x' local --peers 3x
refuses "--topology ring:x" 'ring:x|--topology.*ring' local --topology ring:x
refuses "--topology heap" 'heap' local --topology heap
refuses "topk:1.5" '1\.5' local --compress topk:1.5
refuses "--compress zip" 'zip' local --compress zip
typo="qsgd:4;*wieght=none"
for command in local sim "topology ring" compressors "peer --listen 127.0.0.1:0 --key keygen.key" \
    "peer --bootstrap 127.0.0.1:1 --listen 127.0.0.1:0 --key keygen.key"; do
    # shellcheck disable=SC2086
    refuses "$command: a rule for no tensor" \
        "--compress: rule '\*wieght=none': found no tensor of logreg that matches '\*wieght', expected at least one" \
        $command --model logreg --compress "$typo"
done
refuses "sim: a rule of the consensus phase for no tensor" "--final-compress: rule 'conv=none': found no tensor of mlp:784-10" \
    sim --model mlp:784-10 --final-compress "qsgd:4;bias=fp16;conv=none"
"$HEARSAY" sim --peers 2 --model logreg --rounds 1 >units.out 2>units.err
check "sim: figures have the units that local gives them" eval \
    'grep -qE "^bytes sent +[0-9.]+ [kM]B by all peers" units.out && grep -qE "^accuracy +[0-9.]+ % to [0-9.]+ %$" units.out'
check "a rule for a tensor that the model has" eval \
    '"$HEARSAY" sim --peers 2 --model logreg --rounds 1 --compress "qsgd:4;*weight=none" >rule.out 2>rule.err'
refuses "--drift-target of one codec" '--drift-target: only with --compress auto, which chooses the compressor' \
    local --compress sign --drift-target 0.1
refuses "--compress auto of updates" '--mixer average: needs a codec in --compress, not auto' \
    sim --compress auto --mixer average
refuses "--drift-target 0" "--drift-target: found '0', expected a number from 1e-06 to 1e.06" \
    local --compress auto --drift-target 0
for spec in auto+sign "auto;bias=none" auto:2; do
    refuses "--compress $spec" "--compress: found '${spec/+/\\+}', expected auto without options: it chooses codecs by the consensus distance" \
        local --compress "$spec"
done
rungs=$("$HEARSAY" topology ring --peers 8 --model lenet5 --json) # Without --compress, the codec is auto.
check "topology: auto has the bytes of each rung" python3 - "$rungs" <<'END'
import json, sys
o = json.loads(sys.argv[1])
bytes_of = {r["compress"]: r["message_bytes"] for r in o["rungs"]}
sys.exit(not (o["compress"] == "auto" and "message_bytes" not in o and len(bytes_of) == 8
              and list(bytes_of.values()) == sorted(bytes_of.values()) and 0 <= bytes_of["fp16"] - 2 * o["n_params"] < 200
              and all(r["bytes_sent_a_round"] == 16 * r["message_bytes"] for r in o["rungs"])))
END
refuses "compressors: --compress auto" 'found auto, which chooses a codec' compressors --compress auto
check "compressors: auto is named as the default" eval '"$HEARSAY" compressors | grep -q -e "^--compress auto, the default"'
refuses "--compress AUTO" 'found .AUTO., expected auto or a compressor, did you mean auto' local --compress AUTO
refuses "--final-compress AUTO" 'AUTO: unknown compressor, expected one of none' local --final-compress AUTO
refuses "--model of no kind" 'gpt' local --model gpt
refuses "--data of no kind" 'imagenet' local --data imagenet
refuses "--policy of no kind" 'later' local --policy later
refuses "--lr nan" '--lr' local --lr nan
for text in , ,,; do
    refuses "peer: --bootstrap $text names nobody" "--bootstrap: found '$text', expected HOST:PORT" \
        peer --key keygen.key --listen 127.0.0.1:0 --model logreg --rounds 1 --bootstrap $text
    for command in status drift; do
        refuses "$command: likewise" "--bootstrap: found '$text', expected HOST:PORT" \
            $command --key keygen.key --bootstrap $text
    done
done
for text in 127.0.0.1:1,,127.0.0.1:2 127.0.0.1:1,; do
    for command in "peer --listen 127.0.0.1:0 --model logreg --rounds 1" status; do
        # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
        refuses "${command%% *}: --bootstrap $text" "--bootstrap: found '$text', expected HOST:PORT,... without empty addresses" \
            $command --key keygen.key --bootstrap $text
    done
done
refuses "peer: --bootstrap with a port above 65535" "--bootstrap: found '127.0.0.1:70000', expected a port from 1 to 65535" \
    peer --key keygen.key --model logreg --rounds 1 --bootstrap 127.0.0.1:70000
refuses "peer: --listen with a port above 65535" "--listen: found '127.0.0.1:70000', expected a port from 1 to 65535" \
    peer --key keygen.key --model logreg --rounds 1 --listen 127.0.0.1:70000
refuses "peer without a key" '--key' peer
# Such low rates are refused, because the computed arrival time of a message could overflow.
for rate in 1e-300 0.99; do
    refuses "sim: --bandwidth $rate" "--bandwidth: found $rate, expected 0 \(no limit\) or at least 1" \
        sim --model logreg --rounds 1 --peers 2 --bandwidth $rate
done
refuses "drift: --round without --exact" '--round: expected together with --exact or --layers' \
    drift --bootstrap 127.0.0.1:1 --key no.key --round 5
for command in local sim; do
    refuses "$command: --min-peers above --peers" '--min-peers: found 3, expected at most the 2 of --peers' \
        $command --min-peers 3 --peers 2 --rounds 1
    refuses "$command: a torus for others" '--topology: torus:3x4 is for 12 peers, but --peers is 8' \
        $command --topology torus:3x4 --peers 8 --rounds 1
    refuses "$command: edges for others" '--topology: edges:.* is for 3 peers, but --peers is 4' \
        $command --topology edges:0-1,1-2 --peers 4 --rounds 1
    check "$command --help: the default of --min-peers is --peers" \
        eval '"$HEARSAY" $command --help all | grep -A 1 -e --min-peers | grep -q "default: all of --peers"'
done
for command in "topology edges:0-1,2-3" "sim --topology edges:0-1,2-3 --peers 4 --model logreg --rounds 1" \
    "local --topology edges:0-1,2-3 --peers 4 --model logreg --rounds 1"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    "$HEARSAY" $command >joined.out 2>joined.err </dev/null
    check "${command%% *}: edges that do not connect all peers" \
        grep -q 'warning: the edges of --topology do not connect all 4 peers: hearsay adds 1 edge that connects them$' joined.err
done
check "topology: edges that connect all peers cause no message" eval \
    '"$HEARSAY" topology edges:0-1,1-2 2>joined.err >joined.out && [ ! -s joined.err ]'
printf '0 1\n1 2 # a line\n' >line.edges
refuses "sim: a file of edges for others" '--topology: edges:0-1,1-2 is for 3 peers, but --peers is 2' \
    sim --topology edges:line.edges --peers 2 --rounds 1
check "sim: a file of edges for the same number of peers is accepted" eval \
    '"$HEARSAY" sim --topology edges:line.edges --peers 3 --min-peers 2 --model logreg --rounds 1 >edges.out 2>edges.err'
check "  the exact drift is printed, and an estimated drift is unknown or names its round" eval \
    'grep -qE "[0-9.e+-]+ exact, (unknown|[0-9.e+-]+ @[0-9]+) estimated" edges.err && ! grep -qi nan edges.err edges.out'
bounded "$HEARSAY" sim --peers 80 --topology ring --model logreg --rounds 3 --json >long.out 2>long.err </dev/null
check "sim: a consensus phase of $(figures json long.out settle_rounds) rounds prints only $(wc -l <long.err) lines" eval \
    '[ "$(figures json long.out settle_rounds)" -gt 150 ] && [ "$(wc -l <long.err)" -lt 50 ]'
HEARSAY_PEERS=0 refuses "HEARSAY_PEERS=0" 'peers' local
check "a misspelt variable is named" eval \
    'HEARSAY_TOPLOGY=complete HEARSAY_PEERS=3 "$HEARSAY" topology ring >stray.out 2>stray.err &&
        grep -qx "hearsay topology: warning: environment variable HEARSAY_TOPLOGY does not match an option of any command, did you mean HEARSAY_TOPOLOGY?" stray.err &&
        [ "$(wc -l <stray.err)" = 1 ]'
refuses "topology of an unknown family" 'heap' topology heap
refuses "compressors: --compress zip" 'zip' compressors --compress zip
refuses "compressors: the second of two specs" 'topk:2' compressors --compress "none topk:2"
refuses "compressors: --compress of blanks" '--compress' compressors --compress "  "
refuses "compressors: an operand" "unexpected argument 'topk', did you mean --compress topk" compressors topk
refuses "compressors: a rule for nobody knows what" 'no default rule, expected one at the start, such as none;biass=fp16' \
    compressors --compress biass=fp16
refuses "topology: a number" "unexpected argument '64', did you mean --peers 64" topology ring 64
refuses "compressors: a model of too many parameters" \
    'none: found 4347133962 parameters, expected at most 4294967295' \
    compressors --model mlp:784-65536-65536-10 --compress none
refuses "compressors: --params 0" '--params.*0' compressors --params 0
refuses "compressors: --params and --model" '--params.*--model' compressors --params 10 --model logreg
refuses "compressors: --model of no kind" 'gpt' compressors --model gpt
refuses "compressors: --neighbours 0" '--neighbours' compressors --neighbours 0
for rate in fast 1 0Mbit -1Mbit 1mbit 1e3Mbit .5Gbit 1.Gbit 1..5Gbit "1 Mbit" 1Gbit/s Mbit nanbit 1Mbitx; do
    refuses "compressors: --bandwidth '$rate'" "--bandwidth: found '$rate'" compressors --bandwidth "$rate"
done

# ---- Options of training. ----

refuses "train: a flag of peers" '--policy.*hearsay local' train --policy sync
refuses "train: another, with its value attached" '--post-local.*hearsay local' train --post-local=2
refuses "train: local steps by the speed of other peers" '--local-steps: found auto, expected a number' train --local-steps auto
refuses "train: American spelling" '--optimizer.*--optimiser' train --optimizer adam
for command in train local sim "peer --listen 127.0.0.1:0 --key keygen.key"; do
    # shellcheck disable=SC2086
    refuses "$command: --rounds and --epochs" '--rounds and --epochs contradict' $command --rounds 5 --epochs 2
    # shellcheck disable=SC2086
    HEARSAY_ROUNDS=5 HEARSAY_EPOCHS=2 refuses "$command: both from the environment" \
        'HEARSAY_ROUNDS and HEARSAY_EPOCHS contradict' $command
done
check "--epochs wins over HEARSAY_ROUNDS" eval \
    'HEARSAY_ROUNDS=5 "$HEARSAY" sim --peers 2 --model logreg --epochs 0.01 >wins.out 2>wins.err && grep -q "2 peers, 4 rounds" wins.out'
check "  and --rounds over HEARSAY_EPOCHS, in the children of local too" eval \
    'HEARSAY_EPOCHS=1 "$HEARSAY" local --peers 2 --model logreg --rounds 3 --json >wins.out 2>wins.err && [ "$(figures json wins.out rounds)" = 3 ]'
refuses "train: --epochs 0" "--epochs: found '0'" train --epochs 0
refuses "train: --evaluate-every -1" "--evaluate-every: found '-1'" train --evaluate-every -1
refuses "train: an operand" 'glyphs' train glyphs
for command in train peer eval; do
    refuses "$command: --threads 0" "--threads: found '0', expected.*1 to 64" $command --threads 0
    refuses "$command: --threads 65" "--threads: found '65', expected.*1 to 64" $command --threads 65
done
refuses "more threads than samples in a batch" '--threads.*found 8.*4' train --model logreg --batch 4 --threads 8 --rounds 1
refuses "--norm of a model that has none" '--norm.*resnet' train --norm group --rounds 1
refuses "--norm of no kind" "--norm.*'instance'.*batch.group.layer" train --model resnet:20 --norm instance
refuses "--optimiser of no kind" "--optimiser.*'rmsprop'.*sgd" local --optimiser rmsprop
refuses "--nesterov of Adam" '--nesterov.*--optimiser sgd' train --optimiser adam --nesterov true --rounds 1
refuses "--beta2 of SGD" '--beta2.*--optimiser adam' sim --beta2 0.99 --rounds 1
refuses "--beta2 1" "--beta2.*'1'" train --optimiser adam --beta2 1
refuses "--label-smoothing 1" "--label-smoothing.*'1'.*0.9" train --label-smoothing 1
refuses "--augment of no kind" '--augment.*rotate' train --augment rotate
refuses "--augment of a text" '--augment crop.*text' train --model lstm:8 --data text:x --augment crop --rounds 1
refuses "--partition label:0" '--partition.*0' local --partition label:0
refuses "--partition file:2" '--partition.*file' local --partition file:2
refuses "a model for other data" 'lstm' train --model lstm:8 --rounds 1
refuses "a model for larger images" 'vgg11' train --model vgg11 --rounds 1
refuses "resnet:21" 'resnet:21|21' train --model resnet:21
for command in train local sim; do
    refuses "$command: --init of a file that is missing" '--init.*no-such.safetensors' \
        $command --model logreg --rounds 1 --init no-such.safetensors
done
for command in "topology ring" compressors; do
    # shellcheck disable=SC2086
    refuses "$command: an open kind of data" '--data.*libsvm.*libsvm/123x2/pm' $command --model logreg --data libsvm:x
done
check "and a fixed one" eval '"$HEARSAY" topology ring --model logreg --data libsvm/123x2/pm >fixed.out 2>&1 && grep -q 248 fixed.out'

for command in train local peer sim status drift topology compressors key "key new" "key identity" "key invite" eval; do
    check "$command --help" eval "\"\$HEARSAY\" $command --help >help.out 2>&1 && grep -q usage help.out"
done

# ---- How data are checked. ----

# data_refused TEXT REGEX SPOIL: runs the command SPOIL, which damages a valid data set. Checks that `local` and `eval` refuse
# the data set with a message that matches REGEX.
python3 "$root/tests/e2e/idx.py" good 200 100
bounded "$HEARSAY" local --peers 2 --model logreg --rounds 3 --data mnist:good --out good-out \
    >good.out 2>good.err </dev/null
check "the good set trains" [ $? = 0 ]
model=good-out/peer-0/model.safetensors
data_refused()
{
    local text=$1 regex=$2
    rm -rf data out && cp -r good data
    (cd data && eval "$3")
    refuses "$text" "$regex" local --peers 2 --model logreg --rounds 3 --data mnist:data --out out
    check "  and leaves no model" [ ! -e out/peer-0/model.safetensors ]
    refuses "  and eval" "$regex" eval "$model" --data mnist:data
}
data_refused "truncated IDX file" train-images 'truncate -s 5000 train-images-idx3-ubyte'
data_refused "truncated test images" t10k-images 'truncate -s 5000 t10k-images-idx3-ubyte'
data_refused "a .gz that is none" 'train-images.*gz' \
    'mv train-images-idx3-ubyte train-images-idx3-ubyte.gz'
data_refused "a truncated .gz" 'train-images.*gz' \
    'gzip train-images-idx3-ubyte && truncate -s -100 train-images-idx3-ubyte.gz'
data_refused "images without labels" train-labels 'rm train-labels-idx1-ubyte'
data_refused "a file of another kind" train-images \
    "printf '\1\2\3\4' | dd of=train-images-idx3-ubyte conv=notrunc status=none"
data_refused "a label of no class" train-labels \
    "printf '\377' | dd of=train-labels-idx1-ubyte bs=1 seek=20 conv=notrunc status=none"
data_refused "a directory that is missing" data 'rm -r ../data'

for kind in csv libsvm text idx cifar10 cifar100; do
    refuses "$kind: a path that is missing" 'no-such-path' train --data "$kind:no-such-path" --rounds 1
    refuses "$kind: without a path" "--data.*$kind" train --data "$kind:" --rounds 1
done
refuses "a path of no kind" 'no-such-path' train --data ./no-such-path --rounds 1
printf 'a,b,y\n1,2,0\n3,4,1\n5,x,0\n1,2,1\n' >bad.csv
refuses "csv: a word for a number" 'bad.csv.*line 4' train --model logreg --data csv:bad.csv,label=y --rounds 1
printf 'a,b,y\n1,2,0\n3,4,1\n5,6,0\n1,2,1\n7,1,0\n2,3,1\n' >one.csv
refuses "sim: one file for two peers" '--partition: found 2 parts, expected at most 1, the number of files' \
    sim --peers 2 --batch 1 --model logreg --rounds 1 --partition file --data csv:one.csv,label=y
printf '+1 1:1\n-1 2:x\n' >bad.svm
refuses "libsvm: a word for a number" 'bad.svm.*line 2' train --model logreg --data libsvm:bad.svm --rounds 1
refuses "a key of no meaning" '--data.*colour' train --model logreg --data csv:bad.csv,colour=red --rounds 1
refuses "holdout=2" '--data.*holdout.*2' train --model logreg --data csv:bad.csv,holdout=2 --rounds 1
printf 'short' >short.txt
refuses "a text shorter than its context" 'short.txt' train --model lstm:8 --data text:short.txt --rounds 1

refuses "a directory with a model" 'good-out/peer-0 is a directory, expected a file, such as good-out/peer-0/model.safetensors' \
    eval good-out/peer-0 --data mnist:good
refuses "a model that is missing" 'no-such' eval no-such.safetensors --data mnist:good
head -c 100 "$model" >cut.safetensors 2>/dev/null
refuses "a model that is cut" 'cut.safetensors' eval cut.safetensors --data mnist:good
head -c 4096 /dev/zero >zero.safetensors
refuses "a model that is none" 'zero.safetensors: not a safetensors file' eval zero.safetensors --data mnist:good

python3 - <<'PY'
import json, struct
def write(path, shapes):
    header, at = {}, 0
    for name, shape in shapes.items():
        n = 4
        for d in shape:
            n *= d
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + bytes(at))
write("foreign.safetensors", {"weight": [10, 784], "bias": [10]})
PY
refuses "a model without a run" 'foreign.*--model' eval foreign.safetensors --data mnist:good
refuses "  of other tensors than --model has" 'foreign.*tensor weight' \
    eval foreign.safetensors --model lenet5 --data mnist:good
refuses "--norm without --model" '--norm.*--model' eval "$model" --norm batch --data mnist:good
refuses "--norm of a model that has none" '--norm' eval "$model" --model logreg --norm batch --data mnist:good
refuses "--init of another model" "$model" train --model lenet5 --data mnist:good --rounds 1 --init "$model"
refuses "--init of no model" '--init: zero.safetensors: not a safetensors file' local --peers 2 --model logreg --data mnist:good --rounds 1 \
    --init zero.safetensors

# ---- Keys, ports, names and runs. ----

check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'
check "  only the owner can read the key file" [ "$(stat -c %a cluster.key)" = 600 ]
refuses "key new over a key that is there" 'cluster.key' key new cluster.key
refuses "an unknown command of a family" 'unknown command key make .see hearsay key --help' key make cluster.key
refuses "  also behind help" 'unknown command key make' help key make
check "  the error lists the commands of the group" [ "$("$HEARSAY" key --help | grep -cE '^  key (new|identity|invite)  ')" = 3 ]
# Commands can still be called by their former names.
check "keygen is key new" eval '"$HEARSAY" keygen former.key 2>former.err && [ "$(stat -c %a:%s former.key)" = 600:65 ]'
check "identity is key identity" eval '[[ $("$HEARSAY" identity former.identity 2>/dev/null) =~ ^[0-9a-f]{64}$ ]]'
check "invite is key invite" eval '[ -n "$("$HEARSAY" invite --identity former.identity)" ]'
refuses "top is status --watch" 'key: not given|--key' top --bootstrap 127.0.0.1:1
refuses "status --interval without --watch" '--interval needs --watch' status --interval 1 --bootstrap 127.0.0.1:1 --key cluster.key
refuses "status --watch --json" '--json and --watch exclude each other' status --watch --json --bootstrap 127.0.0.1:1 --key cluster.key
run=(--model mlp:784-8-8-8-10 --data mnist:good --compress "qsgd:4;fc4.*=none" --rounds 1000000 --final-drift 0)

cp cluster.key open.key && chmod 644 open.key
refuses "a key file that others can read" '--key: open.key: mode 0644' peer --listen 127.0.0.1:0 --key open.key "${run[@]}"
refuses "a key file that is missing" 'no.key' peer --listen 127.0.0.1:0 --key no.key "${run[@]}"
head -c 5 cluster.key >short.key && chmod 600 short.key
refuses "a key file that is none" 'short.key' peer --listen 127.0.0.1:0 --key short.key "${run[@]}"

cp short.key short.identity && chmod 600 short.identity
refuses "an identity that is none" 'identity: short.identity: 5 bytes, expected 64' \
    peer --listen 127.0.0.1:0 --key cluster.key --identity short.identity "${run[@]}"

refuses "--shard 3/2" '3/2' peer --listen 127.0.0.1:0 --key cluster.key "${run[@]}" --shard 3/2
read -r port spare third < <(free_ports 3)
start a "$HEARSAY" peer --listen "127.0.0.1:$port" --key cluster.key "${run[@]}" --out a
a=$started
check "a peer trains alone" wait_until 30 round_at_least a/metrics.jsonl 1
observe=(--bootstrap "127.0.0.1:$port" --key cluster.key --exact --json)
later=$(($(last_round a/metrics.jsonl) + 2000))
check "drift --exact --round $later ends with 0" eval '"$HEARSAY" drift "${observe[@]}" --round $later >one.out 2>one.err'
check "  and is of that round" [ "$(figures json one.out exact.round_min)" = "$later" ]
check "  the distance of a single model is unknown" \
    [ "$(figures json one.out exact.relative_drift) $(figures json one.out ratio)" = "None None" ]
refuses "a port in use" "$port" peer --listen "127.0.0.1:$port" --key cluster.key "${run[@]}"
refuses "a port of no kind" '99999' peer --listen 127.0.0.1:99999 --key cluster.key "${run[@]}"
join=(--listen "127.0.0.1:$spare" --bootstrap "127.0.0.1:$port" --key cluster.key --data mnist:good --out b)
refuses "a flag that contradicts the run (model)" 'model.*(lenet5.*mlp|mlp.*lenet5)' peer "${join[@]}" --model lenet5
refuses "a flag that contradicts the run (rounds)" 'rounds.*(77.*1000000|1000000.*77)' peer "${join[@]}" --rounds 77
check "the peer continues to train" alive "$a"
start b "$HEARSAY" peer "${join[@]}" --compress "qsgd:4;fc4.*=none"
b=$started
check "a rule for a tensor of the run's model, not of the default one, joins" wait_until 30 round_at_least b/metrics.jsonl 1
kill -TERM "$b"
check "  and leaves with 0" finish "$b" 60

# --drift-target has an effect only with --compress auto. For a peer that joins a run, the run's --compress decides, not the
# peer's default.
start auto "$HEARSAY" peer --listen "127.0.0.1:$third" --key cluster.key --model logreg --data mnist:good \
    --compress auto --drift-target 0.5 --rounds 1000000 --final-drift 0 --out auto
auto=$started
# joins PORT TARGET: starts a peer that joins the run at PORT and gives only --drift-target TARGET.
joins()
{
    bounded "$HEARSAY" peer --listen 127.0.0.1:0 --bootstrap "127.0.0.1:$1" --key cluster.key \
        --data mnist:good --out c --drift-target "$2" >joins.out 2>joins.err </dev/null
    status=$?
}
joins "$third" 0.25
check "--drift-target that contradicts the run: $(tail -n 1 joins.err)" eval '[ $status = 2 ] && tail -n 1 joins.err |
    grep -q -e "--drift-target 0.25 contradicts the cluster.s run, which has drift-target=0.5"'
joins "$port" 0.5
check "--drift-target of a run of one codec: $(tail -n 1 joins.err)" eval '[ $status = 2 ] && tail -n 1 joins.err |
    grep -q -e "--drift-target: only with --compress auto, .*, and the cluster.s run has compress=qsgd:4"'
check "a first peer with only --drift-target creates a run, because auto is the default codec" eval \
    'timeout 60 "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key --data mnist:good --epochs 0.1 --out c \
        --drift-target 0.5 --json 2>begins.err | tail -n 1 | grep -q "drift-target=0.5"'
refuses "--factor-masking alone, with nobody to join" '--factor-masking: only with --mixer average' \
    peer --listen 127.0.0.1:0 --key cluster.key --data mnist:good --out c --factor-masking true
rm -rf c
start c "$HEARSAY" peer --listen 127.0.0.1:0 --bootstrap "127.0.0.1:$third" --key cluster.key --data mnist:good \
    --out c --drift-target 0.5
c=$started
check "--drift-target that is the run's joins" wait_until 30 round_at_least c/metrics.jsonl 1
for pid in "$c" "$auto"; do
    kill -TERM "$pid"
    check "  and leaves with 0" finish "$pid" 60
done

start lost "$HEARSAY" peer --listen 127.0.0.1:0 --bootstrap no-such-host.invalid:7100 --key cluster.key \
    "${run[@]}" --out lost
lost=$started
check "a name that does not resolve is a warning" wait_until 20 grep -q no-such-host.invalid lost.err
check "  and the peer continues" alive "$lost" # The exit code of this peer is checked later, when the peer has ended.
for pid in "$lost" "$a"; do
    kill -TERM "$pid"
    check "SIGTERM ends it with exit code 0" finish "$pid" 60
done
check "  and leaves a model" [ -s a/model.safetensors ]
check "a peer that never trained reports no drift" eval 'grep -q "drift unknown" lost.err && ! grep -qi nan lost.err'

e2e_end
