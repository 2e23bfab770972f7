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
vectors='"nn/math/(c_locale|half|number|rng|spelling|state|vec)\.h"'

# The house, from the bottom up: a folder, and the folders it may see besides
# itself. Nothing points back, so that a reader can stop where he likes.
sees()
{
    case $1 in
    nn/math) ;;
    nn/files) echo nn/math ;;
    nn/data) echo nn/math nn/files ;;
    nn/shards) echo nn/math nn/data ;;
    nn/layers) echo nn/math ;;
    nn/models) echo nn/math nn/layers nn/data ;;
    nn/train) echo nn/math nn/layers nn/models nn/data nn/shards ;;
    topology) ;; # And of nn/math its streams, vectors and numbers, as compress/ and gossip/.
    compress/simd | compress/coding) echo compress/simd compress/coding ;;
    compress | compress/codecs) echo compress compress/codecs compress/coding compress/simd ;;
    gossip/wire) echo compress topology ;;
    gossip/members) echo gossip/wire topology ;;
    gossip/exchange) echo gossip/wire compress topology ;;
    gossip/mixers) echo gossip/wire gossip/exchange compress topology ;;
    gossip/collectives) echo gossip/mixers gossip/wire gossip/exchange compress topology ;;
    peer/run) echo gossip/collectives gossip/mixers gossip/exchange gossip/wire compress topology ;; # No nn: a trainer brings its keys.
    peer/sgd) echo peer/run nn/models nn/data nn/shards nn/train ;;
    peer/secure) ;;
    peer/admission) echo peer/secure gossip/wire ;;
    peer/checkpoints) echo nn/math nn/files peer/secure ;;
    peer/node/finish) echo gossip/exchange gossip/wire ;;
    peer/node) echo peer/node/finish peer/run gossip/mixers gossip/exchange gossip/members gossip/wire compress topology ;;
    peer/node/collectives) echo peer/node peer/node/finish peer/run gossip/collectives gossip/mixers gossip/exchange gossip/members gossip/wire compress topology ;; # peer/node does not see it.
    peer/trace) echo peer/node peer/node/finish peer/run gossip/exchange gossip/members gossip/wire compress topology nn/files ;;
    peer/output) echo peer/run gossip/wire nn/files ;;
    peer/progress) ;;
    peer/sim) echo peer/run peer/secure peer/checkpoints peer/node gossip/mixers gossip/exchange gossip/wire ;; # A liar is a mixer.
    peer/uv) echo peer/run peer/secure peer/admission peer/checkpoints peer/node gossip/exchange gossip/wire ;;
    peer/api) echo peer/run peer/sgd peer/secure peer/checkpoints peer/output peer/node peer/uv peer/sim peer/run_log gossip/exchange gossip/mixers gossip/wire compress nn/models nn/files nn/data nn/shards nn/train ;;
    peer/http) echo peer/run peer/node peer/uv gossip/members gossip/exchange gossip/wire topology ;; # The words and numbers of metrics.jsonl.
    peer/run_log) echo peer/http peer/output peer/run peer/checkpoints peer/secure peer/node peer/uv gossip/wire nn/files nn/data ;; # What a peer writes and shows.
    peer/cmd) echo peer/trace peer/api peer/run_log peer/http peer/run peer/sgd peer/secure peer/admission peer/checkpoints peer/output peer/progress peer/node peer/sim peer/uv gossip/mixers gossip/exchange gossip/members \
        gossip/wire compress topology nn/models nn/files nn/data nn/shards nn/train nn/math ;;
    *) return 1 ;;
    esac
}

# Single headers: the one door of each third-party library, who may see the
# world, and the trainer seam, which is all that a node sees of training.
door()
{
    case $1 in
    peer/node/finish/*) echo '"peer/node/timers\.h"' ;; # The table of all delays.
    peer/node/*) echo '"nn/train/trainer\.h"' ;;
    nn/math/blas.c) echo '<cblas\.h>' ;;
    nn/math/parallel_for.c | nn/math/thread_pool.c) echo '<pthread\.h>' ;;
    nn/math/c_locale.*) echo '<(locale|pthread)\.h>' ;;
    peer/sim/state.h) echo '"nn/math/thread_pool\.h"' ;;
    nn/math/simd.h | compress/simd/*) echo '<immintrin\.h>' ;;
    nn/files/file.c) echo "<zlib\.h>|$files" ;;
    nn/files/safetensors*.c) echo "<jansson\.h>|$files" ;;
    nn/files/replace.c) echo "<(signal|time|sys/socket|sys/un)\.h>|$files" ;;
    compress/codecs/atomo.c) echo '"nn/math/blas\.h"' ;;
    gossip/mixers/mixer.c) echo '"gossip/collectives/(allreduce|sma|ps)\.h"' ;; # The list of all mixers.
    gossip/wire/*.c) echo '<msgpack(/[a-z_]+)?\.h>' ;;
    peer/secure/keyfile.c) echo "<sodium\.h>|$files" ;;
    peer/secure/*.c | peer/admission/*.c) echo '<sodium\.h>' ;;
    peer/run/options.c) echo '<getopt\.h>' ;;
    peer/checkpoints/disk.c) echo "$files" ;;
    peer/output/disk_reservation.c) echo "$files" ;;
    peer/output/outdir.*) echo "<(jansson|sys/file)\.h>|$files" ;;
    peer/output/journal.c | peer/output/promise.c) echo "$files" ;;
    peer/trace/trace_file.c) echo "<sys/file\.h>|$files" ;;
    peer/http/server.h) echo '<sys/socket\.h>' ;;
    peer/http/server.c) echo "<(microhttpd|netinet/in|sys/resource|sys/socket|time)\.h>|$files" ;;
    peer/run_log/*) echo '<(jansson|netdb|sys/stat|sys/statvfs|uv)\.h>' ;;
    peer/uv/*) echo '<' ;;
    peer/api/*) echo '<(getopt|pthread|signal|unistd|uv|sys/types)\.h>' ;;
    peer/cmd/*) echo '<' ;;
    esac
}

# What it may not see although the lines above let it.
forbidden()
{
    case $1 in
    peer/uv/* | peer/cmd/*) echo '<(msgpack|zlib|cblas|microhttpd)' ;;
    *) echo '"tests/' ;;
    esac
}

allowed()
{
    local room rooms extra
    rooms=$(sees "${1%/*}")
    extra=$(door "$1")
    printf '%s|%s%s|"%s/[a-z0-9_]+\\.(h|inc)"' "$std" "$vectors" "${extra:+|$extra}" "${1%/*}"
    for room in $rooms; do
        printf '|"%s/[a-z0-9_]+\\.h"' "$room"
    done
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
    peer/cmd/*) echo '' ;;
    peer/uv/*) echo "$environment|rand|srand|random" ;;
    peer/api/opening.c) echo "$chance|$print|setenv|putenv" ;; # Options may come from the environment.
    peer/api/*) echo "$chance|$print|$environment" ;;
    peer/sim/*) echo "$clocks|$chance|$environment|$world" ;;
    nn/files/file.*) echo "$clocks|$chance|$environment|$print" ;;
    nn/files/safetensors* | nn/files/replace.c) echo "$clocks|$chance|$environment" ;;
    nn/math/parallel_for.c | nn/math/thread_pool.c | nn/math/c_locale.c) echo "$clocks|$chance|$print|$environment" ;;
    peer/secure/keyfile.c) echo "$clocks|$chance|$environment" ;;
    peer/run_log/*) echo "$chance|$print|$environment" ;;
    peer/output/outdir.c | peer/output/disk_reservation.c | peer/output/promise.c) echo "$clocks|$chance|$print|$environment" ;;
    peer/http/server.c) echo "$chance|$print|$environment|$world" ;;
    *) echo "$clocks|$chance|$print|$environment|$world" ;;
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
    local first base=${1%.[ch]}
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

rooms=({nn,topology,compress,gossip,peer}/*.[ch] {nn,topology,compress,gossip,peer}/*/*.[ch] {nn,topology,compress,gossip,peer}/*/*/*.[ch])
[ ${#rooms[@]} -gt 0 ] || complain "no sources in $PWD"
for file in "${rooms[@]}"; do
    sees "${file%/*}" >/dev/null || complain "$file: its folder is no room of the house (see sees())"
    check_includes "$file"
    check_calls "$file"
    check_form "$file"
done
for file in tests/*/*.[ch]; do
    check_form "$file"
done
for file in {nn,topology,compress,gossip,peer}/ {nn,topology,compress,gossip,peer}/*/ peer/node/*/; do
    [ -f "${file}README.md" ] || complain "${file}README.md: what lives here, what it may see, where the next one goes"
done

# The control arms are behind a seam (peer/node/round_protocol.h): no other file of the node has a word of theirs.
arms='allreduce|all-reduce|collectives?|sma|ps|parameter.server|centre(_[a-z_]+)?'
words=$(grep -nwiE "$arms" peer/node/*.[ch] /dev/null | grep -vE 'gossip/collectives|peer/node/collectives')
[ -z "$words" ] || complain "$words: a word of peer/node/collectives"

# All delays of the node are rows of the table in peer/node/timers.h.
for file in peer/node/*.[ch] peer/node/*/*.[ch]; do
    [ "$file" != peer/node/timers.h ] || continue
    while IFS= read -r line; do
        complain "$file:$line: a delay of the node is a row of TIMERS() in peer/node/timers.h"
    done < <(code "$file" | grep -nE '\b[A-Z][A-Z0-9_]*_[UM]S[[:space:]]*=([^=]|$)|define[[:space:]]+[A-Z0-9_]+_[UM]S\b|static const .*_[um]s[[:space:]]*=')
done

# No two modules (a .c and its .h) of nn/ include each other, by whatever way round.
circles=$(grep -HoE '^#include "nn/[a-z0-9_/]+\.h"' nn/*/*.[ch] \
    | sed -E 's/\.[ch]:#include "([^"]*)\.h"/ \1/' | awk '$1 != $2' | tsort 2>&1 >/dev/null)
[ -z "$circles" ] || complain "$circles"

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
