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
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
PY
e2e_begin
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
export PYTHONPATH=$root/peer/api/python HEARSAY_LIBRARY=$library

# A program that defines a small model. The code of the page follows.
cat >before.py <<'PY'
import os, sys, torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(os.getpid())
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loss_fn = torch.nn.functional.mse_loss
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x @ torch.ones(4, 1)), batch_size=8)
PY
awk '/^```python/ { block = 1; text = ""; next } /^```/ { if (block && text ~ /hearsay\.Peer\(/) printf "%s", text; block = 0 }
     block { text = text $0 "\n" }' "$root/README.md" >lines.py
check "README.md has the Python code of a peer" [ "$(grep -c . lines.py)" -ge 6 ]
cat before.py lines.py - >program.py <<'PY'
print(f"exit code {peer.exit_code}, accurate to {float((model.weight - 1).abs().max()):.3f}, {bool(float((model.weight - 1).abs().max()) < 0.1)}")
PY
"$HEARSAY" key new cluster.key 2>keygen.err
for shell in 1 2; do
    start "shell-$shell" "$python" program.py
    shells[shell]=$started
done
for shell in 1 2; do
    check "shell $shell ends with 0" finish "${shells[$shell]}" 60
    check "  in consensus of 2 of 2" grep -q '^consensus of 2 of 2 peers' "shell-$shell.out"
    check "  with a model: $(tail -n 1 "shell-$shell.out")" grep -q '^exit code 0, .* True$' "shell-$shell.out"
done

# taken ARGUMENTS: the default port is in use, by no peer.
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
refused='^UsageError cannot listen on 0.0.0.0:7100: address already in use; a free one is listen 0.0.0.0:7101$'
check "the default port is in use, and bootstrap names another port" taken 'bootstrap="localhost:7102"' "$refused"
check "  and without bootstrap" taken '' "$refused"
check "a port in listen= is not replaced" taken 'listen="0.0.0.0:7100", bootstrap="localhost:7100"' "$refused"
check "the default port is replaced if bootstrap names it with any address of this machine" \
    taken 'min_peers=2, bootstrap="nowhere.invalid:7100,[::1]:7100,127.0.0.1:7100"' '^TimeoutError .* had not begun'
e2e_end
