/* topology/edges.c -- the family "edges:0-1,1-2,...", a graph given by its list of edges.
 *
 * In the canonical form the smaller end of each edge comes first, the edges ascend, and no edge is
 * repeated. In a graph of n peers, edges with an end of n or more are left out. If the remaining
 * graph is not connected, an edge is added from the smallest peer of each component to the smallest
 * peer of the next component. Thus the graph is connected for any number of peers.
 */
#include "topology/family.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Comparison function of qsort() for edges: by the smaller end, then by the larger end. */
static int compare_pairs(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    if (x[0] != y[0])
        return x[0] < y[0] ? -1 : 1;
    return (x[1] > y[1]) - (x[1] < y[1]);
}

/* Sorts the edges and writes them in canonical form. Returns 0, or -EINVAL if the text does not fit
 * into out[0..cap). The list is never cut off, because peers with different parts of a list would
 * build different graphs. */
static int write_edges(struct topology_edges *e, char *out, size_t cap,
                       char error[TOPOLOGY_ERROR_MAX])
{
    qsort(e->pair, e->n, sizeof e->pair[0], compare_pairs);
    size_t at = 0, written = 0;
    out[0] = '\0';
    for (size_t i = 0; i < e->n; i++) {
        if (i > 0 && compare_pairs(e->pair[i], e->pair[i - 1]) == 0)
            continue;
        int n = snprintf(out + at, cap - at, "%s%u-%u", at > 0 ? "," : "", e->pair[i][0],
                         e->pair[i][1]);
        if (n < 0 || (size_t)n >= cap - at) {
            snprintf(error, TOPOLOGY_ERROR_MAX,
                     "topology edges: %zu edges do not fit: the run description has room for %d "
                     "bytes, enough for the first %zu edges",
                     e->n, (int)cap - 1, written);
            return -EINVAL;
        }
        at += (size_t)n;
        written++;
    }
    return 0;
}

/* Adds an edge with its smaller end first. */
static int add_ordered(struct topology_edges *e, uint32_t a, uint32_t b)
{
    return topology_edges_add(e, a < b ? a : b, a < b ? b : a);
}

/* Reads a list such as "0-1,1-2" at *p into `e`. Returns 0, -ENOMEM, or -EINVAL. After -EINVAL, *p
 * points to the first invalid edge. */
static int read_inline(struct topology_edges *e, const char **p)
{
    for (;;) {
        const char *begin = *p;
        uint32_t a, b;
        if (!topology_number(p, &a) || **p != '-' || (++*p, !topology_number(p, &b)) || a == b
            || (**p != ',' && **p != '\0')) {
            *p = begin;
            return -EINVAL;
        }
        if (add_ordered(e, a, b) != 0)
            return -ENOMEM;
        if (**p == '\0')
            return 0;
        ++*p;
    }
}

/* Parses the text after "edges:" in a specification, such as "0-1,1-2", and writes its canonical
 * form. */
static int edges_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    struct topology_edges e = {.n = 0};
    const char *p = arg != NULL ? arg : "";
    int err = read_inline(&e, &p);
    if (err == -EINVAL)
        topology_refuse(error, "edges", p, "edges of two different peers, as in edges:0-1,1-2");
    else if (err != 0)
        snprintf(error, TOPOLOGY_ERROR_MAX, "topology edges: out of memory");
    else
        err = write_edges(&e, out, cap, error);
    free(e.pair);
    return err == 0 ? 0 : -EINVAL;
}

/* ---- Reading files of edges ---- */

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* Reads a number inside [*p, end) and advances *p past it. The byte at `end` must be a newline, a
 * NUL or the # of a comment, because the digits are read up to the first byte that is not a
 * digit. */
static bool read_number(const char **p, const char *end, uint32_t *value)
{
    *p = skip_blanks(*p, end);
    return *p < end && topology_number(p, value);
}

/* Reads one line [p, end) of an edge file, without its newline. The line may contain an edge, a
 * comment or nothing. Returns 0, -EINVAL or -ENOMEM. */
static int read_line(struct topology_edges *e, const char *p, const char *end)
{
    const char *comment = memchr(p, '#', (size_t)(end - p));
    end = comment != NULL ? comment : end;
    p = skip_blanks(p, end);
    if (p == end)
        return 0;
    uint32_t a, b;
    if (!read_number(&p, end, &a) || p == end || (*p != ' ' && *p != '\t')
        || !read_number(&p, end, &b) || skip_blanks(p, end) != end || a == b)
        return -EINVAL;
    return add_ordered(e, a, b);
}

/* Writes the error for the invalid line `number` of n bytes. The line does not end with a NUL, so a
 * short copy of it is quoted. */
static void refuse_line(char error[TOPOLOGY_ERROR_MAX], size_t number, const char *line, size_t n)
{
    char where[32], found[64];
    snprintf(where, sizeof where, "edges, line %zu", number);
    n = n < sizeof found - 1 ? n : sizeof found - 1;
    memcpy(found, line, n);
    found[n] = '\0';
    topology_refuse(error, where, found, "two different peers, as in '0 1'");
}

/* Reads all lines of an edge file. The whole file is rejected at the first invalid line, because a
 * list with a typing error must not be used in part. Returns 0 or -EINVAL. */
static int read_lines(struct topology_edges *e, const char *text, size_t len,
                      char error[TOPOLOGY_ERROR_MAX])
{
    const char *end = text + len;
    size_t number = 1;
    for (const char *line = text; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop != NULL ? stop : end;
        int err = read_line(e, line, stop);
        if (err == -EINVAL)
            refuse_line(error, number, line, (size_t)(stop - line));
        else if (err != 0)
            snprintf(error, TOPOLOGY_ERROR_MAX, "topology edges: out of memory");
        if (err != 0)
            return -EINVAL;
        line = stop < end ? stop + 1 : end;
    }
    return 0;
}

int topology_edges_text(const char *text, size_t len, char canonical[TOPOLOGY_SPEC_MAX],
                        char error[TOPOLOGY_ERROR_MAX])
{
    static const char prefix[] = "edges:";
    size_t n = sizeof prefix - 1;
    struct topology_edges e = {.n = 0};
    /* topology_number() reads up to the first byte that is not a digit. The last line may end with
     * a digit, so the text is copied and a NUL is appended. */
    char *copy = malloc(len + 1);
    if (copy == NULL) {
        snprintf(error, TOPOLOGY_ERROR_MAX, "topology edges: out of memory");
        return -EINVAL;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    int err = read_lines(&e, copy, len, error);
    if (err == 0 && e.n == 0) {
        snprintf(error, TOPOLOGY_ERROR_MAX,
                 "topology edges: no edge found, expected lines as '0 1'");
        err = -EINVAL;
    }
    char out[TOPOLOGY_SPEC_MAX];
    memcpy(out, prefix, n);
    if (err == 0)
        err = write_edges(&e, out + n, sizeof out - n, error);
    if (err == 0)
        memcpy(canonical, out, sizeof out);
    free(e.pair);
    free(copy);
    return err;
}

/* ---- Building the graph ---- */

/* Returns the root of the component of v, the smallest vertex in it (union-find with path
 * halving). */
static uint32_t find_root(uint32_t *parent, uint32_t v)
{
    while (parent[v] != v)
        v = parent[v] = parent[parent[v]];
    return v;
}

/* Adds edges until the vertices 0 to n - 1 are connected. The root of a component is its smallest
 * vertex, so the added edges do not depend on the order of the given edges. Returns 0 or
 * -ENOMEM. */
static int join_parts(struct topology_edges *e, uint32_t n)
{
    uint32_t *parent = malloc(n * sizeof *parent);
    if (parent == NULL)
        return -ENOMEM;
    for (uint32_t v = 0; v < n; v++)
        parent[v] = v;
    for (size_t i = 0; i < e->n; i++) {
        uint32_t a = find_root(parent, e->pair[i][0]);
        uint32_t b = find_root(parent, e->pair[i][1]);
        parent[a > b ? a : b] = a > b ? b : a;
    }
    /* Root (smallest vertex) of the component that was reached last. The next component is
     * connected to it by an edge. */
    uint32_t last = 0;
    int err = 0;
    for (uint32_t v = 1; v < n && err == 0; v++)
        if (parent[v] == v) {
            err = topology_edges_add(e, last, v);
            last = v;
        }
    free(parent);
    return err;
}

/* Only edges between the vertices 0 to n - 1 are used, because the list may name peers that have
 * not joined or have died. Every member must nevertheless build the same connected graph. */
static int edges_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)seed;
    assert(arg != NULL);
    int err = read_inline(e, &arg);
    if (err != 0)
        return err;
    size_t kept = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->pair[i][1] < n) {
            memmove(e->pair[kept], e->pair[i], sizeof e->pair[0]);
            kept++;
        }
    e->n = kept;
    return join_parts(e, n);
}

/* Returns the largest vertex number in the list plus 1, because the vertices are counted from 0. */
static uint32_t edges_peers(const char *arg)
{
    struct topology_edges e = {.n = 0};
    uint32_t last = 0;
    if (read_inline(&e, &arg) == 0)
        for (size_t i = 0; i < e.n; i++)
            last = e.pair[i][1] > last ? e.pair[i][1] : last;
    free(e.pair);
    return last + 1;
}

const struct topology topology_edges_family = {
    .name = "edges",
    .help = "edges:FILE -- a file with lines 'i j', or a list as in edges:0-1,1-2",
    .canonical = edges_canonical,
    .build = edges_build,
    .peers = edges_peers,
};
