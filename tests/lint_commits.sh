#!/usr/bin/env bash
# tests/lint_commits.sh -- checks the form of commit messages: "folder: summary", at most 72 characters, with a body.
#
#   tests/lint_commits.sh          checks all commits from the first one that follows the rule ($first)
#   tests/lint_commits.sh FILE     checks one message, for use as .git/hooks/commit-msg
#
# Prints each violation. Exit code 1: there is a violation. 77: this is no git checkout.
set -u
export LC_ALL=C.UTF-8
first='docs: rewrite README, add contributing, security and CI files' # The first commit that follows the rule.
bad=0

complain()
{
    printf '%s\n' "$*"
    bad=1
}

# check_message NAME: checks the commit message on stdin. NAME identifies the commit in the output.
check_message()
{
    local name=$1 subject second body
    IFS= read -r subject
    IFS= read -r second
    body=$(grep -v '^#')
    [ ${#subject} -le 72 ] || complain "$name: the subject has ${#subject} characters, expected 72 at most: $subject"
    [[ $subject =~ ^[a-zA-Z0-9._/*,\ -]+:\ [^A-Z\ ].*[^.]$ ]] || complain "$name: found the subject '$subject', expected 'folder: summary'"
    [ -z "$second" ] || complain "$name: the second line is not empty"
    [ -n "$body" ] || complain "$name: there is no body that says why: $subject"
}

if [ $# = 1 ]; then
    check_message "$1" <"$1"
    exit $bad
fi
cd "$(dirname "$0")/.." || exit 1
if ! command -v git >/dev/null || ! git rev-parse HEAD >/dev/null 2>&1; then
    echo "skipped: this is no git checkout"
    exit 77
fi
since=$(git log --format='%H %s' | awk -v s="$first" 'substr($0, 42) == s { print $1; exit }')
[ -n "$since" ] || { echo "skipped: the history does not reach back to '$first'"; exit 77; }
while read -r commit; do
    [ "$(git rev-list --parents -n 1 "$commit" | wc -w)" = 2 ] || complain "${commit:0:10}: found a merge commit, expected a rebase"
    check_message "${commit:0:10}" < <(git log -1 --format=%B "$commit")
done < <(git rev-list "$since..HEAD")
exit $bad
