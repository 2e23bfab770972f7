#!/usr/bin/env bash
# tests/e2e/race.sh -- tests the benchmark tests/bench/race, which compares hearsay and PyTorch DDP on links with limited
# bandwidth. The benchmark must write its results to files, and leave no namespace or process behind, even if it is
# interrupted. Skips without network namespaces or PyTorch.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

[ "$(id -u)" = 0 ] || skip "namespaces need root"
for tool in ip tc jq; do
    command -v "$tool" >/dev/null || skip "there is no $tool here"
done
ip netns add "hs$$-try" 2>/dev/null || skip "no namespaces here"
ip -n "hs$$-try" link add eth0 type veth peer name p0 2>/dev/null
tc -n "hs$$-try" qdisc add dev eth0 root tbf rate 10mbit burst 3200 limit 100000 2>/dev/null
shaped=$?
ip netns del "hs$$-try"
[ $shaped = 0 ] || skip "links cannot be shaped here (veth, tbf)"
/usr/bin/python3 -c 'import torch' 2>/dev/null || python3 -c 'import torch' 2>/dev/null ||
    skip "python3 has no torch here (Debian: python3-torch)"
e2e_begin

python3 "$root/tests/e2e/idx.py" data/mnist 640 60 "$seed"
race()
{
    bounded "$root/tests/bench/race" data --peers 2 --links 10Mbit --repeat 1 --seed "$seed" "$@"
}

# figures COMMAND...: checks race.json with jq.
figures()
{
    jq -e "$@" race/race.json >/dev/null
}

race --train-steps 40 --arms hearsay-alone,auto,default,ddp --out race >race.out 2>race.err
check "a race of two peers runs" test $? = 0
check "all arms have a clock" figures '[.clocks[].arm] == ["hearsay-alone", "auto", "default", "ddp"]'
check "hearsay and PyTorch have curves of the same steps, and one arm has a curve per link" \
    figures '.curves | (.auto | length) == 4 and (.ddp | map(.[0])) == [10, 20, 30, 40] and (.["default@10Mbit"] | length) == 4'
# A step of DDP with two processes sends the gradient once, 247 kB, plus headers. A single process sends nothing.
check "bytes are those of the algorithm" \
    figures '.clocks | map({(.arm): .bytes}) | add | .["hearsay-alone"] < 100 and .ddp > 240000 and .ddp < 290000'
check "the clock has the time of each step" \
    figures '.clocks | map(select(.arm == "ddp")) | .[0].done_s | .[0] == [0, 0] and .[-1][0] == 40 and .[-1][1] > .[-2][1]'
check "there is a table" grep -qF '| `ddp` |' race/race.md

"$root/tests/bench/race" data --peers 2 --links 10Mbit --no-curve --steps 100000 --limit 1000 --arms auto --out ended \
    >ended.out 2>ended.err &
ended=$!
pids+=("$ended")
check "a second arm runs" wait_until 60 test -s ended/run/peer-1/metrics.jsonl
check "links have the configured rate" \
    sh -c "tc -n hs$ended-r-1 qdisc show dev eth0 | grep -q 'rate 10Mbit'"
check "both ways" sh -c "tc -n hs$ended-r qdisc show dev p1 | grep -q 'rate 10Mbit'"
peers=$(pgrep -fc "$PWD/ended/run")
kill -INT "$ended"
wait "$ended"
check "a run that is ended by a signal exits with 130" test $? = 130
check "there were two peers, and no process remains" test "$peers:$(pgrep -fc "$PWD/ended/run")" = 2:0
check "no namespace remains" test -z "$(ip netns list | grep "^hs$ended-")"
e2e_end
