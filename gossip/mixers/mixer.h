/* gossip/mixers/mixer.h -- mixing algorithms: what an exchange does to the models.
 *
 * Edges, transactions, replicas and the last phase are the same for all
 * (edge.h, choco.h). Mixers differ in what a delta of training means:
 *
 *   choco     a correction of the replica a: q = Q(x - a), and models move
 *             towards each other's replicas
 *   average   an update of the model: C(u), which all who hear of it apply
 *             (average.h)
 *
 * A delta says by its codec what it is: one of DELTA_RUN is an update where
 * the mixer `updates`; all others are corrections, whatever the mixer. So both
 * ends of an edge know it, also where one is in the last phase already.
 */
#ifndef GOSSIP_MIXERS_MIXER_H
#define GOSSIP_MIXERS_MIXER_H

#include <stdbool.h>

struct choco;
struct choco_turn;
struct compress_input;

struct mixer
{
    const char *name;
    bool updates; /* Deltas of DELTA_RUN are updates. The rest is for these. */

    /* Allocate what the mixer keeps; freed by choco_close(). 0 or -ENOMEM. */
    int (*open)(struct choco *c);

    /* All on the worker. Replicas and weights of a job are known: apply its
     * updates to x. */
    void (*mix)(struct choco *c);
    /* Local steps are done: before the first update is encoded, ... */
    void (*before)(struct choco *c);
    /* ... what turn t encodes, as a difference of two vectors, ... */
    void (*source)(const struct choco *c, const struct choco_turn *t, struct compress_input *in);
    /* ... and once all are encoded. */
    void (*after)(struct choco *c);
};

/* Ends with NULL. The order is that of the run key's choices (peer/run/run.h). */
extern const struct mixer *const mixer_all[];

#endif
