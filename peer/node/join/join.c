/* peer/node/join/join.c -- obtains the model with which this peer begins. */
#include "peer/node/join/join.h"

#include "peer/node/mark.h"
#include "peer/node/session/round_quorum.h"

void join_init(struct join *j, struct env *env, struct sessions *s, struct run_context *w)
{
    *j = (struct join){.env = env, .sessions = s, .workshop = w};
    state_transfer_init(&j->fetch, env, s, w);
    initial_init(&j->initial, env, s, w);
}

void join_start(struct join *j)
{
    j->begun_us = j->env->now_us;
}

void join_again(struct join *j)
{
    MARK("join: drops its model");
    j->has_model = false;
    state_transfer_close(&j->fetch);
    initial_forget(&j->initial);
}

const struct link *join_donor(const struct join *j)
{
    return round_quorum_furthest(j->sessions, UINT32_MAX);
}

bool join_others_resume(const struct join *j)
{
    const struct env *v = j->env;
    if (v->now_us - j->begun_us >= v->config.patience_us)
        return false;
    MARK_IF(members_tally(v->members)->n_resumed > 0, "join: other members resume");
    return members_tally(v->members)->n_resumed > 0;
}

/* Passes the fetched model to the mixer, which checks all values again. The model is complete,
 * because the mixer must never hold an incomplete one. Returns false if the check fails; the fetch
 * then starts again. */
static bool take(struct join *j)
{
    const struct run *run = &j->workshop->run;
    size_t n = state_transfer_givers(&j->fetch);
    int err = run_context_take_model(j->workshop, j->fetch.staged);
    j->round = round_quorum_joined(j->sessions, state_transfer_round(&j->fetch));
    j->apart = j->fetch.apart;
    j->certified = j->fetch.certificate != NULL;
    state_transfer_close(&j->fetch);
    MARK_IF(err == 0, "join: takes a fetched model");
    if (err != 0)
        return false;
    j->has_model = true;
    env_note(j->env, NOTE_INFO,
             "joined the run at round %llu of %llu, with a model fetched from %zu member%s",
             (unsigned long long)(j->round < run->rounds ? j->round : run->rounds),
             (unsigned long long)run->rounds, n, n == 1 ? "" : "s");
    return true;
}

enum initial_said join_initial(struct join *j)
{
    enum initial_said said = initial_update(&j->initial);
    if (initial_alone(&j->initial))
        state_transfer_seek(&j->fetch);
    j->has_model = said == INITIAL_HERE;
    if (j->has_model)
        state_transfer_close(&j->fetch);
    return said;
}

const struct link *join_awaits(const struct join *j)
{
    return initial_awaited(&j->initial);
}

bool join_has_covered(const struct join *j, const struct finish_proposal *certificate)
{
    for (size_t i = 0; i < j->sessions->n_links && certificate != NULL; i++)
        if (state_transfer_is_source(&j->sessions->links[i], certificate))
            return true;
    return false;
}

bool join_update(struct join *j, const struct finish_proposal *certificate)
{
    const struct env *v = j->env;
    if (j->workshop->lacks)
        return false;
    if (join_donor(j) != NULL) {
        bool covered = join_has_covered(j, certificate);
        return state_transfer_update(&j->fetch, covered ? certificate : NULL) && take(j);
    }
    /* No known member has begun, so this peer can begin with the run's initial model. But a member
     * that has begun may still appear. This peer therefore waits while other peers refuse its
     * sessions, while the bootstrap list has not answered yet, or while other members resume from
     * checkpoints. */
    state_transfer_close(&j->fetch);
    bool waits = admit_is_refused(&j->sessions->admit)
                 || (v->config.n_bootstrap > 0 && !sessions_any(j->sessions)
                     && v->now_us - j->begun_us < START_ALONE_US);
    MARK_IF(admit_is_refused(&j->sessions->admit), "join: waits, because peers refuse this peer");
    MARK_IF(waits && !admit_is_refused(&j->sessions->admit), "join: waits for the bootstrap list");
    MARK_IF(!waits && !join_others_resume(j), "join: begins with the initial model");
    j->has_model = !waits && !join_others_resume(j);
    return false;
}

bool join_model(struct join *j, const struct link *l, const struct wire_model *model)
{
    bool initial = model->round == WIRE_ROUND_INITIAL;
    const char *wrong =
        initial ? initial_take(&j->initial, l, model) : state_transfer_take(&j->fetch, l, model);
    if (wrong != NULL)
        sessions_violation(j->sessions, l, wrong);
    return wrong == NULL && !j->has_model && j->fetch.active
           && join_update(j, j->fetch.certificate);
}
