#include "gossip/mixers/average.h"

#include "gossip/mixers/choco.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int open_average(struct choco *c)
{
    struct average *v = &c->average;
    v->u = calloc(c->dim, sizeof *v->u);
    v->sum = calloc(c->dim, sizeof *v->sum);
    if (c->remembers)
        v->withheld = calloc(c->dim, sizeof *v->withheld);
    bool full = v->u != NULL && v->sum != NULL && (v->withheld != NULL || !c->remembers);
    return full ? 0 : -ENOMEM;
}

static void zero(const struct choco *c, float *v)
{
    memset(v, 0, c->dim * sizeof *v);
}

static void copy(const struct choco *c, float *to, const float *from)
{
    memcpy(to, from, c->dim * sizeof *to);
}

/* ---- mix ---- */

/* Halves that are new in this job have no memory yet. */
static void begin_memories(struct choco *c)
{
    for (struct choco_turn *t = c->turn; t < c->turn + c->n_turns; t++) {
        if (t->fresh_half)
            copy(c, t->half->memory, c->average.withheld);
        if (t->source != NULL)
            copy(c, t->half->memory, t->source->memory);
    }
}

/* The weights of all edges for which turn t applies our delta. */
static double group_weight(const struct choco *c, const struct choco_turn *t)
{
    double w = 0;
    for (const struct choco_turn *s = t; s < c->turn + c->n_turns; s++)
        if (s->commit && s->half == t->half && s->ours.payload == t->ours.payload)
            w += s->w;
    return w * c->average.lazy;
}

static void commit_own(struct choco *c)
{
    float *sum = c->average.sum;
    for (struct choco_turn *t = c->turn; t < c->turn + c->n_turns; t++) {
        if (!t->applies || !choco_is_update(c, t->ours.head.codec))
            continue;
        zero(c, sum);
        choco_apply(c, DELTA_RUN, t->ours.payload->bytes, t->ours.payload->len, sum);
        vec_axpy(c->x, (float)-group_weight(c, t), sum, c->dim);
        if (c->remembers)
            vec_axpy(t->half->memory, -1, sum, c->dim);
    }
}

/* Equal weights are the rule: such updates are added up before they reach x. */
static void commit_theirs(struct choco *c)
{
    float *sum = c->average.sum;
    double w = 0; /* Of what is in sum; 0: nothing. */
    for (struct choco_turn *t = c->turn; t < c->turn + c->n_turns; t++) {
        double own = t->w * c->average.lazy;
        if (!t->commit || !choco_is_update(c, t->theirs.head.codec))
            continue;
        if (w != own) {
            if (w > 0)
                vec_axpy(c->x, (float)w, sum, c->dim);
            zero(c, sum);
            w = own;
        }
        choco_apply(c, DELTA_RUN, t->theirs.bytes, t->theirs.n_bytes, sum);
    }
    if (w > 0)
        vec_axpy(c->x, (float)w, sum, c->dim);
}

/* How many different updates this job encodes. */
static size_t n_encoded(const struct choco *c)
{
    size_t n = 0;
    for (const struct choco_turn *t = c->turn; t < c->turn + c->n_turns; t++)
        n += t->encodes && choco_is_update(c, t->codec);
    return n;
}

static void mix(struct choco *c)
{
    if (c->remembers)
        begin_memories(c);
    commit_own(c);
    commit_theirs(c);
    if (n_encoded(c) > 0)
        copy(c, c->average.u, c->x);
}

/* ---- encode ---- */

/* Who does not encode now remembers, too: it will be told later. */
static void before(struct choco *c)
{
    struct average *v = &c->average;
    v->n_sent = n_encoded(c);
    if (v->n_sent == 0 || !c->remembers)
        return;
    for (struct half *h = c->halves; h != NULL; h = h->next)
        vec_add_diff(h->memory, 1, c->x, v->u, c->dim);
    vec_add_diff(v->withheld, 1, c->x, v->u, c->dim);
    zero(c, v->sum);
}

static void source(const struct choco *c, const struct choco_turn *t, struct compress_input *in)
{
    in->x = c->remembers ? t->half->memory : c->x;
    in->x_hat = c->remembers ? c->average.sum : c->average.u; /* sum is 0. */
}

/* x = u + sent + (withheld - memory), and then withheld = memory - sent. What
 * stands in brackets is 0 while all edges are in step. */
static void settle_memory(struct choco *c, float share)
{
    struct average *v = &c->average;
    const struct choco_turn *end = c->turn + c->n_turns;
    for (const struct choco_turn *t = c->turn; t < end; t++)
        if (t->encodes && choco_is_update(c, t->codec))
            vec_add_diff(c->x, share, v->withheld, t->half->memory, c->dim);
    zero(c, v->withheld);
    for (const struct choco_turn *t = c->turn; t < end; t++)
        if (t->encodes && choco_is_update(c, t->codec))
            vec_axpy(v->withheld, share, t->half->memory, c->dim);
    vec_axpy(v->withheld, -1, v->sum, c->dim);
}

static void after(struct choco *c)
{
    struct average *v = &c->average;
    if (v->n_sent == 0 || c->diverged)
        return;
    float share = 1.0f / (float)v->n_sent;
    zero(c, v->sum);
    for (const struct choco_turn *t = c->turn; t < c->turn + c->n_turns; t++)
        if (t->encodes && choco_is_update(c, t->codec))
            choco_apply(c, DELTA_RUN, t->made->bytes, t->made->len, v->sum);
    for (size_t k = 0; k < c->dim && v->n_sent > 1; k++)
        v->sum[k] *= share;
    copy(c, c->x, v->u);
    vec_axpy(c->x, 1, v->sum, c->dim);
    if (c->remembers)
        settle_memory(c, share);
}

const float *average_sent(const struct choco *c)
{
    return c->average.n_sent > 0 && !c->diverged ? c->average.sum : NULL;
}

const struct mixer mixer_average = {.name = "average",
                                    .updates = true,
                                    .open = open_average,
                                    .mix = mix,
                                    .before = before,
                                    .source = source,
                                    .after = after};
