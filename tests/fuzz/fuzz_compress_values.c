/* tests/fuzz/fuzz_compress_values.c -- fuzzes the decoders of dense messages, in which every value
 * of a block has a code. */
#include "tests/fuzz/compress_target.h"

static bool in_family(const struct codec *codec)
{
    return codec->values != NULL;
}
