/* tests/fuzz/fuzz_compress_values.c -- fuzzes the decoders of blocks of values. */
#include "tests/fuzz/compress_target.h"

static bool in_family(const struct codec *codec)
{
    return codec->values != NULL;
}
