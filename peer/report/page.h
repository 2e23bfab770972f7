/* peer/report/page.h -- the report: one HTML file that needs nothing else.
 *
 *   verdicts        a line a run, with its colour
 *   settings        those that differ between runs; of one run those that are no defaults
 *   final figures   a table; data-figure and data-value of a cell have the number of the file
 *   curves          of all runs together
 *   each run        where the time went, bytes, the graph, its peers
 *   all settings    folded
 *
 * Words from files are escaped, pictures are embedded (svg.h), and a Content-Security-Policy in the
 * page forbids whatever would be loaded. Colours follow the reader's light or dark.
 */
#ifndef PEER_REPORT_PAGE_H
#define PEER_REPORT_PAGE_H

#include "peer/report/chart.h"
#include "peer/run/run.h"

/* With this a page of ours begins. */
extern const char report_page_mark[];
/* How it looks. */
extern const char report_page_style[];

enum report_program { REPORT_GNUPLOT, REPORT_NEATO, REPORT_PROGRAMS };

/* Who draws. */
struct report_drawer
{
    void *self;
    bool there[REPORT_PROGRAMS]; /* Is the program installed? */
    /* Have a program draw a script; its SVG goes to `out`. 0, or a negative errno with a sentence. */
    int (*draw)(void *self, enum report_program program, const struct report_text *script,
                struct report_text *out, char why[REPORT_WHY]);
};

/* Write the page of n >= 1 runs. `trainer` says what defaults are. 0 or -ENOMEM. A picture that
 * fails is a sentence in its place. */
__attribute__((warn_unused_result)) int report_page_write(struct report_text *out,
                                                          const struct report_run *runs, size_t n,
                                                          const struct run_trainer *trainer,
                                                          const struct report_drawer *drawer);

/* Parts of it, in files of their own. */
void report_page_settings(struct report_text *out, const struct report_run *runs, size_t n,
                          const struct run_trainer *trainer);
void report_page_all_settings(struct report_text *out, const struct report_run *runs, size_t n);
void report_page_figures(struct report_text *out, const struct report_run *runs, size_t n);
void report_page_peers(struct report_text *out, const struct report_run *run);
/* A run's colour and name. */
void report_page_name(struct report_text *out, const struct report_run *runs, size_t i);

#endif
