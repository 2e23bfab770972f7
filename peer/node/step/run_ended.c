/* peer/node/step/run_ended.c -- decides whether the run has ended without this peer. */
#include "peer/node/step/run_ended.h"

#include "peer/node/mark.h"
#include "peer/node/membership/quorum.h"
#include "peer/node/step/phases_state.h"
#include "peer/run/exit.h"

/* ---- joining ---- */

/* If this peer was in the run before, prints what it does now. Returns the time now, at which the
 * wait for the other members begins. Never returns 0. */
static int64_t miss(const struct phases *ph)
{
    double patience_s = (double)ph->env->config.patience_us * 1e-6;
    if (ph->past == NODE_PAST_FINAL)
        env_note(ph->env, NOTE_WARNING,
                 "this peer was in the run before, and has stored its final model: waiting for the "
                 "other members, for at most --quorum-timeout (%.0f s)",
                 patience_s);
    else if (ph->past == NODE_PAST_MEMBER)
        env_note(
            ph->env, NOTE_INFO,
            "this peer was in the run before, but has no checkpoint from which it can resume: "
            "it fetches the model of the members that train, or begins again at round 0 if "
            "--min-peers members do so; it waits for at most --quorum-timeout (%.0f s); if the "
            "others have finished, use the model of one of them",
            patience_s);
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
    bool waits = ph->phase == NODE_JOINING && ph->missed_us > 0 && ph->past != NODE_PAST_NONE;
    if (!waits || ph->env->now_us - ph->missed_us < c->patience_us)
        return;
    ph->away = true;
    env_end(ph->env, CMD_APART);
}

/* ---- training, and the consensus phase ---- */

/* left: all other members have finished, and have refused this peer's dials for
 * ENDED_AFTER_PAUSE_US. In a run with a certificate, members send the certificate before they
 * leave. For a peer without the certificate `left` is therefore false: the processes of the other
 * members may have been killed, and may start again.
 *
 * cut: this peer was cut off from the network, and either all others have finished, or this peer is
 * below the quorum. A peer with the quorum continues after a cut, because the others may have died.
 *
 * After a pause of this process the run has ended, with or without the quorum. */
bool run_ended_deserted(const struct phases *ph)
{
    enum sessions_away away = sessions_deserted(ph->sessions);
    bool finished = member_counts_finished(ph->env);
    bool certifies = run_has_certificate(&ph->workshop->run) && ph->certificate == NULL;
    bool left = finished && !certifies && sessions_refused_us(ph->sessions) >= ENDED_AFTER_PAUSE_US;
    bool cut = away == SESSIONS_CUT && (finished || quorum_is_held(ph->quorum));
    MARK_IF(left, "run_ended: all others finished and left");
    MARK_IF(away == SESSIONS_STOOD, "run_ended: deserted after a pause");
    MARK_IF(cut, "run_ended: deserted after a cut");
    MARK_IF(away == SESSIONS_CUT && !cut, "run_ended: continues after a cut");
    return left || away == SESSIONS_STOOD || cut;
}

/* The conditions under which the run has ended without this peer are listed in run_ended.h. */
bool run_ended_left_behind(const struct phases *ph)
{
    bool mixes = ph->phase == NODE_TRAINING || ph->phase == NODE_CONSENSUS;
    return ph->away || (mixes && run_ended_deserted(ph));
}
