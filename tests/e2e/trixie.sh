#!/usr/bin/env bash
# tests/e2e/trixie.sh -- runs in a bare Debian 13 the commands of deploy/README.md from quickstart to `import hearsay`,
# `tests/run --quick`, and all Python tests. debootstrap makes the Debian. Skips if no package archive answers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib_fresh.sh
. "$root/tests/lib_fresh.sh"
fresh_begin trixie

follow_pages trixie
# More cases run in Debian 12. In Debian 13 a few cases are enough to find errors of other compilers or
# libraries.
check "tests/run --quick" types "TEST_SHARE=20 PLAN_SHARE=5 tests/run --quick" 4
grep '^not ok' typed.out | sed 's/^/# /'

# Checks in a second, bare Debian that the run-time packages of deploy/Dockerfile are enough to run the program.
mv tree built
bare_tree "$(docker_base_tar trixie)"
mkdir -p tree/root/hearsay && cp -r built/root/hearsay/deploy tree/root/hearsay && cp built/root/hearsay/build/release/hearsay tree/usr/local/bin
check "the packages of the Dockerfile's last stage" types '. deploy/packages.sh && packages_install $packages_runtime'
check "  are all that the program needs" types 'hearsay --version' 1
rm -rf tree && mv built tree

# The Python tests use the library in the clone. One test expects that no library is installed in the system.
check "apt removes the packages" types 'apt-get remove python3-hearsay libhearsay hearsay'
check "apt installs PyTorch" types 'apt-get install python3-torch'
check "  and its version is known" types 'python3 -c "import sys, torch; print(sys.version.split()[0], torch.__version__)"' 1
for script in "$root"/tests/e2e/python_*.sh; do
    name=$(basename "$script")
    types "bash tests/e2e/$name" 1
    code=$?
    sed 's/^/# /' typed.out | grep '^# not ok'
    case $code in
    77) echo "# skipped $name: $(grep -m 1 '^skipped' typed.out)" ;;
    *) check "$name: $(grep -c '^ok' typed.out) checks" [ $code = 0 ] ;;
    esac
done
e2e_end
