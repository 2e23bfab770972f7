#!/usr/bin/env bash
# tests/e2e/library.sh -- the commands status, drift and probe observe programs with their own model
# (tests/examples/least_squares.c).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

command -v cc >/dev/null || skip "there is no cc here"
build=$(dirname "$HEARSAY")
[ -e "$build/libhearsay.so" ] || skip "there is no $build/libhearsay.so"
! "$HEARSAY" --version | grep -qE '^sanitizers +[^n ]' || skip "a build with sanitizers has a library that wants them"
e2e_begin
cp "$root/peer/api/hearsay.h" .
check "the example builds as its comment says" \
    cc -I. "$root/tests/examples/least_squares.c" -L"$build" -lhearsay -lm -Wl,-rpath,"$build" -o least_squares
"$HEARSAY" key new cluster.key 2>/dev/null

read -r port_0 port_1 < <(free_ports 2)
at=127.0.0.1:$port_0

# peer N ROUNDS: starts peer N in the background. The process id of the peer is $started.
peer()
{
    local port=port_$1
    start "peer-$1" ./least_squares "$1" listen=127.0.0.1:"${!port}" bootstrap="$at",127.0.0.1:"$port_1" \
        key=cluster.key name="p$1" rounds="$2"
}
peer 0 400
first=$started
peer 1 400
second=$started
wait "$first"
code=$?
wait "$second"
check "two of them agree: exit codes $code, $?" [ "$code" = 0 ]
check "  on the weights that made the rows: $(cat peer-0.out)" grep -qE '^(3\.00|2\.99)[0-9] -(2\.00|1\.99)[0-9] (0\.50|0\.49)[0-9]: consensus' peer-0.out
check "  and on the same bits" [ "$(cut -d: -f1 peer-0.out)" = "$(cut -d: -f1 peer-1.out)" ]

# Both programs train for a long time, so that `hearsay status` and other commands can observe them.
peer 0 100000000
peer 1 100000000
# shellcheck disable=SC2317 # This function is called indirectly, by wait_until.
both_train()
{
    "$HEARSAY" status --bootstrap "$at" --key cluster.key >status.out 2>status.err && grep -q '2 training' status.out
}
check "status sees both train" wait_until 20 both_train
check "  and what the run is" grep -q "run: a program's own model of 3 parameters" status.out
"$HEARSAY" probe "$at" --key cluster.key >probe.out 2>probe.err
check "probe knows the run" grep -q 'compress=none' probe.out
"$HEARSAY" drift --bootstrap "$at" --key cluster.key --exact --json >drift.json 2>drift.err
check "drift --exact compares their models: $(tail -n 1 drift.err)" \
    [ "$(python3 -c 'import json; print(json.load(open("drift.json"))["exact"]["models"])' 2>&1)" = 2 ]
e2e_end
