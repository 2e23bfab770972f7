#!/usr/bin/env bash
# tests/e2e/members.sh -- conditions for membership in addition to the cluster key: the allow-list, tokens, names, and copied
# identities.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

read -r pa pb pc pd < <(free_ports 4)
check "keygen" eval '"$HEARSAY" key new cluster.key 2>keygen.err'

# peer NAME PORT LOG ARGUMENTS...: starts a peer that trains until it is stopped.
peer()
{
    local name=$1 port=$2 log=$3
    shift 3
    start "$log" "$HEARSAY" peer --name "$name" --listen "127.0.0.1:$port" --key cluster.key \
        --bootstrap "127.0.0.1:$pa,127.0.0.1:$pb" --data glyphs --shard auto --model logreg \
        --rounds 100000000 --min-peers 2 --topology complete --seed "$seed" "$@"
    pid[port]=$started
}

# ended_with PORT TEXT LOG: checks that the peer at PORT ends by itself with exit code 2 and a message that matches TEXT.
ended_with()
{
    finish "${pid[$1]}" 60
    [ "$code" = 2 ] && grep -qE "$2" "$3.err"
}

trains()
{
    wait_until 60 round_at_least "$1/metrics.jsonl" $(($(last_round "$1/metrics.jsonl") + 20))
}

declare -A id
for n in a b c d; do
    mkdir "$n"
    id[$n]=$("$HEARSAY" key identity $n/identity.key 2>identity.err)
done
check "hearsay key identity prints a key, the same again" \
    [ "${id[a]}" = "$("$HEARSAY" key identity a/identity.key)" ]
printf '# who may\n%s a\n%s\n' "${id[a]}" "${id[b]}" >members.txt

# ---- admission by the allow-list ----

printf '%s\nabc\n' "${id[a]}" >broken.txt
peer a "$pa" broken --members broken.txt --out a
check "a broken file is refused at the start" ended_with "$pa" 'broken.txt: line 2: found .abc.' broken

peer a "$pa" a --members members.txt --out a
peer b "$pb" b --members members.txt --out b
check "listed peers train" trains a
check "  each prints its identity" grep -q "a is ${id[a]}" a.err
check "  and neither has refused the other's question for the run" eval '! grep -q "refused an observer" a.err b.err'

peer c "$pc" c-unlisted --out c
check "a peer with only the cluster key ends with 2" \
    ended_with "$pc" "does not admit this peer: identity ${id[c]} is not in its members file" c-unlisted
check "  and the other end reports it" grep -qE "refused c: its identity ${id[c]} is not in" a.err b.err
check "  and has not trained" [ ! -s c/metrics.jsonl ]
check "  and prints no message about silence or a quorum" \
    eval '! grep -qE "silent|quorum|waiting for members|hangs up" c-unlisted.err'

observe=(--bootstrap "127.0.0.1:$pa" --key cluster.key --json)
check "status with the cluster key alone shows nothing" \
    eval '! bounded "$HEARSAY" status "${observe[@]}" >status.out 2>status.err'
check "  and says why: $(tail -n 1 status.err)" grep -q "a admits only identities on its allow-list" status.err
bounded "$HEARSAY" status "${observe[@]}" --identity b/identity.key >status.out 2>status.err
check "  with a member's identity it shows $(figures json status.out members) members" \
    [ "$(figures json status.out members)" = 2 ]

probe=(bounded "$HEARSAY" probe "127.0.0.1:$pa" --key cluster.key)
check "probe without an identity says why it gets no answer" \
    eval '! "${probe[@]}" >probe.out && grep -qE "^run +FAILED.* a admits only .*--identity" probe.out'
check "  or with one that is not in the file" \
    eval '! "${probe[@]}" --identity c/identity.key >probe.out && grep -qE "^run +FAILED.*identity is not" probe.out'
check "  with a member's it sees all" \
    eval '"${probe[@]}" --identity b/identity.key >probe.out && grep -qE "^members +ok .* 2 alive of the 2 members" probe.out'
check "  without a key there is no use for one" \
    eval '! "$HEARSAY" probe "127.0.0.1:$pa" --identity b/identity.key 2>probe.err && grep -q -e "--identity needs --key" probe.err'

# ---- admission by tokens ----

peer c "$pc" c-empty --out c --token ''
check "an empty token is refused at the start" ended_with "$pc" "token: found ''" c-empty
: >token.empty
peer c "$pc" c-none --out c --token "@token.empty"
check "  so is an empty file" ended_with "$pc" 'token: found 0 characters' c-none

check "an invalid time is refused" eval '! "$HEARSAY" key invite --identity a/identity.key --for 1y 2>invite.err'
"$HEARSAY" key invite --identity a/identity.key --for 1s >token.late
"$HEARSAY" key invite --identity a/identity.key --for 1h --out token
check "only its owner can read the token file" eval '[ "$(stat -c %a token)" = 600 ]'
check "  and is not overwritten" \
    eval '! "$HEARSAY" key invite --identity a/identity.key --out token 2>invite.err && grep -q "token: the file exists" invite.err'
"$HEARSAY" key invite --identity d/identity.key >token.unlisted
peer c "$pc" c-damaged --out c --token "$(sed 's/.\{9\}$/AAAAAAAAA/' token)"
check "a damaged token is refused at the start" ended_with "$pc" 'damaged token' c-damaged
peer c "$pc" c-issuer --out c --token "@token.unlisted"
check "a token of an issuer that is not in the file does not admit a peer" \
    ended_with "$pc" 'does not admit this peer: the signer of this peer.s token is not' c-issuer
peer c "$pc" c-late --out c --token "@token.late" # The token was valid for one second and has expired.
check "an expired token does not admit a peer" \
    ended_with "$pc" 'does not admit this peer: this peer.s token has expired' c-late
check "  the other end reports it, too" grep -qE 'refused c .*: its token has expired' a.err b.err
peer c "$pc" c --members members.txt --out c --token "@token"
check "a valid token admits the peer, which trains with the others" trains c
bounded "$HEARSAY" status "${observe[@]}" --identity b/identity.key >status.out 2>status.err
check "  of $(figures json status.out members) members" [ "$(figures json status.out members)" = 3 ]

# ---- changes of the members file ----

said()
{
    grep -qE "$1" "$2"
}
echo garbage >>members.txt
check "an invalid members file is reported" wait_until 10 said 'members.txt: line 4: found .garbage.' a.err
mv members.txt away.txt
check "  a missing members file, too" wait_until 10 said 'members.txt: cannot open: No such file' a.err
check "  and nothing has changed" trains c
check "  for any peer" eval '! grep -q "member no longer" a.err b.err c.err'
printf '%s a\n' "${id[a]}" >next.txt
begun=$(now_ms)
mv next.txt members.txt
check "a peer that is removed from the file is no longer a member" wait_until 10 said "b \(${id[b]:0:8}\) is no longer a member" a.err
took=$(($(now_ms) - begun))
echo "# a session was cut after $took ms"
check "  soon: $took ms" within "$took" 0 $((1000 * patience))
check "  and ends, because no peer admits it" ended_with "$pb" 'no peer admits this peer' b
check "  a peer that was admitted by a's token stays" trains c
printf '%s a\n%s b\n' "${id[a]}" "${id[b]}" >members.txt # The allow-list is overwritten in place, not replaced by a rename.
wait_until 10 said 'members.txt: changed, now lists 2 identities' a.err
peer b "$pb" b-again --members members.txt --out b
check "a peer that is listed again is a member again" trains b

# ---- peers with equal names ----

printf '%s\n' "${id[d]}" >>members.txt
wait_until 10 said 'members.txt: changed, now lists 3 identities' b-again.err
peer b "$pd" twin --members members.txt --out d
check "a second b ends with 2" \
    ended_with "$pd" "this peer, ${id[d]:0:8}: the name b belongs to ${id[b]:0:8}" twin
check "  the other end reports it, too" \
    grep -qE "refused b \(${id[d]:0:8}\): that name belongs to ${id[b]:0:8}" a.err b-again.err c.err
check "  while the first one continues to train" trains b
kill -KILL "${pid[pb]}"
wait "${pid[pb]}" 2>/dev/null
peer b "$pd" heir --members members.txt --out d
check "a name that no peer has any more can be used" trains d
kill -KILL "${pid[pd]}"
wait "${pid[pd]}" 2>/dev/null
peer b "$pb" b-third --members members.txt --out b
check "b returns under its name" trains b

# ---- processes with a copied identity ----

# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
found_out()
{
    grep -qE 'uses this peer.s identity and started later|two processes use the identity of b' \
        a.err b-third.err c.err
}
# First case: the process with the copied identity contacts only peer a, which has a session with the original. Second case:
# the process also contacts the original.
for list in "127.0.0.1:$pa" "127.0.0.1:$pa,127.0.0.1:$pb"; do
    rm -rf copy
    mkdir copy
    cp b/identity.key copy/identity.key
    peer b "$pd" copy --members members.txt --out copy --bootstrap "$list"
    check "a copy of b ends with 2" \
        ended_with "$pd" 'another process uses this peer.s identity and started earlier' copy
    # Either the original b detects the copied identity by the last message of the copy, or peer a detects it and
    # closes the connection.
    check "  the other peers report it, too" wait_until 10 found_out
    check "  and the original continues to train" trains b
done
kill -KILL "${pid[pb]}"
wait "${pid[pb]}" 2>/dev/null
peer b "$pb" b-fourth --members members.txt --out b
check "a restarted peer does not count as a copy" trains b
check "  no peer reports a copy" eval '! grep -q "uses this peer.s identity" b-fourth.err'

for port in "$pa" "$pb" "$pc"; do
    kill "${pid[port]}"
    check "a peer stops with 0" finish "${pid[$port]}" 30
done
e2e_end
