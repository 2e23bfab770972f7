/* peer/node/result/result_facts.c -- collects the facts about the end of a run: which members ended
 * together, and the distance between their models.
 *
 * A peer knows the other members by membership gossip only. A member counts as having ended
 * together with this peer in two cases:
 *   - Its record says that it finished. In a run with a certificate the member must not be dead.
 *   - It is alive, has not failed, and its worker does not hang.
 * A member whose record says that it failed counts as dead, because its model is not stored. */
#include "peer/node/result/result_facts.h"

#include "nn/math/number.h"
#include "peer/node/result/certificate.h"
#include "peer/node/result/verdict.h"
#include "peer/node/step/run_ended.h"
#include "peer/run/exit.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns whether the member of record r lost its identity and returned with a new one: another
 * member with its name is alive. If all members with the name are dead, the last one in the table
 * replaces the others, so that a name is listed only once. */
static bool replaced(const struct members *all, const struct record *r)
{
    bool later = false;
    for (size_t i = 0; i < members_count(all); i++) {
        const struct member *m = members_at(all, i);
        bool same_name = m->record != r && strcmp(m->record->name, r->name) == 0;
        if (same_name && (m->state == MEMBER_ALIVE || (later && m->state == MEMBER_DEAD)))
            return true;
        later |= m->record == r;
    }
    return false;
}

/* Adds member m to the facts. `first`: the smallest initial identity (quorum_first()). votes: the
 * member is a voter. */
static void count_member(const struct node *n, const struct member *m, const uint8_t *first,
                         bool votes, struct verdict_facts *f)
{
    const struct record *r = m->record;
    if (!m->counts)
        return;
    bool self = env_same_id(r->id, n->env.config.id);
    bool finished = self ? final_model_state(n) != FINAL_MODEL_LOST : r->state == RECORD_FINISHED;
    /* A member that died after it had finished did not end together with this peer. The member may
     * have ended the run with a certificate that this peer has not received. */
    bool died = finished && f->presence == VERDICT_TOGETHER && certificate_applies(n)
                && m->state == MEMBER_DEAD;
    if (died)
        finished = false;
    bool lives = finished || (m->state == MEMBER_ALIVE && r->state != RECORD_FAILED);
    if (r->state == RECORD_LEFT && !self && !replaced(n->env.members, r))
        verdict_add_left(f, r->name);
    if (first != NULL && env_same_id(r->id, first))
        snprintf(f->first, sizeof f->first, "%s", r->name);
    if (m->refused || (r->state == RECORD_LEFT && !self) || (!lives && replaced(n->env.members, r)))
        return;
    f->n_members++;
    f->n_failed += r->state == RECORD_FAILED && !self;
    if (r->state == RECORD_FAILED && first != NULL && env_same_id(r->id, first))
        f->without_first = false;
    if (died)
        verdict_add_finished(f, r->name);
    bool gone = f->presence != VERDICT_TOGETHER && !self;
    if (gone && finished)
        verdict_add_finished(f, r->name);
    else if (!gone && (finished || (lives && r->state != RECORD_STALLED))) {
        f->n_among++;
        f->n_voting += votes;
        f->without_first &= first == NULL || !env_same_id(r->id, first);
    } else if (gone || !lives)
        verdict_add_dead(f, r->name);
    else
        verdict_add_absent(f, r->name, "its worker hangs");
}

/* Returns whether m is another live member that has not ended its run. */
static bool is_unfinished(const struct node *n, const struct member *m)
{
    const struct record *r = m->record;
    return m->counts && !m->refused && m->state == MEMBER_ALIVE
           && (r->state == RECORD_RUNNING || r->state == RECORD_TRAINED)
           && !env_same_id(r->id, n->env.config.id);
}

/* Removes from n_among (number of members that ended together) the members that returned after this
 * peer's model was final, because their models were not mixed with it. Only the number of returned
 * members is known. If exactly this many members are unfinished, they are the returned ones, and
 * their names are given. */
static void drop_late(const struct node *n, struct verdict_facts *f)
{
    static const char why[] = "returned after the models were final";
    uint32_t n_late = f->n_among - phases_status(n->phases).n_ended, n_unfinished = 0;
    for (size_t i = 0; i < members_count(n->env.members); i++)
        n_unfinished += is_unfinished(n, members_at(n->env.members, i));
    for (size_t i = 0; i < members_count(n->env.members) && n_unfinished == n_late; i++) {
        const struct member *m = members_at(n->env.members, i);
        if (is_unfinished(n, m))
            verdict_add_absent(f, m->record->name, why);
    }
    if (n_unfinished != n_late) {
        char others[24];
        snprintf(others, sizeof others, "%u other%s", (unsigned)n_late, number_plural(n_late));
        verdict_add_absent(f, others, why);
    }
    f->n_among = phases_status(n->phases).n_ended;
}

/* Sets `name` to the name of the member with this key or, if the member table does not have it, to
 * the first 8 bytes of its identity. */
static void name_of(const struct node *n, uint64_t key, char name[WIRE_NAME_MAX + 1])
{
    snprintf(name, WIRE_NAME_MAX + 1, "identity %016llx", (unsigned long long)key);
    for (size_t i = 0; i < members_count(n->env.members); i++) {
        const struct record *r = members_at(n->env.members, i)->record;
        if (finish_key(r->id) == key)
            snprintf(name, WIRE_NAME_MAX + 1, "%s", r->name);
    }
}

/* Replaces the facts about members and distance by those of the certificate. All peers that the
 * certificate covers therefore report the same members and the same distance. */
static void certify(const struct node *n, const struct finish_proposal *p, struct verdict_facts *f)
{
    f->n_members = p->n;
    f->n_among = f->n_dead = f->n_absent = f->n_finished = f->n_failed = f->n_begun = 0;
    f->without_first = false;
    f->quorum = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        char name[WIRE_NAME_MAX + 1];
        name_of(n, p->member[i].key, name);
        switch (p->member[i].status) {
        case FINISH_WITHIN:
            f->n_among++;
            break;
        case FINISH_OUTSIDE:
            verdict_add_absent(f, name, "it reported no model within --final-drift");
            break;
        case FINISH_MIXING:
            verdict_add_absent(f, name, "it had not finished");
            break;
        case FINISH_STALLED:
            verdict_add_absent(f, name, "its worker hangs");
            break;
        case FINISH_FAILED:
            f->n_failed++;
            verdict_add_dead(f, name);
            break;
        case FINISH_DEAD:
        case FINISH_STATUSES:
            verdict_add_dead(f, name);
            break;
        }
    }
    /* finish_decode() accepts no certificate without a member within the target. */
    assert(f->n_among > 0 && f->n_among + f->n_dead + f->n_absent == f->n_members);
    f->distance = p->distance;
    f->at_most = p->distance > certificate_margin * f->target;
    if (f->at_most)
        f->distance /= certificate_margin;
}

/* Returns whether this peer has ended the run together with the other members. If the certificate
 * covers this peer's model, the result is VERDICT_TOGETHER, even if this process has restarted and
 * finds no other peer any more. */
static enum verdict_presence presence(const struct node *n)
{
    if (certificate_covers(n))
        return VERDICT_TOGETHER;
    if (final_model_state(n) != FINAL_MODEL_PENDING && certificate_known(n) != NULL)
        return VERDICT_UNCOVERED;
    bool deserted = certificate_model(n) == CERTIFICATE_WITHIN && certificate_known(n) == NULL
                    && run_ended_deserted(n->phases);
    bool away = phases_status(n->phases).away || resume_deserted(n->resume) || deserted;
    return away ? VERDICT_ABSENT : VERDICT_TOGETHER;
}

void node_facts(const struct node *n, struct verdict_facts *f)
{
    const struct phases_status ph = phases_status(n->phases);
    const struct node_progress *p = job_figures(n->job);
    const struct run *run = &n->workshop.run;
    bool lost = final_model_state(n) == FINAL_MODEL_LOST;
    int code = lost ? CMD_FAILED : n->env.over ? n->env.exit_code : CMD_OK;
    *f = (struct verdict_facts){
        .failed = code == CMD_APART ? CMD_OK : code,
        .stopped = n->stopping,
        .lonely = connection_diagnostics_lonely(n->sessions) && !resume_has_checkpoint(n->resume),
        .diverged = p->diverged,
        .unlearnt = p->unlearnt,
        .presence = presence(n),
        .infinite = ph.done > 0 && !p->loss_untold && !isfinite(p->loss),
        .distance = (double)NAN,
        .n_rounds = n->workshop.has_run ? run->rounds : 0,
        .rounds_claimed = resume_is_waiting(n->resume) ? n->env.config.resume[0].beat : ph.round,
        .rounds_skipped = ph.skipped,
        .joined_round = ph.joined};
    static_assert((int)CONNECTION_DIAGNOSTICS_NAMES <= (int)VERDICT_UNREACHED_MAX,
                  "the list may be cut off");
    if (f->lonely)
        connection_diagnostics_names(n->sessions, f->unreached);
    const uint8_t *first = quorum_first(n->quorum, n->env.members);
    bool voter[WIRE_MEMBERS_MAX];
    uint32_t n_voters = quorum_voters(n->quorum, n->env.members, voter);
    f->without_first = first != NULL;
    for (size_t i = 0; i < members_count(n->env.members); i++)
        count_member(n, members_at(n->env.members, i), first, voter[i], f);
    if (ph.n_ended > 0 && f->n_among > ph.n_ended)
        drop_late(n, f);
    if (!n->workshop.ready)
        return;
    f->quorum = run->quorum;
    f->n_begun = n_voters;
    f->target = run->final_drift;
    f->distance = phases_own_distance(n->phases);
    /* If the distance is the bound that follows from the edges, it is an upper bound and no
     * estimate. */
    f->at_most = f->distance == ph.edge_bound;
    /* Only a certificate shows that the other members ended within the target --final-drift,
     * too. */
    f->uncertified =
        certificate_applies(n) && certificate_known(n) == NULL && f->distance <= f->target;
    if (f->uncertified)
        f->distance = (double)NAN;
    if (certificate_covers(n))
        certify(n, certificate_known(n), f);
    /* If only one of several members ended the run, or if other members were expected and never
     * reached, no consensus distance is reported. A run that had a single member keeps its distance
     * of 0. */
    bool one = f->n_among + f->n_failed == 1 && (f->n_members + f->n_left > 1 || f->lonely);
    f->distance = one ? (double)NAN : f->distance;
}

int result_facts_code(const struct node *n)
{
    struct verdict_facts f;
    struct verdict o;
    node_facts(n, &f);
    verdict_judge(&o, &f);
    return o.exit_code;
}
