#!/usr/bin/env bash
# tests/e2e/fresh.sh -- runs the first steps of a new user in a bare Debian 12 with a clone of the repository: the commands of
# deploy/README.md from quickstart to `import hearsay`, those of the page of the Python package, and a program with its own
# model. Prints each command. With FRESH_TORCH=1 also runs the PyTorch example, for which apt downloads about 150 MB.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib_fresh.sh
. "$root/tests/lib_fresh.sh"
fresh_begin bookworm

# ---- Installation by Debian packages (deploy/README.md). ----

follow_pages bookworm
check "apt installs numpy, and the development package" types 'apt-get install ./libhearsay-dev_*.deb python3-numpy'
examples=/usr/share/doc/libhearsay-dev/examples
check "four peers train a model of numpy's" types "python3 $examples/numpy_logreg.py peers=4 rounds=40"
check "  with consensus" [ "$(grep -cE '^consensus of 4 of 4 .* accuracy (1.000|0.9[0-9]+), 0 bytes copied$' typed.out)" = 4 ]
check "  and there is help for each function" types 'ls /usr/share/man/man3/hearsay_round.3.gz && python3 -m pydoc hearsay.Peer'
if [ -n "${FRESH_TORCH-}" ]; then
    check "apt installs PyTorch" types 'apt-get install python3-torch'
    check "four peers train PyTorch's example" types "python3 $examples/pytorch_cnn.py rounds=40"
    check "  with consensus" [ "$(grep -c '^consensus of 4 of 4 ' typed.out)" = 4 ]
fi
check "apt removes the packages" types 'apt-get remove python3-hearsay libhearsay hearsay'
check "  and Python does not find the package" eval '! inside python3 -c "import hearsay" 2>/dev/null'

# ---- Installation by cmake (deploy/README.md). ----

line=$(page_commands deploy/README.md "## Installing" 2)
check "$line" types "$line"
check "  the program, the library and the completion are installed" types 'ls /usr/local/share/bash-completion/completions/hearsay && hearsay --version && ldconfig -p | grep libhearsay.so.0'
rm -rf tree/usr/local/lib/libhearsay* tree/root/hearsay/build/release/libhearsay.a
check "cmake --install fails if a file is not built" eval '! types "$line"'
check "  and names the file" grep -q 'libhearsay.a is not built' typed.err

# ---- Installation by pip, and use from the checkout (peer/api/python/README.md). ----

page=peer/api/python/README.md
while IFS= read -r line; do
    check "$line" types "$line"
    case $line in
    *'pip install'*)
        check "  pip takes the library that quickstart built" grep -q 'build/release/libhearsay.so is up to date' typed.err
        check "  and compiles nothing" eval '! grep -q "Building C object" typed.err && [ ! -e tree/root/hearsay/build/python ]'
        ;;
    esac
done < <(page_commands $page "# hearsay for Python")
check "four peers train with the installed package" types "python3 tests/examples/numpy_logreg.py peers=4 rounds=40"
check "  with consensus" [ "$(grep -cE '^consensus of 4 of 4 .* accuracy (1.000|0.9[0-9]+), 0 bytes copied$' typed.out)" = 4 ]
check "  by the library in the package" types 'python3 -c "import hearsay; print(hearsay.library)" | grep /dist-packages/hearsay/libhearsay.so'
check "pip compiles a changed source file" types \
    'touch peer/api/codec.c && python3 -m pip install -v --no-build-isolation --force-reinstall peer/api/python 2>&1 | grep "Building C object.*codec.c"'
check "pip removes the package" types 'python3 -m pip uninstall -y hearsay'
line=$(page_commands $page "# hearsay for Python" 2)
check "$line" types "$line"
check "  prints the path of the library" grep -q 'build/release/libhearsay.so' typed.out
echo "# the tree took $(du -sm tree | cut -f1) MB"
e2e_end
