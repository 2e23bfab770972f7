#!/usr/bin/env bash
# tests/lint_docs.sh -- README and program say the same: every flag that --help
# names is in README, and every command in README's code blocks parses.
#
#   HEARSAY=build/release/hearsay tests/lint_docs.sh [README]
set -u
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
readme=${1:-$root/README.md}
HEARSAY=${HEARSAY:-$root/build/release/hearsay}
bad=0

for need in "$readme" "$HEARSAY"; do
    if [ ! -e "$need" ]; then
        echo "skipped: there is no $need"
        exit 77
    fi
done

complain()
{
    echo "$*"
    bad=1
}

commands=$("$HEARSAY" --help | sed -nE 's/^  ([a-z]+) .*/\1/p')
[ -n "$commands" ] || complain "hearsay --help names no command"
for command in $commands; do
    grep -qE "hearsay $command\b" "$readme" || complain "README does not show: hearsay $command"
    for flag in $("$HEARSAY" "$command" --help | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u | grep -vxe --help); do
        grep -qE -- "$flag([^a-z0-9-]|\$)" "$readme" || complain "README does not name $flag (of hearsay $command)"
    done
done

# A line of a code block that begins with "hearsay": cut at a comment, pipe or
# redirection, and asked for its help, which comes after all has been checked.
while IFS= read -r line; do
    read -ra words <<<"$line"
    message=$("$HEARSAY" "${words[@]:1}" --help 2>&1 >/dev/null) \
        || complain "README's command does not parse: $line: $message"
done < <(awk '
    /^```/ { block = !block; next }
    block {
        sub(/^\$ /, "")
        while (sub(/\\$/, "")) { if ((getline more) <= 0) break; $0 = $0 more }
        sub(/ *[#|>&;].*/, "")
        if ($1 == "hearsay" && $2 != "" && $2 !~ /^[-A-Z]/ && $0 !~ /\.\.\./) print
    }' "$readme")

exit $bad
