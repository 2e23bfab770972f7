/* peer/node/round_protocol.c -- passes calls to the round protocol of the current run, if it has
 * one. */
#include "peer/node/round_protocol.h"

#include <assert.h>

void round_protocol_open(struct round_protocol *p, struct env *env, struct sessions *s,
                         struct run_context *w)
{
    assert(w->ready && p->kind == NULL && p->self == NULL);
    p->kind = round_protocol_kind_of(w->mixing.mixer);
    if (p->kind == NULL)
        return;
    p->self = p->kind->open(env, s, w);
    if (p->self != NULL)
        return;
    env_note(env, NOTE_ERROR, "out of memory for the %s", p->kind->name);
    env_end(env, 1);
    p->kind = NULL;
}

void round_protocol_close(struct round_protocol *p)
{
    if (p->kind != NULL)
        p->kind->close(p->self);
    *p = (struct round_protocol){.kind = NULL};
}

void round_protocol_release(struct round_protocol *p)
{
    if (p->kind != NULL)
        p->kind->release(p->self);
}

void round_protocol_look(struct round_protocol *p, uint64_t round, bool idle)
{
    if (p->kind != NULL)
        p->kind->look(p->self, round, idle);
}

void round_protocol_hear(struct round_protocol *p, struct sessions *s, const struct link *l,
                         const struct wire_round_protocol *m, uint64_t round, bool idle)
{
    if (p->kind != NULL)
        p->kind->hear(p->self, l, m, round, idle);
    else
        sessions_violation(s, l, "ROUND_PROTOCOL with invalid fields");
}

bool round_protocol_waits(const struct round_protocol *p, uint64_t round)
{
    return p->kind != NULL && p->kind->waits(p->self, round);
}

const uint8_t *round_protocol_awaited(const struct round_protocol *p, uint64_t round)
{
    return p->kind != NULL ? p->kind->awaited(p->self, round) : NULL;
}

uint64_t round_protocol_completed(const struct round_protocol *p)
{
    return p->kind != NULL ? p->kind->completed(p->self) : 0;
}
