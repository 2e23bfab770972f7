/* peer/node/step/job_watchdog.h -- measures this peer's jobs and decides when a worker hangs.
 *
 * A hanging worker is *stalled*: the peer reports itself to the other members, which then continue
 * without it. The functions are a part of phases.h and write these fields of struct phases:
 * `stalled`, `longest_us`, `signed_us`, `usual_us`, `n_paced` and `hung_us`. */
#ifndef PEER_NODE_STEP_JOB_WATCHDOG_H
#define PEER_NODE_STEP_JOB_WATCHDOG_H

#include "peer/node/step/phases.h"

/* Returns the mean duration of this peer's jobs with local steps, in microseconds. 0: there was no
 * such job yet. */
int64_t job_watchdog_mean_us(const struct phases *ph);
/* Returns the duration in microseconds after which a job of this peer or of a neighbour counts as
 * hanging. INT64_MAX: there is no limit (--straggler-timeout 0). */
int64_t job_watchdog_limit_us(const struct phases *ph);
/* Updates ph->usual_us, the usual wait for neighbours before a round. Called before each job with
 * local steps. */
void job_watchdog_learn_pace(struct phases *ph, const struct schedule_view *v);
/* Returns whether the consensus phase waits for live members with stalled workers. The phase waits
 * for at most SCHEDULE_STALL_US in all. */
bool job_watchdog_awaits(struct phases *ph);
/* Called when a job has ended after took_us microseconds. If the worker was reported as stalled,
 * informs the other members that it works again. */
void job_watchdog_done(struct phases *ph, int64_t took_us);

#endif
