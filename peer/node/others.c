/* peer/node/others.c -- questions to the table of members. */
#include "peer/node/others.h"

static void count_member(struct env_census *c, const struct member *m)
{
    enum record_state state = m->record->state;
    bool final = record_state_is_final(state);
    bool works = state == RECORD_RUNNING || state == RECORD_TRAINED;
    bool gone = m->state == MEMBER_DEAD || m->state == MEMBER_LEFT;
    if (!m->counts)
        return;
    c->n_final += final;
    c->n_working += m->state == MEMBER_ALIVE && works;
    c->n_there += !final && !gone;
    c->n_hung += state == RECORD_STALLED && !gone;
}

/* How things are: counted anew once the table has changed. */
static const struct env_census *census(struct env *v)
{
    struct env_census *c = &v->census;
    uint64_t changes = members_changes(v->members);
    size_t self;
    if (c->taken && c->changes == changes)
        return c;
    *c = (struct env_census){.taken = true, .changes = changes};
    c->n_vertices = (uint32_t)members_vertices(v->members, v->vertices, &self);
    for (uint32_t i = 0; i < c->n_vertices; i++)
        if (i != self)
            c->says[members_at(v->members, v->vertices[i])->record->state] = true;
    for (size_t i = 0; i < members_count(v->members); i++) {
        const struct member *m = members_at(v->members, i);
        if (!env_same_id(m->record->id, v->config.id))
            count_member(c, m);
    }
    return c;
}

uint32_t others_vertices(struct env *v)
{
    return census(v)->n_vertices;
}

bool others_some(struct env *v, enum record_state state)
{
    return census(v)->says[state];
}

bool others_ended(struct env *v)
{
    return census(v)->n_final > 0;
}

bool others_end(struct env *v)
{
    return census(v)->n_working > 0;
}

bool others_hang(struct env *v)
{
    return census(v)->n_hung > 0;
}

bool others_finished(struct env *v)
{
    return census(v)->n_final > 0 && census(v)->n_there == 0;
}
