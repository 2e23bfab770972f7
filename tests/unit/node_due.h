/* tests/unit/node_due.h -- simulated time: finds the next event of the nodes under test. */
#ifndef TESTS_UNIT_NODE_DUE_H
#define TESTS_UNIT_NODE_DUE_H

#include "peer/node/node.h"

/* The n nodes that a test drives. Each array has one entry per node. */
struct node_due
{
    const int64_t *wake_us; /* Time at which the timer of the node fires. INT64_MAX: never. */
    int64_t *work_us;       /* Time at which the node's running job ends. 0: no job is running. */
    /* The node has ended: its timer no longer fires, but its running job still ends. */
    const bool *over;
    size_t n;
};

/* Removes the earliest event, up to the time end_us, from `d`: a timer, or the end of a job, which
 * comes first at equal times. Returns the number of its node, sets *ev to the kind of the event,
 * and advances *now_us to its time. Returns `n` if no event is due. */
static inline size_t node_due_take(const struct node_due *d, int64_t end_us, int64_t *now_us,
                                   struct node_event *ev)
{
    size_t who = d->n;
    int64_t next = end_us + 1;
    for (size_t i = 0; i < d->n; i++)
        if (d->work_us[i] != 0 && d->work_us[i] < next)
            next = d->work_us[i], who = i, ev->type = NODE_WORKED;
    for (size_t i = 0; i < d->n; i++)
        if (!d->over[i] && d->wake_us[i] < next)
            next = d->wake_us[i], who = i, ev->type = NODE_TIMER;
    if (who == d->n)
        return who;
    *now_us = next > *now_us ? next : *now_us;
    if (ev->type == NODE_WORKED)
        d->work_us[who] = 0;
    return who;
}

#endif
