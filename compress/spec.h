/* compress/spec.h -- the text of a compressor.
 *
 *   spec  := chain { "," opt }       topk:0.01+qsgd:4:512:max,round=sr
 *   chain := stage { "+" stage }     a selector, a values codec, or both
 *   stage := name { ":" value }
 *   opt   := name "=" value          of whichever stage has it
 *
 * Parsing is strict: no spaces, no empty parts, nothing twice. The canonical
 * text fills in every default and writes every number in one way (integers
 * plain; decimals with no exponent, no needless zero, at most nine places).
 */
#ifndef COMPRESS_SPEC_H
#define COMPRESS_SPEC_H

#include "compress/codec.h"
#include "compress/compress.h"

struct spec
{
    struct codec_stage selector; /* codec is NULL if there is none. */
    struct codec_stage coder;    /* codec_none where the text names none. */
};

/* 0, or -EINVAL with one sentence in error. */
int spec_parse(struct spec *s, const char *text,
               char error[COMPRESS_ERROR_MAX]);

void spec_print(const struct spec *s, char canonical[COMPRESS_SPEC_MAX]);

#endif
