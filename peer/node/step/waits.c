/* peer/node/step/waits.c -- derives what this peer waits for from the state of its modules. */
#include "peer/node/step/waits.h"

#include "peer/node/state.h"
#include "peer/node/step/phases_state.h"

#include <math.h>
#include <string.h>

/* Allowance for exchanges that are half done, in rounds. waits_mixing_rounds() adds twice the
 * eccentricity of this peer, because two peers may end up to that number of rounds apart. */
enum { MIXING_ROUNDS = 16 };

void waits_decided(struct waits *w, const struct schedule_decision *d, const uint8_t *id)
{
    bool waits = d->act == SCHEDULE_WAIT;
    w->what = waits && d->stranded           ? WAITS_FOR_FINISH
              : waits && d->for_whom != NULL ? WAITS_FOR_NEIGHBOUR
                                             : WAITS_FOR_NOTHING;
    if (w->what != WAITS_FOR_NEIGHBOUR)
        return;
    memcpy(w->id, id, sizeof w->id);
    w->beat = d->for_whom->beat;
}

const struct member *waits_last_member(const struct phases *ph)
{
    const struct members *all = ph->env->members;
    const uint8_t *first = quorum_first(ph->quorum, all);
    const struct member *missing = NULL;
    bool voter[WIRE_MEMBERS_MAX];
    uint32_t n_voters = quorum_voters(ph->quorum, all, voter), n_present = 0;
    for (size_t i = 0; i < members_count(all); i++) {
        const struct member *m = members_at(all, i);
        bool present = m->state == MEMBER_ALIVE || m->state == MEMBER_SUSPECT;
        bool works = m->record->state == RECORD_RUNNING || m->record->state == RECORD_TRAINED;
        n_present += voter[i] && present;
        if (voter[i] && (m->state == MEMBER_DEAD || m->state == MEMBER_LEFT)
            && (missing == NULL || (first != NULL && env_same_id(m->record->id, first))))
            missing = m;
        if (present && works && m->counts && !m->refused
            && !env_same_id(m->record->id, ph->env->config.id))
            return m;
    }
    bool half = 2 * n_present == n_voters;
    bool decides = missing != NULL && first != NULL && env_same_id(missing->record->id, first);
    bool enough = n_present >= quorum_needed(n_voters, ph->workshop->run.quorum);
    bool quorum = enough && !(half && decides);
    return ph->prospect == CERTIFICATE_AWAITED && !quorum ? missing : NULL;
}

uint64_t waits_mixing_rounds(const struct phases *ph)
{
    return 2 * (uint64_t)edges_status(ph->edges).eccentricity + MIXING_ROUNDS;
}

int64_t waits_certificate_limit_us(const struct phases *ph)
{
    int64_t mixing_us = (int64_t)waits_mixing_rounds(ph) * job_watchdog_mean_us(ph);
    return ph->env->config.patience_us
           + (mixing_us > SCHEDULE_STALL_US ? mixing_us : SCHEDULE_STALL_US);
}

int64_t waits_last_limit_us(const struct phases *ph)
{
    return ph->prospect == CERTIFICATE_AWAITED ? waits_certificate_limit_us(ph) : SCHEDULE_STALL_US;
}

static double seconds_since(const struct node *n, int64_t then_us)
{
    return (double)(n->env.now_us - then_us) * 1e-6;
}

static enum node_waits_for gathering(const struct node *n, struct node_wait *w)
{
    uint32_t at[WIRE_MEMBERS_MAX];
    size_t self;
    bool begun = n->phases->round > 0 || sessions_run_begun(n->sessions);
    if (!n->workshop.has_run)
        return NODE_WAITS_RUN;
    if (resume_is_waiting(n->resume))
        return NODE_WAITS_RESUME;
    w->have = (uint32_t)members_vertices(n->env.members, at, &self);
    w->need = n->workshop.run.min_peers;
    if (!begun && w->have < w->need)
        return NODE_WAITS_MEMBERS;
    return join_has_model(n->join) ? NODE_WAITS_EDGES : NODE_WAITS_MODEL;
}

/* Returns what this peer waits for after its model is final. */
static enum node_waits_for finishing(const struct node *n, struct node_wait *w)
{
    if (job_is_running(n->job))
        return NODE_WAITS_NOTHING;
    if (final_model_state(n) == FINAL_MODEL_PENDING)
        return NODE_WAITS_DISK;
    const struct member *m = waits_last_member(n->phases);
    if (m != NULL)
        memcpy(w->id, m->record->id, sizeof w->id);
    w->limit_s = (double)waits_last_limit_us(n->phases) * 1e-6;
    return NODE_WAITS_OTHERS;
}

/* Returns what this peer waits for in training and in the consensus phase. While a job runs,
 * ph->waits names no neighbour. */
static enum node_waits_for mixing(const struct node *n, struct node_wait *w)
{
    const struct phases *ph = n->phases;
    const struct quorum_status quorum = quorum_status(n->quorum);
    if (quorum.state == QUORUM_HELD) {
        w->have = quorum.n_live;
        w->need = quorum_needed(quorum.n_members, n->workshop.run.quorum);
        w->since_s = seconds_since(n, quorum.since_us);
        return NODE_WAITS_QUORUM;
    }
    if (phases_writes(ph))
        return NODE_WAITS_DISK;
    const uint8_t *kept_by = round_protocol_awaited(ph->round_protocol, ph->round);
    if (kept_by != NULL) {
        memcpy(w->id, kept_by, sizeof w->id);
        w->beat = ph->round;
        return NODE_WAITS_NEIGHBOUR;
    }
    if (ph->waits.what == WAITS_FOR_FINISH)
        return NODE_WAITS_OTHERS;
    if (ph->waits.what == WAITS_FOR_NOTHING)
        return NODE_WAITS_NOTHING;
    memcpy(w->id, ph->waits.id, sizeof w->id);
    w->beat = ph->waits.beat;
    return NODE_WAITS_NEIGHBOUR;
}

void node_wait(const struct node *n, struct node_wait *w)
{
    *w = (struct node_wait){.since_s = seconds_since(n, n->phases->idle_since_us),
                            .busy_s = (double)phases_busy_us(n->phases) * 1e-6};
    if (n->env.over)
        return;
    switch (n->phases->phase) {
    case NODE_JOINING:
        w->what = gathering(n, w);
        return;
    case NODE_TRAINING:
    case NODE_CONSENSUS:
        w->what = mixing(n, w);
        return;
    case NODE_FINISHING:
        w->what = finishing(n, w);
        return;
    case NODE_LEFT:
        return;
    }
}

void node_neighbour(const struct node *n, size_t i, struct node_neighbour *out)
{
    const struct neighbour *b = edges_at(n->edges, i);
    uint64_t beat = neighbour_beat(b);
    /* A report about the neighbour's job that is older than its last delta is about an earlier job,
     * so it does not count. */
    bool busy_known = b->link != NULL && b->link->told_busy_us > b->stale.came_us;
    *out = (struct node_neighbour){
        .has_beat = beat > 0 || b->edge.state == EDGE_OPEN,
        .beat = beat,
        .busy_s = busy_known ? (double)link_busy_us(b->link, n->env.now_us) * 1e-6 : NAN};
}
