/* peer/node/step/graceful_stop.c -- delays a requested end until a common checkpoint exists. */
#include "peer/node/step/graceful_stop.h"

/* Returns whether a common checkpoint is possible and useful: this peer trains in lock step with
 * neighbours, and checkpoints are enabled. */
static bool agrees(const struct phases *ph)
{
    return ph->workshop->ready && ph->workshop->run.policy == RUN_SYNC && ph->edges->n > 0
           && ph->phase == NODE_TRAINING && ph->env->config.checkpoint_us > 0;
}

bool graceful_stop_waits(struct graceful_stop *h, struct phases *ph)
{
    struct checkpoint *c = &ph->checkpoint;
    int64_t now_us = ph->env->now_us;
    if (h->at_once || !agrees(ph))
        return false;
    if (!h->asked) {
        *h = (struct graceful_stop){.asked = true, .since_us = now_us, .before = c->taken};
        checkpoint_ask(c);
    }
    if (now_us - h->since_us >= GRACEFUL_STOP_US)
        return false;
    /* Some members have left before the new checkpoint and have only the previous one. The new
     * checkpoint would not be common to all members, so this peer ends with the previous one,
     * too. */
    if (c->taken == h->before && ph->edges->place.n < c->n_members) {
        c->asked = false;
        c->due = 0;
        return false;
    }
    return c->taken == h->before || phases_beat(ph) < c->taken + 2 * ph->edges->eccentricity + 2;
}
