/* peer/node/job_watchdog.h -- how long our own jobs take, and when a worker is taken to hang; for
 * phases.c, whose struct it writes: `stalled` and `longest_us`. */
#ifndef PEER_NODE_JOB_WATCHDOG_H
#define PEER_NODE_JOB_WATCHDOG_H

#include "peer/node/phases.h"

/* The mean of our jobs with local steps, in microseconds; 0 before the first. */
int64_t job_watchdog_mean_us(const struct phases *ph);
/* A job that takes longer has a worker that hangs; INT64_MAX: none is said to. */
int64_t job_watchdog_limit_us(const struct phases *ph);
/* What a round of lock step waits for its neighbours: ph->usual_us. */
void job_watchdog_learn_pace(struct phases *ph, const struct schedule_view *v);
/* Does the consensus phase wait for members who live, and whose workers hang? Not for ever. */
bool job_watchdog_awaits(struct phases *ph);
/* A job is done that took so long. Others hear it where they were told that the worker hangs. */
void job_watchdog_done(struct phases *ph, int64_t took_us);

#endif
