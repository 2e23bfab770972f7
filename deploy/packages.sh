# deploy/packages.sh -- the Debian and Ubuntu packages that each use needs, and how to install them.
# Sourced (POSIX sh) by deploy/quickstart, tests/run, .ci/run and the Dockerfile.
# shellcheck shell=sh disable=SC2034

# The name of a package depends on the release of Debian or Ubuntu. Names separated by "|" are alternatives: the first one
# that apt offers is installed.
packages_build="gcc libc6-dev cmake make pkg-config libuv1-dev libsodium-dev \
libopenblas-dev libmsgpack-c-dev|libmsgpack-dev zlib1g-dev libjansson-dev libmicrohttpd-dev"
packages_runtime="libuv1t64|libuv1 libsodium23 libopenblas0-pthread libmsgpack-c2|libmsgpackc2 libjansson4 \
libmicrohttpd12t64|libmicrohttpd12 zlib1g"
packages_quick="libcmocka-dev python3" # tests/run --quick needs these packages in addition to packages_build.
packages_test="spin python3-numpy python3-matplotlib python3-protobuf python3-yaml dpkg-dev file valgrind clang libclang-rt-dev clang-format locales doxygen man-db chromium"
packages_engine="docker.io docker-cli|docker.io docker-compose iptables ca-certificates"
packages_root="debootstrap" # Needed by tests that install a Debian into a directory as root.

packages_installed()
{
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) in
    ii*) return 0 ;;
    esac
    return 1
}

# Print each argument of which no alternative is installed. An argument is a package or alternatives separated by "|".
packages_missing()
{
    for package in "$@"; do
        for package_name in $(echo "$package" | tr '|' ' '); do
            ! packages_installed "$package_name" || continue 2
        done
        printf '%s ' "$package"
    done
}

# Print, for each argument, the first alternative that apt offers. If apt offers none, print all alternatives and fail.
packages_offered()
{
    packages_unknown=no
    for package in "$@"; do
        # shellcheck disable=SC2046 # Unquoted, because the output is a list of words.
        package_name=$(LC_ALL=C apt-cache policy $(echo "$package" | tr '|' ' ') \
            | awk '/^[^ ]/ { name = $1; sub(/:$/, "", name) } /^  Candidate: / && $2 != "(none)" { print name; exit }')
        [ -n "$package_name" ] || packages_unknown=yes
        printf '%s ' "${package_name:-$package}"
    done
    [ $packages_unknown = no ]
}

# Run a command as root: directly, or with sudo.
packages_as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "error: this needs root, and sudo is not installed: $*" >&2
        return 1
    fi
}

packages_apt()
{
    packages_as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
        -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Install the named packages that are missing. If all are installed, nothing changes. On a system
# without apt the build itself reports what is missing.
packages_install()
{
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "apt is not installed: these packages must be installed already: $*" >&2
        return 0
    fi
    packages_lacking=$(packages_missing "$@")
    [ -n "$packages_lacking" ] || return 0
    packages_log=$(mktemp) || return 1
    # shellcheck disable=SC2086 # Unquoted, because the variable is a list of words.
    if packages_apt update >"$packages_log" 2>&1 \
        && { packages_lacking=$(packages_offered $packages_lacking) \
            || { echo "apt offers no package for each of these names: $packages_lacking" >"$packages_log"; false; }; } \
        && echo "installing: $packages_lacking" \
        && packages_apt install --no-install-recommends $packages_lacking >"$packages_log" 2>&1; then
        rm -f "$packages_log"
        return 0
    fi
    tail -n 20 "$packages_log" >&2
    rm -f "$packages_log"
    echo "error: could not install: $packages_lacking" >&2
    return 1
}
