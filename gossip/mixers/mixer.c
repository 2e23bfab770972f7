/* gossip/mixers/mixer.c -- the list of all mixers, in the order of the choices of the run key
 * `mixer`. */
#include "gossip/mixers/mixer.h"

#include "gossip/collectives/allreduce.h"
#include "gossip/collectives/ps.h"
#include "gossip/collectives/sma.h"
#include "gossip/mixers/average.h"
#include "gossip/mixers/choco.h"
#include "gossip/mixers/dpsgd.h"
#include "gossip/mixers/gossip.h"

const struct mixer *const mixer_all[] = {
    &mixer_choco,  &mixer_average, &mixer_dpsgd, &mixer_allreduce,
    &mixer_gossip, &mixer_sma,     &mixer_ps,    NULL};
