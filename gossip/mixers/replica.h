/* gossip/mixers/replica.h -- replicas of a peer's own model, shared by edges with equal replicas.
 *
 * The replica `a` of an edge is the vector that the neighbour has assembled from this peer's
 * deltas (x_hat(i->j) in the papers). Edges that committed the same deltas have equal replicas,
 * so they share one struct replica and hold one reference each. The worker then compresses once
 * for all of them. An edge that misses a commit gets a copy of its own:
 *
 *   e1 -+                       e1 ---> replica (a)       committed: a += q
 *   e2 -+-> replica (a)   =>    e2 -/
 *   e3 -+                       e3 ---> replica (copy)    has not committed yet
 *
 * Replicas come from a pool and return to it, so a run in which no edge changes does not
 * allocate. The loop thread takes and returns references. The worker owns the floats while a job
 * runs.
 */
#ifndef GOSSIP_MIXERS_REPLICA_H
#define GOSSIP_MIXERS_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replica
{
    float *v;
    /* Extra vector of pool->dim floats for the mixer. NULL: pool->with_memory is false. */
    float *memory;
    /* Number of references: edges that use the replica, and jobs that copy from it. */
    uint32_t refs;
    struct replica *next;
};

struct replica_pool
{
    size_t dim; /* Number of floats of each replica, and of each extra vector of the mixer. */
    /* True: each replica has an extra vector for the mixer. Set in the mixer's open(), before the
     * first replica exists. */
    bool with_memory;
    struct replica *used, *free;
};

void replica_pool_init(struct replica_pool *pool, size_t dim);

/* Frees all replicas. No edge may hold a replica at this time (mixing_edge_close()). */
void replica_pool_close(struct replica_pool *pool);

/* Returns a replica with one reference and uninitialised floats, or NULL if memory is exhausted. */
struct replica *replica_get(struct replica_pool *pool);

/* Drops one reference to replica r. r may be NULL. */
void replica_release(struct replica_pool *pool, struct replica *r);

#endif
