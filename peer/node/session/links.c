/* peer/node/session/links.c -- queries of the session table (struct sessions). */
#include "peer/node/session/sessions_state.h"

#include <assert.h>

const struct link *sessions_link(const struct sessions *s, uint32_t number)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i].used && s->links[i].number == number)
            return &s->links[i];
    return NULL;
}

const struct link *sessions_to(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        if (link_talks(l) && !l->doomed && env_same_id(l->id, id))
            return l;
    }
    return NULL;
}

bool sessions_any(const struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (link_talks(&s->links[i]))
            return true;
    return false;
}

bool sessions_run_begun(const struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i].used && s->links[i].same_run && s->links[i].started)
            return true;
    return false;
}

size_t sessions_slots(const struct sessions *s)
{
    return s->n_links;
}

const struct link *sessions_at(const struct sessions *s, size_t slot)
{
    assert(slot < s->n_links);
    return &s->links[slot];
}

size_t sessions_slot(const struct sessions *s, const struct link *l)
{
    assert(l >= s->links && l < s->links + s->n_links);
    return (size_t)(l - s->links);
}

bool sessions_are_refused(const struct sessions *s)
{
    return admit_is_refused(&s->admit);
}

bool sessions_knows_violator(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    return quarantine_knows(&s->quarantine, id);
}

bool sessions_met_any(const struct sessions *s)
{
    return s->seek.met;
}

uint64_t sessions_violations(const struct sessions *s)
{
    return s->n_violations;
}

const char *sessions_violation_kind(const struct sessions *s, size_t i, uint64_t *count)
{
    if (i >= s->n_kinds)
        return NULL;
    *count = s->kind[i].n;
    return s->kind[i].what;
}
