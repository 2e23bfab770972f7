# tests/lib_docker.sh -- functions for tests with containers, and with a bare Debian in a directory. Sourced by bash, with
# the path of the repository in $root.
# shellcheck shell=bash disable=SC2154

docker_base=hearsay-base:bookworm # Name of the base image that docker_base_image makes if Debian's image is not available.

# docker_answers: succeeds if a container engine (docker) runs and answers.
docker_answers()
{
    command -v docker >/dev/null && timeout 20 docker info >/dev/null 2>&1
}

# docker_compose: prints the command that runs docker compose on this machine. Fails if docker compose
# is not installed.
docker_compose()
{
    if docker compose version >/dev/null 2>&1; then
        echo "docker compose"
    elif command -v docker-compose >/dev/null; then
        echo "docker-compose"
    else
        return 1
    fi
}

# docker_apt_sources RELEASE: prints the lines of a sources.list for a Debian release. If this machine's apt has sources for
# the release, prints the lines of these sources. Otherwise prints lines that use the archive of this machine's own release.
docker_apt_sources()
{
    local known lines
    # shellcheck disable=SC2016 # apt replaces these variables, not the shell.
    known=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null | sort -u)
    lines=$(sed -nE "s/^([^ ]*) ($1(-updates|-security)?)\$/deb \1 \2 main/p" <<<"$known")
    if [ -z "$lines" ]; then
        known=$(sed -nE 's/^([^ ]*) (bookworm|trixie)$/\1/p' <<<"$known" | head -n 1)
        lines="deb ${known:-http://deb.debian.org/debian} $1 main"
    fi
    echo "$lines"
}

# docker_base_tar [RELEASE]: makes a bare Debian (default: bookworm) with debootstrap, and prints the path of a tar file with
# it. The file is kept outside of the repository for later tests. Fails if no package archive answers.
docker_base_tar()
{
    local release=${1:-bookworm} cache=${XDG_CACHE_HOME:-/var/cache}/hearsay-base tar tree mirror
    [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || return 1
    mkdir -p "$cache" || return 1
    tar=$cache/$release.tar
    if [ ! -s "$tar" ]; then
        mirror=$(docker_apt_sources "$release" | sed -n "s/^deb \([^ ]*\) $release main\$/\1/p" | head -n 1)
        tree=$(mktemp -d "$cache/tree.XXXXXX") || return 1
        chmod 755 "$tree" # $tree becomes the root directory, which every user must be able to enter.
        # shellcheck disable=SC2086 # $mirror may be empty: debootstrap then uses its default.
        if ! debootstrap --variant=minbase "$release" "$tree" $mirror >"$cache/$release.log" 2>&1 </dev/null; then
            tail -n 5 "$cache/$release.log" >&2
            rm -rf "$tree"
            return 1
        fi
        docker_apt_sources "$release" >"$tree/etc/apt/sources.list"
        # Copies the machine's settings for reaching package archives.
        apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-Valid-Until|Check-Date) ' \
            >"$tree/etc/apt/apt.conf.d/99machine"
        rm -rf "$tree"/var/lib/apt/lists/* "$tree"/var/cache/apt/*
        tar -C "$tree" -c . >"$tar.part" && mv "$tar.part" "$tar"
        rm -rf "$tree"
    fi
    echo "$tar"
}

# bare_tree TAR: unpacks a bare Debian into ./tree, for the function `inside`. Packages that apt downloads in ./tree are
# kept next to the tar file.
bare_tree()
{
    bare_kept=${1%.tar}-archives
    mkdir -p "$bare_kept" tree && tar -C tree -xf "$1" && cp /etc/resolv.conf /etc/hosts tree/etc || return 1
    mkdir -p tree/var/cache/apt/archives
    cp -l "$bare_kept"/*.deb tree/var/cache/apt/archives 2>/dev/null \
        || cp "$bare_kept"/*.deb tree/var/cache/apt/archives 2>/dev/null
    echo 'APT::Keep-Downloaded-Packages "true";' >tree/etc/apt/apt.conf.d/99keep
    # dpkg need not sync files: after a crash the tree is not used again.
    mkdir -p tree/etc/dpkg/dpkg.cfg.d && echo force-unsafe-io >tree/etc/dpkg/dpkg.cfg.d/99test
    inside true || skip "no mounts here"
}

# inside COMMAND...: runs a command with ./tree as root directory, in new process and mount namespaces. The lock files of
# take_ports are shared with the host.
inside()
{
    mkdir -p tree/tmp/hearsay-ports-0
    # shellcheck disable=SC2016 # The inner shell, not this one, expands the variables in the string.
    bounded unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc tree/proc && mount --bind /dev tree/dev && mount -t tmpfs tmpfs tree/dev/shm || exit 125
        mount --bind "$0" tree/tmp/hearsay-ports-0 || exit 125
        exec chroot tree env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
            OPENBLAS_NUM_THREADS=1 PATIENCE="$PATIENCE" "$@"' "$(dirname "$ports")" "$@" </dev/null
}

# bare_keep: copies the packages that apt downloaded in ./tree to the cache, for the next test.
bare_keep()
{
    cp -ln tree/var/cache/apt/archives/*.deb "$bare_kept" 2>/dev/null || cp -n tree/var/cache/apt/archives/*.deb "$bare_kept"
}

# clone_tree DIR: copies the tracked files of this checkout to DIR, as in a fresh clone. Without git: all files outside of build/.
clone_tree()
{
    mkdir -p "$1"
    git -c safe.directory="$root" -C "$root" ls-files -z >tracked 2>/dev/null
    [ -s tracked ] || (cd "$root" && find . \( -name .git -o -path ./build -o -path ./shared \) -prune -o -type f -print0) >tracked
    tar -C "$root" --null -T "$PWD/tracked" -c | tar -C "$1" -x
    [ -s "$1/CMakeLists.txt" ]
}

# page_commands FILE HEADING [N]: prints the commands, without comments, of the N-th code block below a heading (default: 1).
page_commands()
{
    awk -v heading="$2" -v n="${3:-1}" '
        /^```/ { block = !block; seen += on && block; next }
        !block && /^#+ / { on = ($0 == heading) }
        on && block && seen == n { sub(/(^| +)#( .*)?$/, ""); if ($0 != "") print }' "$root/$1"
}

docker_make_base()
{
    local tar
    tar=$(docker_base_tar bookworm) && docker import "$tar" "$docker_base" >/dev/null
}

# docker_base_image: prints the name of a Debian base image on this machine. Pulls or makes one if necessary.
docker_base_image()
{
    local image
    for image in debian:bookworm-slim "$docker_base"; do
        if docker image inspect "$image" >/dev/null 2>&1; then
            echo "$image"
            return 0
        fi
    done
    if timeout 120 docker pull -q debian:bookworm-slim >/dev/null 2>&1; then
        echo debian:bookworm-slim
    elif docker_make_base; then
        echo "$docker_base"
    else
        return 1
    fi
}

# docker_build TAG LOG: builds deploy/Dockerfile with the network and the proxies of the host, so that the build reaches
# the package archives.
docker_build()
{
    local base old variable args=()
    base=$(docker_base_image) || { echo "no base image can be pulled or made" >"$2"; return 1; }
    for variable in http_proxy https_proxy no_proxy; do
        [ -z "${!variable-}" ] || args+=(--build-arg "$variable=${!variable}")
    done
    args+=(--network host --build-arg "BASE=$base" -f "$root/deploy/Dockerfile")
    old=$(docker image inspect -f '{{.Id}}' "$1" 2>/dev/null)
    # The first stage of the Dockerfile is built separately and gets a name, so that docker keeps its layers for the next build.
    { docker build "${args[@]}" --target tools -t "$1-tools" "$root" \
        && docker build "${args[@]}" -t "$1" "$root"; } >"$2" 2>&1 </dev/null || return 1
    # Intermediate images are removed, because each contains a whole system.
    docker image prune -f --filter label=hearsay.stage=build >/dev/null 2>&1
    if [ -n "$old" ] && [ "$old" != "$(docker image inspect -f '{{.Id}}' "$1")" ]; then
        docker rmi "$old" >/dev/null 2>&1
    fi
    return 0
}
