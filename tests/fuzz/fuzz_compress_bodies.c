/* tests/fuzz/fuzz_compress_bodies.c -- fuzzes the decoders of codecs with their own message
 * format (runs, factors). */
#include "tests/fuzz/compress_target.h"

static bool in_family(const struct codec *codec)
{
    return codec->body != NULL;
}
