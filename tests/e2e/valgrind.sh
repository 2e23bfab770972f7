#!/usr/bin/env bash
# tests/e2e/valgrind.sh -- runs two peers under valgrind, and two programs that use libhearsay.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
command -v valgrind >/dev/null || skip "there is no valgrind here"
e2e_begin

python3 "$root/tests/e2e/idx.py" data 200 50
watch=(valgrind --quiet --trace-children=yes --error-exitcode=99 --leak-check=full "--errors-for-leak-kinds=definite,indirect")

# clean LOG N: checks that at least N processes left a file LOG.PID, and that no file reports an error.
# shellcheck disable=SC2016 # eval expands the variables in the string.
clean()
{
    local logs=("$1".*)
    check "valgrind watched $2 processes" [ ${#logs[@]} -ge "$2" ]
    grep -hE -A 12 'Invalid|uninitialised|definitely lost|indirectly lost|overlap' "${logs[@]}" | head -n 40 | sed 's/^/# /'
    check "and has nothing to say" eval '! cat "${logs[@]}" | grep -qE "^==[0-9]+== [A-Z0-9]"'
}

bounded "${watch[@]}" --log-file=local.%p "$HEARSAY" local --peers 2 --model mlp:784-16-10 --data mnist:data --rounds 8 --batch 16 \
    --compress topk:0.05+qsgd:4 --seed "$seed" --out out >run.out 2>run.err </dev/null
check "the run ends with 0" [ $? = 0 ]
clean local 3
for i in 0 1; do
    check "peer $i: its model is there" [ -s out/peer-$i/model.safetensors ]
done

# Two programs that use libhearsay, with checkpoints.
build=$(dirname "$HEARSAY")
if ! command -v cc >/dev/null || [ ! -e "$build/libhearsay.so" ]; then
    echo "# left out: there is no cc here, or no $build/libhearsay.so"
    e2e_end
fi
check "the example builds" \
    cc -I"$root/peer/api" "$root/tests/examples/least_squares.c" -L"$build" -lhearsay -lm -Wl,-rpath,"$build" -o least_squares
"$HEARSAY" key new cluster.key 2>/dev/null
read -r port_0 port_1 < <(free_ports 2)
for i in 0 1; do
    port=port_$i
    start "peer-$i" "${watch[@]}" --log-file=library.%p ./least_squares "$i" listen=127.0.0.1:"${!port}" \
        bootstrap=127.0.0.1:"$port_0",127.0.0.1:"$port_1" key=cluster.key name="p$i" rounds=30 compress=topk:0.5 out="library-$i" checkpoint=0.1
    peers[i]=$started
done
for i in 0 1; do
    check "program $i ends with 0" finish "${peers[$i]}" 60
done
clean library 2

e2e_end
