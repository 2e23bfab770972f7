#!/usr/bin/env bash
# tests/e2e/early.sh -- a peer reads its data before anybody can hear of it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

check "keygen" eval '"$HEARSAY" keygen cluster.key 2>keygen.err'
python3 -c '
with open("bad.csv", "w") as f:
    for i in range(400):
        f.write("%d,%d,%s\n" % (i % 7, i % 5, "x" if i == 300 else i % 2))'
read -r dead < <(free_ports 1)

# Nobody is there who could say of which run the data are.
bounded "$HEARSAY" peer --listen 127.0.0.1:0 --key cluster.key --bootstrap "127.0.0.1:$dead" --name late \
    --data csv:bad.csv --shard own --out bad >bad.out 2>bad.err
code=$?
check "bad data end it before it looks for anybody: $(tail -n 1 bad.err | cut -c 1-120)" eval \
    '[ "$code" = 2 ] && grep -q "^hearsay peer: --data: .*bad.csv.* 301" bad.err'

e2e_end
