/* tests/fuzz/fuzz_compress_bodies.c -- libFuzzer's entry: bodies of codecs with
 * rules of their own (runs, factors) from a stranger. */
#include "tests/fuzz/compress_target.h"

static bool in_family(const struct codec *codec)
{
    return codec->body != NULL;
}
