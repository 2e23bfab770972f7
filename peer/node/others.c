/* peer/node/others.c -- questions to the table of members. */
#include "peer/node/others.h"

bool others_some(struct env *v, enum record_state state)
{
    size_t self, count = members_vertices(v->members, v->vertices, &self);
    for (size_t i = 0; i < count; i++)
        if (i != self && members_at(v->members, v->vertices[i])->record->state == state)
            return true;
    return false;
}

bool others_ended(const struct env *v)
{
    for (size_t i = 0; i < members_count(v->members); i++) {
        const struct member *e = members_at(v->members, i);
        bool self = env_same_id(e->record->id, v->config.id);
        if (!self && e->counts && record_state_is_final(e->record->state))
            return true;
    }
    return false;
}

bool others_end(const struct env *v)
{
    for (size_t i = 0; i < members_count(v->members); i++) {
        const struct member *e = members_at(v->members, i);
        bool self = env_same_id(e->record->id, v->config.id);
        bool works = e->record->state == RECORD_RUNNING || e->record->state == RECORD_TRAINED;
        if (!self && e->counts && e->state == MEMBER_ALIVE && works)
            return true;
    }
    return false;
}

bool others_finished(const struct env *v)
{
    uint32_t n_final = 0;
    for (size_t i = 0; i < members_count(v->members); i++) {
        const struct member *e = members_at(v->members, i);
        bool self = env_same_id(e->record->id, v->config.id);
        bool final = record_state_is_final(e->record->state);
        if (!self && e->counts && !final && e->state != MEMBER_DEAD && e->state != MEMBER_LEFT)
            return false;
        n_final += !self && e->counts && final;
    }
    return n_final > 0;
}
