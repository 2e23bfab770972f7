#!/usr/bin/env bash
# tests/e2e/settings.sh -- checks what --help says about options, and that a wrong option is reported in one line.
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
    check "$text" eval '[ "$code" = 2 ] && [ ! -s refused.out ] && [ "$(wc -l <refused.err)" = 1 ] && grep -qE -- "$pattern" refused.err'
}

# ---- Suggestions for misspelled values. ----

while read -r flag value meant; do
    refused "$flag $value: was it $meant?" ", did you mean $meant\\?" sim "--$flag" "$value"
done <<'END'
topology rign ring
topology torus3x3 torus:3x3
topology ring5 ring
final-topology base4 base:4
model resnet20 resnet:20
model lenet lenet5
model gtp:4x128 gpt:4x128
compress topk0.1 topk:0.1
compress tpok:0.1+qsgd:4 topk:0.1
compress topk:0.1+qsdg:4 qsgd:4
compress atuo auto
final-compress fp61 fp16
data mnits:DIR mnist:DIR
partition dirichelt:0.1 dirichlet:0.1
augment corp crop
policy asinc async
policy ssp ssp:N
optimiser SGD sgd
gamma atuo auto
local-steps Auto auto
shard splt split
END
refused "a flag" 'unknown flag --topolgy, did you mean --topology\?' sim --topolgy ring
HEARSAY_POLICY=snyc bounded "$HEARSAY" sim >env.out 2>env.err </dev/null
code=$?
check "a value from the environment is named so" eval '[ "$code" = 2 ] && grep -q "^hearsay sim: HEARSAY_POLICY: .*, did you mean sync?" env.err'
refused "nothing is near: nothing is proposed" "found 'quux', expected .* edges:FILE \\(see" sim --topology quux

# ---- Options that contradict each other. ----

refused "rounds and epochs" '^hearsay local: --rounds and --epochs contradict each other' local --rounds 5 --epochs 3
refused "a torus of another size" '^hearsay local: --topology: torus:3x3 is for 9 peers, but --peers is 8' local --topology torus:3x3 --peers 8
refused "  as graph of the consensus phase, too" '^hearsay sim: --final-topology: torus:3x3 is for 9 peers, but --peers is 4' sim --final-topology torus:3x3 --peers 4
printf '0 1\n1 2\n2 3\n3 0\n' >square.txt
check "  which may be a file of edges" bounded "$HEARSAY" sim --peers 4 --rounds 2 --final-topology edges:square.txt
refused "  a file that is not there is named" '^hearsay sim: --final-topology: none.txt: ' sim --final-topology edges:none.txt --peers 4
refused "a norm without norms" '^hearsay train: --norm: only with a --model that has normalisation layers' train --model logreg --norm group
refused "a flag of another mixer" '^hearsay sim: --error-feedback: only with --mixer average' sim --error-feedback false
refused "peers and minimum" '^hearsay sim: .*--min-peers' sim --peers 4 --min-peers 5

# ---- Choices and defaults in --help. ----

# Each choice that --help lists is accepted, and a choice that it does not list is refused. Giving a default
# explicitly must not change the run.
python3 - "$HEARSAY" >help.txt <<'PY'
import re, subprocess, sys
# Options that a run key needs: the program refuses the key without them. "-": the key is not tested, because its models
# train too long.
WITH = {"norm": "-", "error-feedback": "--mixer average", "factor-masking": "--mixer average",
        "collective": "--mixer allreduce", "centre-momentum": "--mixer sma",
        "beta2": "--optimiser adam", "learner-momentum": "--learners 2", "post-local": "--local-steps 2", "one-step-last": "--local-steps 2", "max-pull": "--byzantine 1 --topology complete --peers 5"}
for command in "train", "local", "sim", "peer":
    text = subprocess.run([sys.argv[1], command, "--help", "all"], capture_output=True, text=True, check=True).stdout
    text = re.sub(r"\n {20,}", " ", text)
    for name, arg, about in re.findall(r"^  --([a-z0-9-]+) (\S+) +(.*)$", text, re.M):
        default = re.search(r"\((?:run; )?default ([^;)]+); HEARSAY_", about)
        where = "run" if "(run; " in about else "own"
        print(command, where, name, arg, default.group(1) if default else "-", WITH.get(name, ""), sep="\t")
PY
check "--help lists the options of a run" [ "$(awk -F '\t' '$2 == "run"' help.txt | wc -l)" -gt 90 ]

# Values are tested together with --help: the command checks the value first, and then only prints its help.
while IFS=$'\t' read -r command _ name arg _ _; do
    [[ $arg =~ ^[a-z0-9]+(\|[a-z0-9:N]+)+$ ]] || continue
    bad=
    for value in ${arg//|/ }; do
        bounded "$HEARSAY" "$command" "--$name" "${value/:N/:3}" --help >/dev/null 2>choice.err || bad="$bad $value"
    done
    ! bounded "$HEARSAY" "$command" "--$name" nonesuch --help >/dev/null 2>choice.err || bad="$bad nonesuch"
    check "$command --$name takes $arg and nothing else$bad" [ -z "$bad" ]
done < <(sort -t $'\t' -k 3,3 -u help.txt)

# run_of FLAGS...: prints the run.txt of a simulation of two peers and two rounds. `sim` is used because it has all run keys.
run_of()
{
    rm -rf of
    bounded "$HEARSAY" sim --peers 2 --rounds 2 "$@" --out of >of.out 2>of.err </dev/null
    cat of/run.txt 2>/dev/null
}

# One command gives all defaults explicitly. Keys that need another option (see WITH above) get a
# command of their own.
defaults=()
while IFS=$'\t' read -r command where name _ default with; do
    [ "$command" = sim ] && [ "$where" = run ] && [ "$default" != - ] || continue
    if [ -z "$with" ]; then
        defaults+=("--$name=$default")
    elif [ "$with" != - ]; then
        # shellcheck disable=SC2086
        [ "$(run_of $with --model logreg --batch 2)" = "$(run_of $with --model logreg --batch 2 "--$name=$default")" ] && [ -s of/run.txt ]
        check "--$name $default is the default" [ $? = 0 ]
    fi
done <help.txt
plain=$(run_of)
check "a run's text is found" grep -q '^topology=ring$' <<<"$plain"
check "the ${#defaults[@]} defaults of --help are the defaults" [ ${#defaults[@]} -gt 20 -a "$(run_of "${defaults[@]}")" = "$plain" ]
check "another value is another run" [ "$(run_of --gamma 0.5)" != "$plain" ]

# ---- Reading and writing --config files. ----

# prints NAME ARGS...: stores the output of hearsay ARGS --print-config in the file NAME.
prints()
{
    local to=$1
    shift
    bounded "$HEARSAY" "$@" --print-config >"$to" 2>print.err </dev/null
    check "$1 --print-config ends with 0, and does nothing else" [ $? = 0 -a -s "$to" -a ! -e of ]
}

printf '0 1\n1 0\n' >edges.txt
python3 "$root/tests/e2e/idx.py" 'digits "of # mine' 60 20
given=(--model mlp:784-16-10 --batch 4 --lr 0.05 --compress "topk:0.1+qsgd:4" --topology edges:edges.txt
    --data 'mnist:digits "of # mine' --nesterov false --warmup auto --step-us 100)
wanted=$(run_of "${given[@]}")
rm -rf of
prints printed sim --peers 2 --rounds 2 "${given[@]}"
bounded "$HEARSAY" sim --config printed --out of >of.out 2>of.err </dev/null
check "what --print-config prints makes the same run" [ $? = 0 -a -n "$wanted" -a "$(cat of/run.txt)" = "$wanted" ]
rm -rf of
prints again sim --config printed
check "and prints itself again" cmp -s printed again
check "it is TOML" python3 -c '
import sys
try:
    import tomllib
except ImportError:
    sys.exit(0)
j = tomllib.load(open("printed", "rb"))
assert j["lr"] == 0.05 and j["data"] == "mnist:digits \"of # mine" and j["rounds"] == 2, j
'
for command in train local peer; do
    key=()
    [ "$command" != peer ] || key=(--key cluster.key)
    prints "$command.toml" "$command" --model logreg --rounds 3 --json "${key[@]}"
    prints again "$command" --config "$command.toml"
    check "$command: its settings come back" eval 'cmp -s "$command.toml" again && grep -qx "json = true" again'
done
sed -i 's/^# batch = .*/batch = 7/' printed
HEARSAY_LR=0.25 prints won sim --config printed --model logreg
check "the command line wins over the environment, and that over the file" eval \
    'grep -qx "model = \"logreg\"" won && grep -qx "lr = 0.25" won && grep -qx "batch = 4" won'
prints epochs sim --config printed --epochs 2
check "a rival on the command line hides the file's" eval 'grep -qx "epochs = 2" epochs && ! grep -q "^rounds" epochs'

# wrong TEXT LINES PATTERN: a --config file with these lines is refused with a message that matches PATTERN.
wrong()
{
    printf '%b' "$2" >wrong.toml
    refused "a file with $1" "^hearsay sim: $3" sim --config wrong.toml
}
wrong "a name that nobody knows" 'lr = 1\n\ntopolgy = ring\n' 'wrong.toml line 3: unknown flag --topolgy, did you mean --topology\?'
wrong "a flag of another command" 'listen = "fd:3"\n' 'wrong.toml line 1: --listen is a flag of hearsay peer only'
wrong "a bad value" '# x\npeers = many\n' "wrong.toml line 2: --peers: found 'many', expected a whole number"
wrong "a mistyped choice" 'policy = "snyc"\n' "wrong.toml line 1: --policy: .*, did you mean sync\\?"
wrong "a name twice" 'lr = 1\nlr = 1\n' 'wrong.toml line 2: --lr is set twice: line 1 sets it, too'
wrong "a section" '[run]\nlr = 1\n' 'wrong.toml line 1: found a section'
wrong "a word alone" 'lr\n' 'wrong.toml line 1: expected name = value'
wrong "no value" 'lr = # none\n' 'wrong.toml line 1: expected a value'
wrong "half a quote" 'model = "logreg\n' 'wrong.toml line 1: found no quote at the end'
wrong "text behind a quote" 'model = "logreg" x\n' 'wrong.toml line 1: expected nothing after'
wrong "itself" 'config = wrong.toml\n' 'wrong.toml line 1: --config: only allowed on the command line'
wrong "rivals" 'rounds = 1\nepochs = 1\n' '--rounds and --epochs contradict each other'
wrong "control characters" 'lr\x1b[2J = 1\n' 'wrong.toml line 1: found a control character'
wrong "a NUL" 'lr = 1\0\n' '--config: wrong.toml: found a NUL byte'
refused "no file" '--config: gone.toml: cannot open: No such file' sim --config gone.toml
refused "a directory" '--config: /: found a directory' sim --config /
head -c 40000 /dev/zero | tr '\0' '#' >long.toml
refused "a file that is too long" '--config: long.toml: found more than 32767 bytes' sim --config long.toml

e2e_end
