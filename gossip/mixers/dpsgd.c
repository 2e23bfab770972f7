/* gossip/mixers/dpsgd.c -- the function table of the D-PSGD mixer. */
#include "gossip/mixers/dpsgd.h"

#include "gossip/mixers/exact.h"
#include "gossip/mixers/mixing.h"

const struct mixer mixer_dpsgd = {.name = "dpsgd",
                                  .whole = true,
                                  .open = exact_open,
                                  .close = exact_close,
                                  .plan = exact_plan,
                                  .valid = mixing_decodes,
                                  .apply = exact_apply,
                                  .mix = exact_mix,
                                  .encode = exact_encode};
