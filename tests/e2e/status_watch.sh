#!/usr/bin/env bash
# tests/e2e/status_watch.sh -- hearsay status --watch: successive pages show peers that join, train, are silent, leave and
# come back, with the values of the peers. On a terminal --watch uses a separate screen; elsewhere it prints no
# escape sequences.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

read -r pa pb pc < <(free_ports 3)
bootstrap="127.0.0.1:$pa,127.0.0.1:$pb,127.0.0.1:$pc"
check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'
declare -A pid
peer()
{
    start "log-$1" "$HEARSAY" peer --name "$1" --listen "127.0.0.1:$2" --key cluster.key --bootstrap "$bootstrap" \
        --data glyphs --shard auto --model logreg --rounds 100000000 --min-peers 3 --seed "$seed" --out "$1"
    pid[$1]=$started
}
# page COUNT: runs status --watch for COUNT pages, one every half second, and stores the last page in the file `page`.
page()
{
    bounded "$HEARSAY" status --watch --bootstrap "$bootstrap" --key cluster.key --interval 0.5 --count "$1" >pages 2>pages.err \
        && awk -v RS= '{ head = body; body = $0 } END { print head; print body }' pages >page
}
# says TEXT: succeeds if the next page matches TEXT.
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
says()
{
    page 2 && grep -qE "$1" page
}

peer a "$pa"
peer b "$pb"
check "two of three gather, and one is waited for" \
    wait_until 30 says 'joining: 2 of 3 \(--min-peers\), waiting for 1 more'
"$HEARSAY" status --bootstrap "$bootstrap" --key cluster.key >status.out 2>status.err
check "status says the same" grep -qE '^2 members: 2 joining +joining: 2 of 3 \(--min-peers\), waiting for 1 more' status.out
check "  and JSON" eval '"$HEARSAY" status --bootstrap "$bootstrap" --key cluster.key --json 2>status.err \
    | python3 -c "import json, sys; j = json.load(sys.stdin); assert j[\"gathering\"] == {\"here\": 2, \"min_peers\": 3}; \
        assert \"\\nmomentum-kind=local\\n\" in j[\"run\"]"'
check "a watch of the drift says it, too" eval '"$HEARSAY" drift --bootstrap "$bootstrap" --key cluster.key --watch \
    --count 1 2>watch.err | grep -q "drift unknown: the run has not started: 2 of 3 members have joined"'
kill -KILL "${pid[b]}"
wait "${pid[b]}" 2>/dev/null
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
names()
{
    "$HEARSAY" status --bootstrap "$bootstrap" --key cluster.key >status.out 2>status.err
    grep -qE 'joining: 1 of 3 \(--min-peers\), waiting for 2 more: b \(unreachable\)' status.out
}
check "known members that are dead are named" wait_until 30 names
peer b "$pb"
peer c "$pc"
check "three train" wait_until 60 says '^3 members: 3 training    round [0-9]+'
check "two pages are two" [ "$(grep -c '^name ' pages)" = 2 ]
check "  without escapes" eval '! grep -q "$(printf "\033")" pages'
low=$(last_round a/metrics.jsonl)
check "a page comes" page 3
high=$(last_round a/metrics.jsonl)
round=$(awk '/^a / { sub("/.*", "", $3); print $3 }' page)
check "the round is the peer's: $low <= $round <= $high" within "$round" "$low" "$((high + 1))"
check "  with a rate, an age and neighbours" grep -qE '^a +training +[0-9]+/100000000 +[0-9.e+]+ +[0-9.]+ s .* [bc],[bc]$' page

# A `hearsay status --watch` command runs in the background while peers join and leave.
"$HEARSAY" status --watch --bootstrap "$bootstrap" --key cluster.key --interval 0.5 >long 2>long.err &
long=$!
pids+=("$long")
check "one that stays sees them" wait_until 30 grep -q '3 training' long
kill -STOP "${pid[c]}"
check "one that is stopped is silent" wait_until 30 grep -qE '^c +silent' long
kill -CONT "${pid[c]}"
lines=$(wc -l <long)
check "  and trains again" wait_until 30 eval "tail -n +$lines long | grep -qE '^c +training'"
kill -KILL "${pid[b]}"
wait "${pid[b]}" 2>/dev/null
lines=$(wc -l <long)
check "one that is killed cannot be reached" wait_until 30 eval "tail -n +$lines long | grep -qE '^b +unreachable'"
peer b "$pb"
lines=$(wc -l <long)
check "  and is there again after a restart" wait_until 60 eval "tail -n +$lines long | grep -qE '^b +training'"
kill -INT "$long"
wait "$long"
check "Ctrl-C ends it with 130" [ $? = 130 ]

# A failed write ends a watch: a full disk, or a pipe whose reader has ended.
for watch in "status --watch" "drift --watch"; do
    # shellcheck disable=SC2086 # Unquoted, because the variable holds two words.
    timeout 30 "$HEARSAY" $watch --bootstrap "$bootstrap" --key cluster.key --interval 0.5 >/dev/full 2>full.err
    code=$?
    check "$watch: a full disk ends it: $(tail -n 1 full.err)" \
        eval '[ $code = 1 ] && [ "$(grep -c "cannot write to stdout: No space left on device" full.err)" = 1 ]'
    # shellcheck disable=SC2086 # Unquoted, because the variable holds two words.
    timeout 30 "$HEARSAY" $watch --bootstrap "$bootstrap" --key cluster.key --interval 0.5 2>pipe.err | head -n 1 >head.out
    code=${PIPESTATUS[0]}
    check "  and so does a reader that ends: $(tail -n 1 pipe.err)" \
        eval '[ $code = 1 ] && grep -q "cannot write to stdout: Broken pipe" pipe.err'
done

if command -v script >/dev/null; then
    script -qec "'$HEARSAY' top --bootstrap '$bootstrap' --key cluster.key --interval 0.5 --count 2" screen >/dev/null 2>&1
    check "a terminal gets a separate screen, and its former screen at the end" \
        eval 'grep -q "$(printf "\033")\[?1049h" screen && grep -q "$(printf "\033")\[?1049l" screen'
    check "  and cut lines are whole again" eval '[ "$(grep -c "^name " screen)" -ge 1 ] && grep -q "$(printf "\033")\[?7h" screen'
fi
check "no peer answers: exit code 1" eval '"$HEARSAY" status --watch --bootstrap 127.0.0.1:1 --key cluster.key --count 1 2>none.err; [ $? = 1 ]'
check "an interval of nothing: 2" \
    eval '"$HEARSAY" status --watch --bootstrap "$bootstrap" --key cluster.key --interval 0 2>bad.err; [ $? = 2 ]'
for name in a b c; do
    kill -TERM "${pid[$name]}"
    finish "${pid[$name]}" 30
done
e2e_end
