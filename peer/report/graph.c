/* peer/report/graph.c -- the graph that a run's peers talk over, as graphviz' script. */
#include "nn/math/number.h"
#include "peer/report/chart.h"
#include "topology/topology.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* How many members a run had: its own word, that of its verdict, or as many as there are files of. */
static uint32_t members_of(const struct report_run *run)
{
    char value[32];
    uint64_t n;
    double members = run->end.at[REPORT_F_MEMBERS];
    if (report_run_setting(run, "--peers", value, sizeof value) && number_whole(value, &n))
        return n <= UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    if (members > 0 && members <= UINT32_MAX)
        return (uint32_t)members;
    return (uint32_t)run->n_peers;
}

static void put_graph(struct report_text *out, const struct graph *g)
{
    report_text_put(out, "graph run {\n"
                         "graph [bgcolor=transparent, outputorder=edgesfirst, overlap=false];\n"
                         "node [shape=circle, style=filled, fillcolor=\"#3182ce\", "
                         "color=\"#3182ce\", fontcolor=white, fontsize=11, width=0.32, "
                         "fixedsize=true, fontname=\"sans-serif\"];\n"
                         "edge [color=\"#8a94a6\"];\n");
    for (uint32_t v = 0; v < g->n; v++) {
        report_text_print(out, "%" PRIu32 ";\n", v);
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++)
            if (v < g->neighbour[i])
                report_text_print(out, "%" PRIu32 " -- %" PRIu32 ";\n", v, g->neighbour[i]);
    }
    report_text_put(out, "}\n");
}

static int refuse(char why[REPORT_WHY], const char *sentence)
{
    snprintf(why, REPORT_WHY, "%s", sentence);
    return 0;
}

int report_chart_graph(struct report_text *out, const struct report_run *run, char why[REPORT_WHY])
{
    char spec[TOPOLOGY_SPEC_MAX], canonical[TOPOLOGY_SPEC_MAX], error[TOPOLOGY_ERROR_MAX], seed[32];
    uint64_t s;
    struct graph g;
    why[0] = '\0';
    if (report_run_setting(run, "command", spec, sizeof spec) && strcmp(spec, "train") == 0)
        return 0; /* It has no peers, and nothing to say. */
    if (!report_run_setting(run, "topology", spec, sizeof spec)
        || !report_run_setting(run, "seed", seed, sizeof seed) || !number_whole(seed, &s))
        return refuse(why,
                      "The graph is not drawn: there is no run.txt that says topology and seed.");
    uint32_t n = members_of(run);
    if (n > REPORT_GRAPH_PEERS) {
        snprintf(why, REPORT_WHY, "The graph is not drawn: %" PRIu32 " peers, %d at most.", n,
                 REPORT_GRAPH_PEERS);
        return 0;
    }
    if (topology_canonical(spec, canonical, error) != 0)
        return refuse(why, "The graph is not drawn: run.txt has a topology that is none.");
    int err = graph_build(&g, canonical, n, s);
    if (err == -ENOMEM)
        return err;
    if (err != 0)
        return refuse(why, "The graph is not drawn: there is none of that topology.");
    if (g.first[g.n] / 2 > REPORT_GRAPH_EDGES)
        snprintf(why, REPORT_WHY, "The graph is not drawn: %" PRIu32 " edges, %d at most.",
                 g.first[g.n] / 2, REPORT_GRAPH_EDGES);
    else
        put_graph(out, &g);
    graph_close(&g);
    return out->broken ? -ENOMEM : why[0] == '\0';
}
