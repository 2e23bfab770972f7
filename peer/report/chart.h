/* peer/report/chart.h -- the drawings of a report, as scripts for gnuplot and graphviz.
 *
 * A script has numbers and our own words in it, and never a word out of a file: names of runs and
 * peers stand in the page, beside the colours. So no name can be a command.
 *
 * Up to REPORT_LINES peers are a line each; of more there is a band from the least to the greatest
 * and a line through the median.
 */
#ifndef PEER_REPORT_CHART_H
#define PEER_REPORT_CHART_H

#include "peer/report/run.h"
#include "peer/report/text.h"

enum {
    REPORT_LINES = 8,         /* Peers of a run that are drawn one by one. */
    REPORT_COLOURS = 8,       /* Runs have colours in turn. */
    REPORT_GRAPH_PEERS = 200, /* A graph of more is no picture. */
    REPORT_GRAPH_EDGES = 800
};

/* "#rrggbb", of lines that are seen on light and on dark ground. */
extern const char *const report_chart_colours[REPORT_COLOURS];
/* They are for computing, waiting, mixing and the rest; the second also for bytes received. */
extern const char *const report_chart_parts[4];

/* A drawing of all runs together. Which there are says report_chart_curves[], until a title NULL. */
struct report_curve
{
    const char *title, *note;
    int figure, axis; /* enum report_column, enum report_axis */
};
extern const struct report_curve report_chart_curves[];

/* Write gnuplot's script for a curve. 1; 0 where no run has any such figure: then nothing is
 * written; or -ENOMEM. */
__attribute__((warn_unused_result)) int report_chart_curve(struct report_text *out,
                                                           const struct report_curve *curve,
                                                           const struct report_run *runs, size_t n);

/* The bars of a run: where its peers' time went, or their bytes. 1, or 0 where that is not known
 * of any of them. */
int report_chart_times(struct report_text *out, const struct report_run *run);
int report_chart_bytes(struct report_text *out, const struct report_run *run);

/* Graphviz' (neato) script for the graph of a run, with the places of members in their sorted order
 * as names. 1; 0 where it is not known or too large to be seen, and `why` says so; or -ENOMEM. */
enum { REPORT_WHY = 200 };
__attribute__((warn_unused_result)) int report_chart_graph(struct report_text *out,
                                                           const struct report_run *run,
                                                           char why[REPORT_WHY]);

#endif
