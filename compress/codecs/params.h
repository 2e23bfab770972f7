/* compress/codecs/params.h -- parameters that several codecs have, for their tables. */
#ifndef COMPRESS_CODECS_PARAMS_H
#define COMPRESS_CODECS_PARAMS_H

#include "compress/codec.h"

/* The parameter that says how many elements have a scale of their own. */
#define PARAMS_BLOCK(what, elements)                                                               \
    {                                                                                              \
        .name = (what), .kind = CODEC_INTEGER, .high = CODEC_BLOCK_MAX, .step = 8,                 \
        .preset = (elements), .wants = "0 (all) or a multiple of 8 up to 1048576"                  \
    }

/* How values are rounded: to the nearest level, or to one of the two around at random
 * ("stochastic"). */
enum params_round { ROUND_NEAR, ROUND_SR };

#define PARAMS_ROUND(how)                                                                          \
    {                                                                                              \
        .name = "round", .kind = CODEC_CHOICE, .option = true,                                     \
        .choices = (const char *const[]){"near", "sr", NULL}, .preset = (how),                     \
        .wants = "near or sr"                                                                      \
    }

#endif
