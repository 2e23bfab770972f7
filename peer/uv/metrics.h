/* peer/uv/metrics.h -- writes metrics.jsonl: one JSON object per line and round.
 *
 *   {"start": true, "at": "2026-11-22T13:33:02Z", "version": "0.9", "from_round": 11}
 *   {"round": 12, "rounds": 400, "phase": "training", "time_s": 3.41,
 *    "loss": 0.31, "drift": 0.52, ...}                    the rows FIGURE_METRICS of figure_all[]
 *
 * Each start of the process writes a "start" line, because a restarted process appends to the file.
 * The run continues after round from_round. The round number includes rounds of the consensus
 * phase. If the file already has lines of later rounds, the peer does these rounds again, and the
 * earlier lines remain. Seconds and bytes are totals since the start line. Bytes are counted at the
 * sockets. Unknown values are null. Rounds with an evaluation have accuracy and test_loss, which
 * describe the model after accuracy_round rounds, measured on accuracy_samples samples.
 *
 * A consensus phase that cannot end would fill the disk. After its first 1,000 rounds at most ten
 * lines per second are therefore written, and the last line of the phase.
 */
#ifndef PEER_UV_METRICS_H
#define PEER_UV_METRICS_H

#include "peer/node/figure.h"

#include <jansson.h>

#define UV_METRICS_ROUNDS 1000
#define UV_METRICS_GAP_S  0.1

/* State of uv_metrics_due(), which limits how often lines of metrics.jsonl are written. */
struct uv_metrics_pace
{
    double next_s; /* Earliest time at which the next line may be written, in seconds. */
};

/* Returns whether the line of round *g must be written to metrics.jsonl at `time_s`, and updates
 * *p. The result is true for each round of training, and for the first UV_METRICS_ROUNDS rounds of
 * the consensus phase. In later rounds of that phase the result is true at most once per
 * UV_METRICS_GAP_S seconds. If the result is false, the caller must keep the line: it must be
 * written if no later line of the same phase follows. */
bool uv_metrics_due(struct uv_metrics_pace *p, const struct node_progress *g, double time_s);

/* Returns the name of a value of enum edge_state: "closed", "asking", "open", "paused" or "done".
 * The value may come from another peer, and an undefined value gives "unknown". */
const char *uv_metrics_edge(uint32_t state);

/* Returns a JSON string of a text that may be invalid UTF-8, such as a path. If the text is not
 * valid UTF-8, each byte that is not ASCII becomes '?'. NULL gives null. */
json_t *uv_metrics_text(const char *text);

/* Returns x as a JSON value: null if x is not finite. */
json_t *uv_metrics_number(double x);
/* Returns n as a JSON integer. Values above INT64_MAX, which only a faulty peer sends, become
 * INT64_MAX. */
json_t *uv_metrics_whole(uint64_t n);

/* Returns x rounded to nine digits, the precision of a metrics line and of a float. Figures that
 * are compared between runs are rounded in this way. */
double uv_metrics_rounded(double x);

/* Returns uv_metrics_rounded(x) as a JSON value: null if x is not finite. */
json_t *uv_metrics_figure(double x);

/* Returns the timers of the node (peer/node/timers.h) as a JSON list of objects with name, seconds
 * and purpose. NULL: out of memory. */
json_t *uv_metrics_timers(void);

/* Adds all figures of one output, such as metrics.jsonl, to a JSON object in the order of the
 * output. Numbers are rounded, except in the output for Python. A figure of type FIGURE_OTHER gets
 * the value null, which the caller replaces. Returns 0 or -ENOMEM. */
int uv_metrics_add(json_t *object, const struct figure_values *v, enum figure_output output);

/* Returns the JSON object of one metrics line. The figures of the evaluation are null unless
 * v->node.evaluated. NULL: out of memory. */
json_t *uv_metrics_object(const struct figure_values *v);

/* Returns a metrics line as text without a newline. The caller frees the text. NULL: out of
 * memory. */
char *uv_metrics_line(const struct node_progress *p, double time_s);

/* Returns the figures for Python as the text of a JSON object. The caller frees the text. NULL: out
 * of memory. */
char *uv_metrics_python(const struct figure_values *v);

/* Returns the "start" line, which describes a start of the process, as text without a newline. The
 * caller frees the text. NULL: out of memory. `at`: seconds since 1970; less than 0 if the start
 * has no time of day, as in a simulation. */
char *uv_metrics_start(int64_t at, uint64_t from_round);

#endif
