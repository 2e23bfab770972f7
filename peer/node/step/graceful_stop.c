/* peer/node/step/graceful_stop.c -- delays a requested end until a common checkpoint exists. */
#include "peer/node/step/graceful_stop.h"

#include "peer/node/step/phases_state.h"

#include <assert.h>
#include <stdlib.h>

enum stop_state {
    STOP_NOT_ASKED,
    STOP_ASKED, /* Asked to stop: one more checkpoint has been requested. */
    /* This peer ends without waiting for a checkpoint. The state does not change any more. */
    STOP_AT_ONCE
};

struct graceful_stop
{
    enum stop_state state;
    int64_t since_us; /* Node time of the request to stop, in microseconds. */
    /* Step counter of the last checkpoint at the time of the request to stop. 0: none. */
    uint64_t before;
};

struct graceful_stop *graceful_stop_open(void)
{
    return calloc(1, sizeof(struct graceful_stop));
}

void graceful_stop_close(struct graceful_stop *h)
{
    free(h);
}

void graceful_stop_at_once(struct graceful_stop *h)
{
    h->state = STOP_AT_ONCE;
}

/* Returns whether a common checkpoint is possible and useful: this peer trains in lock step with
 * neighbours, and checkpoints are enabled. */
static bool agrees(const struct phases *ph)
{
    return ph->workshop->ready && ph->workshop->run.policy == RUN_SYNC && edges_count(ph->edges) > 0
           && ph->phase == NODE_TRAINING && ph->env->config.checkpoint_us > 0;
}

bool graceful_stop_waits(struct graceful_stop *h, struct phases *ph)
{
    struct checkpoint *c = ph->checkpoint;
    const struct edges_status es = edges_status(ph->edges);
    int64_t now_us = ph->env->now_us;
    if (h->state == STOP_AT_ONCE || !agrees(ph))
        return false;
    if (h->state == STOP_NOT_ASKED) {
        *h = (struct graceful_stop){
            .state = STOP_ASKED, .since_us = now_us, .before = checkpoint_last(c)};
        checkpoint_ask(c);
    }
    assert(h->since_us <= now_us && h->before <= checkpoint_last(c));
    if (now_us - h->since_us >= GRACEFUL_STOP_US)
        return false;
    /* Some members have left before the new checkpoint and have only the previous one. The new
     * checkpoint would therefore not be common to all members. This peer does not wait for it, and
     * ends with the previous one. */
    uint64_t taken = checkpoint_last(c);
    if (taken == h->before && checkpoint_lost_members(c, es.n_members)) {
        checkpoint_cancel(c);
        return false;
    }
    return taken == h->before || phases_beat(ph) < taken + 2 * es.eccentricity + 2;
}
