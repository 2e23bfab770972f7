/* peer/node/step/wait_log.c -- messages for the user: what this peer waits for, and for which
 * neighbours it no longer waits. */

#include "peer/node/step/phases_state.h"

#include <stdio.h>

enum { TELL_WHY = 64 /* Size of the reason why a neighbour is behind, in bytes with the NUL. */ };

static const char *name_of(const struct phases *ph, const struct neighbour *b)
{
    const struct member *m = members_find(ph->env->members, b->edge.id);
    return m != NULL ? m->record->name : "a neighbour";
}

/* A joining peer waits for no exchange, so nothing is printed about exchanges. */
void wait_log_excused(const struct phases *ph, const struct schedule_view *v)
{
    if (v->phase == NODE_JOINING)
        return;
    for (size_t i = 0; i < v->n_edges && v->staleness > 0; i++) {
        const struct neighbour *b = edges_at(ph->edges, i);
        bool excused = v->edge[i].state == SCHEDULE_EDGE_OPEN && schedule_excused(v, &v->edge[i]);
        if (excused == b->excused || v->edge[i].state != SCHEDULE_EDGE_OPEN)
            continue;
        edges_excuse(ph->edges, i, excused);
        if (!excused)
            env_note(ph->env, NOTE_INFO, "waiting for %s again", name_of(ph, b));
        else if (v->edge[i].flapping && flap_damping_often(&b->absence))
            env_note(ph->env, NOTE_WARNING,
                     "%s disconnects repeatedly: this peer does not wait for it", name_of(ph, b));
        else if (v->edge[i].flapping)
            env_note(
                ph->env, NOTE_INFO,
                "%s was away for %.0f s: this peer waits for it again once it has stayed connected",
                name_of(ph, b), (double)b->absence.away_us * 1e-6);
        else
            env_note(ph->env, NOTE_WARNING,
                     "%s has made no progress since round %llu: this peer does not wait for it",
                     name_of(ph, b), (unsigned long long)v->edge[i].beat);
    }
}

int64_t wait_log_quorum(const struct phases *ph)
{
    const struct quorum_status q = quorum_status(ph->quorum);
    uint32_t needed = quorum_needed(q.n_members, ph->workshop->run.quorum);
    if (sessions_are_refused(ph->sessions))
        return ph->told_us; /* admit.c has printed why no members are present. */
    if (q.state == QUORUM_HELD)
        env_note(ph->env, NOTE_WARNING,
                 "below the quorum: %u of %u members are reachable, %u are needed; local steps "
                 "stop until then, for at most %.0f s",
                 q.n_live, q.n_members, needed, (double)ph->env->config.patience_us * 1e-6);
    else if (q.state == QUORUM_THERE)
        env_note(ph->env, NOTE_INFO, "the quorum is restored: %u of %u members are reachable",
                 q.n_live, q.n_members);
    else
        env_note(ph->env, NOTE_WARNING,
                 "still below the quorum after --quorum-timeout: continuing with %u of %u members",
                 q.n_live, q.n_members);
    return ph->env->now_us + WAIT_LOG_AGAIN_US - WAIT_LOG_US;
}

/* Writes to out[] why neighbour b is behind, as far as this peer knows. `seen`: the schedule's view
 * of the edge. A neighbour that sent nothing for WAIT_LOG_ANSWER_US is reported as not answering,
 * because working neighbours send heartbeats more often. */
static void say_why(const struct phases *ph, const struct neighbour *b,
                    const struct schedule_edge *seen, char out[TELL_WHY])
{
    int64_t now = ph->env->now_us;
    if (b->link == NULL)
        snprintf(out, TELL_WHY, "the neighbour is not connected");
    else if (b->coming_us > 0 && now - b->coming_us < WAIT_LOG_ANSWER_US)
        snprintf(out, TELL_WHY, "the neighbour is sending over a slow link");
    else if (now - b->link->heard_us >= WAIT_LOG_ANSWER_US)
        snprintf(out, TELL_WHY, "the neighbour has not answered for %.0f s",
                 (double)(now - b->link->heard_us) * 1e-6);
    else if (seen->busy_us > 0)
        snprintf(out, TELL_WHY, "the neighbour has been computing for %.0f s",
                 (double)seen->busy_us * 1e-6);
    else
        snprintf(out, TELL_WHY, "the neighbour answers, but has sent nothing for the next round");
}

/* Prints for which member this peer waits after its own model is final, and for how long. */
static void say_last(const struct phases *ph)
{
    const struct member *m = waits_last_member(ph);
    int64_t now = ph->env->now_us, limit_us = waits_last_limit_us(ph);
    double left_s = (double)(ph->idle_since_us + limit_us - now) * 1e-6;
    if (m == NULL || left_s < 0)
        return;
    const char *name = m->record->name;
    char gone[TELL_WHY] = "which left";
    if (m->state == MEMBER_DEAD)
        snprintf(gone, sizeof gone, "dead for %.0f s", (double)(now - m->dead_at_us) * 1e-6);
    if (m->state != MEMBER_DEAD && m->state != MEMBER_LEFT)
        env_note(ph->env, NOTE_INFO,
                 "waiting for %s, which has not finished: this peer ends without it in %.0f s",
                 name, left_s);
    else
        env_note(ph->env, NOTE_WARNING,
                 "waiting for %s, %s: the initial members that are present are no quorum; if none "
                 "returns, this peer ends in %.0f s (--quorum-timeout + %.0f s)",
                 name, gone, left_s, (double)(limit_us - ph->env->config.patience_us) * 1e-6);
}

int64_t wait_log_wait(const struct phases *ph, const struct schedule_decision *d)
{
    char why[TELL_WHY];
    int64_t now = ph->env->now_us;
    bool gathers = ph->phase == NODE_JOINING && ph->gathered_us == 0;
    const uint8_t *kept_by = round_protocol_awaited(ph->round_protocol, ph->round);
    bool refused = sessions_are_refused(ph->sessions);
    if (refused || now < ph->told_us + (gathers ? WAIT_LOG_MEMBERS_US : WAIT_LOG_US))
        return ph->told_us;
    if (quorum_is_held(ph->quorum)) {
        return wait_log_quorum(ph);
    } else if (gathers) {
        size_t self, n = members_vertices(ph->env->members, ph->env->vertices, &self);
        const struct link *lacks = join_awaits(ph->join);
        char names[CONNECTION_DIAGNOSTICS_NAMES];
        if (n >= ph->workshop->run.min_peers && lacks != NULL) {
            const struct member *m = members_find(ph->env->members, lacks->id);
            env_note(ph->env, NOTE_INFO, "waiting for %s, which is fetching the initial model",
                     m != NULL ? m->record->name : "a member");
            return now + WAIT_LOG_AGAIN_US - WAIT_LOG_MEMBERS_US;
        }
        if (ph->past == NODE_PAST_FINAL) {
            env_note(ph->env, NOTE_INFO, "waiting for a member that has begun the run");
            return now + WAIT_LOG_AGAIN_US - WAIT_LOG_MEMBERS_US;
        }
        if (n >= ph->workshop->run.min_peers) {
            env_note(
                ph->env, NOTE_INFO,
                "waiting for members: all %u (--min-peers) are here, but not all have announced "
                "that they are ready to begin",
                ph->workshop->run.min_peers);
            return now + WAIT_LOG_AGAIN_US - WAIT_LOG_MEMBERS_US;
        }
        connection_diagnostics_names(ph->sessions, names);
        env_note(ph->env, NOTE_INFO, "waiting for members: %zu of %u (--min-peers) are here; %s%s",
                 n, ph->workshop->run.min_peers,
                 names[0] != '\0'               ? "looking for more at "
                 : ph->past == NODE_PAST_MEMBER ? "if the other members have finished, copy a "
                                                  "model from one of them"
                                                : "other peers must name this one in --bootstrap",
                 names);
        return now + WAIT_LOG_AGAIN_US - WAIT_LOG_MEMBERS_US;
    } else if (ph->phase == NODE_FINISHING) {
        say_last(ph);
    } else if (phases_writes(ph)) {
        env_note(ph->env, NOTE_WARNING,
                 "waiting for the disk: the checkpoint of round %llu is being written",
                 (unsigned long long)checkpoint_last(ph->checkpoint));
    } else if (kept_by != NULL) {
        const struct member *m = members_find(ph->env->members, kept_by);
        env_note(ph->env, NOTE_INFO,
                 "waiting for %s, whose part of the mean of round %llu has not arrived",
                 m != NULL ? m->record->name : "?", (unsigned long long)ph->round);
    } else if (d->for_whom != NULL) {
        const struct neighbour *b = edges_at(ph->edges, (size_t)(d->for_whom - ph->seen));
        say_why(ph, b, d->for_whom, why);
        env_note(ph->env, NOTE_INFO,
                 "waiting for %s, which is at round %llu while this peer is "
                 "at %llu: %s",
                 name_of(ph, b), (unsigned long long)d->for_whom->beat,
                 (unsigned long long)phases_beat(ph), why);
    }
    return now + WAIT_LOG_AGAIN_US - WAIT_LOG_US;
}
