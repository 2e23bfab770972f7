/* tests/fuzz/fuzz_compress_sparse.c -- fuzzes the decoders of sparse messages: positions, and the
 * values at these positions. */
#include "tests/fuzz/compress_target.h"

static bool in_family(const struct codec *codec)
{
    return codec->selector != NULL;
}
