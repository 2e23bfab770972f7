/* tests/fuzz/fuzz_wire.c -- fuzzes the reader of messages with any bytes.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -ffp-contract=off -I. \
 *         tests/fuzz/fuzz_wire.c gossip/wire/{read,text,write}.c -lmsgpackc -o fuzz_wire */
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
    enum wire_type type, again;
    if (n > sizeof once / 2)
        return 0;
    size_t n_once = recode(p, n, once, sizeof once, &type);
    if (n_once == 0)
        return 0;
    /* The writer uses the shortest encoding, so its message is not longer than the input. */
    demand(n_once <= n);
    size_t n_twice = recode(once, n_once, twice, sizeof twice, &again);
    demand(again == type && n_twice == n_once && memcmp(once, twice, n_once) == 0);
    return 0;
}
