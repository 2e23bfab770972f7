/* peer/uv/metrics.h -- writes metrics.jsonl: one JSON object per line and round.
 *
 *   {"start": true, "at": "2026-11-22T13:33:02Z", "version": "0.9", "from_round": 11}
 *   {"round": 12, "rounds": 400, "phase": "training", "time_s": 3.41,
 *    "loss": 0.31, "accuracy": null, "test_loss": null, "accuracy_round": null,
 *    "accuracy_samples": null, "drift": 0.52, "relative_drift": 0.011,
 *    "drift_round": 4, "drift_age": 8, "own_distance": 0.5, "gamma": 0.04, "bytes_sent": 81234,
 *    "bytes_received": 80012, "compute_s": 2.9, "wait_s": 0.2, "mix_s": 0.1,
 *    "live": 8, "edges": 2, "settle_rounds": 0, "rounds_done": 12,
 *    "rounds_skipped": 0, "joined_round": 0}
 *
 * Each start of the process writes a "start" line, because a restarted run appends to the file. The run
 * continues after round from_round (rounds of the consensus phase are counted, too). If earlier lines
 * describe later rounds, these rounds are done again, and the earlier lines remain. Seconds and bytes
 * are totals since the start line; bytes are counted at the sockets. Values that are not known are
 * null. accuracy and test_loss are given for rounds with an evaluation: they describe the model after
 * accuracy_round rounds, on accuracy_samples samples. A consensus phase that cannot end would fill the
 * disk: after its first 1,000 rounds it writes at most ten lines per second, and its last line.
 */
#ifndef PEER_UV_METRICS_H
#define PEER_UV_METRICS_H

#include "peer/node/node.h"

#include <jansson.h>

#define UV_METRICS_ROUNDS 1000
#define UV_METRICS_GAP_S  0.1

/* Selects the rounds that get a line: all rounds, except in a long consensus phase, where a few
 * per second get one. */
struct uv_metrics_pace
{
    double next_s; /* Time from which the next line is written, in seconds. */
};

/* Is a line due? Before its UV_METRICS_ROUNDS the consensus phase has one a round, behind them one each
 * UV_METRICS_GAP_S. One that is not due is to be kept: it may be the last of its phase. */
bool uv_metrics_due(struct uv_metrics_pace *p, const struct node_progress *g, double time_s);

/* "joining", "training", "consensus", "finishing", "left"; "no-quorum" of one that would train
 * but for the quorum. */
const char *uv_metrics_phase(enum node_phase phase, bool holds);

/* "closed", "asking", "open", "paused", "done": an enum edge_state, perhaps a peer's word. */
const char *uv_metrics_edge(uint32_t state);

/* A path or another text that need not be UTF-8, which JSON must be: of a text that is not UTF-8, each byte that
 * is not ASCII becomes a '?'. NULL gives null. */
json_t *uv_metrics_text(const char *text);

/* null where it is not finite. */
json_t *uv_metrics_number(double x);
/* JSON's integers are signed here: what is larger, a peer's lie, stays at their end. */
json_t *uv_metrics_whole(uint64_t n);

/* The number that reads as x does in a line of metrics: nine digits, as many as
 * a float has. Figures that are compared between runs go through it. */
double uv_metrics_rounded(double x);

/* Returns a number as a JSON value: null if it is not finite. */
json_t *uv_metrics_figure(double x);

/* The object of one line, its figures rounded; NULL without memory. */
json_t *uv_metrics_object(const struct node_progress *p, double time_s);

/* Put the last evaluation there, whichever round it was of: accuracy, test_loss, accuracy_round and
 * accuracy_samples; null where there was none. */
void uv_metrics_evaluation(json_t *object, const struct node_progress *p);

/* The line as text, without its end; to be freed. NULL without memory. */
char *uv_metrics_line(const struct node_progress *p, double time_s);

/* The line of a start, likewise; `at` is whole seconds since 1970, below 0 for a start at no
 * hour (a simulation). */
char *uv_metrics_start(int64_t at, uint64_t from_round);

#endif
