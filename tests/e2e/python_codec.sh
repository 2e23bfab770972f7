#!/usr/bin/env bash
# tests/e2e/python_codec.sh -- the Python package: the binding matches the C header; codecs work in the memory of numpy and
# PyTorch arrays without copies, and refuse other memory; the DDP hook loses no gradient; pip installs the package. Parts are
# left out if numpy or PyTorch is missing.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# has PYTHON MODULE: checks whether a module can be imported.
has()
{
    "$1" -c "import $2" 2>/dev/null
}

take_python
e2e_begin
package=$root/peer/api/python
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo

# The library is missing, or the file is not a library. The package in a checkout also finds the library that is built
# there, so a copy of the package is imported here.
mkdir alone && cp -r "$package/hearsay" alone && rm -f alone/hearsay/libhearsay.so
PYTHONPATH=$work/alone "$python" -c 'import hearsay' 2>none.err
check "without the library, importing says where it was looked for" \
    grep -qE "^ImportError: .*own folder: there is no .*HEARSAY_LIBRARY is not set; .*loader: " none.err
HEARSAY_LIBRARY=$work/none.err PYTHONPATH=$package "$python" -c 'import hearsay' 2>wrong.err
check "and what was wrong with a file" grep -qE '^ImportError: .*HEARSAY_LIBRARY: .*none.err: ' wrong.err

# shellcheck disable=SC2317 # This function is called indirectly, by check.
codec()
{
    HEARSAY_LIBRARY=$library PYTHONPATH=$package bounded "$python" "$root/tests/e2e/python_codec.py" "$@"
}

if command -v cc >/dev/null; then
    cc -E -P "$root/peer/api/hearsay.h" | grep -oE '\bhearsay_[a-z_]+ *\(' | tr -d ' (' | sort -u >declared
    check "the binding has all functions of the header" codec declared declared
    check "a program is made of its structs" eval 'codec layout_program >layout.c'
    check "it compiles" cc -I "$root/peer/api" layout.c -o layout
    check "structs and enums are those of the header" eval './layout >layout.txt && codec layout layout.txt'
else
    echo "# left out: there is no cc here"
fi
check "codecs need neither numpy nor PyTorch" codec bare
check "every codec adds to numpy arrays, with the error that it reports" codec numpy
check "what is not contiguous float32 of the right size is refused by name" codec refusals
check "threads may share a codec" codec threads

if has "$python" torch; then
    check "PyTorch's tensors are taken as they are" codec torch
    GLOO_SOCKET_IFNAME=lo HEARSAY_LIBRARY=$library PYTHONPATH=$package bounded "$python" "$root/tests/e2e/python_ddp.py" "$work/meet" >ddp.out 2>ddp.err
    check "three processes of DDP end well" [ $? = 0 ]
    for part in plain feedback growing without_feedback not_finite pickled learns; do
        check "ddp_hook: $part" grep -qx $part ddp.out
    done
else
    echo "# left out: $python has no torch (Debian: python3-torch)"
fi

# Installs from a copy of the checkout, because the build reads the version from CMakeLists.txt.
if has "$python" pip && has "$python" venv && has "$python" setuptools && has "$python" wheel; then
    mkdir -p tree/peer/api
    cp "$root/CMakeLists.txt" tree
    cp -r "$package" tree/peer/api
    rm -rf tree/peer/api/python/build tree/peer/api/python/hearsay/libhearsay.so
    "$python" -m venv --system-site-packages venv >venv.out 2>&1
    HEARSAY_LIBRARY=$library bounded venv/bin/python -m pip install --no-build-isolation --no-index tree/peer/api/python >pip.out 2>&1
    check "pip installs the package, with a library that is built" [ $? = 0 ]
    version=$(sed -nE 's/^project\(hearsay VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
    check "it is version $version, and has its library in its folder" \
        [ "$(venv/bin/python -c 'import hearsay; print(hearsay.__version__, hearsay.library)')" = \
        "$version $(echo "$work"/venv/lib/python3*/site-packages/hearsay/libhearsay.so)" ]
else
    echo "# left out: $python has no pip, venv, setuptools or wheel"
fi
e2e_end
