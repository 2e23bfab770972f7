/* gossip/mixers/replica.c -- the pool of replicas, counted by reference. */
#include "gossip/mixers/replica.h"

#include <assert.h>
#include <stdlib.h>

void replica_pool_init(struct replica_pool *pool, size_t dim)
{
    *pool = (struct replica_pool){.dim = dim};
}

/* For good: neither in a list of the pool nor held by anybody. */
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

/* Edges have given theirs back; what is used still was taken by a job whose planning
 * ran out of memory. */
void replica_pool_close(struct replica_pool *pool)
{
    free_list(pool->used);
    free_list(pool->free);
    *pool = (struct replica_pool){0};
}

/* All of it or nothing. */
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
    /* The used ones are in a list, too: a mixer may have to visit all of them. */
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
    /* There are as many as edges out of step: a few, so a walk does. */
    struct replica **at = &pool->used;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    r->next = pool->free;
    pool->free = r; /* With its floats: the next one to get it writes all of them. */
}
