/* peer/node/shared_scratch.h -- scratch memory and results that all nodes of one thread share.
 *
 * A simulator runs a thousand nodes in one thread. Scratch memory is used within one step only, so
 * one copy is enough, and stays in the processor's caches. Results that would be equal in all nodes
 * are computed once. If a thread has only one node, the node has a struct of its own (env.c).
 */
#ifndef PEER_NODE_SHARED_SCRATCH_H
#define PEER_NODE_SHARED_SCRATCH_H

#include "gossip/wire/wire.h"
#include "peer/run/run.h"
#include "topology/topology.h"

/* Memory that the nodes of one thread share. Zero-initialised by its owner. */
struct shared_scratch
{
    uint8_t message[WIRE_CONTROL_MAX]; /* Buffer for one control message. */
    struct wire_batch batch; /* Lists of the MEMBERS message that is being read or written. */

    /* Last result of shared_scratch_spectrum(). n 0: no result yet. */
    struct
    {
        char topology[RUN_VALUE_MAX]; /* Specification of the topology. */
        uint32_t n;                   /* Number of vertices of the topology. */
        uint64_t seed;                /* Random seed of the graph. */
        struct spectrum is;           /* Results computed from the eigenvalues of the graph. */
    } spectrum;
};

/* Sets *s to the spectrum of the graph `topology` with n vertices and this seed. Uses the result of
 * the last call if that call had the same arguments. Returns 0 or a negative errno. */
int shared_scratch_spectrum(struct shared_scratch *c, const char *topology, uint32_t n,
                            uint64_t seed, struct spectrum *s);

#endif
