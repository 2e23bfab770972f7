/* peer/http/prometheus.h -- a snapshot in Prometheus' text format (version 0.0.4).
 *
 *   # HELP hearsay_round Rounds of the run that this peer counts as over.
 *   # TYPE hearsay_round gauge
 *   hearsay_round 412
 *
 * Base units, `_total` behind counters, each with HELP and TYPE. A figure that is not known has no
 * sample, and a name without samples no HELP: absent() finds it. What is counted begins anew with the
 * process, but for what a checkpoint brings back (rounds, steps and their seconds).
 */
#ifndef PEER_HTTP_PROMETHEUS_H
#define PEER_HTTP_PROMETHEUS_H

#include "peer/http/snapshot.h"
#include "peer/http/text.h"

#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Appends all figures, as they are at now_us (the clock of taken_us). */
void prometheus_write(struct text *t, const struct snapshot *s, int64_t now_us);

#endif
