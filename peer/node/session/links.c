/* peer/node/session/links.c -- queries of the session table (struct sessions). */
#include "peer/node/session/sessions.h"

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
