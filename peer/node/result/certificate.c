/* peer/node/result/certificate.c -- passes messages between the finish protocol and the sessions,
 * and lists the members for the protocol. */
#include "peer/node/result/certificate.h"

#include "peer/node/mark.h"
#include "peer/node/result/final_model.h"
#include "peer/node/result/verdict.h"
#include "peer/node/state.h"
#include "peer/node/step/run_ended.h"
#include "peer/node/step/waits.h"
#include "peer/node/timers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The distance in a certificate is estimated from sketches. For two models the relative error is
 * 4.5 % rms, and less for more models. If the distance equals the target, an estimate of 0.85 times
 * the target is therefore wrong by more than 3 standard deviations. */
const double certificate_margin = 0.85;

struct run_certificate
{
    struct finish *finish; /* State of the finish protocol. NULL: not needed yet. Owned. */
    /* Number of the attempt of the finish protocol that this peer follows. */
    uint32_t attempt;
    /* State of this peer's model in attempt `attempt` of the finish protocol. */
    enum certificate_model model;
    /* Node time at which the model was frozen (became final and stored). */
    int64_t frozen_us;
    int64_t wake_us;  /* Node time of the next call of certificate_update(). */
    uint64_t counted; /* Value of members_changes() when the live voters were counted. */
    bool enough;      /* True: enough voters are alive to decide a certificate. */
    /* Size of the largest vote of this peer that could not be stored, in bytes. The warning about
     * it has been printed. 0: all votes are stored. */
    size_t n_unstored;
};

struct run_certificate *certificate_open(void)
{
    struct run_certificate *c = calloc(1, sizeof *c);
    if (c != NULL)
        c->wake_us = INT64_MAX;
    return c;
}

void certificate_forget(struct run_certificate *c)
{
    finish_close(c->finish);
    *c = (struct run_certificate){.finish = NULL, .wake_us = INT64_MAX};
}

void certificate_close(struct run_certificate *c)
{
    if (c != NULL)
        certificate_forget(c);
    free(c);
}

/* Checks what holds after each event. O(1). */
static void certificate_check(const struct node *n)
{
    const struct run_certificate *c = n->certificate;
    assert(c->finish != NULL || (c->model == CERTIFICATE_MIXING && c->wake_us == INT64_MAX));
    assert(c->finish == NULL || c->attempt <= finish_attempt(c->finish));
    assert(c->model == CERTIFICATE_MIXING
           || (final_model_state(n) == FINAL_MODEL_STORED
               && phases_phase(n->phases) == NODE_FINISHING && !job_is_running(n->job)));
}

bool certificate_applies(const struct node *n)
{
    return n->workshop.ready && run_has_certificate(&n->workshop.run);
}

/* ---- what the protocol asks for ---- */

static size_t list_links(void *self, uint32_t *out, size_t cap)
{
    const struct node *n = self;
    size_t count = 0;
    for (size_t i = 0; i < sessions_slots(n->sessions) && count < cap; i++)
        if (link_open(sessions_at(n->sessions, i)))
            out[count++] = sessions_at(n->sessions, i)->number;
    return count;
}

static void send_message(void *self, uint32_t link, const struct wire_finish *m)
{
    struct node *n = self;
    struct env *v = &n->env;
    const struct link *l = sessions_link(n->sessions, link);
    if (l == NULL)
        return;
    size_t len = wire_put_finish(v->commons->message, sizeof v->commons->message, m);
    sessions_send(n->sessions, l, false, v->commons->message, len, NULL);
}

static enum finish_status status_of(const struct node *n, const struct member *m)
{
    const struct record *r = m->record;
    bool own = env_same_id(r->id, n->env.config.id);
    if (r->state == RECORD_FAILED)
        return FINISH_FAILED;
    if (!own && (m->state == MEMBER_DEAD || m->state == MEMBER_LEFT))
        return FINISH_DEAD;
    if (r->state == RECORD_FINISHED)
        return FINISH_OUTSIDE;
    return r->state == RECORD_STALLED ? FINISH_STALLED : FINISH_MIXING;
}

/* Lists the members that count for the end of the run: accepted members that have not left. A dead
 * member is left out if a present member has its name. */
void certificate_members(const struct node *n, struct finish_proposal *out)
{
    const struct members *all = n->env.members;
    out->n = 0;
    for (size_t i = 0; i < members_count(all); i++) {
        const struct member *m = members_at(all, i);
        bool counts = m->counts && !m->refused && m->record->state != RECORD_LEFT;
        enum finish_status status = status_of(n, m);
        if (!counts || (status == FINISH_DEAD && quorum_replaced(all, m)))
            continue;
        out->member[out->n++] =
            (struct finish_member){.key = finish_key(m->record->id), .status = status};
    }
}

static void list_members(void *self, struct finish_proposal *out)
{
    certificate_members(self, out);
}

void certificate_voters(const struct node *n, struct finish_voters *out)
{
    const struct members *all = n->env.members;
    bool voter[WIRE_MEMBERS_MAX];
    out->initial = quorum_has_initial(n->quorum, all);
    out->n_all = quorum_voters(n->quorum, all, voter);
    const uint8_t *first = quorum_first(n->quorum, all);
    out->first = first != NULL ? finish_key(first) : 0;
    out->n = 0;
    for (size_t i = 0; i < members_count(all); i++)
        if (voter[i])
            out->key[out->n++] = finish_key(members_at(all, i)->record->id);
}

static void list_voters(void *self, struct finish_voters *out)
{
    certificate_voters(self, out);
}

static bool is_quorum(void *self, uint32_t count, uint32_t n_voters, bool has_first)
{
    const struct node *n = self;
    return verdict_quorum(count, n_voters, n->workshop.run.quorum)
           && (2 * count != n_voters || has_first);
}

static bool keep(void *self, const uint8_t *bytes, size_t n)
{
    struct node *node = self;
    const struct node_config *c = &node->env.config;
    bool kept = c->keep_promise == NULL || c->keep_promise(c->keep_promise_self, bytes, n);
    struct run_certificate *run = node->certificate;
    if (!kept && run->n_unstored == 0)
        env_note(&node->env, NOTE_WARNING,
                 "the vote of this peer on the end of the run could not be written to its disk: "
                 "this peer votes as soon as its disk can be written");
    /* A vote with a proposal is larger than one without. If only the smaller vote can be stored,
     * the disk is still full. */
    if (!kept) {
        run->n_unstored = run->n_unstored > n ? run->n_unstored : n;
    } else if (run->n_unstored > 0 && n >= run->n_unstored) {
        env_note(&node->env, NOTE_INFO,
                 "the vote of this peer is written: this peer takes part in votes again");
        run->n_unstored = 0;
    }
    return kept;
}

/* ---- events ---- */

/* Returns the state of the finish protocol, which is created at the first call. NULL: memory is
 * exhausted, and the node ends. */
static struct finish *protocol(struct node *n)
{
    struct finish_owner owner = {.self = n,
                                 .links = list_links,
                                 .send = send_message,
                                 .members = list_members,
                                 .voters = list_voters,
                                 .quorum = is_quorum,
                                 .keep = keep};
    if (n->certificate->finish != NULL)
        return n->certificate->finish;
    memcpy(owner.id, n->env.config.id, WIRE_ID_BYTES);
    n->certificate->finish = finish_open(&owner, n->env.config.promise);
    if (n->certificate->finish == NULL) {
        env_note(&n->env, NOTE_ERROR, "out of memory for the finish protocol");
        env_end(&n->env, 1);
        return NULL;
    }
    if (finish_is_mute(n->certificate->finish))
        env_note(&n->env, NOTE_WARNING,
                 "the stored vote of this peer on the end of the run cannot be read: this peer "
                 "does not vote");
    n->certificate->attempt = finish_attempt(n->certificate->finish);
    /* The sessions that exist already are new to the protocol. A decision that an earlier process
     * of this peer has stored is sent on them. */
    for (size_t i = 0; i < sessions_slots(n->sessions); i++)
        if (link_open(sessions_at(n->sessions, i)))
            finish_link_up(n->certificate->finish, sessions_at(n->sessions, i)->number);
    return n->certificate->finish;
}

/* Returns the coordinator: the member with the smallest identity among the other members that are
 * alive and have ended their run. NULL: there is none. */
static const struct member *coordinator(const struct node *n)
{
    const struct members *all = n->env.members;
    const struct member *first = NULL;
    for (size_t i = 0; i < members_count(all); i++) {
        const struct member *m = members_at(all, i);
        bool ended = m->counts && m->state == MEMBER_ALIVE && m->record->state == RECORD_FINISHED
                     && !env_same_id(m->record->id, n->env.config.id);
        if (ended && (first == NULL || memcmp(m->record->id, first->record->id, WIRE_ID_BYTES) < 0))
            first = m;
    }
    return first;
}

/* Dials the coordinator if no message of its ballots (wave) has arrived for FINISH_LONELY_US.
 * During training this peer closes sessions that no edge needs, so there may be no session with the
 * coordinator. */
static void look_for_coordinator(struct node *n)
{
    int64_t heard_us = finish_heard_us(n->certificate->finish);
    const struct member *m = coordinator(n);
    if (!certificate_awaited(n) || n->env.now_us - heard_us < FINISH_LONELY_US || m == NULL)
        return;
    if (sessions_want(n->sessions, m->record->id) == 0)
        sessions_call(n->sessions, m->record->id, heard_us);
}

/* Passes the state of the node (struct finish_view) to the finish protocol, which may then send
 * messages. */
static void update(struct node *n, struct finish *f)
{
    const struct members *all = n->env.members;
    const struct phases_status ph = phases_status(n->phases);
    /* The coordinator waits for other members for at most 2/3 of the wait for the certificate, so
     * that time for the ballots is left. */
    struct finish_view v = {.now_us = n->env.now_us,
                            .mixes = ph.phase <= NODE_CONSENSUS && !ph.stalled,
                            .stranded = ph.phase == NODE_CONSENSUS && ph.stranded,
                            .n_rounds = ph.settle_rounds,
                            .max_rounds = waits_mixing_rounds(n->phases),
                            .patience_us = waits_certificate_limit_us(n->phases) / 3 * 2,
                            .target = certificate_margin * n->workshop.run.final_drift};

    for (size_t i = 0; i < members_count(all); i++) {
        const struct member *m = members_at(all, i);
        bool smaller = memcmp(m->record->id, n->env.config.id, WIRE_ID_BYTES) < 0;
        bool here = m->state == MEMBER_ALIVE || m->state == MEMBER_SUSPECT;
        bool works = m->record->state == RECORD_RUNNING || m->record->state == RECORD_TRAINED;
        v.rank +=
            smaller && m->counts && m->state == MEMBER_ALIVE && m->record->state == RECORD_FINISHED;
        v.n_unfinished += here && works && m->counts && !m->refused
                          && !env_same_id(m->record->id, n->env.config.id);
    }
    n->certificate->wake_us = finish_update(f, &v);
}

void certificate_freeze(struct node *n)
{
    double distance = phases_own_distance(n->phases);
    assert(final_model_state(n) == FINAL_MODEL_STORED
           && n->certificate->model == CERTIFICATE_MIXING);
    if (!certificate_applies(n))
        return;
    struct finish *f = protocol(n);
    if (f == NULL)
        return;
    /* A model of an attempt that was aborted must not be reported in the next attempt. */
    assert(n->certificate->attempt == finish_attempt(f));
    /* A model that this process read from disk after a restart counts as within the target if an
     * earlier process of this peer has reported it as within the target. The model of a peer that
     * was absent at the end (`away`) never counts as within the target, because it was not mixed in
     * the consensus phase. */
    const struct phases_status s = phases_status(n->phases);
    bool near =
        distance <= n->workshop.run.final_drift || finish_has_reported(f, job_evidence(n->job));
    /* A model that was fetched from members that had ended is one of their final models. If its
     * distance is not known, it counts as within the target, and the certificate measures the
     * distance from the evidence of all models. */
    near |= s.final && s.taken && !isfinite(distance);
    bool within = near && !s.away && !job_diverged(n->job) && !job_has_failed(n->job)
                  && finish_evidence_is_valid(job_evidence(n->job));
    n->certificate->model = within ? CERTIFICATE_WITHIN : CERTIFICATE_OUTSIDE;
    n->certificate->frozen_us = n->env.now_us;
    finish_freeze(f, within ? job_evidence(n->job) : NULL, n->env.now_us);
    update(n, f);
    certificate_check(n);
}

/* If the attempt of the finish protocol was aborted, this peer's model is no longer final, and the
 * peer mixes again. A running job is completed first. If the model could not be stored, the peer
 * stays failed. */
static void follow_attempt(struct node *n)
{
    uint32_t attempt = finish_attempt(n->certificate->finish);
    if (attempt == n->certificate->attempt || job_is_running(n->job))
        return;
    assert(attempt > n->certificate->attempt);
    n->certificate->attempt = attempt;
    n->certificate->model = CERTIFICATE_MIXING;
    if (members_self(n->env.members)->state == RECORD_FAILED)
        return;
    env_note(
        &n->env, NOTE_WARNING,
        "the attempt to end the run was aborted, because the final models are too far apart or "
        "a member is overdue: the consensus phase continues (attempt %u of %u)",
        attempt + 1, (unsigned)FINISH_ATTEMPTS);
    final_model_reopen(n);
    sessions_reopen(n->sessions);
    edges_reopen(n->edges);
    if (phases_phase(n->phases) >= NODE_CONSENSUS)
        phases_reopen(n->phases, attempt);
}

/* Handles a certificate that does not cover the final model of this peer, although the model is
 * within the target. If a connected member has a model that the certificate covers, this peer's
 * model is no longer final, and the peer fetches that member's model. */
static void follow_certificate(struct node *n)
{
    if (n->certificate->model != CERTIFICATE_WITHIN || job_is_running(n->job)
        || certificate_covers(n) || !join_has_covered(n->join, certificate_known(n)))
        return;
    MARK("certificate: replaces a model that is not covered");
    n->certificate->model = CERTIFICATE_MIXING;
    final_model_reopen(n);
    phases_uncovered(n->phases);
}

void certificate_update(struct node *n)
{
    if (n->certificate->finish == NULL || !certificate_applies(n))
        return;
    update(n, n->certificate->finish);
    follow_attempt(n);
    follow_certificate(n);
    look_for_coordinator(n);
    certificate_check(n);
}

void certificate_heard(struct node *n, const struct link *l, const struct wire_message *m)
{
    struct finish *f = certificate_applies(n) ? protocol(n) : NULL;
    if (f == NULL)
        return;
    update(n, f);
    if (!finish_receive(f, l->number, &m->finish))
        sessions_violation(n->sessions, l, "bad FINISH");
    certificate_check(n);
}

void certificate_met(struct node *n, const struct link *l)
{
    if (n->certificate->finish != NULL)
        finish_link_up(n->certificate->finish, l->number);
}

void certificate_lost(struct node *n, const struct link *l)
{
    if (n->certificate->finish != NULL)
        finish_link_down(n->certificate->finish, l->number);
}

/* ---- questions ---- */

bool certificate_has_voted(const struct node *n)
{
    const struct finish *f = n->certificate->finish;
    return n->env.config.promise.n > 0 || (f != NULL && finish_has_promised(f));
}

enum certificate_model certificate_model(const struct node *n)
{
    return n->certificate->model;
}

int64_t certificate_wake_us(const struct node *n)
{
    return n->certificate->wake_us;
}

uint32_t certificate_attempt(const struct node *n)
{
    return n->certificate->finish != NULL ? finish_attempt(n->certificate->finish) : UINT32_MAX;
}

const struct finish_proposal *certificate_known(const struct node *n)
{
    return n->certificate->finish != NULL ? finish_certificate(n->certificate->finish) : NULL;
}

bool certificate_covers(const struct node *n)
{
    bool fetched = phases_status(n->phases).final && join_fetched(n->join)->certified;
    return certificate_known(n) != NULL && (fetched || finish_covers(n->certificate->finish));
}

/* Returns whether enough voters for a quorum are alive or have finished. A dead voter that had
 * finished counts as alive, because it may have ended with a certificate that other members have,
 * too. O(members^2) after a change of the member table, else O(1). */
static bool enough_voters(struct node *n)
{
    const struct members *all = n->env.members;
    bool voter[WIRE_MEMBERS_MAX];
    uint32_t n_live = 0, n_listed = 0;
    if (n->certificate->counted == members_changes(all))
        return n->certificate->enough;
    uint32_t n_voters = quorum_voters(n->quorum, all, voter);
    for (size_t i = 0; i < members_count(all); i++) {
        const struct member *m = members_at(all, i);
        n_listed += voter[i];
        n_live += voter[i]
                  && (m->state == MEMBER_ALIVE || m->state == MEMBER_SUSPECT
                      || m->record->state == RECORD_FINISHED);
    }
    n->certificate->counted = members_changes(all);
    n->certificate->enough = is_quorum(n, n_live, n_voters, n_listed == n_voters);
    return n->certificate->enough;
}

bool certificate_possible(struct node *n)
{
    bool may_return = quorum_status(n->quorum).state != QUORUM_RESIGNED;
    return certificate_applies(n) && certificate_known(n) == NULL
           && (may_return || enough_voters(n));
}

bool certificate_awaited(struct node *n)
{
    return n->certificate->model == CERTIFICATE_WITHIN && certificate_possible(n)
           && !run_ended_deserted(n->phases)
           && n->env.now_us - n->certificate->frozen_us < waits_certificate_limit_us(n->phases);
}
