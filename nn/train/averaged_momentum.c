/* nn/train/averaged_momentum.c -- the kind of momentum that peers exchange and mix. */
#include "nn/train/averaged_momentum.h"

const struct momentum_kind momentum_averaged = {
    .name = "averaged", .use = MOMENTUM_UPDATED, .most = 1, .exchanged = true};
