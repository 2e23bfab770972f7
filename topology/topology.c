/* topology/topology.c -- parses topology specifications and builds their graphs.
 *
 * A family of graphs only lists edges, in any order and possibly twice. This file turns the list
 * into sorted adjacency lists. A family therefore needs only a few lines of arithmetic, and every
 * peer gets the same graph whatever the order of the edges was.
 */
#include "topology/topology.h"

#include "nn/math/number.h"
#include "nn/math/spelling.h"
#include "topology/family.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct topology *const topology_all[] = {
    &topology_ring,        &topology_path,        &topology_star,         &topology_tree,
    &topology_trees,       &topology_grid,        &topology_torus,        &topology_hypercube,
    &topology_exponential, &topology_bipartite,   &topology_complete,     &topology_regular,
    &topology_er,          &topology_small_world, &topology_base,         &topology_one_peer,
    &topology_rotation,    &topology_matching,    &topology_edges_family, NULL,
};

/* ---- Checking and printing specifications ---- */

/* number_digits() checks the limit after each digit, so a number with many digits cannot
 * overflow. */
bool topology_number(const char **text, uint32_t *value)
{
    uint64_t v;
    const char *behind = number_digits(*text, TOPOLOGY_NUMBER_MAX, &v);
    if (behind == NULL)
        return false;
    *text = behind;
    *value = (uint32_t)v;
    return true;
}

int topology_one_number(const struct topology_one *one, const char *arg, char *out, size_t cap,
                        char error[TOPOLOGY_ERROR_MAX])
{
    const char *p = arg != NULL ? arg : "";
    uint32_t k;
    if (!topology_number(&p, &k) || *p != '\0' || k < one->least || k > one->most)
        return topology_refuse(error, one->family, arg != NULL ? arg : "", one->wanted);
    snprintf(out, cap, "%u", k);
    return 0;
}

/* The invalid text comes from a user or another peer. At most 44 bytes of it are shown. Characters
 * that are not printable ASCII become '?', so that a message cannot send control sequences to the
 * terminal. */
int topology_refuse(char error[TOPOLOGY_ERROR_MAX], const char *family, const char *found,
                    const char *expected)
{
    /* Buffer for the first bytes of the invalid text, enough to recognise it. If the text is
     * longer, the buffer ends with "...". */
    char shown[48];
    size_t n = 0;
    for (; found[n] != '\0' && n + 4 < sizeof shown; n++)
        shown[n] = found[n] >= ' ' && found[n] <= '~' ? found[n] : '?';
    strcpy(shown + n, found[n] != '\0' ? "..." : "");
    snprintf(error, TOPOLOGY_ERROR_MAX, "%s: found '%s', expected %s", family, shown, expected);
    return -EINVAL;
}

const struct topology *topology_family(const char *spec, const char **arg)
{
    size_t n = strcspn(spec, ":");
    *arg = spec[n] == ':' ? spec + n + 1 : NULL;
    for (size_t i = 0; topology_all[i] != NULL; i++)
        if (strlen(topology_all[i]->name) == n && memcmp(topology_all[i]->name, spec, n) == 0)
            return topology_all[i];
    return NULL;
}

static const char *name_at(size_t i)
{
    return topology_all[i] != NULL ? topology_all[i]->name : NULL;
}

static bool is_valid(const char *spec)
{
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    return topology_canonical(spec, canonical, error) == 0;
}

/* Writes the error for an unknown family. The message lists the syntax of all families and suggests
 * a similar name. */
static int refuse_kind(const char *spec, char error[TOPOLOGY_ERROR_MAX])
{
    static const struct spelling_specs specs = {name_at, is_valid};
    char question[SPELLING_QUESTION_MAX], expected[TOPOLOGY_ERROR_MAX - 100];
    size_t n = 0;
    for (size_t i = 0; topology_all[i] != NULL && n < sizeof expected; i++) {
        const char *before = i == 0 ? "" : topology_all[i + 1] != NULL ? ", " : " or ";
        int form = (int)strcspn(topology_all[i]->help, " ");
        n += (size_t)snprintf(expected + n, sizeof expected - n, "%s%.*s", before, form,
                              topology_all[i]->help);
    }
    if (n < sizeof expected)
        snprintf(expected + n, sizeof expected - n, "%s", spelling_spec(&specs, spec, question));
    return topology_refuse(error, "unknown kind", spec, expected);
}

/* The family checks its argument and writes the argument's canonical form. This function writes the
 * name of the family and the colon before it. */
int topology_canonical(const char *spec, char canonical[TOPOLOGY_SPEC_MAX],
                       char error[TOPOLOGY_ERROR_MAX])
{
    const char *arg;
    const struct topology *family = topology_family(spec, &arg);
    if (family == NULL)
        return refuse_kind(spec, error);
    char text[TOPOLOGY_SPEC_MAX];
    size_t n = strlen(family->name);
    int err = family->canonical(arg, text, sizeof text - n - 1, error);
    if (err != 0)
        return err;
    snprintf(canonical, TOPOLOGY_SPEC_MAX, "%s%s%.*s", family->name, text[0] != '\0' ? ":" : "",
             (int)(sizeof text - n - 2), text);
    return 0;
}

/* An invalid specification gives 0 (any number of peers), because graph_build() will report the
 * error. */
uint32_t topology_peers(const char *spec)
{
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    if (topology_canonical(spec, canonical, error) != 0)
        return 0;
    const char *arg;
    const struct topology *family = topology_family(canonical, &arg);
    return arg != NULL && family->peers != NULL ? family->peers(arg) : 0;
}

/* ---- Converting edges to a graph ---- */

/* The array doubles when it is full, so adding m edges costs O(m) in total. */
int topology_edges_add(struct topology_edges *e, uint32_t a, uint32_t b)
{
    if (e->n == e->cap) {
        size_t cap = e->cap > 0 ? 2 * e->cap : 64;
        void *p = realloc(e->pair, cap * sizeof e->pair[0]);
        if (p == NULL)
            return -ENOMEM;
        e->pair = p;
        e->cap = cap;
    }
    e->pair[e->n][0] = a;
    e->pair[e->n][1] = b;
    e->n++;
    return 0;
}

/* Comparison function of qsort() for vertex numbers. The numbers are compared, because their
 * difference could overflow an int. */
static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the neighbours of each vertex, drops duplicates and closes the gaps. Peers mix the models
 * of their neighbours in this order. A sorted list gives the same order, and thus the same bits, at
 * every peer. */
static void sort_neighbours(struct graph *g)
{
    uint32_t kept = 0;
    for (uint32_t v = 0; v < g->n; v++) {
        uint32_t begin = g->first[v], end = g->first[v + 1];
        qsort(g->neighbour + begin, end - begin, sizeof *g->neighbour, compare_u32);
        g->first[v] = kept;
        for (uint32_t i = begin; i < end; i++)
            if (i == begin || g->neighbour[i] != g->neighbour[i - 1])
                g->neighbour[kept++] = g->neighbour[i];
    }
    g->first[g->n] = kept;
}

int topology_edges_graph(const struct topology_edges *e, uint32_t n, struct graph *g)
{
    *g = (struct graph){.n = n};
    if (e->n > UINT32_MAX / 2 || n == UINT32_MAX)
        return -EINVAL;
    g->first = calloc((size_t)n + 1, sizeof *g->first);
    g->neighbour = malloc((2 * e->n + 1) * sizeof *g->neighbour);
    if (g->first == NULL || g->neighbour == NULL) {
        graph_close(g);
        return -ENOMEM;
    }
    /* Counting sort by vertex: first[v] counts the neighbours of v, then becomes the start of the
     * list of v. While the lists are filled, first[v] is the index at which the next neighbour of v
     * is stored. */
    for (size_t i = 0; i < e->n; i++) {
        uint32_t a = e->pair[i][0], b = e->pair[i][1];
        assert(a < n && b < n);
        if (a != b) {
            g->first[a]++;
            g->first[b]++;
        }
    }
    uint32_t total = 0;
    for (uint32_t v = 0; v <= n; v++) {
        uint32_t degree = g->first[v];
        g->first[v] = total;
        total += degree;
    }
    for (size_t i = 0; i < e->n; i++) {
        uint32_t a = e->pair[i][0], b = e->pair[i][1];
        if (a != b) {
            g->neighbour[g->first[a]++] = b;
            g->neighbour[g->first[b]++] = a;
        }
    }
    memmove(g->first + 1, g->first, n * sizeof *g->first);
    g->first[0] = 0;
    sort_neighbours(g);
    return 0;
}

/* Making the specification canonical ensures that a text typed by the user and the text in a run
 * description give the same graph. A graph of one vertex has no edges in any family. */
int graph_build(struct graph *g, const char *spec, uint32_t n, uint64_t seed)
{
    char canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    *g = (struct graph){.n = 0};
    if (n == 0 || topology_canonical(spec, canonical, error) != 0)
        return -EINVAL;
    const char *arg;
    const struct topology *family = topology_family(canonical, &arg);
    struct topology_edges edges = {.n = 0};
    int err = n == 1                   ? 0
              : family->rounds != NULL ? topology_turns_union(&edges, family, arg, n, seed)
                                       : family->build(&edges, arg, n, seed);
    if (err == 0)
        err = topology_edges_graph(&edges, n, g);
    free(edges.pair);
    return err;
}
