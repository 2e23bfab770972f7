#!/usr/bin/env bash
# tests/lint_docs.sh -- checks the pages (*.md) against the program and the tree.
#
#   HEARSAY=build/release/hearsay tests/lint_docs.sh [ROOT]
#
# The checks:
#
#   - each flag of --help is named on some page
#   - each hearsay command in a code block has valid options
#   - each relative link and anchor has a target
#   - the manual page and the pages that deploy/man generates are up to date
#   - each field of --json output is named on some page
#   - README.md is short
#   - deploy/compose.yml passes all options of `hearsay peer`
#   - git and docker ignore the files that the commands of the pages make
#
# Prints each violation on one line. Exit code 1: there is a violation.
set -u
export LC_ALL=C
root=$(cd "${1:-$(dirname "$0")/..}" && pwd) || exit 1
HEARSAY=$(realpath -m "${HEARSAY:-$root/build/release/hearsay}")
longest=150 # Largest number of lines of README.md.
bad=0

if [ ! -x "$HEARSAY" ]; then
    echo "skipped: there is no $HEARSAY"
    exit 77
fi
cd "$root" || exit 1
for variable in $(compgen -e | grep '^HEARSAY_'); do
    unset "$variable" # The caller's HEARSAY_* variables are removed, because they would set options.
done
mapfile -t pages < <(find . -name .git -prune -o -name build -prune -o -name _CPack_Packages -prune -o -name shared -prune \
    -o -name '*.md' -printf '%P\n' | sort)

complain()
{
    printf '%s\n' "$*"
    bad=1
}

# prose PAGE: prints the lines of a page that are outside of code blocks.
prose()
{
    awk '/^```/ { block = !block; next } !block' "$1"
}

# anchors PAGE: prints the anchors of the headings of a page: lower case, hyphens instead of blanks, no
# punctuation.
anchors()
{
    prose "$1" | sed -nE 's/^#{1,6} +//p' | tr 'A-Z ' 'a-z-' | tr -d '][!"#$%&'\''()*+,./:;<=>?@\\^`{|}~'
}

# commands_of PAGE: prints the hearsay commands in code blocks, without comments, pipes and redirections, one per line. Omits
# commands with placeholders, such as FILE or "...".
commands_of()
{
    awk '
        /^```/ { block = !block; next }
        block {
            sub(/^\$ /, "")
            while (sub(/\\$/, "")) { if ((getline more) <= 0) break; $0 = $0 more }
            sub(/ *[#|>&;].*/, "")
            if ($1 == "hearsay" && $2 != "" && $2 !~ /^[-A-Z]|:$/ && $0 !~ /\.\.\./) print
        }' "$1"
}

check_flags()
{
    local command flag
    local commands
    mapfile -t commands < <("$HEARSAY" --help | sed -nE 's/^  ([a-z]+( [a-z]+)?)  +.*/\1/p')
    [ ${#commands[@]} -gt 0 ] || complain "hearsay --help names no command"
    for command in "${commands[@]}"; do
        grep -qE "hearsay $command\b" "${pages[@]}" || complain "no page shows: hearsay $command"
        # shellcheck disable=SC2086 # Unquoted, because $command has one or two words.
        for flag in $("$HEARSAY" $command --help all | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u | grep -vxe --help); do
            grep -qE -- "$flag([^a-z0-9-]|\$)" "${pages[@]}" || complain "no page names $flag (of hearsay $command)"
        done
    done
}

# Runs each command of the pages with --help added, because hearsay checks all flags before it
# prints the help.
check_commands()
{
    local page line words message
    for page in "${pages[@]}"; do
        while IFS= read -r line; do
            read -ra words <<<"$line"
            message=$("$HEARSAY" "${words[@]:1}" --help 2>&1 >/dev/null) \
                || complain "$page: does not parse: $line: $message"
        done < <(commands_of "$page")
    done
}

# check_link PAGE TARGET: checks that the target of a link exists: a path, a path with an anchor, or an anchor of PAGE.
check_link()
{
    local page=$1 path=${2%%#*} anchor=
    [[ $2 != *'#'* ]] || anchor=${2#*#}
    if [ -n "$path" ]; then
        path=$(realpath -m --relative-to=. "$(dirname "$page")/$path")
    else
        path=$page
    fi
    if [ ! -e "$path" ]; then
        complain "$page: there is no $2"
        return
    fi
    [ -z "$anchor" ] || anchors "$path" | grep -qxF -e "$anchor" || complain "$page: $path has no heading $anchor"
}

check_links()
{
    local page target
    for page in "${pages[@]}"; do
        while IFS= read -r target; do
            check_link "$page" "$target"
        done < <(prose "$page" | grep -oE '\]\([^) ]+\)' | sed -E 's/^..//; s/.$//' | grep -vE '^[a-z]+:' | sort -u)
    done
}

check_manual()
{
    local difference
    difference=$(HEARSAY=$HEARSAY deploy/man --print 2>&1 | diff deploy/hearsay.1 - 2>&1) \
        || complain "deploy/hearsay.1 differs from the help of the program: run deploy/man"$'\n'"$(head -n 6 <<<"$difference")"
    difference=$(HEARSAY=$HEARSAY deploy/man --flags 2>&1 | diff peer/docs/flags.md - 2>&1) \
        || complain "peer/docs/flags.md differs from the help of the program: run deploy/man"$'\n'"$(head -n 6 <<<"$difference")"
    difference=$(HEARSAY=$HEARSAY deploy/man --timers 2>&1 | diff peer/docs/timers.md - 2>&1) \
        || complain "peer/docs/timers.md differs from the table in peer/node/timers.h: run deploy/man"$'\n'"$(head -n 6 <<<"$difference")"
    difference=$(HEARSAY=$HEARSAY deploy/man --fields 2>&1 | diff peer/docs/json.md - 2>&1) \
        || complain "peer/docs/json.md differs from hearsay fields: run deploy/man"$'\n'"$(head -n 6 <<<"$difference")"
    difference=$(HEARSAY=$HEARSAY deploy/man --python 2>&1 | diff peer/api/python/hearsay/figures.py - 2>&1) \
        || complain "peer/api/python/hearsay/figures.py differs from hearsay fields: run deploy/man"$'\n'"$(head -n 6 <<<"$difference")"
}

# Checks that the pages name each field of --json. Short runs are enough, because they print the same fields as long ones.
# tests/e2e checks the fields of commands that need a cluster.
check_fields()
{
    local directory field command
    directory=$(mktemp -d) || exit 1
    "$HEARSAY" train --model logreg --rounds 2 --out "$directory" --json >"$directory/train.json" 2>/dev/null
    "$HEARSAY" eval "$directory/model.safetensors" --json >"$directory/eval.json" 2>/dev/null
    "$HEARSAY" sim --model logreg --peers 2 --rounds 2 --json >"$directory/sim.json" 2>/dev/null
    "$HEARSAY" topology ring --model lenet5 --json >"$directory/topology.json" 2>/dev/null
    "$HEARSAY" compressors --params 1000 --json >"$directory/compressors.json" 2>/dev/null
    for command in train eval sim topology compressors; do
        [ -s "$directory/$command.json" ] || complain "hearsay $command --json prints nothing"
        for field in $(grep -oE '"[A-Za-z0-9_-]+" *:' "$directory/$command.json" | tr -d '": ' | sort -u); do
            grep -qF "\`$field\`" "${pages[@]}" || complain "no page names the field $field (of hearsay $command --json)"
        done
    done
    rm -rf "$directory"
}

# Checks that compose.yml passes each environment variable that `hearsay peer` reads, and no other variable.
check_compose()
{
    local line
    while IFS= read -r line; do
        case $line in
        '<'*) complain "deploy/compose.yml: add the line \`     ${line#<}:\`: it is an option of hearsay peer" ;;
        '>'*) complain "deploy/compose.yml:${line#>} is no option of hearsay peer: remove it" ;;
        esac
    done < <(diff <("$HEARSAY" peer --help all | tr '\n' ' ' | grep -oE 'HEARSAY_[A-Z0-9_]+' | grep -vx HEARSAY_OUT | sort -u) \
        <(sed -nE 's/^ +(HEARSAY_[A-Z0-9_]+):.*/\1/p' deploy/compose.yml | sort) | grep '^[<>]')
}

# Checks that git and docker ignore the keys and directories that the commands of the pages make in a checkout.
check_ignored()
{
    local page file directory
    command -v git >/dev/null || return
    directory=$(mktemp -d) || exit 1
    git init -q "$directory" && cp .gitignore "$directory" || complain "git cannot read .gitignore"
    while IFS= read -r file; do
        git -C "$directory" check-ignore -q "$file" || complain ".gitignore: found no rule for $file, which a command of the pages makes"
    done < <({ for page in "${pages[@]}"; do commands_of "$page"; done \
            | sed -nE 's/^hearsay key new ([^/ ][^ ]*).*/\1/p; s/^hearsay .*--out ([^/ ][^ ]*).*/\1\/file/p'
        # Files of README.md and of peer/docs/pytorch.md.
        printf '%s\n' train.py a/model.safetensors b/model.safetensors venv/pyvenv.cfg
        printf '%s\n' out/peer-0/identity.key ring/identity.key hearsay-1234/cluster.key hearsay-1234/rank-0/model.safetensors hearsay_0.1.0_amd64.deb
    } | sort -u)
    # Secret and built files must be excluded in every folder. (For files directly in the checkout,
    # `*` and `!folder` in .dockerignore do this already.)
    for file in '*.key' 'hearsay-*' '*.so'; do
        grep -qxF "**/$file" .dockerignore || complain ".dockerignore: has no line **/$file"
    done
    rm -rf "$directory"
}

check_length()
{
    local lines
    lines=$(wc -l <README.md)
    [ "$lines" -le "$longest" ] || complain "README.md: $lines lines, expected $longest at most"
}

check_flags
check_commands
check_links
check_manual
check_fields
check_compose
check_ignored
check_length
exit $bad
