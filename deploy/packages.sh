# deploy/packages.sh -- the Debian packages each use needs, and their installing.
# Sourced (POSIX sh) by deploy/quickstart, tests/run, .ci/run and the Dockerfile.
# shellcheck shell=sh disable=SC2034

packages_build="gcc libc6-dev cmake make pkg-config libuv1-dev libsodium-dev \
libopenblas-dev libmsgpack-dev zlib1g-dev libjansson-dev libmicrohttpd-dev"
packages_runtime="libuv1 libsodium23 libopenblas0-pthread libmsgpackc2 libjansson4 libmicrohttpd12 zlib1g"
packages_test="libcmocka-dev python3 python3-numpy python3-yaml dpkg-dev valgrind clang libclang-rt-dev clang-format gnuplot-nox locales graphviz doxygen man-db chromium"
packages_engine="docker.io docker-compose debootstrap iptables ca-certificates"

# Print those of the named packages that are not installed.
packages_missing()
{
    for package in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in
        ii*) ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

# Run a command as root: as it is, or by sudo.
packages_as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "error: this needs root, and there is no sudo: $*" >&2
        return 1
    fi
}

packages_apt()
{
    packages_as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
        -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Install what is missing of the named packages; nothing is touched where all
# are there. Where there is no apt the build itself will say what it misses.
packages_install()
{
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "no apt here: the packages have to be there already: $*" >&2
        return 0
    fi
    packages_lacking=$(packages_missing "$@")
    [ -n "$packages_lacking" ] || return 0
    echo "installing: $packages_lacking"
    packages_log=$(mktemp) || return 1
    # shellcheck disable=SC2086 # A list of words.
    if packages_apt update >"$packages_log" 2>&1 \
        && packages_apt install --no-install-recommends $packages_lacking >"$packages_log" 2>&1; then
        rm -f "$packages_log"
        return 0
    fi
    tail -n 20 "$packages_log" >&2
    rm -f "$packages_log"
    echo "error: could not install: $packages_lacking" >&2
    return 1
}
