/* peer/node/membership/member_counts.c -- reads the counts of the member table. */
#include "peer/node/membership/member_counts.h"

uint32_t member_counts_vertices(const struct env *v)
{
    return members_tally(v->members)->n_vertices;
}

bool member_counts_live(const struct env *v)
{
    for (size_t i = 0; i < members_count(v->members); i++) {
        const struct member *m = members_at(v->members, i);
        if (m->state == MEMBER_ALIVE && !env_same_id(m->record->id, v->config.id))
            return true;
    }
    return false;
}

bool member_counts_some(const struct env *v, enum record_state state)
{
    return members_tally(v->members)->says[state] > 0;
}

bool member_counts_ended(const struct env *v)
{
    return members_tally(v->members)->n_final > 0;
}

bool member_counts_end(const struct env *v)
{
    return members_tally(v->members)->n_working > 0;
}

bool member_counts_hang(const struct env *v)
{
    return members_tally(v->members)->n_hung > 0;
}

bool member_counts_finished(const struct env *v)
{
    const struct members_tally *t = members_tally(v->members);
    return t->n_final > 0 && t->n_there == 0;
}
