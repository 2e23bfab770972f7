/* topology/round_schedule.c -- builds the round schedule of a topology specification.
 *
 * A family of topologies lists the edges of its rounds in any order. The edges are then sorted, so
 * that every peer has the same schedule.
 */
#include "topology/round_schedule.h"

#include "topology/family.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int topology_turns_add(struct topology_turns *t, struct round_schedule_edge e)
{
    if (t->n == t->cap) {
        size_t cap = t->cap > 0 ? 2 * t->cap : 64;
        void *p = realloc(t->edge, cap * sizeof t->edge[0]);
        if (p == NULL)
            return -ENOMEM;
        t->edge = p;
        t->cap = cap;
    }
    t->edge[t->n++] = e;
    return 0;
}

/* Comparison function of qsort() that orders edges by round, then by the smaller end, then by the
 * larger end. */
static int compare_turns(const void *left, const void *right)
{
    const struct round_schedule_edge *x = left, *y = right;
    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

/* Moves the edges of the list `t` into the schedule, sorts them and computes where each round
 * begins. Returns 0 or -ENOMEM. */
static int make_rota(struct round_schedule *r, struct topology_turns *t)
{
    r->first = calloc((size_t)r->n_rounds + 1, sizeof *r->first);
    if (r->first == NULL)
        return -ENOMEM;
    r->edge = t->edge;
    t->edge = NULL;
    if (t->n > 0)
        qsort(r->edge, t->n, sizeof r->edge[0], compare_turns);
    for (size_t i = 0; i < t->n; i++) {
        assert(r->edge[i].round < r->n_rounds && r->edge[i].a < r->edge[i].b);
        r->first[r->edge[i].round + 1]++;
    }
    for (uint32_t k = 0; k < r->n_rounds; k++)
        r->first[k + 1] += r->first[k];
    return 0;
}

bool round_schedule_of(const char *spec)
{
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    const char *arg;
    return topology_canonical(spec, canonical, error) == 0
           && topology_family(canonical, &arg)->rounds != NULL;
}

bool round_schedule_exact(const char *spec, uint32_t n)
{
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    const char *arg;
    if (topology_canonical(spec, canonical, error) != 0)
        return false;
    const struct topology *family = topology_family(canonical, &arg);
    return family->rounds != NULL && (n < 2 || (family->exact != NULL && family->exact(n)));
}

bool round_schedule_pairs(const char *spec)
{
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    const char *arg;
    return topology_canonical(spec, canonical, error) == 0
           && topology_family(canonical, &arg)->pairs;
}

int round_schedule_build(struct round_schedule *r, const char *spec, uint32_t n, uint64_t seed)
{
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    *r = (struct round_schedule){.n = n};
    if (n == 0 || topology_canonical(spec, canonical, error) != 0)
        return -EINVAL;
    const char *arg;
    const struct topology *family = topology_family(canonical, &arg);
    struct topology_turns turns = {.n = 0};
    int err =
        n > 1 && family->rounds != NULL ? family->rounds(&turns, &r->n_rounds, arg, n, seed) : 0;
    r->exact = r->n_rounds > 0 && family->exact != NULL && family->exact(n);
    if (err == 0)
        err = make_rota(r, &turns);
    free(turns.edge);
    if (err != 0)
        round_schedule_close(r);
    return err;
}

void round_schedule_close(struct round_schedule *r)
{
    free(r->first);
    free(r->edge);
    *r = (struct round_schedule){.n = 0};
}

int topology_turns_union(struct topology_edges *e, const struct topology *family, const char *arg,
                         uint32_t n, uint64_t seed)
{
    struct topology_turns turns = {.n = 0};
    uint32_t n_rounds = 0;
    int err = family->rounds(&turns, &n_rounds, arg, n, seed);
    for (size_t i = 0; i < turns.n && err == 0; i++)
        err = topology_edges_add(e, turns.edge[i].a, turns.edge[i].b);
    free(turns.edge);
    return err;
}

struct round_schedule_load round_schedule_load(const struct round_schedule *r, uint32_t v)
{
    struct round_schedule_load load = {0};
    for (uint32_t k = 0; k < r->n_rounds; k++) {
        uint32_t before = load.ends;
        for (size_t i = r->first[k]; i < r->first[k + 1]; i++)
            load.ends += r->edge[i].a == v || r->edge[i].b == v;
        load.busy += load.ends > before;
    }
    return load;
}
