# tests/lib.sh -- functions for the end-to-end scripts. Sourced by bash.
# shellcheck shell=bash
#
# A script uses the program $HEARSAY, works in its own directory, and prints one line per check ("ok ..." or "not ok ...").
# A script ends only processes that it started. Exit code: 0 if all checks pass, 1 if one fails, 77 if it cannot run
# here.
#
#   . "$(dirname "$0")/../lib.sh"
#   e2e_begin
#   at_exit clean_up_function      # Optional. A script never sets a trap for EXIT itself.
#   check "what must hold" command...
#   e2e_end
#
# FAIL_FAST=1 ends a script at its first failed check. KEEP=1 keeps its directory.

set -u
export LC_ALL=C OPENBLAS_NUM_THREADS=1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
HEARSAY=$(realpath -m "${HEARSAY:-$root/build/release/hearsay}")
seed=${SEED:-1} # Seed for all runs of a script. A script that fails prints it.
failed=0
n_checks=0
reached_end= # Not empty: e2e_end was called, so all checks were made.
pids=()      # Processes that this script started and still has to end.
exit_hooks=() # Names of functions that run when the script ends, see at_exit.

# Variables HEARSAY_* of the caller are removed, because they set options.
for variable in $(compgen -e | grep '^HEARSAY_'); do
    unset "$variable"
done

skip()
{
    echo "skipped: $*"
    exit 77
}

ok()
{
    echo "ok - $*"
    n_checks=$((n_checks + 1))
}

not_ok()
{
    echo "not ok - $*"
    n_checks=$((n_checks + 1))
    failed=$((failed + 1))
    [ -z "${FAIL_FAST-}" ] || exit 1
}

# check TEXT COMMAND...: runs a command, and prints "ok" if it succeeds, else "not ok".
check()
{
    local text=$1
    shift
    if "$@"; then
        ok "$text"
    else
        not_ok "$text"
    fi
}

# within X LOW HIGH: succeeds if X is a number in [LOW, HIGH].
within()
{
    awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN {
        number = "^[-+]?[0-9]*[.]?[0-9]+([eE][-+]?[0-9]+)?$"
        exit !(x ~ number && x + 0 >= low + 0 && x + 0 <= high + 0)
    }'
}

# now_ms: prints the time in milliseconds.
now_ms()
{
    echo $(($(date +%s%N) / 1000000))
}

# ---- Starting and ending processes. ----

# The time limits of wait_until and finish are multiplied by $patience, because a test must also pass on a busy machine. A
# test that passes never waits for the full time.
patience=${PATIENCE:-5}

# bounded COMMAND...: runs a command, and ends it if it hangs.
bounded()
{
    timeout -k 5 $((120 * patience)) "$@"
}

# start LOG COMMAND...: starts a command in the background, with its output in the file LOG. The process id of the
# command is $started.
start()
{
    local log=$1
    shift
    "$@" >"$log.out" 2>"$log.err" </dev/null &
    started=$!
    pids+=("$started")
}

# process_stat PID: prints the state letter and the parent's id of a process. Prints nothing if the process does
# not exist.
process_stat()
{
    local line
    { line=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    line=${line##*) }
    echo "${line%% [0-9-]*} $(cut -d' ' -f2 <<<"$line")"
}

# alive PID: succeeds if the process runs. A zombie does not count as running.
alive()
{
    local stat
    stat=$(process_stat "$1") && [[ $stat != [ZX]* ]]
}

any_alive()
{
    local pid
    for pid in "$@"; do
        alive "$pid" && return 0
    done
    return 1
}

none_alive()
{
    ! any_alive "$@"
}

# children_of PID: prints the ids of the children of a process.
children_of()
{
    local dir stat
    for dir in /proc/[0-9]*; do
        stat=$(process_stat "${dir#/proc/}") && [ "${stat#* }" = "$1" ] && echo "${dir#/proc/}"
    done
    return 0
}

# wait_until SECONDS COMMAND...: runs a command five times a second until it succeeds. Fails after SECONDS * $patience.
wait_until()
{
    local end=$(($(now_ms) + $1 * 1000 * patience))
    shift
    until "$@"; do
        [ "$(now_ms)" -lt "$end" ] || return 1
        sleep 0.2
    done
}

# echoed SIGNAL PID...: sends a signal five times within milliseconds, with pauses so that the kernel delivers each of them.
echoed()
{
    local signal=$1
    shift
    for _ in 1 2 3 4 5; do
        env kill "-$signal" -- "$@" 2>/dev/null
    done
}

# finish PID SECONDS: waits for the end of a process. The exit code of the process is in $code. A process that takes too
# long is killed, and $code is 124.
finish()
{
    if ! wait_until "$2" none_alive "$1"; then
        kill -KILL "$1" 2>/dev/null
        wait "$1" 2>/dev/null
        code=124
    else
        wait "$1" 2>/dev/null
        code=$?
    fi
    forget "$1"
    [ "$code" = 0 ]
}

forget()
{
    local pid kept=()
    for pid in ${pids[@]+"${pids[@]}"}; do
        [ "$pid" = "$1" ] || kept+=("$pid")
    done
    pids=(${kept[@]+"${kept[@]}"})
}

# ---- Ports, Python, results of runs. ----

# take_ports: reserves a block of 64 loopback ports for this script, with a file lock that the kernel releases when the
# script ends. The ports are below the range that the kernel uses for outgoing connections, because such a port may stay
# in use for minutes.
take_ports()
{
    local dir=${TMPDIR:-/tmp}/hearsay-ports-$UID block tries
    mkdir -p "$dir" || exit 1
    for tries in {1..1000}; do
        block=$((12000 + 64 * (RANDOM % 312)))
        exec {ports_lock}>>"$dir/$block"
        flock -n "$ports_lock" && ports=$dir/$block && return
        exec {ports_lock}>&-
    done
    echo "tests/lib.sh: no block of ports is free after $tries tries" >&2
    exit 1
}

# free_ports N: prints N different loopback ports that are free now. Each call prints other ports. The lock file of this
# script's block of ports (see take_ports) stores the port at which the next call begins.
free_ports()
{
    python3 - "$1" "$ports" <<'PY'
import os, socket, sys
n, path = int(sys.argv[1]), sys.argv[2]
begin, at = int(os.path.basename(path)), int(open(path).read() or 0)
free = []
for _ in range(64):
    port, at = begin + at, (at + 1) % 64
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
            free.append(port)
        except OSError:
            continue
    if len(free) == n:
        break
else:
    sys.exit("tests/lib.sh: %d of 64 ports are free, and %d are wanted" % (len(free), n))
open(path, "w").write(str(at))
print(*free)
PY
}
take_ports

# take_python: sets $python to a Python with numpy, preferably also with PyTorch, and $library to libhearsay in the
# directory of $HEARSAY. Skips the script if Python or the library is missing.
take_python()
{
    local module one
    python=
    for module in torch numpy; do
        for one in python3 /usr/bin/python3; do
            if [ -z "$python" ] && "$one" -c "import numpy, $module" 2>/dev/null; then
                python=$one
            fi
        done
    done
    [ -n "$python" ] || skip "python3 has no numpy here (Debian: python3-numpy)"
    library=$(dirname "$HEARSAY")/libhearsay.so
    [ -e "$library" ] || skip "there is no $library (cmake --build build/release --target libhearsay)"
}

# take_lab: like take_python, but $python also has matplotlib and tomllib (Python 3.11 or later). `lab ARGS...` then calls
# hearsay-lab.
take_lab()
{
    local one
    take_python
    for one in "$python" python3 /usr/bin/python3; do
        if "$one" -c 'import numpy, matplotlib, tomllib' 2>/dev/null; then
            python=$one
            return
        fi
    done
    skip "no python3 here has numpy, matplotlib (Debian: python3-matplotlib) and tomllib (Python 3.11)"
}
lab()
{
    HEARSAY=$HEARSAY HEARSAY_LIBRARY=$library PYTHONPATH=$root/peer/api/python bounded "$python" -m hearsay.lab "$@"
}

# figures TOOL ARGS...: runs tests/e2e/figures.py, which reads the files of runs.
figures()
{
    python3 "$root/tests/e2e/figures.py" "$@"
}

# last_round FILE: prints the last round in a metrics.jsonl, or -1 if it has no round. An incomplete last line is ignored.
# Uses no Python, because it is called often and must be fast.
last_round()
{
    local round
    round=$(tail -n 3 "$1" 2>/dev/null | sed -n 's/^{.*"round": *\([0-9][0-9]*\)[,}].*}$/\1/p' | tail -n 1)
    echo "${round:--1}"
}

round_at_least()
{
    [ "$(last_round "$1")" -ge "$2" ]
}

# ---- Beginning and end of a script. ----

e2e_begin()
{
    local need
    for need in python3 awk cmp; do
        command -v "$need" >/dev/null || skip "there is no $need here"
    done
    if [ ! -x "$HEARSAY" ]; then
        not_ok "there is a program at $HEARSAY"
        exit 1
    fi
    work=$(mktemp -d) || exit 1
    trap e2e_clean EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    cd "$work" || exit 1
}

# at_exit FUNCTION: registers a function that runs when the script ends. The last registered function runs first. The
# functions do not change the exit status of the script.
at_exit()
{
    exit_hooks=("$1" ${exit_hooks[@]+"${exit_hooks[@]}"})
}

e2e_clean()
{
    local status=$? pid hook
    # A script that exits with 0 before e2e_end has not made all of its checks, so it counts as failed.
    if [ "$status" = 0 ] && [ -z "$reached_end" ]; then
        not_ok "the script ended before e2e_end"
        status=1
    fi
    for hook in ${exit_hooks[@]+"${exit_hooks[@]}"}; do
        "$hook"
    done
    for pid in ${pids[@]+"${pids[@]}"}; do
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    if [ "$status" != 0 ] && [ "$status" != 77 ]; then
        echo "# SEED=$seed"
        tail -n 5 "$work"/*.err "$work"/*.out 2>/dev/null | sed 's/^/# /'
    fi
    if [ -n "${KEEP-}" ]; then
        echo "# kept: $work"
    else
        rm -rf "$work"
    fi
    exit "$status"
}

e2e_end()
{
    reached_end=yes
    [ "$n_checks" -gt 0 ] || not_ok "the script made no check"
    [ "$failed" = 0 ] || exit 1
    exit 0
}
