/* peer/node/initial.c -- asking one member after the other for the model that the run begins with. */
#include "peer/node/initial.h"

#include "gossip/exchange/piece.h"
#include "nn/math/vec.h"
#include "peer/node/member_counts.h"

#include <string.h>

enum {
    STALL_US = 5 * 1000 * 1000,  /* Nothing came for so long: another is asked. */
    LIAR_US = 30 * 1000 * 1000,  /* Who has sent another model is not asked for so long. */
    NOWHERE_US = 5 * 1000 * 1000 /* Nobody has it for so long: it is not to be had. */
};

void initial_init(struct initial *in, struct env *env, struct sessions *s, struct run_context *w)
{
    *in = (struct initial){.env = env, .sessions = s, .workshop = w, .sole = true};
}

static void begin_anew(struct initial *in)
{
    in->n_here = in->n_asked = 0;
    in->sole = true;
    in->came_us = in->env->now_us;
}

void initial_forget(struct initial *in)
{
    in->asks = false;
    in->none_us = 0;
    begin_anew(in);
}

/* ---- whom to ask ---- */

static bool is_liar(const struct initial *in, const uint8_t *id)
{
    for (size_t i = 0; i < INITIAL_LIARS; i++)
        if (in->liar[i].until_us > in->env->now_us && env_same_id(in->liar[i].id, id))
            return true;
    return false;
}

/* Whoever says that it has our run has its initial model. */
static bool has_run(const struct link *l)
{
    return link_talks(l) && !l->doomed && l->same_run;
}

static const struct link *asked(const struct initial *in)
{
    const struct link *l = in->asks ? sessions_link(in->sessions, in->link) : NULL;
    return l != NULL && has_run(l) && !is_liar(in, l->id) ? l : NULL;
}

/* The next one after `old`, in a circle that begins at a place of our own: not all who lack it ask the
 * same. `old` itself where there is no other. */
static const struct link *next_source(const struct initial *in, const struct link *old)
{
    const struct link *links = in->sessions->links;
    size_t n = in->sessions->n_links;
    size_t first = old != NULL ? (size_t)(old - links) + 1
                               : (size_t)rng_hash(in->env->config.id, WIRE_ID_BYTES) % (n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct link *l = &links[(first + i) % n];
        if (has_run(l) && !is_liar(in, l->id))
            return l;
    }
    return NULL;
}

/* What was asked of another one and has not come is asked of this one. */
static void turn_to(struct initial *in, const struct link *l)
{
    in->sole &= in->n_here == 0 || (in->asks && in->link == l->number);
    in->asks = true;
    in->link = l->number;
    in->n_asked = in->n_here;
    in->came_us = in->env->now_us;
}

bool initial_alone(const struct initial *in)
{
    return in->none_us != 0;
}

/* Whoever we talk to has another run, or lacks the model of this one, too; or all are gone, and not
 * merely out of reach. */
static enum initial_said nobody(struct initial *in)
{
    bool any = false;
    for (size_t i = 0; i < in->sessions->n_links && !any; i++)
        any = has_run(&in->sessions->links[i]); /* A liar may be asked again. */
    if (any)
        in->none_us = 0;
    else if (in->none_us == 0)
        in->none_us = in->env->now_us > 0 ? in->env->now_us : 1;
    bool gone = sessions_any(in->sessions) || !member_counts_live(in->env);
    return !any && gone && in->env->now_us - in->none_us > NOWHERE_US ? INITIAL_NOWHERE
                                                                      : INITIAL_WAITS;
}

/* ---- questions and answers ---- */

static uint32_t *open_on(struct initial *in, uint32_t link)
{
    for (size_t i = 0; i < INITIAL_LINKS; i++)
        if (in->open[i].n > 0 && in->open[i].link == link)
            return &in->open[i].n;
    return NULL;
}

/* There is one for each session: what was asked on it may be answered for as long as it lasts, whoever
 * is asked now. */
static size_t free_place(const struct initial *in)
{
    for (size_t i = 0; i < INITIAL_LINKS; i++)
        if (in->open[i].n == 0 || sessions_link(in->sessions, in->open[i].link) == NULL)
            return i;
    return 0;
}

static void ask(struct initial *in, const struct link *l, size_t piece)
{
    uint8_t out[32];
    struct wire_model_req m = {.round = WIRE_ROUND_INITIAL, .piece = (uint32_t)piece};
    uint32_t *n = open_on(in, l->number);
    if (n == NULL) {
        size_t at = free_place(in);
        in->open[at].link = l->number;
        in->open[at].n = 0;
        n = &in->open[at].n;
    }
    ++*n;
    sessions_send(in->sessions, l, false, out, wire_put_model_req(out, sizeof out, &m), NULL);
}

const char *initial_take(struct initial *in, const struct link *l, const struct wire_model *m)
{
    struct run_context *w = in->workshop;
    uint32_t *open = open_on(in, l->number);
    size_t n;
    if (open == NULL)
        return "MODEL not asked for";
    --*open;
    if (!w->lacks || !in->asks || in->link != l->number || m->piece != in->n_here)
        return NULL; /* It was asked for, and is of no use any more. */
    size_t at = piece_at(w->mixing.n_floats, m->piece, &n);
    if (m->payload.n != n * sizeof(float))
        return "bad MODEL";
    memcpy(w->mixing.x0 + at, m->payload.p, m->payload.n);
    in->n_here++;
    in->came_us = in->env->now_us;
    return NULL;
}

/* ---- is it the run's? ---- */

static const char *name_of(const struct initial *in, const struct link *l)
{
    const struct member *m = members_find(in->env->members, l->id);
    return m != NULL ? m->record->name : "a member";
}

static bool is_right(const struct initial *in)
{
    const struct mixing *m = &in->workshop->mixing;
    return vec_finite(m->x0, m->n_floats) && statistics_proper(&m->statistics, m->x0 + m->dim)
           && run_context_begins(in->workshop);
}

/* Where several have sent pieces nobody can say who was wrong. */
static enum initial_said judge(struct initial *in, const struct link *l)
{
    if (is_right(in)) {
        env_note(in->env, NOTE_INFO, "took the initial model from %s%s", name_of(in, l),
                 in->sole ? "" : " and others");
        initial_forget(in);
        return INITIAL_HERE;
    }
    if (in->sole) {
        size_t at = in->next_liar++ % INITIAL_LIARS;
        memcpy(in->liar[at].id, l->id, WIRE_ID_BYTES);
        in->liar[at].until_us = in->env->now_us + LIAR_US;
        env_note(in->env, NOTE_WARNING,
                 "the initial model from %s does not have the hash that the run names: it is "
                 "discarded, and another member is asked",
                 name_of(in, l));
    }
    begin_anew(in);
    return INITIAL_WAITS;
}

enum initial_said initial_update(struct initial *in)
{
    const struct link *l = asked(in);
    size_t n_pieces = piece_count(in->workshop->mixing.n_floats);
    bool stalls = l != NULL && in->env->now_us - in->came_us > STALL_US;
    if (l != NULL && in->n_here == n_pieces)
        return judge(in, l);
    if (l == NULL || stalls) {
        l = next_source(in, l);
        if (l == NULL)
            return nobody(in);
        turn_to(in, l);
    }
    in->none_us = 0;
    for (; in->n_asked < n_pieces && in->n_asked < in->n_here + INITIAL_WINDOW; in->n_asked++)
        ask(in, l, in->n_asked);
    return INITIAL_WAITS;
}

/* ---- before the first round ---- */

const struct link *initial_awaited(const struct initial *in)
{
    const struct run_context *w = in->workshop;
    for (size_t i = 0; i < in->sessions->n_links && w->ready && w->trainer.begins != NULL; i++) {
        const struct link *l = &in->sessions->links[i];
        if (link_talks(l) && !l->doomed && !l->same_run
            && in->env->now_us - l->up_us < in->env->config.patience_us)
            return l;
    }
    return NULL;
}
