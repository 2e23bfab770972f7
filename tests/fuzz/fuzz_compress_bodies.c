/* tests/fuzz/fuzz_compress_bodies.c -- fuzzes the decoders of codecs with a message format of their
 * own, such as run-length codes or factors of a matrix. */
#include "tests/fuzz/compress_target.h"

static bool in_family(const struct codec *codec)
{
    return codec->body != NULL;
}
