#!/usr/bin/env bash
# tests/e2e/help.sh -- checks what --help and the pages say about each command: defaults, lists of values, fields of --json.
# tests/e2e/settings.sh checks the run keys and their choices.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# ---- Errors of writing the help text. ----

for words in "help" "--help" "train --help" "--version" "--version --json"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds several words.
    bounded "$HEARSAY" $words >/dev/full 2>full.err
    code=$?
    check "hearsay $words on a full disk: 1, and the reason" \
        [ "$code" = 1 -a "$(grep -c "cannot write to stdout: No space left on device" full.err)" = 1 ]
done

# ---- Defaults in the help text. ----

# Writes a line (command, option, default) for each option whose help gives a default.
python3 - "$HEARSAY" >defaults.txt <<'PY'
import re, subprocess, sys
def out(*args):
    return subprocess.run([sys.argv[1], *args], capture_output=True, text=True, check=True).stdout
for command in re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", out("--help"), re.M):
    text = re.sub(r"\n {20,}", " ", out(*command.split(), "--help", "all"))
    for name, about in re.findall(r"^  (?:-., )?--([a-z0-9-]+) (.*)$", text, re.M):
        default = re.search(r"\((?:run; )?default ([^;()]+); HEARSAY_", about)
        if default:
            print(command, name, default.group(1), sep="\t")
PY
check "help shows $(wc -l <defaults.txt) defaults, of $(cut -f 1 defaults.txt | sort -u | wc -l) commands" \
    [ "$(wc -l <defaults.txt)" -gt 150 -a "$(cut -f 1 defaults.txt | sort -u | wc -l)" -ge 10 ]
bad=
while IFS=$'\t' read -r command name default; do
    bounded "$HEARSAY" $command "--$name=$default" --help >default.out 2>default.err || bad="$bad $command --$name"
done <defaults.txt
check "each default is a value that its option takes$bad" [ -z "$bad" ]

# --print-config prints the defaults as comments. A default in such a comment may have quotes.
bad=
for command in train local peer sim; do
    key=()
    [ "$command" != peer ] || key=(--key none.key)
    bounded "$HEARSAY" "$command" "${key[@]}" --print-config 2>print.err | sed -nE 's/^# ([a-z0-9-]+) = "?([^"]*)"?$/\1\t\2/p' | sort >"printed.$command"
    awk -F '\t' -v c="$command" '$1 == c { print $2 "\t" $3 }' defaults.txt | sort >"helped.$command"
    [ -s "printed.$command" ] && cmp -s "printed.$command" "helped.$command" || bad="$bad $command: $(diff "printed.$command" "helped.$command" | grep '^[<>]' | head -n 3 | paste -sd' ')"
done
check "--help and --print-config have the same defaults$bad" [ -z "$bad" ]

# ---- Lists of values in the help text. ----

# listed COMMAND OPTION: prints the help of an option, or of an operand, in one line.
listed()
{
    "$HEARSAY" "$1" --help all | awk -v want="$2" '
        /^  [^ ]/ { on = ($1 == want) }
        /^[^ ]/ { on = 0 }
        on { sub(/^ +/, ""); printf "%s ", $0 }'
}

# taken COMMAND FLAG VALUE...: checks that FLAG accepts each VALUE, and refuses "nonesuch".
taken()
{
    local command=$1 flag=$2 value bad=
    shift 2
    for value; do
        bounded "$HEARSAY" "$command" "--$flag" "$value" --help >taken.out 2>taken.err || bad="$bad $value"
    done
    ! bounded "$HEARSAY" "$command" "--$flag" nonesuch --help >taken.out 2>taken.err || bad="$bad nonesuch"
    check "$command --$flag takes $* and not nonesuch$bad" [ -z "$bad" ]
}

# words TEXT: prints the specs in a help text, with numbers instead of the placeholders P, K, A, B and RxC.
words()
{
    sed -E 's/:A,B/:A+B/; s/:K,P/:K+P/' <<<"$1" | tr ' ,;()' '\n' | sed -E 's/\.+$//; s/:A\+B$/:3,5/; s/:K\+P$/:4,0.1/; s/:P$/:0.3/; s/:(RxC)$/:2x4/; s/:BITS$/:4/; s/:SHARE/:0.1/; s/\+qsgd:BITS$/+qsgd:4/; s/:ALPHA$/:0.3/; s/:[KNR]$/:3/'
}

printf '0 1\n1 2\n' >edges.txt
mapfile -t models < <(words "$(listed sim --model)" | grep -xE '[a-z]+[0-9]*(:[0-9x-]+|:bn)?|logreg' | grep -E '^(logreg|mlp|lenet5|vgg11|resnet|lstm|gpt)' | sort -u)
taken sim model "${models[@]}"
check "  that is ${#models[@]} models" [ "${#models[@]}" = 10 ]
families='(ring|path|star|trees?|grid|torus|hypercube|exponential|bipartite|complete|regular|er|small-world|base|one-peer-exponential|rotation|matching|edges)(:.*)?'
mapfile -t graphs < <(words "$(listed sim --topology)" | sed 's/^edges:FILE$/edges:edges.txt/' | grep -xE "$families" | sort -u)
taken sim topology "${graphs[@]}"
check "  that is ${#graphs[@]} graphs" [ "${#graphs[@]}" = 19 ]
mapfile -t codecs < <(words "$(listed sim --compress)" | grep -xE '(auto|none|fp16|sign|(qsgd|topk|randk):[0-9.]+(\+qsgd:4)?)' | sort -u)
taken sim compress "${codecs[@]}"
check "  that is ${#codecs[@]} codecs" [ "${#codecs[@]}" -ge 7 ]
mapfile -t codecs < <("$HEARSAY" compressors --params 100 --json | python3 -c 'import json, sys; print(*(c["spec"] for c in json.load(sys.stdin)["compressors"]), sep="\n")')
taken local compress "${codecs[@]}"
check "  which are the ${#codecs[@]} of hearsay compressors" [ "${#codecs[@]}" -ge 20 ]
taken sim partition iid dirichlet:0.3 label:3 file
taken sim augment none crop flip crop+flip
taken sim data glyphs mnist:DIR idx:DIR cifar10:DIR cifar100:DIR libsvm:FILE csv:FILE text:FILE
taken peer policy sync async ssp:3

bad=
n=0
for graph in $(words "$(listed topology SPEC)" | sed 's/^edges:FILE$/edges:edges.txt/' | grep -xE "$families" | sort -u); do
    n=$((n + 1))
    bounded "$HEARSAY" topology "$graph" >graph.out 2>graph.err || bad="$bad $graph"
done
check "topology describes each of the $n graphs that its help names$bad" [ -z "$bad" -a "$n" -ge 23 ]

bad=
n=0
for kind in $(listed sim --attack | sed 's/.*Byzantine attack: //; s/; WHO: .*//' | tr -d ',' | sed 's/ or / /'); do
    n=$((n + 1))
    bounded "$HEARSAY" sim --peers 4 --topology complete --model logreg --rounds 1 --final-drift 0 --attack "$kind" >attack.out 2>attack.err || bad="$bad $kind"
done
check "sim plays each of the $n attacks that its help names$bad" [ -z "$bad" -a "$n" -ge 10 ]
! bounded "$HEARSAY" sim --peers 4 --model logreg --rounds 1 --attack nonesuch >attack.out 2>attack.err
check "  and no other" [ $? = 0 ]

bad=
for command in $("$HEARSAY" --help | sed -nE 's/^  ([a-z]+)  +.*/\1/p'); do
    for flag in $("$HEARSAY" "$command" --help all | sed -nE 's/^  (-., )?(--[a-z0-9-]+) (N|X|SECONDS|T|F|P|K|H)( .*)?$/\2/p'); do
        ! bounded "$HEARSAY" "$command" "$flag=nonesuch" --help >number.out 2>number.err && [ "$(wc -l <number.err)" = 1 ] || bad="$bad $command $flag"
    done
done
check "what takes a number takes no word$bad" [ -z "$bad" ]

# ---- Fields of --json. ----

page=$root/peer/docs/json.md
fields()
{
    check "every field that the page names of $1 --json is there" python3 "$root/tests/e2e/fields.py" "$page" "$@"
}

# json NAME ARGS...: runs hearsay ARGS --json and stores the output in the file NAME.
json()
{
    local to=$1 code
    shift
    bounded "$HEARSAY" "$@" --json >"$to" 2>json.err </dev/null
    code=$?
    [ "$code" = 0 ] && [ -s "$to" ] || not_ok "hearsay $* --json: exit code $code: $(head -n 1 json.err)"
}

python3 "$root/tests/e2e/idx.py" digits 200 100
yes 'a small text, over and over. ' | head -n 200 >words.txt
json train.1 train --model logreg --data mnist:digits --batch 4 --lr 0.001 --rounds 4 --out train
json train.2 train --model lstm:4 --data text:words.txt,context=16 --batch 4 --rounds 4 --out text
fields train train.1 train.2
json eval.1 eval train/model.safetensors --data mnist:digits
json eval.2 eval text/model.safetensors --data text:words.txt,context=16
fields eval eval.1 eval.2
json inspect.1 inspect train/model.safetensors
fields inspect inspect.1
json topology.1 topology ring --model logreg --compress qsgd:4
json topology.2 topology base:1 --peers 8 --model logreg
json topology.3 topology ring --model logreg
fields topology topology.1 topology.2 topology.3
json compressors.1 compressors --params 1000 --compress "none qsgd:4" --measure --bandwidth 1Gbit
fields compressors compressors.1
json local.1 local --peers 2 --model logreg --data mnist:digits --batch 4 --rounds 6 --out local
fields local local.1
json sim.1 sim --peers 2 --model logreg --data mnist:digits --batch 4 --rounds 6 --out sim
fields sim sim.1

check "keygen" eval '"$HEARSAY" key new key 2>keygen.err'
read -ra port < <(free_ports 2)
for i in 0 1; do
    start "peer-$i" "$HEARSAY" peer --name "p$i" --listen "127.0.0.1:${port[i]}" --bootstrap "127.0.0.1:${port[0]},127.0.0.1:${port[1]}" \
        --key key --model logreg --data mnist:digits --batch 4 --shard "$((i + 1))/2" --min-peers 2 --rounds 1000000 --bandwidth off --out "p$i" --json
    peer[i]=$started
done
check "two peers train" wait_until 30 round_at_least p0/metrics.jsonl 200
json status.1 status --bootstrap "127.0.0.1:${port[0]}" --key key
json drift.1 drift --exact --bootstrap "127.0.0.1:${port[0]}" --key key
json drift.2 drift --watch --layers --count 1 --bootstrap "127.0.0.1:${port[0]}" --key key
fields drift drift.1 drift.2
json probe.1 probe "127.0.0.1:${port[0]}" --key key
fields probe probe.1
kill -TERM "${peer[@]}"
for i in 0 1; do
    finish "${peer[i]}" 30
done
tail -n 1 peer-0.out | cat - <(sed -n 3,4p peer-0.out) >peer.1
fields peer peer.1

# Starts a peer that waits for a second member, for the fields of commands that ask a peer.
start lone "$HEARSAY" peer --name lone --listen "127.0.0.1:${port[0]}" --bootstrap "127.0.0.1:${port[0]}" \
    --key key --model logreg --data mnist:digits --min-peers 2 --rounds 10 --out lone
gathers() { "$HEARSAY" status --bootstrap "127.0.0.1:${port[0]}" --key key --json >status.2 2>status.err && grep -q '"here"' status.2; }
check "one waits for a second" wait_until 30 gathers
kill -TERM "$started"
finish "$started" 30
fields status status.1 status.2

e2e_end
