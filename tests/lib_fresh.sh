# tests/lib_fresh.sh -- a bare Debian with a clone of this checkout in /root/hearsay, for tests that run the commands
# of the pages as a new user does. Sourced by bash after tests/lib.sh.
# shellcheck shell=bash disable=SC2154
# shellcheck source=tests/lib_docker.sh
. "$root/tests/lib_docker.sh"

# fresh_begin RELEASE: makes the bare Debian and the clone. Skips the script if that is not possible.
fresh_begin()
{
    local need tar
    e2e_begin
    [ "$(id -u)" = 0 ] || skip "only root can make a bare Debian"
    for need in unshare debootstrap; do
        command -v "$need" >/dev/null || skip "there is no $need here"
    done
    # This test builds and tests the program in the clone. If $HEARSAY is not from a build directory, the caller wants to
    # test another program, so the script is skipped.
    [ -e "$(dirname "$HEARSAY")/CPackConfig.cmake" ] || skip "$HEARSAY is not in a build directory"
    ! "$HEARSAY" --version | grep -qE '^sanitizers +[^n ]' || skip "a build with sanitizers: the clone is built without"
    tar=$(docker_base_tar "$1") || skip "debootstrap makes no Debian $1 here (does the package archive answer?)"
    bare_tree "$tar"
    # Makes apt ask no questions and install no recommended packages.
    printf 'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\nquiet "2";\n' >tree/etc/apt/apt.conf.d/99test
    inside apt-get update >update.out 2>&1 || skip "no package archive answers: $(tail -n 1 update.out)"
    clone_tree tree/root/hearsay || not_ok "the files of this checkout are copied"
    patience=$((3 * patience)) # Factor for time limits: a build and all unit tests take long on a busy machine.
}

# types COMMAND [N]: runs a command line in the clone, as a user would type it. Prints the line and the last N (default: 2)
# lines of its output with the prefix "#= ". tests/run shows lines with this prefix even if the script passes.
# shellcheck disable=SC2317 # This function is called indirectly, by check.
types()
{
    local code
    echo "#= $fresh_release\$ $1"
    inside env PIP_BREAK_SYSTEM_PACKAGES=1 PIP_VERBOSE=1 bash -c "cd /root/hearsay && $1" >typed.out 2>typed.err
    code=$?
    grep -v '^ *$' typed.out | tail -n "${2:-2}" | sed 's/^/#=   /'
    [ "$code" = 0 ] || tail -n 20 typed.err | sed 's/^/#   /'
    bare_keep 2>/dev/null
    return "$code"
}

# follow_pages RELEASE: runs the commands of deploy/README.md from a bare clone to `import hearsay`, and no other commands.
follow_pages()
{
    local line lines=0
    fresh_release=$1
    ! inside sh -c 'command -v python3 || command -v gcc' >/dev/null || not_ok "a bare Debian has neither python3 nor gcc"
    while IFS= read -r line; do
        lines=$((lines + 1))
        [ "$line" != deploy/quickstart ] || line="$line --rounds 30" # Without --rounds this run takes minutes.
        case $line in
        *'install dpkg-dev'*)
            check "cpack fails without these tools" eval '! types "$(page_commands deploy/README.md "## Installing" | grep ^cpack)"'
            check "  and names them" grep -q 'apt-get install dpkg-dev file' typed.err
            ;;
        esac
        check "$line" types "$line" "$([ $lines = 1 ] && echo 16)"
        case $line in
        deploy/quickstart*) check "  eight peers reach consensus" grep -q '^consensus of 8 of 8 peers' typed.out ;;
        esac
    done < <(page_commands deploy/README.md "## Installing"; page_commands deploy/README.md "## libhearsay and its reference")
    check "the page has commands: $lines" [ "$lines" -ge 6 ]
    check "  the last one imports the library of the system" grep -qx 'libhearsay.so.0' typed.out
    check "  and hearsay is installed" inside hearsay --version
}
