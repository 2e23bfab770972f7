#!/usr/bin/env bash
# tests/e2e/python_peer.sh -- hearsay.Peer: programs with numpy or PyTorch train their own model in a run, in threads, in
# processes and as ranks of torchrun. Also runs the examples. Tests with PyTorch are left out if it is missing.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

take_python
e2e_begin
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
export PYTHONPATH=$root/peer/api/python HEARSAY_LIBRARY=$library

# checks FILE: runs each check of FILE in its own process.
checks()
{
    local name text
    while read -r name text; do
        [ "$name" = torchrun ] && continue # The check `torchrun` needs several ranks. This check is run below, with two ranks.
        bounded "$python" "$root/tests/e2e/$1.py" "$name" >"$1-$name.out" 2>"$1-$name.err"
        check "$name: $text" [ $? = 0 ] || true
        tail -n 1 "$1-$name.err" | grep -E '^[A-Za-z_.]*(Error|Interrupt)' | sed 's/^/# /'
    done < <("$python" "$root/tests/e2e/$1.py" --list)
}

# example NAME PATTERN N ARGUMENT...: runs an example. N lines of its output must match PATTERN.
example()
{
    local name=$1 pattern=$2 n=$3
    shift 3
    bounded "$python" "$root/tests/examples/$name" "$@" >"$name.out" 2>"$name.err"
    check "examples/$name ends with 0" [ $? = 0 ]
    check "  and says: $(tail -n 1 "$name.out")" [ "$(grep -cE "$pattern" "$name.out")" = "$n" ]
}

checks python_peer
example numpy_logreg.py '^consensus of 3 of 3 .* accuracy (1.000|0.9[0-9]+), 0 bytes copied$' 3 rounds=40

# Types: mypy checks programs with right and wrong keyword arguments. (Debian package: mypy)
if command -v mypy >/dev/null; then
    unpack= # Before version 1.7, mypy checks **keywords by a TypedDict only with this option.
    ! mypy --version | grep -qE '^mypy (0|1\.[0-6])\.' || unpack=--enable-incomplete-feature=Unpack
    echo 'import hearsay; hearsay.Peer({}, None, rounds=5, model="gpt:1x8"); hearsay.local(2, print, mixer="choco", keep=hearsay.RNG)' >good.py
    printf 'import hearsay\n%s\n' 'hearsay.Peer({}, tolopogy="ring")' 'hearsay.local(2, print, mixer="chco")' 'hearsay.torchrun({}, rounds="5")' >bad.py
    for one in good bad; do
        # shellcheck disable=SC2086 # Unquoted, because the variable holds one word or none.
        (cd "$root/peer/api/python" && MYPYPATH=. mypy $unpack --cache-dir "$work/mypy" --follow-imports silent --ignore-missing-imports "$work/$one.py") >$one.out 2>&1
        echo $? >>$one.out
    done
    check "mypy finds nothing in right keyword arguments" [ "$(tail -n 1 good.out)" = 0 ]
    check "  and names wrong ones" [ "$(grep -cE 'bad.py:[246]: error: .*(tolopogy|mixer|rounds)' bad.out)" = 3 ]
else
    echo "# left out: mypy is not installed"
fi

if "$python" -c 'import torch' 2>/dev/null; then
    checks python_peer_torch
    # Starts the ranks as torchrun does. Rank 0 listens at MASTER_PORT + 1.
    read -r port < <(free_ports 1)
    "$HEARSAY" key new cluster.key 2>keygen.err
    for rank in 0 1; do
        start "rank-$rank" env RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port - 1)) \
            HEARSAY_KEY="$work/cluster.key" "$python" "$root/tests/e2e/python_peer_torch.py" torchrun
        ranks[rank]=$started
    done
    for rank in 0 1; do
        check "rank $rank as of torchrun ends with 0" finish "${ranks[$rank]}" 60
    done
    example pytorch_cnn.py '^consensus of 2 of 2 ' 2 --peers 2 rounds=10 local-steps=2
    example char_lstm.py '^consensus of 3 of 3 .* nats a character$' 3 rounds=10
else
    echo "# left out: $python has no torch here (Debian: python3-torch)"
fi

e2e_end
