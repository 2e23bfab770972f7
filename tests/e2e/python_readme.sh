#!/usr/bin/env bash
# tests/e2e/python_readme.sh -- runs the Python code of README.md unchanged in two shells of one machine, and tests the default
# port if it is in use. Runs in its own network namespace, because the default port is fixed.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

take_python
"$python" -c 'import torch' 2>/dev/null || skip "$python has no torch here (Debian: python3-torch)"
if [ -z "${OWN_NETWORK-}" ]; then
    for how in "-n" "-rn"; do
        if unshare "$how" true 2>/dev/null; then
            OWN_NETWORK=1 exec unshare "$how" bash "$0"
        fi
    done
    skip "unshare makes no network namespace here"
fi
"$python" - <<'PY' || skip "the loopback cannot be started"
import fcntl, socket, struct
with socket.socket() as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 1))  # Enables the loopback interface (SIOCSIFFLAGS, IFF_UP).
PY
e2e_begin
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
export PYTHONPATH=$root/peer/api/python HEARSAY_LIBRARY=$library

awk '/^```python/ { block = 1; text = ""; next } /^```/ { if (block && text ~ /hearsay\.Peer\(/) printf "%s", text; block = 0 }
     block { text = text $0 "\n" }' "$root/README.md" >train.py
check "README.md has the program of a peer" [ "$(grep -c . train.py)" -ge 20 ]
"$HEARSAY" key new cluster.key 2>keygen.err
port=7100
for name in a b; do
    start "$name" "$python" train.py $name $port
    shells[port]=$started
    port=$((port + 1))
done
for port in 7100 7101; do
    check "the peer at port $port ends with 0" finish "${shells[$port]}" 60
done
for name in a b; do
    check "peer $name: $(tail -n 1 $name.out)" \
        grep -qE '^consensus of 2 of 2 peers at relative drift .*; no round skipped; accuracy 0\.9[0-9]*, 0\.[0-9]+ MB sent$' $name.out
    check "  its folder has what the page says" [ -s $name/model.safetensors -a -s $name/metrics.jsonl -a -s $name/summary.json ]
done

# taken ARGUMENTS: runs a peer while a program that is not a peer uses the default port.
taken()
{
    bounded "$python" - >taken.out 2>taken.err <<PY
import hearsay, numpy, socket
with socket.create_server(("127.0.0.1", 7100)):
    try:
        peer = hearsay.Peer({"w": numpy.zeros(3, numpy.float32)}, key="cluster.key", rounds=3, timeout=1, $1)
    except (hearsay.HearsayError, TimeoutError) as error:
        print(type(error).__name__, error)
PY
    grep -qE "$2" taken.out
}
refused='^UsageError cannot listen on 0.0.0.0:7100: address already in use; try listen 0.0.0.0:7101, which is free$'
check "the default port is in use, and bootstrap names another port" taken 'bootstrap="localhost:7102"' "$refused"
check "  and without bootstrap" taken '' "$refused"
check "a port in listen= is not replaced" taken 'listen="0.0.0.0:7100", bootstrap="localhost:7100"' "$refused"
check "the default port is replaced if bootstrap names it with any address of this machine" \
    taken 'min_peers=2, bootstrap="nowhere.invalid:7100,[::1]:7100,127.0.0.1:7100"' '^TimeoutError .* had not begun'
e2e_end
