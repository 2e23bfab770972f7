/* compress/codecs/params.h -- parameters that several codecs share, for their parameter tables. */
#ifndef COMPRESS_CODECS_PARAMS_H
#define COMPRESS_CODECS_PARAMS_H

#include "compress/codec.h"

/* Entry of a parameter table: the block length, which is the number of elements with a common
 * scale. */
#define PARAMS_BLOCK(what, elements)                                                               \
    {                                                                                              \
        .name = (what), .kind = CODEC_INTEGER, .high = CODEC_BLOCK_MAX, .step = 8,                 \
        .preset = (elements), .wants = "0 (all) or a multiple of 8 up to 1048576"                  \
    }

/* How a codec rounds values. ROUND_NEAR: to the nearest level. ROUND_SR ("stochastic rounding"): to
 * one of the two neighbouring levels at random. */
enum params_round { ROUND_NEAR, ROUND_SR };

/* Entry of a parameter table: the option "round=", with the default `how`. */
#define PARAMS_ROUND(how)                                                                          \
    {                                                                                              \
        .name = "round", .kind = CODEC_CHOICE, .option = true,                                     \
        .choices = (const char *const[]){"near", "sr", NULL}, .preset = (how),                     \
        .wants = "near or sr"                                                                      \
    }

#endif
