/* peer/cmd/peers.c -- checks --min-peers and --topology against the number of peers. */
#include "peer/cmd/peers.h"

#include "nn/math/number.h"
#include "topology/topology.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Largest number of peers per processor. With more, sessions may time out. */
enum { PEERS_PER_PROCESSOR = 24 };

/* Returns the number of edges that a canonical spec "edges:..." lists. Returns 0 for any other
 * topology. */
static uint32_t named_edges(const char *spec)
{
    uint32_t n = 0;
    if (strncmp(spec, "edges:", 6) != 0)
        return 0;
    for (const char *p = spec; (p = strchr(p, '-')) != NULL; p++)
        n++;
    return n;
}

void cmd_peers_report_added_edges(const struct options *o, const char *spec, const struct graph *g)
{
    uint32_t named = named_edges(spec), built = g->first[g->n] / 2;
    if (named == 0 || topology_peers(spec) != g->n || built <= named)
        return;
    cmd_fail(o, CMD_OK,
             "warning: the edges of --topology do not connect all %u peers: hearsay adds %u edge%s "
             "that %s them",
             (unsigned)g->n, (unsigned)(built - named), number_plural(built - named),
             built - named == 1 ? "connects" : "connect");
}

/* Builds the same graph as the peers will, and warns if edges had to be added to connect all peers.
 * A spec that cannot be built is ignored here, because the peers refuse it with their own
 * message. */
static void tell_joined(const struct options *o, const char *topology, uint32_t n)
{
    char spec[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX];
    struct graph g;
    if (topology_canonical(topology, spec, error) != 0 || named_edges(spec) == 0
        || graph_build(&g, spec, n, 0) != 0)
        return;
    cmd_peers_report_added_edges(o, spec, &g);
    graph_close(&g);
}

int cmd_peers_flags(const struct options *o, uint32_t n, struct run_flags *flags)
{
    char error[RUN_ERROR_MAX], text[24];
    const char *topology = options_text(o, "topology");
    unsigned least = options_given(o, "min-peers") ? (unsigned)options_uint(o, "min-peers") : n;
    if (least > n)
        return cmd_fail(o, CMD_USAGE, "--min-peers: found %u, expected at most the %u of --peers",
                        least, (unsigned)n);
    for (int k = 0; k < 2; k++) {
        const char *flag = k ? "final-topology" : "topology", *graph = options_text(o, flag);
        /* `made_for` is 0 if the topology suits any number of peers. It is also 0 for the value
         * "same" of --final-topology, which names no topology. */
        unsigned made_for = topology_peers(graph);
        if (made_for != 0 && made_for != n)
            return cmd_fail(o, CMD_USAGE, "--%s: %.100s is for %u peers, but --peers is %u", flag,
                            graph, made_for, (unsigned)n);
    }
    tell_joined(o, topology, n);
    *flags = o->run;
    snprintf(text, sizeof text, "%u", least);
    int err = run_flags_set(flags, "min-peers", text, error);
    /* run_flags_set() cannot refuse --min-peers, because the parser of options has already checked
     * its range. */
    assert(err == 0);
    return CMD_OK;
}

void cmd_peers_raise_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void cmd_peers_check_load(const struct options *o, uint32_t n)
{
    long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (n_processors < 1 || n <= PEERS_PER_PROCESSOR * (uint64_t)n_processors)
        return;
    cmd_fail(o, CMD_OK,
             "warning: %u processes share %ld processor%s: sessions between them may time out; "
             "hearsay sim --peers %u gives identical models in one process",
             (unsigned)n, n_processors, number_plural((uint64_t)n_processors), (unsigned)n);
}
