#include "gossip/mixers/mixer.h"

#include "gossip/mixers/average.h"

#include <stddef.h>

static const struct mixer mixer_choco = {.name = "choco"};

const struct mixer *const mixer_all[] = {&mixer_choco, &mixer_average, NULL};
