/* compress/codecs/rows.h -- parameters that several codecs have, for their tables. */
#ifndef COMPRESS_CODECS_ROWS_H
#define COMPRESS_CODECS_ROWS_H

#include "compress/codec.h"

/* Elements with a scale of their own. */
#define ROWS_BLOCK(what, elements)                                                                 \
    {                                                                                              \
        .name = (what), .kind = CODEC_INTEGER, .high = CODEC_BLOCK_MAX, .step = 8,                 \
        .preset = (elements), .wants = "0 (all) or a multiple of 8 up to 1048576"                  \
    }

/* To the nearest level, or to one of the two around at random ("stochastic"). */
enum rows_round { ROUND_NEAR, ROUND_SR };

#define ROWS_ROUND(how)                                                                            \
    {                                                                                              \
        .name = "round", .kind = CODEC_WORD, .option = true,                                       \
        .words = (const char *const[]){"near", "sr", NULL}, .preset = (how), .wants = "near or sr" \
    }

#endif
