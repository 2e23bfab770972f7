/* tests/fuzz/fuzz_wire.c -- libFuzzer entry: every decoder on the same bytes.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -ffp-contract=off -I. \
 *         tests/fuzz/fuzz_wire.c gossip/wire/*.c -lmsgpackc -o fuzz_wire
 */
#include "tests/fuzz/wire_recode.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void demand(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static uint8_t once[1 << 20], twice[1 << 20];
    if (n > sizeof once / 2)
        return 0;
    bool scanned = wire_scan(p, n);
    enum wire_type type = wire_type_of(p, n);
    for (uint32_t t = 1; t < WIRE_TYPE_END; t++) {
        size_t n_once = recode_of[t](p, n, once, sizeof once);
        if (n_once == 0)
            continue;
        demand(scanned && t == (uint32_t)type);
        demand(n_once <= n); /* Ours is the shortest encoding. */
        size_t n_twice = recode_of[t](once, n_once, twice, sizeof twice);
        demand(n_twice == n_once && memcmp(once, twice, n_once) == 0);
    }
    return 0;
}
