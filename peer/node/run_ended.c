/* peer/node/run_ended.c -- others that have finished, or do not come back. */
#include "peer/node/run_ended.h"

#include "peer/node/member_counts.h"
#include "peer/run/exit.h"

/* ---- gathering ---- */

/* Too few members are there, from now on. */
static int64_t miss(const struct phases *ph)
{
    if (ph->env->config.was_there)
        env_note(ph->env, NOTE_INFO,
                 "was in this run before but has no checkpoint of it: waiting for the other "
                 "members, for at most --quorum-timeout (%.0f s)",
                 (double)ph->env->config.patience_us * 1e-6);
    return ph->env->now_us > 0 ? ph->env->now_us : 1;
}

void run_ended_gathers(struct phases *ph, bool complete)
{
    if (complete)
        ph->missed_us = 0;
    else if (ph->missed_us == 0)
        ph->missed_us = miss(ph);
}

void run_ended_waits(struct phases *ph)
{
    const struct node_config *c = &ph->env->config;
    bool waits = ph->phase == NODE_JOINING && ph->missed_us > 0 && c->was_there;
    if (!waits || ph->env->now_us - ph->missed_us < c->patience_us)
        return;
    ph->away = true;
    env_end(ph->env, CMD_APART);
}

/* ---- training, and the consensus phase ---- */

/* In the consensus phase all others have finished and gone, and how far we are from them is not known, or too
 * far: nothing that would change that can come. */
static bool left_alone(const struct phases *ph)
{
    return ph->phase == NODE_CONSENSUS && edges_open(ph->edges) == 0 && !sessions_any(ph->sessions)
           && member_counts_finished(ph->env)
           && !(phases_own_distance(ph) <= ph->workshop->run.final_drift);
}

/* Has the run ended without us? In training that is so where the others say that they have
 * finished. Where all were gone when we came back, nobody is left to say anything; who was only
 * cut off trains on as long as it has a quorum. */
bool run_ended_left_behind(const struct phases *ph)
{
    enum sessions_away away = sessions_deserted(ph->sessions);
    bool training = ph->phase == NODE_TRAINING && ph->round < ph->workshop->run.rounds;
    if (ph->phase != NODE_TRAINING && ph->phase != NODE_CONSENSUS)
        return ph->away;
    return ph->away || (training && (edges_open(ph->edges) == 0 && member_counts_finished(ph->env)))
           || left_alone(ph) || away == SESSIONS_STOOD
           || (away == SESSIONS_CUT && ph->quorum.state == QUORUM_HELD);
}
