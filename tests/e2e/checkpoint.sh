#!/usr/bin/env bash
# tests/e2e/checkpoint.sh -- a process that keeps checkpoints is killed at every system call that
# makes one: the next finds what was said to be kept, or something newer, and nothing bad.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

program=$(dirname "$HEARSAY")/tests/test_keep_slots
[ -x "$program" ] || skip "there is no $program"
strace -o /dev/null true 2>/dev/null || skip "strace does not run here"

# last WORD FILE: the last number that was said with this word; 0 for none.
last()
{
    { echo "$1 0"; grep "^$1 " "$2"; } | tail -n 1 | cut -d' ' -f2
}

# killed_at CALL N: in the N-th such call. Sets lost and bad; fails once there is no N-th call.
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
