/* peer/node/waits.h -- which neighbour the schedule waits for, kept for those who ask (node_wait()).
 *
 *   a job runs                                     NODE_WAITS_NOTHING
 *   gathering: no run yet                          NODE_WAITS_RUN
 *              which checkpoint to go on from      NODE_WAITS_RESUME
 *              fewer than --min-peers are here     NODE_WAITS_MEMBERS
 *              no model yet                        NODE_WAITS_MODEL
 *              else                                NODE_WAITS_EDGES
 *   training,  below the quorum, job or not        NODE_WAITS_QUORUM
 *   settling:  a checkpoint has to be on disk      NODE_WAITS_DISK
 *              the schedule names a neighbour      NODE_WAITS_NEIGHBOUR
 *              else                                NODE_WAITS_NOTHING
 *   serving                                        NODE_WAITS_OTHERS
 */
#ifndef PEER_NODE_WAITS_H
#define PEER_NODE_WAITS_H

#include "peer/node/schedule.h"

#include "gossip/wire/wire.h"

/* Written by waits_decided() alone. */
struct waits
{
    bool some;                 /* The last decision was to wait for a neighbour: */
    uint8_t id[WIRE_ID_BYTES]; /* for this one, */
    uint64_t beat;             /* which stood there. */
};

/* The schedule has decided. id: the neighbour's that it names (d->for_whom); else unused. */
void waits_decided(struct waits *w, const struct schedule_decision *d, const uint8_t *id);

#endif
