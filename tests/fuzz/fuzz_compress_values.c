/* tests/fuzz/fuzz_compress_values.c -- libFuzzer's entry: blocks of values
 * from a stranger. */
#include "tests/fuzz/compress_target.h"

static bool in_family(const struct codec *codec)
{
    return codec->values != NULL;
}
