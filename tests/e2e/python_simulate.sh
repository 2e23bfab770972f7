#!/usr/bin/env bash
# tests/e2e/python_simulate.sh -- hearsay.simulate(): two simulations and a cluster of processes give the same models, bit for
# bit. An exception of one peer reaches the program and ends the other peers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

take_python
e2e_begin
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# shellcheck disable=SC2317 # This function is called indirectly, by check.
simulate()
{
    HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python bounded "$python" "$root/tests/e2e/python_simulate.py" "$@"
}

check "64 peers have the same bits in two runs, copy nothing and agree" simulate twice
check "four have the bits of four processes over TCP" simulate cluster
check "a slow network changes virtual time, and no bit of a synchronous run" simulate network
check "an outer optimiser follows DiLoCo's recursion with the training loop of the program" simulate outer
check "figures of a 16-bit model describe the arrays of the program" simulate held
check "an exception of one peer reaches the program, and ends the others" simulate raises
check "so does one before the run" simulate raises_early
check "the error for an option names what is wrong" simulate option
check "different shapes are refused, and no peer waits" simulate shapes
check "Ctrl-C ends it" simulate interrupt
check "a program without connect() gets an error" simulate without
e2e_end
