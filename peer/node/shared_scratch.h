/* peer/node/shared_scratch.h -- what nodes of one thread share: a simulator has a thousand of them.
 *
 * Scratch, that is in use within a step only, stays in the caches so; and what all of them would
 * compute alike is computed once. A node without others has one of its own (env.c).
 */
#ifndef PEER_NODE_SHARED_SCRATCH_H
#define PEER_NODE_SHARED_SCRATCH_H

#include "gossip/wire/wire.h"
#include "peer/run/run.h"
#include "topology/topology.h"

struct shared_scratch
{
    uint8_t message[WIRE_CONTROL_MAX]; /* For one control message. */
    struct wire_batch batch;           /* What a MEMBERS message being read or written says. */

    /* The graph whose eigenvalues were asked for last; n 0: there is none. */
    struct
    {
        char topology[RUN_VALUE_MAX];
        uint32_t n;
        uint64_t seed;
        struct spectrum is;
    } spectrum;
};

/* That of the graph of n vertices. 0 or a negative errno. */
int shared_scratch_spectrum(struct shared_scratch *c, const char *topology, uint32_t n,
                            uint64_t seed, struct spectrum *s);

#endif
