/* gossip/mixers/replica.c -- the pool of replicas, with reference counts. */
#include "gossip/mixers/replica.h"

#include <assert.h>
#include <stdlib.h>

void replica_pool_init(struct replica_pool *pool, size_t dim)
{
    *pool = (struct replica_pool){.dim = dim};
}

/* Frees a replica that is in no list of the pool and that no edge references. */
static void replica_free(struct replica *r)
{
    free(r->v);
    free(r->memory);
    free(r);
}

static void free_list(struct replica *r)
{
    while (r != NULL) {
        struct replica *next = r->next;
        replica_free(r);
        r = next;
    }
}

/* The caller has closed all edges, and each edge has dropped its references. The `used` list is
 * therefore empty, unless a job ran out of memory while it was planned. */
void replica_pool_close(struct replica_pool *pool)
{
    free_list(pool->used);
    free_list(pool->free);
    *pool = (struct replica_pool){0};
}

/* Returns a replica with all its vectors. If memory is exhausted, returns NULL and leaves nothing
 * allocated. */
static struct replica *replica_new(const struct replica_pool *pool)
{
    struct replica *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->v = malloc(pool->dim * sizeof *r->v);
    if (pool->with_memory)
        r->memory = malloc(pool->dim * sizeof *r->memory);
    if (r->v != NULL && (r->memory != NULL || !pool->with_memory))
        return r;
    replica_free(r);
    return NULL;
}

struct replica *replica_get(struct replica_pool *pool)
{
    /* Used replicas are linked in a list, because a mixer may have to visit all of them. */
    struct replica *r = pool->free;
    if (r != NULL)
        pool->free = r->next;
    else if ((r = replica_new(pool)) == NULL)
        return NULL;
    r->refs = 1;
    r->next = pool->used;
    pool->used = r;
    return r;
}

void replica_release(struct replica_pool *pool, struct replica *r)
{
    if (r == NULL)
        return;
    assert(r->refs > 0);
    if (--r->refs > 0)
        return;
    /* Searching the list of replicas is cheap. The list is short, because edges that have committed
     * the same deltas share one replica. */
    struct replica **at = &pool->used;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    r->next = pool->free;
    /* The floats are not cleared: the next user of the replica writes all of them. */
    pool->free = r;
}
