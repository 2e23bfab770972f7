/* peer/node/step/job_watchdog.c -- measures the worker's jobs, and reports a worker that hangs. */

#include "peer/node/mark.h"
#include "peer/node/membership/quorum.h"
#include "peer/node/step/phases_state.h"

#include <assert.h>

/* The usual wait for neighbours before a round of lock step is an average over PACE_ROUNDS rounds.
 * A single wait counts as at most PACE_MOST times the average plus USUAL_WAIT_US. The constant
 * USUAL_WAIT_US is needed because an average of 0 would otherwise limit every wait to 0, and thus
 * stay 0. */
enum { PACE_ROUNDS = 16, PACE_MOST = 4 };

/* A job hangs if it takes longer than each of three limits: --straggler-timeout, LIMIT_JOBS times
 * the mean job, and LIMIT_LONGEST times the longest job. The longest job counts because jobs with
 * an evaluation are long. Before the first job with local steps has ended, the only limit is
 * LIMIT_FIRST times --straggler-timeout. */
enum { LIMIT_JOBS = 20, LIMIT_LONGEST = 4, LIMIT_FIRST = 6 };

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t job_watchdog_mean_us(const struct phases *ph)
{
    return ph->done > 0 ? ph->worked_us / (int64_t)ph->done : 0;
}

int64_t job_watchdog_limit_us(const struct phases *ph)
{
    int64_t least = ph->env->config.worker_limit_us;
    if (least <= 0)
        return INT64_MAX;
    if (ph->done == 0)
        return LIMIT_FIRST * least;
    return larger(least,
                  larger(LIMIT_JOBS * job_watchdog_mean_us(ph), LIMIT_LONGEST * ph->longest_us));
}

int64_t phases_busy_us(const struct phases *ph)
{
    return ph->job_us > 0 ? ph->env->now_us - ph->job_us + 1 : 0;
}

int64_t phases_stuck_us(const struct phases *ph)
{
    return ph->job_us > 0 ? ph->env->now_us - larger(ph->job_us, ph->signed_us) + 1 : 0;
}

void phases_sign(struct phases *ph)
{
    ph->signed_us = ph->env->now_us;
}

/* Returns the state that this peer's member record has while its worker is not stalled. */
static enum record_state standing(const struct phases *ph)
{
    return ph->phase < NODE_CONSENSUS ? RECORD_RUNNING : RECORD_TRAINED;
}

/* The last job of the run has no limit: it evaluates on the whole test set and may be long, but no
 * member waits for it. */
void phases_watch_job(struct phases *ph)
{
    if (ph->stalled || ph->phase == NODE_FINISHING
        || phases_stuck_us(ph) <= job_watchdog_limit_us(ph))
        return;
    assert(members_self(ph->env->members)->state == standing(ph));
    MARK("job_watchdog: a job hangs");
    ph->stalled = true;
    env_note(ph->env, NOTE_WARNING,
             "round %llu: the worker thread has run one job for %.0f s; the other peers continue "
             "without this one",
             (unsigned long long)ph->round, (double)phases_stuck_us(ph) * 1e-6);
    members_set_state(ph->env->members, RECORD_STALLED);
}

void job_watchdog_done(struct phases *ph, int64_t took_us)
{
    assert(ph->stalled == (members_self(ph->env->members)->state == RECORD_STALLED));
    if (ph->stalled) {
        MARK("job_watchdog: a hung job ends");
        ph->stalled = false;
        env_note(ph->env, NOTE_WARNING, "round %llu: the worker thread has finished after %.0f s",
                 (unsigned long long)ph->round, (double)took_us * 1e-6);
        members_set_state(ph->env->members, standing(ph));
    } else if (took_us > ph->longest_us) {
        /* A job that hung does not count as the longest job, so it does not raise the limit of
         * later jobs. */
        ph->longest_us = took_us;
    }
}

/* Each wait is limited to a small multiple of the average, because a wait for an absent neighbour
 * is not typical. The first waits count in full, because there is no reliable average yet. */
void job_watchdog_learn_pace(struct phases *ph, const struct schedule_view *v)
{
    int64_t most_us = PACE_MOST * ph->usual_us + USUAL_WAIT_US;
    if (!schedule_in_step(v))
        return;
    ph->n_paced += ph->n_paced < PACE_ROUNDS;
    bool measure = ph->n_paced < PACE_ROUNDS || v->idle_us < most_us;
    ph->usual_us += ((measure ? v->idle_us : most_us) - ph->usual_us) / ph->n_paced;
}

/* The consensus phase waits for members with stalled workers, but only for a limited time. Most of
 * these workers recover within seconds, and the models of their members then take part in the
 * consensus. */
bool job_watchdog_awaits(struct phases *ph)
{
    if (ph->phase != NODE_CONSENSUS || !member_counts_hang(ph->env))
        return false;
    if (ph->hung_us == 0) {
        MARK("job_watchdog: consensus phase waits for hung workers");
        ph->hung_us = ph->env->now_us;
        env_note(
            ph->env, NOTE_INFO,
            "the consensus phase waits for members whose worker threads hang, for at most %d s",
            SCHEDULE_STALL_US / 1000000);
    }
    return ph->env->now_us - ph->hung_us < SCHEDULE_STALL_US;
}
