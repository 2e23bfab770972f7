/* gossip/mixers/gossip.c -- the function table of the pairwise averaging mixer. */
#include "gossip/mixers/gossip.h"

#include "gossip/mixers/exact.h"
#include "gossip/mixers/mixing.h"

const struct mixer mixer_gossip = {.name = "gossip",
                                   .whole = true,
                                   .pairs = true,
                                   .open = exact_open,
                                   .close = exact_close,
                                   .plan = exact_plan,
                                   .valid = mixing_decodes,
                                   .apply = exact_apply,
                                   .mix = exact_mix,
                                   .encode = exact_encode};
