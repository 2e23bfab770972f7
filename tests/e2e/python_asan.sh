#!/usr/bin/env bash
# tests/e2e/python_asan.sh -- runs the tests of python_peer, python_codec and python_simulate with a libhearsay.so that is built
# with AddressSanitizer and UBSan. The sanitizers also check the accesses of the library to arrays of numpy and PyTorch.
# Only leaks of memory that the library allocated count, because the Python interpreter leaks memory, too.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

take_python
library=$(dirname "$(dirname "$HEARSAY")")/asan/libhearsay.so
[ -e "$library" ] || skip "there is no $library (cmake -S . -B build/asan -DSAN=address,undefined; target libhearsay)"
runtime=$(ldd "$library" | awk '/libasan/ { print $3 }')
[ -e "$runtime" ] || skip "$library brings no AddressSanitizer that can be loaded before it"
e2e_begin
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export PYTHONPATH=$root/peer/api/python HEARSAY_LIBRARY=$library

# watched ARGUMENT...: runs Python with AddressSanitizer, and without Python's own allocator, which would hide errors. Each
# process writes its reports to asan.PID.
watched()
{
    bounded env LD_PRELOAD="$runtime" PYTHONMALLOC=malloc ASAN_OPTIONS="detect_leaks=1 log_path=$work/asan" \
        UBSAN_OPTIONS="print_stacktrace=1 log_path=$work/asan" \
        LSAN_OPTIONS="exitcode=0:stack_trace_format='    #%n %f %S (%m)'" "$python" "$@"
}

# reports: prints the errors in all reports, and the leaks in which the library is involved.
reports()
{
    local found=0 log
    for log in asan.*; do
        [ ! -e "$log" ] || awk 'BEGIN { RS = ""; ORS = "\n\n" }
            /ERROR: AddressSanitizer|runtime error:/ || (/leak of/ && /libhearsay/) { print; bad = 1 } END { exit bad }' "$log" || found=1
    done
    return $found
}

# checks FILE NAME...: runs each check of FILE in its own process.
checks()
{
    local file=$1 name code
    shift
    for name in "$@"; do
        watched "$root/tests/e2e/$file.py" "$name" >"$file-$name.out" 2>"$file-$name.err"
        code=$?
        reports >"$file-$name.reports" || code="and a report"
        check "$file: $name" [ "$code" = 0 ]
        head -n 30 "$file-$name.reports" | sed 's/^/# /'
        rm -f asan.*
    done
}

watched -c 'import numpy' >probe.out 2>probe.err || skip "$python does not run with $runtime: $(tail -n 1 probe.err)"
rm -f asan.*
# Checks that errors are detected: the library gets an array that is one float too short, which must be reported. (The vector
# length is a multiple of the SIMD width, because AddressSanitizer does not check masked reads of the last floats.)
watched -c 'import ctypes, hearsay, numpy
from hearsay._lib import lib
x, c = numpy.zeros(1024, numpy.float32), hearsay.Codec("topk:0.1", 1024)
out = ctypes.create_string_buffer(c.bound)
lib.hearsay_codec_encode(c._handle, x.ctypes.data + 4, None, 0, 0, out, c.bound, ctypes.byref(ctypes.c_size_t()), None)' \
    >bait.out 2>bait.err
check "an array that is a float too short is noticed" eval '! reports >bait.reports && grep -q "ERROR: AddressSanitizer" bait.reports'
rm -f asan.*

checks python_codec bare numpy refusals threads
checks python_simulate twice raises shapes

checks python_peer again numpy buffers refusals nan end shard evaluate fork local
if "$python" -c 'import torch' 2>/dev/null; then
    checks python_codec torch
    checks python_peer_torch views staged half evaluate keep
else
    echo "# left out: $python has no torch here (Debian: python3-torch)"
fi
e2e_end
