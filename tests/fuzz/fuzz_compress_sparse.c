/* tests/fuzz/fuzz_compress_sparse.c -- libFuzzer's entry: positions, and values
 * at them, from a stranger. */
#include "tests/fuzz/compress_target.h"

static bool in_family(const struct codec *codec)
{
    return codec->selector != NULL;
}
