#!/usr/bin/env bash
# tests/e2e/settings.sh -- what --help says of options is so, and a mistake is told in one line.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# refused TEXT PATTERN ARGS...: exit code 2, and one line that fits the pattern.
refused()
{
    local text=$1 pattern=$2 code
    shift 2
    bounded "$HEARSAY" "$@" >refused.out 2>refused.err </dev/null
    code=$?
    check "$text" eval '[ "$code" = 2 ] && [ ! -s refused.out ] && [ "$(wc -l <refused.err)" = 1 ] && grep -qE -- "$pattern" refused.err'
}

# ---- What was meant. ----

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
skew dirichelt:0.1 dirichlet:0.1
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
refused "nothing is near: nothing is proposed" "found 'grid', expected .* edges:\\.\\.\\. \\(see" sim --topology grid

# ---- Contradictions. ----

refused "rounds and epochs" '^hearsay local: --rounds and --epochs contradict each other' local --rounds 5 --epochs 3
refused "a torus of another size" '^hearsay local: --topology: torus:3x3 is for 9 peers, but --peers is 8' local --topology torus:3x3 --peers 8
refused "a norm without norms" '^hearsay train: --norm: only with a --model that has norms' train --model logreg --norm group
refused "a flag of another mixer" '^hearsay sim: --error-feedback: only with --mixer average' sim --error-feedback false
refused "peers and minimum" '^hearsay sim: .*--min-peers' sim --peers 4 --min-peers 5

# ---- What --help prints is so. ----

# Choices: each that is listed is taken, one that is not is refused; and a default that is given is
# the default: the run stays what it is.
python3 - "$HEARSAY" >help.txt <<'PY'
import re, subprocess, sys
# What a key goes with, where it is of some runs only; - is a model that takes too long here.
WITH = {"norm": "-", "error-feedback": "--mixer average", "factor-masking": "--mixer average",
        "beta2": "--optimiser adam", "pull": "--tolerate 1 --topology complete --peers 5"}
for command in "train", "local", "sim", "peer":
    text = subprocess.run([sys.argv[1], command, "--help"], capture_output=True, text=True, check=True).stdout
    text = re.sub(r"\n {20,}", " ", text)
    run = text.index("\nthe run")
    for at, name, arg, about in ((m.start(), *m.groups()) for m in re.finditer(r"^  --([a-z0-9-]+) (\S+) +(.*)$", text, re.M)):
        default = re.search(r"\(default ([^;)]+); HEARSAY_", about)
        where = "run" if at > run else "own"
        print(command, where, name, arg, default.group(1) if default else "-", WITH.get(name, ""), sep="\t")
PY
check "--help lists the options of a run" [ "$(awk -F '\t' '$2 == "run"' help.txt | wc -l)" -gt 90 ]

# A choice is checked before --help, which ends the command before it does anything.
while IFS=$'\t' read -r command _ name arg _ _; do
    [[ $arg =~ ^[a-z0-9]+(\|[a-z0-9:N]+)+$ ]] || continue
    bad=
    for value in ${arg//|/ }; do
        bounded "$HEARSAY" "$command" "--$name" "${value/:N/:3}" --help >/dev/null 2>choice.err || bad="$bad $value"
    done
    ! bounded "$HEARSAY" "$command" "--$name" nonesuch --help >/dev/null 2>choice.err || bad="$bad nonesuch"
    check "$command --$name takes $arg and nothing else$bad" [ -z "$bad" ]
done < <(sort -t $'\t' -k 3,3 -u help.txt)

# The run that flags make of two rounds of two peers. `train` has fewer keys than `sim`, which has all.
run_of()
{
    rm -rf of
    bounded "$HEARSAY" sim --peers 2 --rounds 2 "$@" --out of >of.out 2>of.err </dev/null
    cat of/run.txt 2>/dev/null
}

# All defaults at once, then each that needs another key beside it.
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

e2e_end
