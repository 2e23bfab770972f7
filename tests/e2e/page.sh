#!/usr/bin/env bash
# tests/e2e/page.sh -- the live page in a real browser: its values agree with four real peers; dead peers, a hundred
# members, hostile names, keyboard, dark mode, narrow screens. SHOTS=DIR keeps screenshots.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
chromium=$(command -v chromium) || chromium=$(command -v chromium-browser) || skip "there is no chromium here"
e2e_begin

check "keygen" eval '"$HEARSAY" key new ours.key 2>/dev/null'
read -r -a port < <(free_ports 4)
bootstrap=$(printf '127.0.0.1:%s,' "${port[@]}")

declare -a peer
begin()
{
    start "p$1" "$HEARSAY" peer --name "p$1" --listen "127.0.0.1:${port[$1]}" --data glyphs --model logreg --batch 256 \
        --rounds 100000000 --local-steps 10 --min-peers 4 --topology ring --evaluate-every 10 --evaluate-samples 200 \
        --key ours.key --seed "$seed" --bootstrap "${bootstrap%,}" --shard auto --metrics 0 --out "p$1"
    peer[$1]=$started
}

# page ARGUMENT...: runs tests/e2e/page.py with the browser that was found.
page()
{
    PATIENCE=$patience python3 "$root/tests/e2e/page.py" "$chromium" "$url" "$@"
}

begin 0
check "a peer says where its page is" wait_until 60 grep -qE 'a live page is at http://127.0.0.1:[0-9]+/' p0.err
url=$(sed -nE 's|.*a live page is at (http://127.0.0.1:[0-9]+/).*|\1|p' p0.err | head -n 1)
check "the page while it waits" page
for i in 1 2 3; do
    begin "$i"
done
check "the page in $("$chromium" --version 2>/dev/null | head -n 1)" page p0/metrics.jsonl "${peer[0]}" p0 "${peer[3]}" p3

kill -TERM "${peer[1]}" "${peer[2]}"
for i in 1 2; do
    check "SIGTERM ends peer $i with 0" finish "${peer[$i]}" 60
done
e2e_end
