/* gossip/exchange/sketch.c -- windows of averaging by gossip, and the two figures that each
 * of them ends with. */
#include "gossip/exchange/sketch.h"

#include "nn/math/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

int sketch_init(struct sketch *k, uint64_t run_seed, size_t dim)
{
    *k = (struct sketch){.key = rng_key(run_seed, RNG_SKETCH, 0, 0), .dim = dim};
    k->figures.xi = k->figures.relative = k->figures.own = k->figures.own_relative = (double)NAN;
    struct segment all = {.name = "sketch", .n = SKETCH_K, .rows = 1, .cols = SKETCH_K};
    int err = compress_open(&k->raw, "none", &all, 1);
    if (err == 0)
        err = compress_open(&k->fine, "qsgd:4", &all, 1);
    if (err != 0)
        return err;
    assert(compress_bound(k->raw) < SKETCH_BYTES_MAX);
    assert(compress_bound(k->fine) < SKETCH_BYTES_MAX);
    return 0;
}

void sketch_close(struct sketch *k)
{
    compress_close(k->raw);
    compress_close(k->fine);
}

void sketch_project(const struct sketch *k, const float *x, float out[SKETCH_K])
{
    double sum[SKETCH_K] = {0};
    for (size_t i = 0; i < k->dim; i++) {
        uint64_t h = rng_at(k->key, i);
        double v = (double)x[i];
        sum[h % SKETCH_K] += h >> 63 ? v : -v;
    }
    for (size_t i = 0; i < SKETCH_K; i++)
        out[i] = (float)sum[i];
}

/* ---- windows ---- */

/* A guess of the second eigenvalue of the mixing matrix from the graph's
 * reach: 3 / reach^2 is a ring's gap, and less than a torus's. Every peer has
 * to use the same number, and a wrong one costs speed, not truth. */
static void set_pace(struct sketch *k, const struct sketch_moment *now)
{
    double reach = now->reach > 0 ? (double)now->reach : 1;
    double gap = 3 / (reach * reach);
    double lambda = 1 - (gap < 0.5 ? gap : 0.5);
    k->momentum = 0;
    double rate = lambda; /* By which the slowest error shrinks in a beat. */
    if (now->lock_step) {
        k->momentum = 2 / (1 + sqrt(1 - lambda * lambda)) - 1;
        rate = sqrt(k->momentum);
    }
    /* Beats until that error is e^-3.5, 3 % of what it was; two more for the start. */
    k->n_beats = (uint32_t)ceil(-3.5 / log(rate)) + 2;
}

/* What the window before found goes on being averaged in this one (u), if that was of
 * the same members and nothing was cut short. */
static void begin_window(struct sketch *k, const float *x, const struct sketch_moment *now)
{
    bool follows = k->open && k->view == now->view && !now->anew;
    k->view = now->view;
    k->round_done = k->round;
    k->q_done = k->at.q;
    if (!follows)
        k->v = -1;
    sketch_project(k, x, k->s);
    memcpy(k->at.m, k->s, sizeof k->at.m);
    k->at.u = k->v >= 0 ? k->v : 0;
    k->at.q = vec_norm2(x, k->dim);
    k->before[0] = k->before[1] = k->at;
    k->round = now->round;
    k->local2 = now->local2;
    k->beats = 0;
    k->mixed = 0;
    k->open = k->began = true;
    k->adopted = false;
    set_pace(k, now);
}

/* Xi / |mean|, from Xi^2 and the mean of |x|^2; both are estimates, so that their
 * difference may be no square at all. */
static double ratio(double distance2, double q)
{
    double mean2 = q - distance2; /* mean |x|^2 - Xi^2 */
    return distance2 <= 0 ? 0 : mean2 > 0 ? sqrt(distance2 / mean2) : (double)NAN;
}

/* K beats are done, and two figures are ripe: u has averaged what the window before
 * found, and s - m is this peer's own distance when this one began. */
static void end_window(struct sketch *k)
{
    struct sketch_figures *f = &k->figures;
    if (k->v >= 0) {
        double xi2 = k->at.u > 0 ? k->at.u : 0;
        f->xi = sqrt(xi2);
        f->relative = ratio(xi2, k->q_done);
        f->round = k->round_done;
    }
    k->v = vec_dist2(k->s, k->at.m, SKETCH_K);
    f->own = sqrt(k->v);
    f->own_relative = ratio(k->v, k->at.q);
    f->own_round = k->round;
    f->own_local2 = k->local2;
    f->own_window++;
}

/* With y' = W y(k), what plain mixing made of the last beat's y(k):
 * y(k+1) = y' + momentum (y' - y(k-1)). The first beat of a window is plain. */
static void accelerate(struct sketch *k)
{
    float c = k->beats > 1 ? (float)k->momentum : 0;
    for (size_t i = 0; i < SKETCH_K; i++)
        k->at.m[i] += c * (k->at.m[i] - k->before[1].m[i]);
    k->at.u += (double)c * (k->at.u - k->before[1].u);
    k->at.q += (double)c * (k->at.q - k->before[1].q);
    k->before[1] = k->before[0];
    k->before[0] = k->at;
}

/* ---- one edge ---- */

/* The bits of a tag: [view 24][window 24][round 16]. */
enum { TAG_WINDOW = 24, TAG_ROUND = 16 };

/* Equal at both ends where they are about to do the same exchange. Never 0, which says
 * that there is no sketch: a round of 0 is skipped. */
static uint64_t pair_tag(const struct sketch_pair *p)
{
    uint64_t window = p->window & ((1u << TAG_WINDOW) - 1);
    uint64_t round = (p->round + 1) & ((1u << TAG_ROUND) - 1);
    return p->view >> (TAG_WINDOW + TAG_ROUND) << (TAG_WINDOW + TAG_ROUND) | window << TAG_ROUND
           | (round > 0 ? round : 1);
}

void sketch_pair_init(struct sketch_pair *p)
{
    *p = (struct sketch_pair){0};
}

/* The first byte of a message says how the rest is coded. */
enum pair_coding { PAIR_RAW, PAIR_FINE };

static struct compress *pair_codec(const struct sketch *k, uint8_t coding)
{
    return coding == PAIR_RAW ? k->raw : k->fine;
}

static void pair_apply(const struct sketch *k, const struct sketch_message *m, float *replica)
{
    compress_apply(pair_codec(k, m->bytes[0]), m->bytes + 1, m->n - 1, replica);
}

/* Is the pair of the window that is open? */
static bool pair_fits(const struct sketch *k, const struct sketch_pair *p)
{
    return k->open && p->view == k->view && p->window == k->window;
}

void sketch_put(struct sketch *k, struct sketch_pair *p, struct sketch_message *out)
{
    *out = (struct sketch_message){.tag = 0};
    if (!k->open)
        return;
    if (!pair_fits(k, p)) {
        sketch_pair_init(p);
        p->view = k->view;
        p->window = k->window;
    }
    if (p->through)
        return; /* They are in the next window: wait until we are. */
    struct compress_stat stat;
    struct compress_input in = {.x = k->at.m, .x_hat = p->a};
    out->bytes[0] = p->round == 0 ? PAIR_RAW : PAIR_FINE;
    out->u = (float)k->at.u;
    out->q = (float)k->at.q;
    if (!isfinite(out->u) || !isfinite(out->q)
        || compress_encode(pair_codec(k, out->bytes[0]), &in, out->bytes + 1, &out->n, &stat)
               != 0) {
        *out = (struct sketch_message){.tag = 0};
        return; /* Not finite: the model's own deltas will say so. */
    }
    out->n++;
    out->tag = pair_tag(p);
}

bool sketch_valid(const struct sketch *k, const struct sketch_message *m)
{
    if (m->tag == 0)
        return m->n == 0;
    if (!isfinite(m->u) || !isfinite(m->q) || m->n < 1 || m->n > SKETCH_BYTES_MAX
        || m->bytes[0] > PAIR_FINE)
        return false;
    return compress_validate(pair_codec(k, m->bytes[0]), m->bytes + 1, m->n - 1);
}

/* How many windows is their tag ahead of ours, modulo 2^24? 0 where it is not, or where
 * they see other members. */
static uint32_t windows_ahead(const struct sketch *k, uint64_t tag)
{
    uint32_t mask = (1u << TAG_WINDOW) - 1;
    uint32_t theirs = (uint32_t)(tag >> TAG_ROUND) & mask;
    uint32_t ahead = (theirs - k->window) & mask;
    bool same_view = tag >> (TAG_WINDOW + TAG_ROUND) == k->view >> (TAG_WINDOW + TAG_ROUND);
    return same_view && ahead <= mask / 2 ? ahead : 0;
}

/* The two messages are not of the same moment: nothing is mixed, and the next is raw at
 * both ends. One window ahead they wait for us; more, and we give ours up. */
static void mix_missed(struct sketch *k, struct sketch_pair *p, uint64_t tag)
{
    uint32_t ahead = windows_ahead(k, tag);
    bool fits = pair_fits(k, p);
    sketch_pair_init(p);
    if (ahead == 1 && fits) {
        p->view = k->view;
        p->window = k->window;
        p->through = true;
    } else if (ahead > 1) {
        k->window += ahead;
        k->adopted = true;
    }
}

void sketch_mix(struct sketch *k, struct sketch_pair *p, double w, const struct sketch_message *own,
                const struct sketch_message *other)
{
    if (other->tag != 0 && own->tag == 0 && windows_ahead(k, other->tag) > 1)
        mix_missed(k, p, other->tag);
    if (own->tag == 0 || other->tag == 0)
        return; /* Both ends see that one is missing, and mix nothing. */
    if (own->tag != other->tag || !pair_fits(k, p)) {
        mix_missed(k, p, other->tag);
        return;
    }
    pair_apply(k, own, p->a);
    pair_apply(k, other, p->b);
    vec_add_diff(k->at.m, (float)w, p->b, p->a, SKETCH_K);
    k->at.u += w * ((double)other->u - (double)own->u);
    k->at.q += w * ((double)other->q - (double)own->q);
    p->round++;
    k->mixed++;
}

/* ---- a window ends, another begins ---- */

/* Has every pair had its exchanges, or can have no more? */
static bool is_over(const struct sketch *k, const struct sketch_moment *now)
{
    for (size_t i = 0; i < now->n_pairs; i++) {
        const struct sketch_pair *p = now->pair[i];
        bool done = pair_fits(k, p) && (p->round >= k->n_beats || p->through);
        if (!done)
            return false;
    }
    return true;
}

void sketch_beat(struct sketch *k, const float *x, const struct sketch_moment *now)
{
    k->began = false;
    if (now->n_pairs == 0 && !now->alone)
        return;       /* We are cut off: nothing new is known. */
    if (now->alone) { /* The mean is our own. */
        k->figures = (struct sketch_figures){
            .round = now->round, .own_round = now->round, .own_window = k->figures.own_window + 1};
        k->open = false;
        return;
    }
    /* A beat is a job that has mixed with anybody at all. */
    if (k->mixed > 0) {
        k->mixed = 0;
        k->beats++;
        accelerate(k);
    }
    bool same = k->open && k->view == now->view;
    bool over = same && !k->adopted && is_over(k, now);
    /* Where all others went on without us it is over, but says nothing; nor may
     * it where an earlier moment is of no use. */
    if (over && !now->anew && k->beats >= k->n_beats)
        end_window(k);
    if (over || (same && now->anew && !k->adopted))
        k->window++;
    else if (!same)
        k->window = 0;
    if (!same || over || k->adopted || now->anew)
        begin_window(k, x, now);
}

size_t sketch_nominal(const struct sketch *k)
{
    /* And about 24 bytes of the delta's head: tag, u, q and a length. */
    return compress_nominal(k->fine) + 24;
}
