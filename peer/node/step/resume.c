/* peer/node/step/resume.c -- writes and reads the contents of a checkpoint, and decides when and
 * from which checkpoint a restarted peer resumes. */
#include "peer/node/step/resume.h"

#include "peer/node/finish/finish.h"
#include "peer/node/mark.h"
#include "peer/node/step/phases_state.h"

#include "gossip/members/endorsements.h"
#include "nn/math/state.h"
#include "peer/run/exit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 8 /* Maximum number of absent members that are called at the same time. */ };

/* Another member that took part in the run when the checkpoint was taken. */
struct resume_member
{
    uint8_t id[WIRE_ID_BYTES];
    uint64_t boot; /* Boot id of the member's process when the checkpoint was taken. */
};

enum resume_state {
    RESUME_NONE,  /* This process has no checkpoints, or does not use them. */
    RESUME_WAITS, /* This process has not decided yet from which checkpoint it resumes. */
    RESUME_DONE   /* This process has resumed from a checkpoint or with a stored final model. */
};

/* State of this peer's resumption, and the last copy that was made for a checkpoint. */
struct resume
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    struct edges *edges;
    struct join *join;
    struct phases *phases;
    struct job *job;

    enum resume_state state;
    /* The other members that took part when the checkpoint was taken: array of n_members entries.
     * Owned. */
    struct resume_member *member;
    uint32_t n_members;
    /* since_us: node time at which the wait for the members of the checkpoint began. told_us: the
     * next message about this wait is due at node time told_us + RESUME_LOG_US. Both are in
     * microseconds. */
    int64_t since_us, told_us;

    struct state copy; /* Copy for a checkpoint, which the driver fetches and writes to disk. */
    /* Step counter of the copy for a checkpoint: rounds of training and of the consensus phase. */
    uint64_t beat;
};

struct resume *resume_open(struct env *env, struct sessions *s, struct run_context *w,
                           struct edges *es, struct join *j, struct phases *ph, struct job *job)
{
    struct resume *r = calloc(1, sizeof *r);
    if (r != NULL)
        *r = (struct resume){.env = env,
                             .sessions = s,
                             .workshop = w,
                             .edges = es,
                             .join = j,
                             .phases = ph,
                             .job = job};
    return r;
}

void resume_close(struct resume *r)
{
    if (r == NULL)
        return;
    state_close(&r->copy);
    free(r->member);
    free(r);
}

/* ---- contents of a checkpoint ----
 *
 *   section    contents
 *   run        run description, as text
 *   initial    initial model of the run, only if the program supplies it
 *   members    id and boot id of each vertex; then all known members, as MEMBERS messages
 *   phases     round and the numbers of rounds done and skipped
 *   job        totals and figures of the last evaluation
 *   ladder     codec levels, only with --compress auto
 *   graph      topology and neighbours
 *
 * The mixer, the trainer, the outer optimiser and the edges add sections of their own. */

static void run_fields(struct run_context *w, struct state *s)
{
    state_section(s, "run");
    state_size(s, &w->n_run_text);
    state_expect(s, w->n_run_text <= WIRE_RUN_MAX, "the run description is too long");
    if (!s->failed)
        state_bytes(s, w->run_text, w->n_run_text);
}

/* Writes or reads the run's initial model if the program supplies it, because the restarted program
 * may supply other values. When reading, does nothing if this process already has the run's initial
 * model. */
static void initial_fields(struct run_context *w, struct state *s)
{
    if (w->trainer.begins == NULL || (s->reading && !w->lacks))
        return;
    state_floats(s, w->mixing.x0, w->mixing.n_floats, "initial");
    if (s->reading && !s->failed)
        state_expect(s, run_context_begins(w), "the initial model is not that of the run");
}

/* Writes to the checkpoint: the id and boot id of each member that is a vertex of this peer's
 * graph, then the whole member table in MEMBERS messages. */
static void write_members(struct resume *r, struct state *s)
{
    struct env *v = r->env;
    size_t self, cursor = 0;
    uint32_t n = (uint32_t)members_vertices(v->members, v->vertices, &self);
    struct wire_members told = env_batch(v);
    state_section(s, "members");
    state_u32(s, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct record who = *members_at(v->members, v->vertices[i])->record;
        state_bytes(s, who.id, sizeof who.id);
        state_u64(s, &who.boot);
    }
    while (members_batch(v->members, &cursor, &told, WIRE_BATCH_MAX)) {
        size_t len = wire_put_members(v->commons->message, sizeof v->commons->message, &told);
        state_size(s, &len);
        state_bytes(s, v->commons->message, len);
    }
}

/* Writes or reads the part of a checkpoint that does not depend on the neighbours: model,
 * optimiser, mixer, counters. */
static void own_fields(struct resume *r, struct state *s)
{
    struct run_context *w = r->workshop;
    phases_state(r->phases, s);
    job_state(r->job, s);
    mixing_state(&w->mixing, s);
    if (w->by_drift)
        codec_levels_state(&w->ladder, s);
    if (w->trainer.state != NULL)
        w->trainer.state(w->trainer.self, s);
    outer_optimiser_state(&w->outer, s);
}

void resume_copy(struct resume *r)
{
    struct checkpoint *c = r->phases->checkpoint;
    assert(!job_is_running(r->job) && checkpoint_is_writing(c));
    assert(checkpoint_last(c) == phases_beat(r->phases));
    MARK("resume: writes a checkpoint");
    state_write(&r->copy);
    run_fields(r->workshop, &r->copy);
    initial_fields(r->workshop, &r->copy);
    write_members(r, &r->copy);
    own_fields(r, &r->copy);
    edges_write(r->edges, &r->copy);
    if (state_end(&r->copy) != 0) {
        env_note(r->env, NOTE_WARNING, "no memory for a checkpoint of round %llu",
                 (unsigned long long)r->phases->round);
        checkpoint_written(c, checkpoint_last(c));
        return;
    }
    r->beat = checkpoint_last(c);
    r->env->fx->checkpoint = true;
    env_debug(r->env, "checkpoint of round %llu taken", (unsigned long long)r->beat);
}

void resume_copy_last(struct resume *r)
{
    struct phases *ph = r->phases;
    bool agreed = r->workshop->run.policy == RUN_SYNC && edges_count(r->edges) > 0;
    if (r->env->config.checkpoint_us <= 0 || ph->phase != NODE_TRAINING
        || checkpoint_is_writing(ph->checkpoint) || agreed
        || ph->round == checkpoint_last(ph->checkpoint))
        return;
    MARK("resume: writes a last checkpoint");
    checkpoint_taken(ph->checkpoint, ph->round);
    resume_copy(r);
}

uint64_t resume_take_copy(struct resume *r, struct state *s)
{
    struct state taken = r->copy;
    r->copy = *s;
    *s = taken;
    return r->beat;
}

/* ---- the start of a process with checkpoints ---- */

/* Reports why the checkpoint cannot be used, and ends the node. */
static void refuse(struct resume *r, const struct state *s)
{
    env_note(r->env, NOTE_ERROR,
             "the checkpoint of round %llu cannot be used: %s; --fresh starts the run again",
             (unsigned long long)r->env->config.resume[0].beat, s->why);
    env_end(r->env, s->no_memory ? CMD_FAILED : CMD_USAGE);
}

/* Returns whether the command line of this process describes the run of the checkpoint. */
static bool is_ours(const struct resume *r)
{
    const struct node_config *c = &r->env->config;
    char text[WIRE_RUN_MAX + 1];
    return c->found && run_text(&c->run, text) == r->workshop->n_run_text
           && memcmp(text, r->workshop->run_text, r->workshop->n_run_text) == 0;
}

int resume_run(struct resume *r, struct run *run)
{
    const struct node_config *c = &r->env->config;
    /* No run is adopted yet, so the buffer for the run description can be used here. */
    struct run_context *text = r->workshop;
    assert(c->n_resume > 0 && !text->has_run);
    struct state s = *c->resume[0].state;
    char error[RUN_ERROR_MAX];
    run_fields(text, &s);
    if (s.failed) {
        refuse(r, &s);
        return -EINVAL;
    }
    if (is_ours(r)) {
        *run = c->run;
        return 0;
    }
    if (run_from_text(run, c->flags.trainer, text->run_text, text->n_run_text, error) == 0
        && run_check_flags(run, &c->flags, error) == 0)
        return 0;
    env_note(r->env, NOTE_ERROR, "the checkpoint of round %llu: %s; --fresh starts the run again",
             (unsigned long long)c->resume[0].beat, error);
    env_end(r->env, CMD_USAGE);
    return -EINVAL;
}

/* Merges a MEMBERS message from the checkpoint into the member table. Of this peer's own record
 * only the flag `initial` (this peer is an initial member) counts. A message that cannot be read is
 * ignored. */
static void merge(struct resume *r, const uint8_t *bytes, size_t n)
{
    struct env *v = r->env;
    struct wire_message m;
    if (!wire_read(bytes, n, &v->commons->batch, &m) || m.type != WIRE_MEMBERS)
        return;
    for (uint32_t i = 0; i < m.members.n_records; i++)
        if (!env_same_id(m.members.records[i].id, v->config.id))
            (void)members_merge(v->members, &m.members.records[i], v->now_us);
        else if (m.members.records[i].initial)
            members_set_initial(v->members);
    for (uint32_t i = 0; i < m.members.n_vouches; i++)
        (void)members_vouched(v->members, &m.members.vouches[i]);
}

/* Reads the members of the checkpoint into r->member, and the member records of the checkpoint into
 * the member table. */
static void read_members(struct resume *r, struct state *s)
{
    uint8_t message[WIRE_CONTROL_MAX];
    uint32_t n = 0;
    state_section(s, "members");
    state_u32(s, &n);
    state_expect(s, n <= WIRE_MEMBERS_MAX,
                 "the checkpoint lists more members than a cluster can have");
    if (s->failed)
        return;
    r->member = calloc(n + 1, sizeof *r->member);
    if (r->member == NULL) {
        state_no_memory(s);
        return;
    }
    for (uint32_t i = 0; i < n && !s->failed; i++) {
        struct resume_member *m = &r->member[r->n_members];
        state_bytes(s, m->id, sizeof m->id);
        state_u64(s, &m->boot);
        r->n_members += !env_same_id(m->id, r->env->config.id);
    }
    while (!s->failed && state_more(s)) {
        size_t len = 0;
        state_size(s, &len);
        state_expect(s, len <= sizeof message,
                     "the checkpoint contains a message that is too long");
        if (s->failed)
            return;
        state_bytes(s, message, len);
        if (!s->failed)
            merge(r, message, len);
    }
    /* The members of the checkpoint were vertices of this peer's graph, so they are accepted
     * without endorsements. */
    for (uint32_t i = 0; i < r->n_members; i++)
        members_know(r->env->members, r->member[i].id, r->env->now_us);
}

/* Reads the stored model of an earlier process into `x`. Returns whether it is the model that an
 * earlier process has reported to the finish protocol. If it is another model, returns false and
 * may warn. */
static bool read_reported(const struct resume *r, float *x)
{
    const struct node_config *c = &r->env->config;
    const struct trainer *t = &r->workshop->trainer;
    uint64_t hash = finish_reported_hash(c->promise);
    if (hash == 0 || c->read_model == NULL
        || !c->read_model(c->read_model_self, t->segments, t->n_segments, x))
        return false;
    if (rng_hash(x, r->workshop->mixing.n_floats * sizeof *x) == hash)
        return true;
    /* The file need not be damaged: if the process was killed after it had stored a model and
     * before it could report the model, the stored model is good. */
    if (c->past == NODE_PAST_FINAL)
        env_note(r->env, NOTE_WARNING,
                 "the stored final model is not used, because it does not have the hash that this "
                 "peer has reported to other members: the file is damaged, or was stored after the "
                 "report");
    return false;
}

/* Makes the stored final model `x` the model of this peer again. Returns false if the model is not
 * finite. */
static bool take_back(struct resume *r, const float *x)
{
    if (mixing_take_model(&r->workshop->mixing, (const uint8_t *)x) != 0)
        return false;
    MARK("resume: takes the stored final model back");
    run_context_moved(r->workshop);
    join_resumed(r->join);
    r->state = RESUME_DONE;
    phases_restore_final(r->phases);
    env_note(
        r->env, NOTE_INFO,
        "resuming from the stored final model: an earlier process of this peer has reported it to "
        "other members");
    return true;
}

/* Takes the final model of an earlier process back, if that process has reported the model to the
 * finish protocol. The certificate of the run's success may then depend on this model, so that it
 * must not be replaced. */
static void restore_final(struct resume *r, struct state *s)
{
    float *x = calloc(r->workshop->mixing.n_floats, sizeof *x);
    if (x == NULL)
        state_no_memory(s);
    else if (read_reported(r, x)) {
        own_fields(r, s);
        state_expect(s, r->phases->round <= r->workshop->run.rounds,
                     "a round after the last round of the run");
        if (!s->failed)
            state_expect(s, take_back(r, x), "a stored model that is not finite");
    }
    free(x);
}

void resume_restore_certified(struct resume *r)
{
    const struct node_config *c = &r->env->config;
    assert(r->state == RESUME_NONE && c->n_resume == 0);
    if (c->past != NODE_PAST_FINAL || !finish_promise_is_decided(c->promise) || !r->workshop->ready
        || r->workshop->lacks)
        return;
    float *x = calloc(r->workshop->mixing.n_floats, sizeof *x);
    if (x != NULL && read_reported(r, x))
        (void)take_back(r, x);
    free(x);
}

void resume_start(struct resume *r)
{
    const struct node_config *c = &r->env->config;
    struct state s = *c->resume[0].state;
    assert(r->state == RESUME_NONE && r->member == NULL && r->workshop->ready);
    r->state = RESUME_WAITS;
    r->since_us = r->told_us = r->env->now_us;
    initial_fields(r->workshop, &s);
    read_members(r, &s);
    if (!s.failed && r->workshop->ready && !r->workshop->lacks)
        restore_final(r, &s);
    if (s.failed)
        refuse(r, &s);
}

/* ---- which members are back ---- */

/* State of a member of the checkpoint, as far as this peer knows. */
enum back {
    BACK_AWAY,   /* Absent: nothing shows that the member runs. */
    BACK_ANEW,   /* Restarted: the member's record has another boot id than in the checkpoint. */
    BACK_RAN_ON, /* Not restarted: a session with the member shows the boot id of the checkpoint. */
    /* Gone: the member announced that it left, or a live member with another identity has its
     * name. */
    BACK_GONE
};

/* Returns whether the member of the checkpoint that has record `then` was replaced: a live member
 * has its name, but another identity. The cause is that the member's host has lost the old
 * identity. */
static bool replaced(const struct resume *r, const struct record *then)
{
    for (size_t i = 0; i < members_count(r->env->members); i++) {
        const struct member *m = members_at(r->env->members, i);
        if (m->state == MEMBER_ALIVE && strcmp(m->record->name, then->name) == 0
            && !env_same_id(m->record->id, then->id))
            return true;
    }
    return false;
}

/* Returns the state of m, a member of the checkpoint. */
static enum back look_at(const struct resume *r, const struct resume_member *m)
{
    const struct member *now = members_find(r->env->members, m->id);
    if (now == NULL)
        return BACK_AWAY;
    if (now->state == MEMBER_LEFT)
        return BACK_GONE;
    if (now->record->boot != m->boot)
        return BACK_ANEW;
    const struct link *l = sessions_to(r->sessions, m->id);
    if (l != NULL && l->role != LINK_NEW && l->boot == m->boot)
        return BACK_RAN_ON;
    MARK_IF(replaced(r, now->record), "resume: a member has a new identity");
    return replaced(r, now->record) ? BACK_GONE : BACK_AWAY;
}

/* Returns the number of members of the checkpoint in state `what`. O(n_members). */
static uint32_t count(const struct resume *r, enum back what)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_members; i++)
        n += look_at(r, &r->member[i]) == what;
    return n;
}

bool resume_deserted(const struct resume *r)
{
    bool met = sessions_met_any(r->sessions);
    return resume_has_checkpoint(r) && r->n_members > count(r, BACK_GONE) && !met;
}

/* Returns the longest time to wait for absent members, in microseconds. The time is short if the
 * members that are back, including this peer, reach the quorum. */
static int64_t limit_us(const struct resume *r)
{
    double all = 1.0 + r->n_members - count(r, BACK_GONE);
    bool enough = all - count(r, BACK_AWAY) >= r->workshop->run.quorum * all;
    MARK_IF(!enough, "resume: too few members are back");
    return enough ? RESUME_US : r->env->config.patience_us;
}

/* Returns whether the wait for the members of the checkpoint is over: no member is absent, one
 * member did not restart, or the time limit has passed. */
static bool over(const struct resume *r)
{
    bool all = count(r, BACK_AWAY) == 0 || count(r, BACK_RAN_ON) > 0;
    MARK_IF(!all && r->env->now_us - r->since_us >= limit_us(r),
            "resume: continues without absent members");
    MARK_IF(count(r, BACK_RAN_ON) > 0, "resume: a member did not restart");
    return all || r->env->now_us - r->since_us >= limit_us(r);
}

/* Calls up to CALLS absent members, because only a session proves that a member's process did not
 * restart. No other module calls them yet, because this peer has no edges yet. */
static void call(struct resume *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_members; i++) {
        const struct resume_member *m = &r->member[(i + r->env->config.id[0]) % r->n_members];
        if (n == CALLS || look_at(r, m) != BACK_AWAY) {
            sessions_unwant(r->sessions, m->id);
            continue;
        }
        n++;
        /* If sessions_want() fails for lack of memory, the next step tries again to call the
         * member. */
        if (sessions_want(r->sessions, m->id) == 0)
            sessions_call(r->sessions, m->id, r->since_us);
    }
}

static void call_no_more(struct resume *r)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        sessions_unwant(r->sessions, r->member[i].id);
}

/* Prints which members are absent, after RESUME_LOG_US and then every RESUME_LOG_AGAIN_US. */
static void tell(struct resume *r)
{
    const struct member *who = NULL;
    if (r->env->now_us < r->told_us + RESUME_LOG_US)
        return;
    r->told_us = r->env->now_us + RESUME_LOG_AGAIN_US - RESUME_LOG_US;
    for (uint32_t i = 0; i < r->n_members && who == NULL; i++)
        if (look_at(r, &r->member[i]) == BACK_AWAY)
            who = members_find(r->env->members, r->member[i].id);
    int64_t left_us = limit_us(r) - (r->env->now_us - r->since_us);
    env_note(r->env, NOTE_WARNING,
             "round %llu: waiting for the members of the checkpoint: %u of %u are not back%s%s; "
             "continuing without them in %.0f s (if they have finished, use the model of one of "
             "them)",
             (unsigned long long)r->env->config.resume[0].beat, count(r, BACK_AWAY),
             r->n_members + 1, who != NULL ? ", such as " : "",
             who != NULL ? who->record->name : "", left_us > 0 ? (double)left_us * 1e-6 : 0.0);
}

/* ---- which checkpoint ---- */

/* Returns whether the member announced a checkpoint of this step counter. */
static bool has_beat(const struct record *r, uint64_t beat)
{
    return r->beat[0] == beat || r->beat[1] == beat;
}

/* Returns whether all checkpoints of this peer have the same step counter. This is the case if
 * there is one checkpoint, or if the run was restarted from the first of two and reached its step
 * counter again. */
static bool is_first(const struct resume *r)
{
    const struct node_config *c = &r->env->config;
    return c->n_resume == 1 || c->resume[0].beat == c->resume[1].beat;
}

/* Returns whether each restarted member has a checkpoint of step counter `beat`, so that the
 * checkpoint is common. A restarted member whose record announces no checkpoint is judged by the
 * number of checkpoints of this peer:
 *
 *   - This peer has one: the member may have been killed before it wrote its first checkpoint, so
 *     the checkpoint of this peer is not common.
 *   - This peer has two: the member must have written a checkpoint before this peer wrote its
 *     second one. The member has lost its disk and is ignored here.
 */
static bool in_common(const struct resume *r, uint64_t beat)
{
    bool lost_counts = is_first(r);
    for (uint32_t i = 0; i < r->n_members; i++) {
        const struct member *m = members_find(r->env->members, r->member[i].id);
        if (look_at(r, &r->member[i]) == BACK_ANEW && !has_beat(m->record, beat)
            && (m->record->beat[0] != 0 || lost_counts))
            return false;
    }
    return true;
}

/* Returns the checkpoint to resume from, or NULL to start the run again from round 0. The rules are
 * in the list in resume.h. */
static const struct node_resume *choose(const struct resume *r)
{
    const struct node_config *c = &r->env->config;
    if (r->workshop->run.policy != RUN_SYNC || count(r, BACK_RAN_ON) > 0)
        return &c->resume[0];
    for (size_t i = 0; i < c->n_resume; i++)
        if (in_common(r, c->resume[i].beat))
            return &c->resume[i];
    MARK_IF(!is_first(r), "resume: no common checkpoint");
    return is_first(r) ? NULL : &c->resume[0];
}

/* ---- the decision ---- */

/* Loads the checkpoint into all modules of the node. Returns false if it cannot be used; s->why
 * then has the reason. */
static bool load(struct resume *r, struct state *s)
{
    own_fields(r, s);
    state_expect(s, r->phases->round <= r->workshop->run.rounds,
                 "the round of the checkpoint is after the last round of the run");
    if (s->failed)
        return false;
    /* The model of a checkpoint may be too old for the round that the run has reached. Without lock
     * step, the age is checked only if a member is known to have continued the run: the checkpoints
     * of the members are of different rounds anyway. */
    assert(!join_has_model(r->join)); /* No module uses the model that the checkpoint replaces. */
    phases_resumed(r->phases, r->workshop->run.policy == RUN_SYNC || count(r, BACK_RAN_ON) > 0);
    join_resumed(r->join);
    edges_read(r->edges, phases_beat(r->phases), s);
    return state_end(s) == 0;
}

/* Finds, in lock step, a restarted member that continued the run without this peer: both
 * checkpoints of the member are newer than all checkpoints of this peer. Of several such members,
 * returns the one with the newest checkpoint. NULL: there is no such member, or a common checkpoint
 * exists. */
static const struct member *went_on(const struct resume *r)
{
    const struct node_config *c = &r->env->config;
    const struct member *best = NULL;
    for (size_t i = 0; i < c->n_resume; i++)
        if (r->workshop->run.policy != RUN_SYNC || in_common(r, c->resume[i].beat))
            return NULL;
    for (uint32_t i = 0; i < r->n_members; i++) {
        const struct member *m = members_find(r->env->members, r->member[i].id);
        if (look_at(r, &r->member[i]) == BACK_ANEW && m->record->beat[1] > c->resume[0].beat
            && (best == NULL || m->record->beat[0] > best->record->beat[0]))
            best = m;
    }
    return best;
}

static void give_up(struct resume *r)
{
    r->state = RESUME_NONE;
    members_set_beats(r->env->members, 0, 0);
    phases_lost_checkpoint(r->phases);
}

/* Gives up this peer's checkpoints. The peer then joins like a new peer, and fetches a model of the
 * round that the run has reached. */
static void come_late(struct resume *r, const struct member *to)
{
    give_up(r);
    env_note(r->env, NOTE_INFO,
             "%s continued without this peer, to round %llu or later: joining at that round; the "
             "checkpoint of round %llu is not used",
             to->record->name, (unsigned long long)to->record->beat[0],
             (unsigned long long)r->env->config.resume[0].beat);
}

/* Gives up this peer's only checkpoint, because some peer was killed before it had written its
 * first checkpoint. The run starts at round 0. */
static void begin_again(struct resume *r)
{
    give_up(r);
    env_note(r->env, NOTE_INFO, "not all peers have a checkpoint: the run starts again");
}

/* Resumes from checkpoint `from`. If it cannot be loaded, the node ends. */
static void go_on(struct resume *r, const struct node_resume *from)
{
    assert(from < r->env->config.resume + r->env->config.n_resume);
    struct state s = *from->state;
    if (!load(r, &s)) {
        refuse(r, &s);
        return;
    }
    r->env->fx->resumed = (uint32_t)(from - r->env->config.resume) + 1;
    env_note(r->env, NOTE_INFO, "resuming from the checkpoint of round %llu of %llu%s",
             (unsigned long long)r->phases->round, (unsigned long long)r->workshop->run.rounds,
             from != r->env->config.resume ? ", the latest that all peers have" : "");
}

bool resume_is_waiting(const struct resume *r)
{
    return r->state == RESUME_WAITS;
}

bool resume_has_checkpoint(const struct resume *r)
{
    return r->state != RESUME_NONE;
}

bool resume_look(struct resume *r)
{
    assert(r->state == RESUME_WAITS);
    if (!over(r)) {
        tell(r);
        call(r);
        return false;
    }
    call_no_more(r);
    const struct node_resume *from = choose(r);
    const struct member *to = count(r, BACK_RAN_ON) == 0 ? went_on(r) : NULL;
    r->state = RESUME_DONE;
    MARK_IF(to != NULL, "resume: the run continued without this peer");
    MARK_IF(to == NULL && from == NULL, "resume: the run starts again");
    MARK_IF(to == NULL && from == r->env->config.resume, "resume: newest checkpoint");
    MARK_IF(to == NULL && from != NULL && from != r->env->config.resume,
            "resume: older checkpoint");
    if (to != NULL)
        come_late(r, to);
    else if (from == NULL)
        begin_again(r);
    else
        go_on(r, from);
    if (!r->env->over)
        sessions_hello_all(r->sessions);
    return !r->env->over;
}
