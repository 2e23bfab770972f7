#!/usr/bin/env bash
# tests/e2e/quickstart.sh -- deploy/quickstart: what it prints before it builds, and after a build that fails.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
e2e_begin

# Makes a program `cmake` that saves what quickstart has printed so far, and fails.
mkdir bin
cat >bin/cmake <<END
#!/bin/sh
cp "$work/quick.out" "$work/before.out"
echo "no compiler of that name"
exit 1
END
chmod +x bin/cmake
PATH=$work/bin:$PATH bounded "$root/deploy/quickstart" --peers 2 >quick.out 2>quick.err </dev/null
check "a build that fails: exit code 1" [ $? = 1 ]
check "  how long it takes is printed before" grep -q 'takes a minute or two' before.out
check "  what went wrong is shown" grep -q 'no compiler of that name' quick.err
check "  and named" grep -q '^quickstart: the build failed' quick.err
check "  and nothing is trained" eval '! grep -q "== hearsay local" quick.out'

e2e_end
