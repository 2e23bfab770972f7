#!/usr/bin/env bash
# tests/e2e/api_abi.sh -- libhearsay.so exports exactly what hearsay.h declares. The header compiles alone in C and C++. A
# program that uses only the header and the library links and runs.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

library=$(dirname "$HEARSAY")/libhearsay.so
header=$root/peer/api/hearsay.h
[ -e "$library" ] || skip "there is no $library (cmake --build build/release --target libhearsay)"
for tool in cc nm; do
    command -v "$tool" >/dev/null || skip "there is no $tool here"
done
e2e_begin

# The header is read without comments. Each name that begins with hearsay_ and is followed by a parenthesis is a function.
cc -E -P "$header" | grep -oE '\bhearsay_[a-z_]+ *\(' | tr -d ' (' | sort -u >declared
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort >exported
sed 's/@@HEARSAY_1$//' exported >names
check "the header declares functions" [ "$(wc -l <declared)" -gt 30 ]
check "all that is exported has the version HEARSAY_1" eval '! grep -v "@@HEARSAY_1$" exported'
check "nothing is exported that is not declared" eval '! comm -13 declared names | grep .'
check "nothing is declared that is not exported" eval '! comm -23 declared names | grep .'

strict=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only)
cp "$header" hearsay.h # The header must not need other headers of hearsay.
echo '#include "hearsay.h"' >alone.c
check "the header is C11" cc -std=c11 "${strict[@]}" alone.c
for cxx in g++ clang++; do
    ! command -v "$cxx" >/dev/null || check "the header is C++17 to $cxx" "$cxx" -std=c++17 "${strict[@]}" -x c++ alone.c
done

cat >client.c <<'C'
#include <hearsay.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    const struct hearsay_layer layer = {"fc.weight", 10, 100};
    struct hearsay_codec *c;
    char error[HEARSAY_CODEC_ERROR_MAX];
    static float x[1000], x_hat[1000];
    static unsigned char message[8000];
    size_t n;
    double left;
    for (int i = 0; i < 1000; i++)
        x[i] = (float)(i * 7919 % 1000) - 500;
    if (hearsay_codec_open(&c, "topk:0.02", &layer, 1, error) != HEARSAY_OK || hearsay_api() != HEARSAY_API)
        return 1;
    if (hearsay_codec_encode(c, x, x_hat, 1, 0, message, sizeof message, &n, &left) != HEARSAY_OK)
        return 1;
    if (hearsay_codec_add(c, message, n, x_hat) != HEARSAY_OK)
        return 1;
    int sent = 0;
    for (int i = 0; i < 1000; i++)
        sent += x_hat[i] == x[i] && x[i] != 0;
    printf("%s %zu %d\n", hearsay_codec_spec(c), hearsay_codec_floats(c), sent);
    hearsay_codec_close(c);
    if (hearsay_codec_open(&c, "topk:2", &layer, 1, error) != HEARSAY_USAGE || strlen(error) == 0)
        return 1;
    return 0;
}
C
check "a program links with -lhearsay" cc -std=c11 -Wall -Wextra -Werror -I. client.c -L"$(dirname "$library")" -lhearsay -o client
LD_LIBRARY_PATH=$(dirname "$library")
export LD_LIBRARY_PATH
check "and runs" eval 'bounded ./client >client.out'
check "and its codec sent the largest 20 of 1000" [ "$(cat client.out)" = "topk:0.02 1000 20" ]
check "with the soname libhearsay.so.0" eval 'ldd client | grep -q "libhearsay.so.0 => /"'
e2e_end
