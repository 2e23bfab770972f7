#!/usr/bin/env bash
# tests/lint_layers.sh -- checks which headers and functions each folder uses (the layers of peer/README.md), and some rules
# for sources.
#
#   tests/lint_layers.sh [ROOT]
#
# Prints each violation on one line. Exit code 1: there is a violation.
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

# ---- Headers that a file may include, as an extended regular expression. ----

std='<(assert|ctype|errno|float|inttypes|limits|math|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings)\.h>'
files='<(dirent|fcntl|unistd|sys/stat|sys/types|sys/mman)\.h>'
vectors='"nn/math/(c_locale|half|number|rng|spelling|state|vec)\.h"'

# The functions sees, door, face, forbidden and banned are tables. Each function stores its answer in a variable, because a
# subshell for each file would take most of the time of this script.

node_base='peer/node peer/run gossip/mixers gossip/exchange gossip/members gossip/wire compress topology'
node_modules='peer/node/finish peer/node/membership peer/node/session peer/node/join peer/node/edge peer/node/step peer/node/result'

# sees FOLDER: sets $rooms to the folders whose headers FOLDER may include, in addition to its own. The lowest layer comes
# first. The includes between folders form no cycles. Fails if the folder is not in the table.
sees()
{
    rooms=
    case $1 in
    nn/math) ;;
    nn/files) rooms='nn/math' ;;
    nn/data) rooms='nn/math nn/files' ;;
    nn/shards) rooms='nn/math nn/data' ;;
    nn/layers) rooms='nn/math' ;;
    nn/models) rooms='nn/math nn/layers nn/data' ;;
    nn/train) rooms='nn/math nn/layers nn/models nn/data nn/shards' ;;
    topology) ;; # topology may use no folder but the headers of nn/math in $vectors.
    compress/simd | compress/coding) rooms='compress/simd compress/coding' ;;
    compress | compress/codecs) rooms='compress compress/codecs compress/coding compress/simd' ;;
    gossip/wire) rooms='compress topology' ;;
    gossip/members) rooms='gossip/wire topology' ;;
    gossip/exchange) rooms='gossip/wire compress topology' ;;
    gossip/mixers) rooms='gossip/wire gossip/exchange compress topology' ;;
    gossip/collectives) rooms='gossip/mixers gossip/wire gossip/exchange compress topology' ;;
    # peer/run must not use nn: the run keys of a trainer are in peer/sgd.
    peer/run) rooms='gossip/collectives gossip/mixers gossip/exchange gossip/wire compress topology' ;;
    peer/sgd) rooms='peer/run nn/models nn/data nn/shards nn/train' ;;
    peer/secure) rooms='nn/files' ;;
    peer/admission) rooms='peer/secure gossip/wire' ;;
    peer/checkpoints) rooms='nn/math nn/files peer/secure' ;;
    # The modules of the node, the lowest first. Each module may also include the headers of peer/node itself (time,
    # timers, the run).
    peer/node/finish) rooms='gossip/exchange gossip/wire' ;;
    peer/node/membership) rooms="$node_base" ;;
    peer/node/session) rooms="$node_base peer/node/membership" ;;
    peer/node/join) rooms="$node_base peer/node/finish peer/node/membership peer/node/session" ;;
    peer/node/edge) rooms="$node_base peer/node/membership peer/node/session peer/node/join" ;;
    peer/node/step) rooms="$node_base peer/node/finish peer/node/membership peer/node/session peer/node/join peer/node/edge" ;;
    peer/node/result) rooms="$node_base $node_modules" ;;
    peer/node) rooms="$node_base $node_modules" ;;
    # peer/node/collectives may use all modules of the node, but none of them may use peer/node/collectives.
    peer/node/collectives) rooms="$node_base $node_modules gossip/collectives" ;;
    peer/trace) rooms='peer/node peer/node/result peer/node/finish peer/run gossip/exchange gossip/members gossip/wire compress topology nn/files' ;;
    peer/output) rooms='peer/run peer/secure gossip/wire nn/files' ;;
    peer/progress) ;;
    # peer/sim may use gossip/mixers, because its simulated Byzantine peers are mixers.
    peer/sim) rooms='peer/run peer/secure peer/checkpoints peer/node peer/node/result gossip/mixers gossip/exchange gossip/wire' ;;
    peer/uv) rooms='nn/files peer/run peer/secure peer/admission peer/checkpoints peer/node peer/node/step gossip/exchange gossip/wire' ;;
    peer/api) rooms='peer/run peer/sgd peer/secure peer/checkpoints peer/output peer/node peer/node/result peer/uv peer/sim peer/run_log gossip/exchange gossip/mixers gossip/wire compress nn/models nn/files nn/data nn/shards nn/train' ;;
    # peer/http may use peer/uv, because it needs the JSON functions of metrics.h.
    peer/http) rooms='peer/run peer/node peer/uv gossip/members gossip/exchange gossip/wire topology' ;;
    # peer/run_log writes the files of a peer and serves its HTTP page.
    peer/run_log) rooms='peer/http peer/output peer/run peer/checkpoints peer/secure peer/node peer/node/result peer/uv gossip/wire nn/files nn/data' ;;
    peer/cmd) rooms='peer/trace peer/api peer/run_log peer/http peer/run peer/sgd peer/secure peer/admission peer/checkpoints peer/output peer/progress peer/node peer/node/session peer/node/step peer/node/result peer/sim peer/uv gossip/mixers gossip/exchange gossip/members'
        rooms+=' gossip/wire compress topology nn/models nn/files nn/data nn/shards nn/train nn/math' ;;
    *) return 1 ;;
    esac
}

# door FILE: sets $extra to a regular expression of the headers that FILE may include in addition to those of sees(): headers
# of third-party libraries, of files and of sockets, and for peer/node the interface of the trainer and the outer optimiser.
door()
{
    extra=
    case $1 in
    # timers.h is the table of all timers and delays of the node.
    peer/node/finish/*) extra='"peer/node/timers\.h"' ;;
    peer/node/*) extra='"nn/train/(trainer|outer_optimiser)\.h"' ;;
    nn/math/blas.c) extra='<cblas\.h>' ;;
    nn/math/parallel_for.c | nn/math/thread_pool.c) extra='<pthread\.h>' ;;
    nn/math/c_locale.*) extra='<(locale|pthread)\.h>' ;;
    peer/sim/state.h) extra='"nn/math/thread_pool\.h"' ;;
    nn/math/simd.h | compress/simd/*) extra='<immintrin\.h>' ;;
    nn/files/file.c) extra="<zlib\.h>|$files" ;;
    nn/files/safetensors*.c) extra="<jansson\.h>|$files" ;;
    nn/files/replace.c) extra="<(signal|time|sys/socket|sys/un)\.h>|$files" ;;
    compress/codecs/atomo.c) extra='"nn/math/blas\.h"' ;;
    # mixer.c has the list of all mixers.
    gossip/mixers/mixer.c) extra='"gossip/collectives/(allreduce|sma|ps)\.h"' ;;
    gossip/wire/*.c) extra='<msgpack(/[a-z_]+)?\.h>' ;;
    peer/secure/keyfile.c) extra="<sodium\.h>|$files" ;;
    peer/secure/*.c | peer/admission/*.c) extra='<sodium\.h>' ;;
    peer/run/options.c) extra='<getopt\.h>' ;;
    peer/checkpoints/disk.c) extra=$files ;;
    peer/output/disk_reservation.c) extra=$files ;;
    peer/output/outdir.*) extra="<(jansson|sys/file)\.h>|$files" ;;
    peer/output/journal.c | peer/output/promise.c) extra=$files ;;
    peer/trace/trace_file.c) extra="<sys/file\.h>|$files" ;;
    peer/http/server.h) extra='<sys/socket\.h>' ;;
    peer/http/server.c) extra="<(microhttpd|netinet/in|sys/resource|sys/socket|time)\.h>|$files" ;;
    peer/run_log/*) extra='<(jansson|netdb|sys/stat|sys/statvfs|uv)\.h>' ;;
    peer/uv/*) extra='<' ;;
    peer/api/*) extra='<(getopt|pthread|signal|unistd|uv|sys/types)\.h>' ;;
    peer/cmd/*) extra='<' ;;
    esac
}

# forbidden FILE: sets $hidden to a regular expression of the headers that FILE may not include, although sees() or door()
# allows them.
forbidden()
{
    case $1 in
    peer/uv/* | peer/cmd/*) hidden='<(msgpack|zlib|cblas|microhttpd)' ;;
    *) hidden='"tests/' ;;
    esac
}

# face FOLDER: sets $public to the base name of the only header of FOLDER that other folders may include, as a regular
# expression. The other headers of such a folder are private.
face()
{
    case $1 in
    peer/node/membership) public='quorum' ;;
    peer/node/session) public='sessions' ;;
    *) public='[a-z0-9_]+' ;;
    esac
}

# allowed FILE: sets $headers to a regular expression of all headers that FILE may include.
allowed()
{
    local room
    sees "${1%/*}"
    door "$1"
    headers="$std|$vectors${extra:+|$extra}|\"${1%/*}/[a-z0-9_]+\\.(h|inc)\""
    for room in $rooms; do
        face "$room"
        headers+="|\"$room/$public\\.h\""
    done
}

# ---- Functions that a file may call. ----

clocks='time|clock|clock_gettime|gettimeofday|timespec_get|localtime|gmtime|strftime|sleep|usleep|nanosleep|uv_now|uv_hrtime'
chance='rand|rand_r|srand|random|srandom|drand48|lrand48|getrandom|getentropy|arc4random[a-z_]*|randombytes[a-z_]*'
print='printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|putc|fputc|perror'
# Functions of the allowed standard headers that use files, processes or threads. POSIX functions for files and sockets need
# no entry, because the rules for headers exclude their headers.
world='fopen|fdopen|freopen|popen|system|tmpfile|mkstemp|remove|rename|atexit|pthread_[a-z_]+|thrd_[a-z_]+'
environment='getenv|secure_getenv|setenv|putenv'

# banned FILE: sets $calls to a regular expression of the functions that FILE may not call. Empty: all are allowed.
banned()
{
    case $1 in
    peer/cmd/*) calls= ;;
    peer/uv/*) calls="$environment|rand|srand|random" ;;
    peer/api/opening.c) calls="$chance|$print|setenv|putenv" ;; # getenv is allowed: it reads options from the environment.
    peer/api/*) calls="$chance|$print|$environment" ;;
    peer/sim/*) calls="$clocks|$chance|$environment|$world" ;;
    nn/files/file.*) calls="$clocks|$chance|$environment|$print" ;;
    nn/files/safetensors* | nn/files/replace.c) calls="$clocks|$chance|$environment" ;;
    nn/math/parallel_for.c | nn/math/thread_pool.c | nn/math/c_locale.c) calls="$clocks|$chance|$print|$environment" ;;
    peer/secure/keyfile.c) calls="$clocks|$chance|$environment" ;;
    peer/run_log/*) calls="$chance|$print|$environment" ;;
    peer/output/outdir.c | peer/output/disk_reservation.c | peer/output/promise.c) calls="$clocks|$chance|$print|$environment" ;;
    peer/http/server.c) calls="$chance|$print|$environment|$world" ;;
    *) calls="$clocks|$chance|$print|$environment|$world" ;;
    esac
}

# ---- Checks of all files, in one process. ----

# check_files: prints the violations of the files on stdin. A line on stdin is "FILE<tab>headers<tab>hidden<tab>calls". If
# the last three fields are empty, only the form of the file is checked.
check_files()
{
    awk -F '\t' '
        function complain(where, text) { print where ": " text }

        # Returns a line without comments, strings and character constants. A comment or string may begin on an
        # earlier line.
        function code(line,    out, i, n, c, two) {
            if (!comment && quote == "" && line !~ /["\047\/]/) return line
            out = ""; n = length(line)
            for (i = 1; i <= n; i++) {
                c = substr(line, i, 1); two = substr(line, i, 2)
                if (comment) { if (two == "*/") { comment = 0; i++ } continue }
                if (quote != "") { if (c == "\\") i++; else if (c == quote) quote = ""; continue }
                if (two == "/*") { comment = 1; i++; continue }
                if (two == "//") break
                if (c == "\"" || c == "\047") { quote = c; continue }
                out = out c
            }
            return out
        }

        {
            file = $1; headers = $2; hidden = $3; names = $4
            base = file; sub(/\.[ch]$/, "", base)
            guard = toupper(base) "_H"; gsub("/", "_", guard)
            in_house = file !~ /^tests\//
            # Delays of the node must be rows of the table in peer/node/timers.h.
            is_node = file ~ /^peer\/node\// && file != "peer/node/timers.h"
            calls = "(^|[^A-Za-z0-9_.>])(" names ")[[:space:]]*\\("
            comment = 0; quote = ""; guarded = 0; first = ""; n = 0
            while ((getline line <file) > 0) {
                n++
                where = file ":" n
                if (n == 1 && in_house && file ~ /\.h$/ && index(line, "/* " file " -- ") == 0)
                    complain(where, "the first line is not \047/* " file " -- ...\047")
                if (line == "#ifndef " guard) guarded = 1
                if (line ~ /^typedef (struct|union|enum)([^A-Za-z0-9_]|$)/) complain(where, "structs, unions and enums are not typedef\047d")
                if (line ~ /^[[:space:]]*#[[:space:]]*include/) {
                    if (first == "" && line ~ /^#include/) first = line
                    if (headers != "" && (line !~ headers || line ~ hidden)) complain(where ":" line, "this room may not see it")
                }
                if (headers == "") continue
                line = code(line)
                if (names != "" && line ~ calls) complain(where ":" line, "this room may not call it")
                if (is_node && (line ~ /(^|[^A-Za-z0-9_])[A-Z][A-Z0-9_]*_[UM]S[[:space:]]*=([^=]|$)/ || \
                        line ~ /define[[:space:]]+[A-Z0-9_]+_[UM]S([^A-Za-z0-9_]|$)|static const .*_[um]s[[:space:]]*=/))
                    complain(where ":" line, "a delay of the node is a row of TIMERS() in peer/node/timers.h")
            }
            if (n == 0) complain(file, "no line can be read")
            close(file)
            if (in_house && file ~ /\.h$/ && !guarded) complain(file, "no include guard by its name")
            if (in_house && file ~ /\.c$/ && first != "#include \"" base ".h\"" && (getline line <(base ".h")) > 0)
                complain(file, "its own header is not the first it includes")
            close(base ".h")
        }'
}

rooms_files=({nn,topology,compress,gossip,peer}/*.[ch] {nn,topology,compress,gossip,peer}/*/*.[ch] {nn,topology,compress,gossip,peer}/*/*/*.[ch])
[ ${#rooms_files[@]} -gt 0 ] || complain "no sources in $PWD"
for file in "${rooms_files[@]}"; do
    sees "${file%/*}" || complain "$file: its folder is no room of the house (see sees())"
done
while IFS= read -r line; do
    complain "$line"
done < <({
    for file in "${rooms_files[@]}"; do
        allowed "$file"
        forbidden "$file"
        banned "$file"
        printf '%s\t%s\t%s\t%s\n' "$file" "$headers" "$hidden" "$calls"
    done
    printf '%s\t\t\t\n' tests/*/*.[ch]
} | check_files)
for file in {nn,topology,compress,gossip,peer}/ {nn,topology,compress,gossip,peer}/*/ peer/node/*/; do
    [ -f "${file}README.md" ] || complain "${file}README.md: what lives here, where the next one goes"
done

# A header *_state.h defines the state of a module. Only .c files of the same folder include such a header. Exceptions are
# peer/node/state.h, which holds pointers, and the unit tests below, which build or read such a state. The list of
# exceptions should become empty.
state_tests='tests/unit/(node_callback.c|node_connection_diagnostics.c|node_hostile_world.h|node_initial.c|node_membership_log.c|node_quarantine.c|node_round_quorum.c|node_sessions_rig.h|sim_serve.c)'
strangers=$(grep -nE '^[[:space:]]*#[[:space:]]*include "peer/node/.*_state\.h"' {peer,tests}/*/*.[ch] {peer,tests}/*/*/*.[ch] /dev/null \
    | grep -vE "^$state_tests:" | awk -F '[:"]' '{ a = $1; b = $4; sub(/\/[^\/]*$/, "", a); sub(/\/[^\/]*$/, "", b); if (a != b || $1 ~ /h$/) print }')
[ -z "$strangers" ] || complain "$strangers: the state of another module"

# The node uses all-reduce, model averaging and the parameter server only through the interface
# peer/node/round_protocol.h, so the files of peer/node must not contain their names.
arms='allreduce|all-reduce|collectives?|sma|ps|parameter.server|centre(_[a-z_]+)?'
words=$(grep -nwiE "$arms" peer/node/*.[ch] peer/node/*/*.[ch] /dev/null | grep -vE 'gossip/collectives|peer/node/collectives')
[ -z "$words" ] || complain "$words: a word of peer/node/collectives"

# Other folders include only the public headers of these modules. Tests may include the others.
private='finish/proposal|join/initial|join/state_transfer'
strangers=$(grep -nE "^#include \"peer/node/($private)\.h\"" peer/*/*.[ch] peer/node/*/*.[ch] /dev/null \
    | awk -F '[:"]' '{ a = $1; b = $4; sub(/\/[^\/]*$/, "", a); sub(/\/[^\/]*$/, "", b); if (a != b) print }')
[ -z "$strangers" ] || complain "$strangers: a private header of another module"

# Only run_context.c writes the fields of struct run_context, which other files call `workshop` or `w`.
fields='env|has_run|ready|lacks|run|run_text|n_run_text|trainer|mixing|models|pieces|layers|by_drift|ladder|norm2|settling2|outer|before'
written=$(grep -nE "(workshop|[^a-z_]w)(->|\.)($fields) *([-+|&*/]?=[^=]|\+\+|--)" peer/node/*.[ch] peer/node/*/*.[ch] /dev/null \
    | grep -v '^peer/node/run_context\.c:')
[ -z "$written" ] || complain "$written: a field of struct run_context"

# The modules of nn/ (a .c file and its header) must not include each other in a cycle.
circles=$(grep -HoE '^#include "nn/[a-z0-9_/]+\.h"' nn/*/*.[ch] \
    | sed -E 's/\.[ch]:#include "([^"]*)\.h"/ \1/' | awk '$1 != $2' | tsort 2>&1 >/dev/null)
[ -z "$circles" ] || complain "$circles"

# Marks of unfinished work. The brackets keep this line from matching itself.
unfinished=$(grep -rnwE 'TOD[O]|FIXM[E]|XX[X]' --include='*.[ch]' --include='*.sh' --include='*.py' --include=CMakeLists.txt \
    nn topology compress gossip peer tests deploy CMakeLists.txt 2>/dev/null)
[ -z "$unfinished" ] || complain "$unfinished"

# The top level of the repository may contain only these entries, apart from files that git ignores.
entries=$(git ls-files -co --exclude-standard 2>/dev/null | cut -d/ -f1 | sort -u)
for entry in $entries; do
    case $entry in
    nn | topology | compress | gossip | peer | tests | deploy) ;;
    CMakeLists.txt | README.md | LICENSE | .*) ;;
    *) complain "$entry: the top level has no place for it" ;;
    esac
done

exit $bad
