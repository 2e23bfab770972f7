/* peer/node/mean.c -- a collective, or a server. */
#include "peer/node/mean.h"

void mean_init(struct mean *m, struct env *env, struct sessions *s, struct workshop *w)
{
    collect_init(&m->collect, env, s, w);
    serve_init(&m->serve, env, s, w);
}

void mean_close(struct mean *m)
{
    collect_close(&m->collect);
    serve_close(&m->serve);
}

void mean_release(struct mean *m)
{
    collect_release(&m->collect);
    serve_release(&m->serve);
}

static bool is_served(const struct mean *m)
{
    const struct workshop *w = m->serve.workshop;
    return w->ready && w->mixing.mixer->serves;
}

void mean_look(struct mean *m, uint64_t round, bool between)
{
    if (is_served(m))
        serve_look(&m->serve, round, between);
    else if (between)
        collect_look(&m->collect, round);
}

void mean_hear(struct mean *m, const struct link *l, const struct wire_collect *told,
               uint64_t round, bool between)
{
    if (is_served(m))
        serve_hear(&m->serve, l, told, round, between);
    else
        collect_hear(&m->collect, l, told, between);
}

bool mean_waits(const struct mean *m, uint64_t round)
{
    return is_served(m) ? serve_waits(&m->serve, round) : collect_waits(&m->collect, round);
}

const uint8_t *mean_awaited(const struct mean *m, uint64_t round)
{
    return is_served(m) ? serve_awaited(&m->serve, round) : collect_awaited(&m->collect, round);
}

uint64_t mean_round(const struct mean *m)
{
    return is_served(m) ? serve_round(&m->serve) : collect_round(&m->collect);
}
