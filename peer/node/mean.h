/* peer/node/mean.h -- what makes all models one in training, for mixers that `collects`: the collective of
 * a round (collect.h), or the parameter server (serve.h). The run's mixer says which. */
#ifndef PEER_NODE_MEAN_H
#define PEER_NODE_MEAN_H

#include "peer/node/collect.h"
#include "peer/node/serve.h"

struct mean
{
    struct collect collect;
    struct serve serve;
};

void mean_init(struct mean *m, struct env *env, struct sessions *s, struct workshop *w);
void mean_close(struct mean *m);
void mean_release(struct mean *m);

/* In training and the last phase, `round` of the run done. between: no job runs. */
void mean_look(struct mean *m, uint64_t round, bool between);
void mean_hear(struct mean *m, const struct link *l, const struct wire_collect *told,
               uint64_t round, bool between);

/* Is what comes of this round not here yet? */
bool mean_waits(const struct mean *m, uint64_t round);
/* Who keeps it; NULL: nobody. */
const uint8_t *mean_awaited(const struct mean *m, uint64_t round);
/* After which round the last one was; 0: there was none. */
uint64_t mean_round(const struct mean *m);

#endif
