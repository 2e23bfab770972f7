/* peer/node/edge/edges_state.c -- writes all edges to a checkpoint and restores them. */
#include "peer/node/edge/edges_state.h"
#include "nn/math/state.h"

#include <stdlib.h>
#include <string.h>

/* Reads or writes the hash of the members (*view), the number of graphs built so far, and the
 * number of edge resets. */
static void graph_fields(struct edges *es, uint64_t *view, struct state *s)
{
    state_section(s, "graph");
    state_u64(s, view);
    state_u64(s, &es->place.built);
    state_u64(s, &es->n_resets);
}

/* Reads or writes the identities of the neighbours. When reading, returns whether the current edges
 * have the same neighbours. The neighbours differ, for example, if an edge was waiting to be
 * dropped when the checkpoint was written. */
static bool same_ends(const struct edges *es, struct state *s)
{
    uint64_t n = es->n;
    bool same;
    state_u64(s, &n);
    same = n == es->n;
    for (uint64_t i = 0; i < n && !s->failed; i++) {
        uint8_t id[WIRE_ID_BYTES] = {0};
        if (i < es->n)
            memcpy(id, es->at[i]->edge.id, sizeof id);
        state_bytes(s, id, sizeof id);
        same = same && env_same_id(id, es->at[i]->edge.id);
    }
    return same && !s->failed;
}

static void edges_fields(struct edges *es, struct state *s)
{
    struct edge **e = calloc(es->n + 1, sizeof(struct edge *));
    if (e == NULL) {
        state_no_memory(s);
        return;
    }
    for (size_t i = 0; i < es->n; i++)
        e[i] = &es->at[i]->edge;
    mixing_edges_state(&es->workshop->mixing, e, es->n, s);
    free(e);
}

void edges_write(struct edges *es, struct state *s)
{
    uint64_t view = es->view;
    graph_fields(es, &view, s);
    (void)same_ends(es, s);
    edges_fields(es, s);
}

void edges_read(struct edges *es, uint64_t beat, struct state *s)
{
    uint64_t view = 0;
    graph_fields(es, &view, s);
    if (s->failed)
        return;
    es->beat = beat;
    /* edges_rebuild() adds 1 to `built`, the number of graphs built. This 1 is subtracted first, so
     * that `built` keeps the value in the checkpoint. */
    es->place.built--;
    edges_rebuild(es);
    if (es->env->over || !same_ends(es, s) || es->view != view)
        return;
    edges_fields(es, s);
    for (size_t i = 0; i < es->n && !s->failed; i++) {
        struct neighbour *b = es->at[i];
        b->gamma = b->edge.gamma.value;
        b->n_runaways = b->edge.gamma.n_runaways;
    }
}
