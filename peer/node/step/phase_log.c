/* peer/node/step/phase_log.c -- prints debug notes about changes of phase, with their reasons. */

#include "peer/node/step/phases_state.h"

#include <assert.h>
#include <stdio.h>

enum { REASON_MAX = 80 };

static const char *const phase_name[] = {[NODE_JOINING] = "JOINING",
                                         [NODE_TRAINING] = "TRAINING",
                                         [NODE_CONSENSUS] = "CONSENSUS",
                                         [NODE_FINISHING] = "FINISHING",
                                         [NODE_LEFT] = "LEFT"};

/* Returns why no more deltas are made in the consensus phase (schedule.c, settle()). */
static const char *end_of_consensus(const struct schedule_view *v,
                                    const struct schedule_decision *d)
{
    return v->diverged      ? "the run diverged"
           : v->away        ? "the run ended without this peer"
           : d->late        ? "there is no progress"
           : v->target <= 0 ? "--final-drift is 0"
           : d->left        ? "no neighbour is left"
                            : "all peers are under --final-drift";
}

/* Returns the phase to which decision d leads. If the phase changes, writes the reason to why[]. */
static enum node_phase next_phase(const struct phases *ph, const struct schedule_view *v,
                                  const struct schedule_decision *d, char why[REASON_MAX])
{
    switch (d->act) {
    case SCHEDULE_BEGIN:
        if (v->quiet)
            snprintf(why, REASON_MAX, "all %zu edges are open", v->n_edges);
        else
            snprintf(why, REASON_MAX, "some edges did not open in time");
        return NODE_TRAINING;
    case SCHEDULE_SETTLE:
        snprintf(why, REASON_MAX, "all %llu rounds are done", (unsigned long long)v->rounds);
        return NODE_CONSENSUS;
    case SCHEDULE_LAST:
        snprintf(why, REASON_MAX, "%s",
                 ph->phase == NODE_JOINING ? "the other members have finished"
                 : ph->draining            ? "all exchanges are complete"
                                           : end_of_consensus(v, d));
        return NODE_FINISHING;
    case SCHEDULE_WAIT:
    case SCHEDULE_GET_MODEL:
    case SCHEDULE_TRAIN:
    case SCHEDULE_MIX:
    case SCHEDULE_LEAVE:
        break;
    }
    return ph->phase;
}

void phase_log_decided(const struct phases *ph, const struct schedule_view *v,
                       const struct schedule_decision *d)
{
    char why[REASON_MAX];
    enum node_phase next = next_phase(ph, v, d, why);
    if (next != ph->phase)
        env_debug(ph->env, "phase %s -> %s (%s)", phase_name[ph->phase], phase_name[next], why);
    else if (d->drain && !ph->draining)
        env_debug(ph->env, "phase %s: no more deltas are made (%s)", phase_name[ph->phase],
                  end_of_consensus(v, d));
}

void phase_log_left(const struct phases *ph, bool asked)
{
    assert(ph->env->over);
    env_debug(ph->env, "phase %s -> LEFT (%s, exit code %d)", phase_name[ph->phase],
              asked ? "the peer was asked to leave" : "the peer has ended", ph->env->exit_code);
}
