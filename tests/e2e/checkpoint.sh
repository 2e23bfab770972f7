#!/usr/bin/env bash
# tests/e2e/checkpoint.sh -- a process that writes checkpoints is killed at each of its system calls in turn. The next
# process must find the last checkpoint that was reported as stored, or a newer one, and no damaged one.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

program=$(dirname "$HEARSAY")/tests/test_checkpoint_store
[ -x "$program" ] || skip "there is no $program"
strace -o /dev/null true 2>/dev/null || skip "strace does not run here"

# last WORD FILE: prints the number in the last line "WORD NUMBER" of FILE. 0: there is no such line.
last()
{
    { echo "$1 0"; grep "^$1 " "$2"; } | tail -n 1 | cut -d' ' -f2
}

# killed_at CALL N: kills the program at its N-th system call CALL. Increments $lost if a stored checkpoint is lost, and $bad
# if a damaged one is found. Fails if the program makes fewer than N such calls.
killed_at()
{
    rm -rf out
    mkdir out
    bounded strace -o /dev/null -e trace="$1" -e inject="$1:signal=KILL:when=$2" "$program" out 3 >first 2>/dev/null
    local status=$?
    "$program" out 1 >second 2>/dev/null || bad=$((bad + 1))
    [ "$(last found second)" -ge "$(last kept first)" ] || lost=$((lost + 1))
    [ "$(last kept second)" = $(($(last found second) + 1)) ] || bad=$((bad + 1))
    [ "$(find out -type f | wc -l)" -le 2 ] || bad=$((bad + 1))
    [ $status != 0 ]
}

for call in openat write fsync renameat unlinkat close; do
    lost=0 bad=0 n=1
    while killed_at $call $n; do
        n=$((n + 1))
    done
    check "killed at each of $((n - 1)) calls of $call: none is lost, none is bad" [ "$lost $bad" = "0 0" ]
    check "$call is called" [ $n -gt 1 ]
done
e2e_end
