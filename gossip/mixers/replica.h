/* gossip/mixers/replica.h -- what our neighbours hold as our model, shared by edges in step.
 *
 * An edge's a, in the papers x_hat(i->j), is the vector that the other end has put
 * together from our deltas. Edges that have committed the same deltas have the
 * same a, so they share one replica and hold a reference each; the worker then
 * compresses once for all of them. An edge that falls out of step is split off:
 *
 *   e1 -+                       e1 ---> replica (a)       committed: a += q
 *   e2 -+-> replica (a)   =>    e2 -/
 *   e3 -+                       e3 ---> replica (copy)    still waits
 *
 * Replicas come from a pool and go back to it, so that a steady run allocates
 * nothing. References are taken and given back on the loop's thread; the floats
 * are the worker's while a job runs.
 */
#ifndef GOSSIP_MIXERS_REPLICA_H
#define GOSSIP_MIXERS_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replica
{
    float *v;
    float *memory; /* Room that a mixer asked for beside each replica, else NULL. */
    uint32_t refs; /* Edges that hold it, and jobs that copy from it. */
    struct replica *next;
};

struct replica_pool
{
    size_t dim;       /* Floats of a replica, and of a memory. */
    bool with_memory; /* Set by the mixer's open, before there is any replica. */
    struct replica *used, *free;
};

void replica_pool_init(struct replica_pool *pool, size_t dim);

/* Frees all of them: no edge may hold one any more (mixing_edge_close). */
void replica_pool_close(struct replica_pool *pool);

/* A replica with one reference, or NULL without memory. Its floats are whatever
 * they were. */
struct replica *replica_get(struct replica_pool *pool);

void replica_release(struct replica_pool *pool, struct replica *r); /* NULL is allowed. */

#endif
