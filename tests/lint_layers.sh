#!/usr/bin/env bash
# tests/lint_layers.sh -- holds the house's arrows and its rules of writing.
#
#   tests/lint_layers.sh [ROOT]
#
# Prints every violation, one a line; exit code 1 where there was one.
set -u
export LC_ALL=C
cd "${1:-$(dirname "$0")/..}" || exit 1
shopt -s nullglob
bad=0

complain()
{
    printf '%s\n' "$*"
    bad=1
}

# ---- Which headers a file may include, as one extended regex. ----

std='<(assert|ctype|errno|float|inttypes|limits|math|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings)\.h>'
files='<(dirent|fcntl|unistd|sys/stat|sys/types|sys/mman)\.h>'
vectors='"nn/(rng|vec)\.h"'

# The one door of each third-party library, and what each room may see.
allowed()
{
    local door=''
    case $1 in
    nn/blas.c) door='<cblas\.h>' ;;
    nn/file*.c) door="<zlib\.h>|$files" ;;
    compress/simd*.c | nn/simd.h) door='<immintrin\.h>' ;;
    nn/team.c) door='<pthread\.h>' ;;
    nn/safetensors*.c) door="<jansson\.h>|$files" ;;
    compress/atomo.c) door='"nn/blas\.h"' ;;
    gossip/wire*.c) door='<msgpack(/[a-z_]+)?\.h>' ;;
    peer/noise*.c | peer/channel*.c | peer/run*.c | peer/keyfile*.c | peer/identity*.c) door='<sodium\.h>' ;;
    peer/options.c) door='<getopt\.h>' ;;
    peer/metrics*.c | peer/report*.c) door='<jansson\.h>' ;;
    esac
    case $1 in
    peer/keyfile*.c | peer/output*.c | peer/checkpoint*.c) door="$door|$files" ;;
    esac
    case $1 in
    nn/*) echo "\"nn/|$std${door:+|$door}" ;;
    topology/*) echo "\"topology/|$vectors|$std" ;;
    compress/*) echo "\"compress/|$vectors|$std${door:+|$door}" ;;
    gossip/*) echo "\"(gossip|compress|topology)/|$vectors|$std${door:+|$door}" ;;
    peer/main.c | peer/cmd*) echo '["<]' ;;
    peer/uv_*) echo '"(peer|gossip|compress|topology|nn)/|<' ;;
    peer/*) echo "\"(peer|gossip|compress|topology|nn)/|$std${door:+|$door}" ;;
    esac
}

# What it may not see although the line above lets it.
forbidden()
{
    case $1 in
    peer/main.c | peer/cmd*) echo '<(msgpack|zlib|cblas)' ;;
    peer/uv_*) echo '"peer/(cmd|sim_)|<(msgpack|zlib|cblas)' ;;
    peer/sim_*) echo '"peer/(cmd|uv_)' ;;
    *) echo '"peer/(cmd|uv_|sim_)|"tests/' ;;
    esac
}

check_includes()
{
    local line
    while IFS= read -r line; do
        complain "$1:$line: this room may not see it"
    done < <({
        grep -nE '^[[:space:]]*#[[:space:]]*include' "$1" | grep -vE "($(allowed "$1"))"
        grep -nE '^[[:space:]]*#[[:space:]]*include' "$1" | grep -E "($(forbidden "$1"))"
    } | sort -un)
}

# ---- Which calls it may make. ----

clocks='time|clock|clock_gettime|gettimeofday|timespec_get|localtime|gmtime|strftime|sleep|usleep|nanosleep|uv_now|uv_hrtime'
chance='rand|rand_r|srand|random|srandom|drand48|lrand48|getrandom|getentropy|arc4random[a-z_]*|randombytes[a-z_]*'
print='printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|putc|fputc|perror'
# Sockets and files of POSIX come with headers that the pure rooms may not see.
world='fopen|fdopen|freopen|popen|system|tmpfile|mkstemp|remove|rename|atexit|pthread_[a-z_]+|thrd_[a-z_]+'
environment='getenv|secure_getenv|setenv|putenv'

banned()
{
    case $1 in
    peer/main.c | peer/cmd*) echo '' ;;
    peer/uv_*) echo "$environment|rand|srand|random" ;;
    peer/sim_*) echo "$clocks|$chance|$environment|$world" ;;
    nn/file*) echo "$clocks|$chance|$environment|$print" ;;
    nn/safetensors*) echo "$clocks|$chance|$environment" ;;
    nn/team.c) echo "$clocks|$chance|$print|$environment" ;;
    nn/* | topology/* | compress/* | gossip/*) echo "$clocks|$chance|$print|$environment|$world" ;;
    peer/node* | peer/frame* | peer/channel* | peer/noise* | peer/run* | peer/options*)
        echo "$clocks|$chance|$print|$environment|$world" ;;
    *) echo "$clocks|$chance|$environment" ;; # The rest of the core writes files.
    esac
}

# The code alone: comments and what stands in quotes become blanks.
code()
{
    awk '{
        out = ""; n = length($0)
        for (i = 1; i <= n; i++) {
            c = substr($0, i, 1); two = substr($0, i, 2)
            if (comment) { if (two == "*/") { comment = 0; i++ } continue }
            if (quote != "") { if (c == "\\") i++; else if (c == quote) quote = ""; continue }
            if (two == "/*") { comment = 1; i++; continue }
            if (two == "//") break
            if (c == "\"" || c == "\047") { quote = c; continue }
            out = out c
        }
        print out
    }' "$1"
}

check_calls()
{
    local names line
    names=$(banned "$1")
    [ -n "$names" ] || return 0
    while IFS= read -r line; do
        complain "$1:$line: this room may not call it"
    done < <(code "$1" | grep -nE "(^|[^A-Za-z0-9_.>])($names)[[:space:]]*\(")
}

# ---- How it is written. ----

check_form()
{
    local n first base=${1%.[ch]}
    n=$(wc -l <"$1")
    [ "$n" -le 600 ] || complain "$1: $n lines, 600 are the limit"
    case $1 in
    tests/*) ;;
    *.h)
        head -n 1 "$1" | grep -qF "/* $1 -- " || complain "$1:1: the first line is not '/* $1 -- ...'"
        grep -qE "^#ifndef $(echo "${base}_H" | tr 'a-z/' 'A-Z_')\$" "$1" || complain "$1: no include guard by its name"
        ;;
    *.c)
        first=$(grep -m 1 -E '^#include' "$1")
        [ ! -e "$base.h" ] || [ "$first" = "#include \"$base.h\"" ] \
            || complain "$1: its own header is not the first it includes"
        ;;
    esac
    if grep -nE '^typedef (struct|union|enum)\b' "$1"; then
        complain "$1: structs, unions and enums are not typedef'd"
    fi
}

rooms=({nn,topology,compress,gossip,peer}/*.[ch])
[ ${#rooms[@]} -gt 0 ] || complain "no sources in $PWD"
for file in "${rooms[@]}"; do
    check_includes "$file"
    check_calls "$file"
    check_form "$file"
done
for file in tests/*/*.[ch]; do
    check_form "$file"
done
for file in {nn,topology,compress,gossip,peer}/*/; do
    complain "$file: rooms have no folders inside"
done

# Words that say "not finished"; the brackets keep this line out of it.
unfinished=$(grep -rnwE 'TOD[O]|FIXM[E]|XX[X]' --include='*.[ch]' --include='*.sh' --include='*.py' --include=CMakeLists.txt \
    nn topology compress gossip peer tests deploy CMakeLists.txt 2>/dev/null)
[ -z "$unfinished" ] || complain "$unfinished"

# The top level holds the house and nothing else (what git ignores apart).
entries=$(git ls-files -co --exclude-standard 2>/dev/null | cut -d/ -f1 | sort -u)
for entry in $entries; do
    case $entry in
    nn | topology | compress | gossip | peer | tests | deploy) ;;
    CMakeLists.txt | README.md | LICENSE | .*) ;;
    *) complain "$entry: the top level has no place for it" ;;
    esac
done

exit $bad
