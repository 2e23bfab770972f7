/* tests/fuzz/fuzz_compress_sparse.c -- fuzzes the decoders of positions and of the values at
 * them. */
#include "tests/fuzz/compress_target.h"

static bool in_family(const struct codec *codec)
{
    return codec->selector != NULL;
}
