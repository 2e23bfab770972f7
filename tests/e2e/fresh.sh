#!/usr/bin/env bash
# tests/e2e/fresh.sh -- what a new user does with a model of his own, in a Debian that has nothing: packages
# or pip, and four peers train. Prints the commands as he types them. With FRESH_TORCH=1 it is PyTorch's
# example, too, for which some 150 MB are fetched.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib_docker.sh
. "$root/tests/lib_docker.sh"
e2e_begin

[ "$(id -u)" = 0 ] || skip "only root can install a package"
for need in cpack dpkg-shlibdeps unshare; do
    command -v "$need" >/dev/null || skip "there is no $need here"
done
config=$(dirname "$HEARSAY")/CPackConfig.cmake
[ -e "$config" ] || skip "$HEARSAY is not in a build directory"
! "$HEARSAY" --version | grep -qE '^sanitizers +[^n ]' || skip "a build with sanitizers is not for others"
tar=$(docker_base_tar) || skip "there is no bare Debian here, and debootstrap makes none"
bounded cpack --config "$config" -B "$work/deb" >cpack.out 2>cpack.err || not_ok "cpack makes packages"

# What he has: the packages, and a checkout.
bare_tree "$tar"
mkdir -p tree/root/hearsay/peer/api tree/tmp
cp deb/*.deb tree/root
cp "$root/CMakeLists.txt" tree/root/hearsay
cp -r "$root/peer/api/python" tree/root/hearsay/peer/api
examples=/usr/share/doc/libhearsay-dev/examples

# types COMMAND: as he does, in his home directory.
# shellcheck disable=SC2317 # By check.
types()
{
    echo "# \$ $1"
    inside bash -c "cd && $1" >typed.out 2>typed.err
    local code=$?
    tail -n 4 typed.out | sed 's/^/#   /'
    return "$code"
}

inside apt-get -qq update >update.out 2>&1 || skip "no package archive answers: $(tail -n 1 update.out)"
inside python3 -c '' 2>/dev/null && not_ok "a bare Debian has no python3"

# ---- By packages: two commands. ----

check "apt installs the packages, Python and numpy" \
    types 'apt-get -qq -y --no-install-recommends install ./*hearsay*.deb python3-numpy'
bare_keep
check "four peers train a model of numpy's" types "python3 $examples/numpy_logreg.py peers=4 rounds=40"
check "  with consensus" [ "$(grep -cE '^consensus of 4 of 4 .* accuracy (1.000|0.9[0-9]+), 0 bytes copied$' typed.out)" = 4 ]
check "  and there is help for each function" types 'ls /usr/share/man/man3/hearsay_round.3.gz && python3 -m pydoc hearsay.Peer'
if [ -n "${FRESH_TORCH-}" ]; then
    check "apt installs PyTorch" types 'apt-get -qq -y --no-install-recommends install python3-torch'
    check "four peers train PyTorch's example" types "python3 $examples/pytorch_cnn.py rounds=40"
    check "  with consensus" [ "$(grep -c '^consensus of 4 of 4 ' typed.out)" = 4 ]
fi
check "apt removes the Python package" types 'apt-get -qq -y remove python3-hearsay'
check "  and Python knows it no longer" eval '! inside python3 -c "import hearsay" 2>/dev/null'

# ---- By pip, from a checkout, with the library that is installed. ----

check "apt installs pip" types 'apt-get -qq -y --no-install-recommends install python3-pip python3-wheel'
bare_keep
libdir=$(cd tree/usr && dirname "$(find lib -name libhearsay.so.0)")
check "pip installs the checkout's package" types \
    "HEARSAY_LIBRARY=/usr/$libdir/libhearsay.so.0 python3 -m pip install --no-index --no-build-isolation --break-system-packages hearsay/peer/api/python"
check "four peers train with it" types "python3 $examples/numpy_logreg.py peers=4 rounds=40"
check "  with consensus" [ "$(grep -cE '^consensus of 4 of 4 .* accuracy (1.000|0.9[0-9]+), 0 bytes copied$' typed.out)" = 4 ]
check "  by the library in the package" types 'python3 -c "import hearsay; print(hearsay.library)" | grep /dist-packages/hearsay/libhearsay.so'
echo "# the tree took $(du -sm tree | cut -f1) MB"
e2e_end
