#!/usr/bin/env bash
# tests/e2e/harness.sh -- tests the test scripts: a failed check makes its script and tests/run fail, and no script passes
# with a program that does nothing.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# ---- The exit status of a script is 0 only if all its checks pass. ----

# script NAME LINES: makes a script NAME.sh with these lines between e2e_begin and e2e_end.
script()
{
    printf '%s\n' ". '$root/tests/lib.sh'" e2e_begin "$2" e2e_end >"$1.sh"
}

# run_script NAME: runs NAME.sh. Output: NAME.log, exit code: $code.
run_script()
{
    HEARSAY=/bin/true bounded bash "$1.sh" >"$1.log" 2>&1 </dev/null
    code=$?
}

script passes 'check "holds" true'
run_script passes
check "a script whose checks hold exits with 0" [ "$code" = 0 ]

script fails 'check "holds" true
check "does not hold" false
check "holds" true'
run_script fails
check "a script with one failed check exits with 1" [ "$code" = 1 ]
check "  and prints the seed" grep -q '^# SEED=' fails.log

script cleans 'clean_up() { echo "cleaned up"; true; }
at_exit clean_up
check "does not hold" false'
run_script cleans
check "a clean-up function runs" grep -q '^cleaned up' cleans.log
check "  and leaves the exit status as it was" [ "$code" = 1 ]

script empty ':'
run_script empty
check "a script without a check exits with 1" [ "$code" = 1 ]

script leaves 'check "holds" true
exit 0'
run_script leaves
check "a script that ends before e2e_end exits with 1" [ "$code" = 1 ]

script fast 'check "does not hold" false
echo "went on"'
FAIL_FAST=1 run_script fast
check "FAIL_FAST=1 ends a script at the first failed check" eval '[ "$code" = 1 ] && ! grep -q "went on" fast.log'

check "no script sets a trap for EXIT, which would replace that of lib.sh" eval \
    '! grep -nE "^[^#]*trap .*EXIT" "$root"/tests/e2e/*.sh | grep -v "/harness.sh:"'

# ---- tests/run, in a project with one script and nothing to build. ----

mkdir -p toy/tests/e2e toy/tests/unit toy/tests/fuzz toy/deploy
cp "$root/tests/run" toy/tests/run
printf 'packages_build= packages_quick= packages_test=\npackages_install() { :; }\n' >toy/deploy/packages.sh
printf 'cmake_minimum_required(VERSION 3.20)\nproject(toy NONE)\nadd_custom_target(hearsay)\n' >toy/CMakeLists.txt

# runner LINES: calls tests/run on a script with these lines. Output: runner.log, exit code: $code.
runner()
{
    printf '%s\n' "$1" >toy/tests/e2e/one.sh
    bounded bash toy/tests/run one >runner.log 2>&1 </dev/null
    code=$?
}
runner 'echo "ok - holds"'
check "tests/run counts a script that passes" eval \
    '[ "$code" = 0 ] && [ "$(tail -n 1 runner.log)" = "1 passed, 0 failed, 0 skipped" ]'
runner 'echo "not ok - does not hold"; exit 0'
check "a line 'not ok' is a failure even if the script exits with 0" eval \
    '[ "$code" = 1 ] && [ "$(tail -n 1 runner.log)" = "0 passed, 1 failed, 0 skipped" ]'
runner 'echo "ok - holds"; exit 3'
check "an exit status other than 0 and 77 is a failure" eval \
    '[ "$code" = 1 ] && [ "$(tail -n 1 runner.log)" = "0 passed, 1 failed, 0 skipped" ]'
runner 'echo "skipped: no such tool"; exit 77'
check "the exit status 77 is counted as skipped, and a run that passed nothing fails" eval \
    '[ "$code" = 1 ] && [ "$(tail -n 1 runner.log)" = "0 passed, 0 failed, 1 skipped" ]'

# ---- No script passes with a program that does nothing. ----

# Scripts that do not run the program: one runs deploy/quickstart with a cmake that fails, one reads a header, one
# checks models.
without_program=(harness quickstart api_docs model)
mkdir nothing
printf '#!/bin/sh\nexit 0\n' >nothing/hearsay
printf '#!/bin/sh\nexit 1\n' >nothing/docker # Makes the tests with containers skip, because they take minutes.
chmod +x nothing/hearsay nothing/docker

# with_nothing NAME: runs one script with the program that does nothing. A script that exceeds its time limit has not passed.
with_nothing()
{
    PATIENCE=0 FAIL_FAST=1 HEARSAY=$work/nothing/hearsay PATH=$work/nothing:$PATH \
        timeout -k 5 60 bash "$root/tests/e2e/$1.sh" >"nothing/$1.log" 2>&1 </dev/null
    echo $? >"nothing/$1.status"
}
names=()
for file in "$root"/tests/e2e/*.sh; do
    name=$(basename "$file" .sh)
    [[ " ${without_program[*]} " != *" $name "* ]] || continue
    names+=("$name")
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do
        wait -n
    done
    with_nothing "$name" &
done
wait
check "there are scripts to try: ${#names[@]}" [ ${#names[@]} -gt 50 ]
n_skipped=0
n_passed=0
for name in "${names[@]}"; do
    case $(cat "nothing/$name.status") in
    0)
        n_passed=$((n_passed + 1))
        not_ok "$name passes with a program that does nothing"
        ;;
    77) n_skipped=$((n_skipped + 1)) ;;
    esac
done
check "with a program that does nothing no script passes ($n_skipped of ${#names[@]} skip)" [ $n_passed = 0 ]
e2e_end
