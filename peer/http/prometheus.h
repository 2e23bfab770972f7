/* peer/http/prometheus.h -- a snapshot in Prometheus' text format (version 0.0.4).
 *
 *   # HELP hearsay_round Rounds of the run that this peer counts as over.
 *   # TYPE hearsay_round gauge
 *   hearsay_round 412
 *
 * Units are base units, names of counters end in `_total`, and each metric has HELP and TYPE. A
 * value that is not known has no sample, and a metric without samples is left out completely, so
 * that absent() of PromQL detects it. Counters start at 0 with the process, except those that a
 * checkpoint restores (rounds, steps and their seconds).
 */
#ifndef PEER_HTTP_PROMETHEUS_H
#define PEER_HTTP_PROMETHEUS_H

#include "peer/http/snapshot.h"
#include "peer/http/text.h"

#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Appends all metrics. now_us is the present time of the monotonic clock, in microseconds, which
 * the snapshot's time `taken_us` also uses. */
void prometheus_write(struct text *t, const struct snapshot *s, int64_t now_us);

#endif
