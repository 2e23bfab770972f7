/* peer/node/join/join.c -- obtains the model with which this peer begins. */
#include "peer/node/join/join.h"

#include "nn/math/number.h"
#include "peer/node/join/initial.h"
#include "peer/node/join/state_transfer.h"
#include "peer/node/mark.h"

#include <assert.h>
#include <stdlib.h>

/* How this peer obtains its model. */
struct join
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    bool has_model; /* True: this peer has a model with which it can train. */
    /* Facts about the last model that was fetched completely. */
    struct join_fetched fetched;
    struct state_transfer *fetch; /* Transfer of a model from members that have begun the run. */
    struct initial *initial;      /* Transfer of the run's initial model. */
    int64_t begun_us;             /* Node time of join_start(), in microseconds. */
};

static void join_check(const struct join *j)
{
    assert(!j->has_model || (j->workshop->ready && !j->workshop->lacks));
    assert(j->begun_us <= j->env->now_us);
}

struct join *join_open(struct env *env, struct sessions *s, struct run_context *w)
{
    struct join *j = calloc(1, sizeof *j);
    if (j == NULL)
        return NULL;
    *j = (struct join){.env = env, .sessions = s, .workshop = w};
    j->fetch = state_transfer_open(env, s, w);
    j->initial = initial_open(env, s, w);
    if (j->fetch != NULL && j->initial != NULL)
        return j;
    join_close(j);
    return NULL;
}

void join_close(struct join *j)
{
    if (j == NULL)
        return;
    state_transfer_close(j->fetch);
    initial_close(j->initial);
    free(j);
}

void join_start(struct join *j)
{
    j->begun_us = j->env->now_us;
}

void join_again(struct join *j)
{
    MARK("join: drops its model");
    j->has_model = false;
    state_transfer_drop(j->fetch);
    initial_forget(j->initial);
    assert(!state_transfer_is_active(j->fetch));
}

const struct link *join_donor(const struct join *j)
{
    return round_quorum_furthest(j->sessions);
}

bool join_others_resume(const struct join *j)
{
    const struct env *v = j->env;
    /* A resuming member first waits for max(--quorum-timeout, RESUME_US), then for
     * SCHEDULE_OPENING_US, and begins. The limit is the sum of all three times, so the member may
     * have started later than this peer by min(--quorum-timeout, RESUME_US). */
    if (v->now_us - j->begun_us >= v->config.patience_us + RESUME_US + SCHEDULE_OPENING_US)
        return false;
    MARK_IF(members_tally(v->members)->n_resumed > 0, "join: other members resume");
    return members_tally(v->members)->n_resumed > 0;
}

/* Passes the fetched, complete model to the mixer, which checks all values again. Returns false if
 * the check fails; the fetch then starts again. */
static bool take(struct join *j)
{
    const struct run *run = &j->workshop->run;
    struct join_fetched *r = &j->fetched;
    assert(j->workshop->ready && !j->workshop->lacks);
    state_transfer_result(j->fetch, r);
    int err = run_context_take_model(j->workshop, r->model);
    r->model = NULL;
    r->round = round_quorum_joined(j->sessions, r->round);
    state_transfer_drop(j->fetch);
    MARK_IF(err == 0, "join: takes a fetched model");
    if (err != 0)
        return false;
    j->has_model = true;
    uint64_t round = r->round < run->rounds ? r->round : run->rounds;
    env_note(j->env, NOTE_INFO,
             "joined the run at round %llu of %llu, with a model fetched from %zu member%s",
             (unsigned long long)round, (unsigned long long)run->rounds, r->n_givers,
             number_plural(r->n_givers));
    return true;
}

enum initial_said join_initial(struct join *j)
{
    assert(j->workshop->lacks && !j->has_model);
    enum initial_said said = initial_update(j->initial);
    if (initial_alone(j->initial))
        state_transfer_seek(j->fetch);
    j->has_model = said == INITIAL_HERE;
    if (j->has_model)
        state_transfer_drop(j->fetch);
    assert(j->has_model != j->workshop->lacks);
    join_check(j);
    return said;
}

const struct link *join_awaits(const struct join *j)
{
    return initial_awaited(j->initial);
}

bool join_has_covered(const struct join *j, const struct finish_proposal *certificate)
{
    for (size_t i = 0; i < sessions_slots(j->sessions) && certificate != NULL; i++)
        if (state_transfer_is_source(sessions_at(j->sessions, i), certificate))
            return true;
    return false;
}

bool join_update(struct join *j, const struct finish_proposal *certificate)
{
    const struct env *v = j->env;
    assert(j->workshop->ready);
    join_check(j);
    if (j->workshop->lacks)
        return false;
    if (join_donor(j) != NULL) {
        bool covered = join_has_covered(j, certificate);
        return state_transfer_update(j->fetch, covered ? certificate : NULL) && take(j);
    }
    /* No known member has begun, so this peer could begin with the run's initial model. A member
     * that has begun may still appear. This peer therefore waits while other peers refuse its
     * sessions, while the bootstrap list has not answered yet, or while other members resume from
     * checkpoints. */
    state_transfer_drop(j->fetch);
    /* A peer that wants a covered model keeps its own one while no member can be asked. */
    if (j->has_model)
        return false;
    bool waits = sessions_are_refused(j->sessions)
                 || (v->config.n_bootstrap > 0 && !sessions_any(j->sessions)
                     && v->now_us - j->begun_us < START_ALONE_US);
    MARK_IF(sessions_are_refused(j->sessions), "join: waits, because peers refuse this peer");
    MARK_IF(waits && !sessions_are_refused(j->sessions), "join: waits for the bootstrap list");
    MARK_IF(!waits && !join_others_resume(j), "join: begins with the initial model");
    j->has_model = !waits && !join_others_resume(j);
    join_check(j);
    return false;
}

bool join_model(struct join *j, const struct link *l, const struct wire_model *model)
{
    bool initial = model->round == WIRE_ROUND_INITIAL;
    assert(l->role == LINK_PEER);
    const char *wrong =
        initial ? initial_take(j->initial, l, model) : state_transfer_take(j->fetch, l, model);
    if (wrong != NULL)
        sessions_violation(j->sessions, l, wrong);
    return wrong == NULL && !j->has_model && state_transfer_is_active(j->fetch)
           && join_update(j, state_transfer_certificate(j->fetch));
}

void join_resumed(struct join *j)
{
    assert(!state_transfer_is_active(j->fetch));
    j->has_model = true;
    join_check(j);
}

bool join_has_model(const struct join *j)
{
    return j->has_model;
}

const struct join_fetched *join_fetched(const struct join *j)
{
    return &j->fetched;
}
