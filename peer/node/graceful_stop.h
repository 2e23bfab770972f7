/* peer/node/graceful_stop.h -- an end by request, in lock step: after one more checkpoint that all have.
 *
 * A checkpoint of a round that no other peer has a checkpoint of is of no use to a run in lock
 * step. So whoever is told to end says at which beat it wants one (checkpoint.h), and trains on:
 *
 *   told to end --> one is due at beat d --> taken --> beat d + 2 reach + 2 --> leaves
 *                    (a few hops ahead)                (everybody has done beat d by then)
 *
 * Where all are told at once, as `hearsay local` does on Ctrl-C, all agree, and nobody's leaving
 * changes what another does up to beat d. Where one ends alone the others do not listen, unless
 * their last one is old enough. It takes GRACEFUL_STOP_US at most: a run whose rounds are slow goes on from
 * the checkpoint before. So does one of which members have left meanwhile that had not come so far,
 * as where all are told while some of them wait to go on from a checkpoint.
 */
#ifndef PEER_NODE_GRACEFUL_STOP_H
#define PEER_NODE_GRACEFUL_STOP_H

#include "peer/node/phases.h"

enum { GRACEFUL_STOP_US = 2500 * 1000 };

struct graceful_stop
{
    bool asked;
    bool at_once; /* Written by node.c: nothing is waited for any more. */
    int64_t since_us;
    uint64_t before; /* The checkpoint that was there when it began. */
};

/* We have been told to end, and no job runs: is there something to wait for? */
bool graceful_stop_waits(struct graceful_stop *h, struct phases *ph);

#endif
