/* peer/node/join.c -- getting the model that a peer begins with. */
#include "peer/node/join.h"

void join_init(struct join *j, struct env *env, struct sessions *s, struct workshop *w)
{
    *j = (struct join){.env = env, .sessions = s, .workshop = w, .link = UINT32_MAX};
}

void join_start(struct join *j)
{
    j->begun_us = j->env->now_us;
}

void join_again(struct join *j)
{
    j->has_model = false;
}

const struct link *join_donor(const struct join *j)
{
    return sessions_furthest(j->sessions, j->link);
}

/* Who is asked and says nothing is not asked twice in a row: join_donor() passes over it. */
static void ask(struct join *j, const struct link *l)
{
    uint8_t out[16];
    struct wire_model_req m = {.round = 0};
    j->link = j->asked[j->n_asked++ % JOIN_ASKED] = l->number;
    j->asked_us = j->env->now_us;
    sessions_send(j->sessions, l, false, out, wire_put_model_req(out, sizeof out, &m), NULL);
}

bool join_others_resume(const struct join *j)
{
    const struct env *v = j->env;
    if (v->now_us - j->begun_us >= v->config.patience_us)
        return false;
    for (size_t i = 0; i < members_count(v->members); i++) {
        const struct member *m = members_at(v->members, i);
        bool here = m->state == MEMBER_ALIVE && !env_same_id(m->record->id, v->config.id);
        if (here && m->record->beat[0] != 0)
            return true;
    }
    return false;
}

void join_update(struct join *j)
{
    const struct env *v = j->env;
    bool asked = j->link != UINT32_MAX && sessions_link(j->sessions, j->link) != NULL;
    if (asked && v->now_us - j->asked_us < MODEL_US)
        return;
    const struct link *l = join_donor(j);
    if (l != NULL) {
        ask(j, l);
        return;
    }
    /* Nobody has begun: the run's initial model is right, unless bootstrap may still
     * lead to somebody who has, or others are about to go on from checkpoints. */
    j->link = UINT32_MAX;
    bool waits = v->config.n_bootstrap > 0 && !sessions_any(j->sessions)
                 && v->now_us - j->begun_us < GRACE_US;
    j->has_model = !waits && !join_others_resume(j);
}

/* Each question may be answered once. */
static bool was_asked(struct join *j, const struct link *l)
{
    for (uint32_t i = 0; i < j->n_asked && i < JOIN_ASKED; i++)
        if (j->asked[i] == l->number) {
            j->asked[i] = UINT32_MAX;
            return true;
        }
    return false;
}

bool join_model(struct join *j, const struct link *l, const struct wire_model *model)
{
    struct mixing *mixing = &j->workshop->mixing;
    const char *wrong = NULL;
    if (!was_asked(j, l) || !j->workshop->ready)
        wrong = "MODEL not asked for";
    else if (l->number != j->link || j->has_model)
        return false; /* It is late: another was asked meanwhile. */
    else if (model->payload.n != mixing_model_bytes(mixing))
        wrong = "bad MODEL";
    else if (mixing_take_model(mixing, model->payload.p) != 0)
        wrong = "MODEL is not finite";
    if (wrong != NULL) {
        sessions_violation(j->sessions, l, wrong);
        return false;
    }
    j->has_model = true;
    j->link = UINT32_MAX;
    return true;
}
