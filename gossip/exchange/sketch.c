/* gossip/exchange/sketch.c -- averages sketches (random projections of the models) by gossip, and
 * computes the consensus distance from the averages. */
#include "gossip/exchange/sketch.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"

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

enum { DRAWS = 256 }; /* Number of columns of the sketch matrix S that draw() computes at once. */

/* Computes the row and the signed value of n columns of the sketch matrix S, starting with column
 * `first`. The code has no branches, so the compiler can vectorise it. A branch on a random sign
 * would cost ten times as much as all other work. */
VEC_CLONES static void draw(uint64_t key, size_t first, const float *x, size_t n,
                            uint8_t row[DRAWS], double v[DRAWS])
{
    _Static_assert(SKETCH_K == 256, "the number of sketch rows fits in one byte");
    for (size_t i = 0; i < n; i++) {
        uint64_t h = rng_at(key, first + i), bits;
        v[i] = (double)x[i];
        memcpy(&bits, v + i, sizeof bits);
        bits ^= ~h & (UINT64_C(1) << 63);
        memcpy(v + i, &bits, sizeof bits);
        row[i] = (uint8_t)h;
    }
}

void sketch_project(const struct sketch *k, const float *x, float out[SKETCH_K])
{
    double sum[SKETCH_K] = {0}, v[DRAWS];
    uint8_t row[DRAWS];
    for (size_t at = 0; at < k->dim; at += DRAWS) {
        size_t n = k->dim - at < DRAWS ? k->dim - at : DRAWS;
        draw(k->key, at, x + at, n, row, v);
        for (size_t i = 0; i < n; i++)
            sum[row[i]] += v[i];
    }
    for (size_t i = 0; i < SKETCH_K; i++)
        out[i] = (float)sum[i];
}

/* ---- averaging windows ---- */

/* Returns a bound on the rounding error of float32 in a relative distance. The bound is added to
 * the consensus distance, because replicas and sketches do not show how the models are rounded. In
 * a round a model gets one correction from each neighbour. Each addition rounds a parameter by at
 * most 2^-24 of the parameter, and the values of a sketch are rounded in the same way. The errors
 * are independent, so their squares add up. */
double sketch_rounding(size_t n_pairs)
{
    return 0x1p-24 * sqrt(1 + (double)n_pairs);
}

/* Returns an estimate of the spectral gap of the graph, from which the length of averaging windows
 * is derived. The estimate is min(3 / reach^2, 1/2), where `reach` is the largest number of hops
 * from the first member. If the measured gap is less than 0.999 times this value, the estimate is
 * 4/5 of the measured gap. Too large an estimate makes the consensus distance wrong; too small an
 * estimate only makes windows longer. */
static double likely_gap(const struct sketch_moment *now)
{
    double reach = now->place.reach > 0 ? (double)now->place.reach : 1;
    double guess = 3 / (reach * reach);
    guess = guess < 0.5 ? guess : 0.5;
    /* All peers must return the same gap, although the measured gap has different rounding errors
     * on different machines. If the measured gap and the guess (from `reach`) are nearly equal, the
     * factor 0.999 makes all peers choose the guess. */
    bool narrow = now->gap > 0 && now->gap < 0.999 * guess;
    return narrow ? 0.8 * now->gap : guess;
}

/* Sets the momentum of the averaging and the length of a window from the spectral gap. */
static void set_pace(struct sketch *k, const struct sketch_moment *now)
{
    double lambda = 1 - likely_gap(now);
    k->momentum = 2 / (1 + sqrt(1 - lambda * lambda)) - 1;
    /* Factor by which the slowest-decaying error of the averages shrinks per exchange. */
    double rate = sqrt(k->momentum);
    /* After -3.5 / log(rate) exchanges the slowest-decaying error of the averages is e^-3.5 = 3 %
     * of its first value. Two exchanges are added, because the first exchange of a window has no
     * momentum and the error shrinks more slowly there. */
    k->n_beats = (uint32_t)ceil(-3.5 / log(rate)) + 2;
}

/* Begins a window of averaging with the sketch of the model x. The window also averages v, the
 * squared distance from the mean that each peer found in the previous window. If the previous
 * window was cut short, there is no v. */
static void begin_window(struct sketch *k, const float *x, const struct sketch_moment *now)
{
    bool follows = k->open && !now->anew;
    k->view = now->view;
    k->round_done = k->round;
    k->q_done = k->at.q;
    k->mean2_done = vec_norm2(k->at.m, SKETCH_K);
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
    set_pace(k, now);
}

/* Returns an estimate of |mean|^2, the squared norm of the mean model. xi2: the squared consensus
 * distance. q: mean of |x|^2 over all models x. sketched2: squared norm of the mean sketch.
 *
 * q is |mean|^2 plus the squared consensus distance. q has no sketch error, so q - xi2 has an
 * error of 9 % of xi2. sketched2 has an error of 9 % of |mean|^2. The first estimate is therefore
 * the better one if xi2 <= |mean|^2. Because |mean|^2 is q - xi2, this is 2 xi2 <= q. */
static double mean_norm2(double xi2, double q, double sketched2)
{
    return 2 * xi2 <= q ? q - xi2 : sketched2;
}

/* Returns an estimate of |mean|^2 at the start of a window that has just ended. |mean|^2 is q minus
 * the squared consensus distance, which for this window is known only one window later. own2, the
 * squared distance of this peer's model from the mean, takes its place if own2 and the square of xi,
 * the newest known consensus distance, are small compared with q. Otherwise, or if xi is NaN, the
 * estimate is the squared norm of the mean sketch. */
static double recent_mean_norm2(double own2, double xi, double q, double sketched2)
{
    return 4 * (own2 + xi * xi) <= q ? q - own2 : sketched2;
}

/* Returns a distance divided by |mean|, the norm of the mean model. The result is 0 for distance 0,
 * and NaN if the squared distance distance2 or |mean|^2 (mean2) is not known. */
static double ratio(double distance2, double mean2)
{
    return distance2 <= 0 ? 0 : mean2 > 0 ? sqrt(distance2 / mean2) : (double)NAN;
}

/* Returns true if xi2 is not a valid estimate of Xi^2, the squared consensus distance. A single
 * model (n = 1) has no consensus distance. Otherwise Xi^2 is the mean of n squared distances, and
 * own2 is one of them. If n xi2 is below own2 / 2, a peer has reported too small a distance. */
static bool is_none(double xi2, double own2, uint32_t n)
{
    return n == 1 || (n > 0 && own2 > 2 * n * xi2);
}

/* Ends an averaging window after K exchanges. Sets Xi, the consensus distance at the start of the
 * previous window: the average u is Xi^2. Also sets |s - m|, the distance of this peer's model from
 * the mean at the start of this window. n: number of members. */
static void end_window(struct sketch *k, uint32_t n)
{
    struct sketch_figures *f = &k->figures;
    if (k->v >= 0) {
        double xi2 = k->at.u > 0 ? k->at.u : 0;
        xi2 = is_none(xi2, k->v, n) ? (double)NAN : xi2;
        f->xi = sqrt(xi2);
        f->relative = ratio(xi2, mean_norm2(xi2, k->q_done, k->mean2_done));
        f->round = k->round_done;
    }
    k->v = vec_dist2(k->s, k->at.m, SKETCH_K);
    f->own = sqrt(k->v);
    f->own_relative =
        ratio(k->v, recent_mean_norm2(k->v, f->xi, k->at.q, vec_norm2(k->at.m, SKETCH_K)));
    f->own_round = k->round;
    f->own_local2 = k->local2;
    f->own_begun = ++f->own_window;
}

/* Adds momentum to the averages after plain mixing has turned y(k) into y' = W y(k):
 * y(k+1) = y' + momentum (y' - y(k-1)). The first mixing of a window has no momentum. */
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

/* ---- sketch messages of one edge ---- */

/* Fields of a tag, with their widths in bits: [set of members 24][window 24][round 16]. In messages
 * of tree aggregation: [set of members 24][window 24][a peer is in its consensus phase 1][number of
 * peers 15]. */
enum { TAG_WINDOW = 24, TAG_ROUND = 16, TAG_SETTLING = 1 << (TAG_ROUND - 1) };

/* Returns the tag of the sketch message in the next exchange. A tag identifies the set of members,
 * the averaging window and the round. The tags of both ends are equal if both are about to do the
 * same exchange. The round in a tag is never 0, so no tag is 0, which would mean "no message". */
static uint64_t pair_tag(const struct sketch *k, const struct sketch_pair *p)
{
    uint64_t window = p->window & ((1u << TAG_WINDOW) - 1);
    uint64_t round = (p->round + 1) & ((1u << TAG_ROUND) - 1);
    return k->view >> (TAG_WINDOW + TAG_ROUND) << (TAG_WINDOW + TAG_ROUND) | window << TAG_ROUND
           | (round > 0 ? round : 1);
}

void sketch_pair_init(struct sketch_pair *p)
{
    *p = (struct sketch_pair){0};
}

/* Restarts the averaging on an edge. The edge keeps its state of tree aggregation. */
static void forget_averages(struct sketch_pair *p)
{
    struct tree_aggregation_pair survey = p->survey;
    sketch_pair_init(p);
    p->survey = survey;
}

void sketch_pair_reset(struct sketch_pair *p)
{
    forget_averages(p);
    tree_aggregation_pair_reset(&p->survey);
}

/* First byte of a sketch message: the kind of the message, and how its other bytes are encoded. */
enum pair_coding {
    PAIR_RAW,   /* Average m, uncompressed. */
    PAIR_FINE,  /* Encoding: the message holds the average m, with four bits per element. */
    PAIR_CLOCK, /* PAIR_CLOCK and all later values mark messages of tree aggregation. */
    PAIR_UP,
    PAIR_DOWN,
    PAIR_BLURRED,
    PAIR_CODINGS
};

static struct compress *pair_codec(const struct sketch *k, uint8_t coding)
{
    return coding == PAIR_FINE ? k->fine : k->raw;
}

static bool surveys(const struct sketch_message *m)
{
    return m->n > 0 && m->bytes[0] >= PAIR_CLOCK;
}

static void pair_apply(const struct sketch *k, const struct sketch_message *m, float *replica)
{
    compress_apply(pair_codec(k, m->bytes[0]), m->bytes + 1, m->n - 1, replica);
}

/* Returns whether the replicas of the averages on this edge belong to the current window. The set
 * of members need not be compared: when it changes, averaging stops for the rest of the run
 * (disturb()). */
static bool pair_fits(const struct sketch *k, const struct sketch_pair *p)
{
    return k->open && p->window == k->window;
}

/* Writes the next message of tree aggregation. u is the sum of squared distances, and q the sum of
 * squared norms. */
static void put_word(struct sketch *k, struct sketch_pair *p, struct sketch_message *out)
{
    static const uint8_t coding[] = {[TREE_AGGREGATION_CLOCK] = PAIR_CLOCK,
                                     [TREE_AGGREGATION_UP] = PAIR_UP,
                                     [TREE_AGGREGATION_DOWN] = PAIR_DOWN,
                                     [TREE_AGGREGATION_BLURRED] = PAIR_BLURRED};
    const struct tree_aggregation_sum *sum = NULL;
    uint64_t index;
    float zero[SKETCH_K] = {0};
    enum tree_aggregation_word word = tree_aggregation_say(&k->survey, &p->survey, &index, &sum);
    if (word == TREE_AGGREGATION_NOTHING)
        return;
    out->bytes[0] = coding[word];
    if (sum != NULL) {
        struct compress_input in = {.x = sum->mean, .x_hat = zero};
        out->u = (float)sum->dist2;
        out->q = (float)sum->norm2;
        if (!isfinite(out->u) || !isfinite(out->q)
            || compress_encode(k->raw, &in, out->bytes + 1, &out->n, NULL) != 0) {
            *out = (struct sketch_message){.tag = 0};
            /* The model is not finite, so it has no sketch. The encoder of the delta reports the
             * error. */
            return;
        }
    }
    out->n++;
    out->tag = k->view >> (TAG_WINDOW + TAG_ROUND) << (TAG_WINDOW + TAG_ROUND)
               | (index & ((1u << TAG_WINDOW) - 1)) << TAG_ROUND
               | (sum != NULL && sum->settling ? TAG_SETTLING : 0) | (sum != NULL ? sum->n : 1);
}

void sketch_put(struct sketch *k, struct sketch_pair *p, struct sketch_message *out)
{
    *out = (struct sketch_message){.tag = 0};
    if (k->disturbed)
        put_word(k, p, out);
    if (k->disturbed || !k->open)
        return;
    if (!pair_fits(k, p)) {
        forget_averages(p);
        p->window = k->window;
    }
    struct compress_input in = {.x = k->at.m, .x_hat = p->a};
    out->bytes[0] = p->round == 0 ? PAIR_RAW : PAIR_FINE;
    out->u = (float)k->at.u;
    out->q = (float)k->at.q;
    if (!isfinite(out->u) || !isfinite(out->q)
        || compress_encode(pair_codec(k, out->bytes[0]), &in, out->bytes + 1, &out->n, NULL) != 0) {
        *out = (struct sketch_message){.tag = 0};
        /* The model is not finite, so it has no sketch. The encoder of the delta reports the
         * error. */
        return;
    }
    out->n++;
    out->tag = pair_tag(k, p);
}

bool sketch_valid(const struct sketch *k, const struct sketch_message *m)
{
    if (m->tag == 0)
        return m->n == 0;
    if (!isfinite(m->u) || !isfinite(m->q) || m->n < 1 || m->n > SKETCH_BYTES_MAX
        || m->bytes[0] >= PAIR_CODINGS)
        return false;
    if (m->bytes[0] == PAIR_CLOCK)
        return m->n == 1;
    if (surveys(m) && (m->u < 0 || m->q < 0 || m->tag % TAG_SETTLING == 0))
        return false;
    return compress_validate(pair_codec(k, m->bytes[0]), m->bytes + 1, m->n - 1);
}

/* Stops the averaging, because an exchange is missing from the averages of this peer or of a
 * neighbour. From now on the consensus distance is computed by tree aggregation. */
static void disturb(struct sketch *k)
{
    if (k->disturbed)
        return;
    k->disturbed = true;
    k->open = k->began = false;
    k->own_base = k->figures.own_begun + 1;
}

/* Returns whether a squared norm or distance is implausible, that is, above a limit. The norms of
 * the models of one run differ by much less than the limit, so a greater value is false or from
 * another run. While the norm of this peer's model is 0, every value is accepted. */
static bool is_absurd(const struct sketch *k, double squared)
{
    const double most = 1e8;
    return k->at.q > 0 && !(squared <= most * k->at.q);
}

/* Handles a message of tree aggregation from a neighbour. */
static void hear_word(struct sketch *k, struct sketch_pair *p, const struct sketch_message *m)
{
    static const enum tree_aggregation_word word[] = {[PAIR_CLOCK] = TREE_AGGREGATION_CLOCK,
                                                      [PAIR_UP] = TREE_AGGREGATION_UP,
                                                      [PAIR_DOWN] = TREE_AGGREGATION_DOWN,
                                                      [PAIR_BLURRED] = TREE_AGGREGATION_BLURRED};
    struct tree_aggregation_sum sum = {.dist2 = (double)m->u, .norm2 = (double)m->q};
    disturb(k);
    if ((m->tag ^ k->view) >> (TAG_WINDOW + TAG_ROUND) != 0)
        /* The message is ignored: the neighbour knows another set of members, so its trees may
         * differ. */
        return;
    sum.n = (uint32_t)(m->tag % TAG_SETTLING);
    if (sum.n > 0 && is_absurd(k, (sum.dist2 + sum.norm2) / sum.n))
        /* The sums of squares in the message are implausible, so the message is ignored, as if it
         * had been lost. */
        return;
    sum.settling = (m->tag & TAG_SETTLING) != 0;
    if (m->bytes[0] != PAIR_CLOCK)
        pair_apply(k, m, sum.mean);
    tree_aggregation_hear(&k->survey, &p->survey, word[m->bytes[0]], m->tag >> TAG_ROUND, &sum);
}

void sketch_mix(struct sketch *k, struct sketch_pair *p, double w, const struct sketch_message *own,
                const struct sketch_message *other)
{
    if (surveys(other))
        hear_word(k, p, other);
    if (k->disturbed)
        return;
    if (own->tag != other->tag || (own->tag != 0 && !pair_fits(k, p))) {
        /* The neighbour's message belongs to another window, so one of the two peers has missed a
         * round. The averages are then wrong, and this peer stops averaging. */
        disturb(k);
        return;
    }
    if (own->tag == 0)
        return;
    pair_apply(k, own, p->a);
    pair_apply(k, other, p->b);
    p->round++;
    k->mixed++;
    /* An implausible message does not change this peer's averages. The neighbour still applies the
     * exchange. The exchange then changes the averages at one end only, which makes the averages of
     * all peers wrong. */
    if (is_absurd(k, fabs((double)other->u)) || is_absurd(k, fabs((double)other->q))
        || is_absurd(k, vec_norm2(p->b, SKETCH_K)))
        return;
    vec_add_diff(k->at.m, (float)w, p->b, p->a, SKETCH_K);
    k->at.u += w * ((double)other->u - (double)own->u);
    k->at.q += w * ((double)other->q - (double)own->q);
}

/* ---- a window ends, another begins ---- */

/* Returns whether each edge has done the n_beats exchanges of the current averaging window. */
static bool is_over(const struct sketch *k, const struct sketch_moment *now)
{
    for (size_t i = 0; i < now->n_pairs; i++)
        if (!pair_fits(k, now->pair[i]) || now->pair[i]->round < k->n_beats)
            return false;
    return true;
}

/* Returns whether the averages of this peer are wrong from now on. They are correct only if each
 * peer has exchanged with every neighbour in every round, among the same members. The neighbours
 * learn from this peer's next message that its averages are wrong (put_word()). */
static bool out_of_step(const struct sketch *k, const struct sketch_moment *now)
{
    bool lost = now->n_pairs == 0 || (now->round > 0 && now->n_commits < now->n_pairs);
    lost |= now->round > 0 && now->missing;
    bool jumped = k->beaten ? now->round != k->last + 1 : now->round > 0;
    bool others = k->open && k->view != now->view;
    return !now->place.lock_step || (lost && !now->draining) || jumped || others;
}

/* Takes the consensus distance from the newest complete window of tree aggregation, unless it was
 * already taken from that window. */
static void take_survey(struct sketch *k)
{
    struct sketch_figures *f = &k->figures;
    const struct tree_aggregation_slot *s = tree_aggregation_newest(&k->survey);
    if (s == NULL || s->index <= k->surveyed)
        return;
    double n = (double)s->sum.n, xi2 = s->sum.dist2 / n, q = s->sum.norm2 / n;
    double sketched2 = vec_norm2(s->sum.mean, SKETCH_K);
    double own = sqrt(vec_dist2(s->s, s->sum.mean, SKETCH_K));
    xi2 = is_none(xi2, own * own, s->sum.n) ? (double)NAN : xi2;
    k->surveyed = s->index;
    if (s->sharp) {
        f->xi = sqrt(xi2);
        f->relative = ratio(xi2, mean_norm2(xi2, q, sketched2));
        f->round = s->round;
    }
    f->own = own;
    f->own_relative = own > 0 ? own / sqrt(mean_norm2(isnan(xi2) ? 0 : xi2, q, sketched2)) : 0;
    f->own_round = s->round;
    f->own_window++;
    f->own_begun = k->own_base + s->round + 1;
    f->own_local2 = s->local2;
}

/* Updates the tree aggregation after a job: begins a window (one measurement of the consensus
 * distance) if one is due in this round, and takes the figures of the newest complete window. */
static void survey(struct sketch *k, const float *x, const struct sketch_moment *now)
{
    if (k->survey.place.built != now->place.built)
        k->surveyed = 0;
    k->view = now->view;
    k->began = tree_aggregation_beat(&k->survey, &now->place, now->round);
    if (k->began) {
        sketch_project(k, x, k->s);
        /* With tree aggregation there is no mean of |x|^2 over all peers, so is_absurd(), the
         * mixers and the node use |x|^2 of this peer's model in its place. */
        k->at.q = vec_norm2(x, k->dim);
        tree_aggregation_begin(&k->survey, k->s, k->at.q, now->local2);
    }
    take_survey(k);
}

void sketch_passed_over(struct sketch *k)
{
    k->survey.place.n = 0;
}

uint64_t sketch_begun(const struct sketch *k, bool anew)
{
    /* The next window that ends gets the order key own_begun + 1. If `anew` is false, this window
     * is the open one, which began before this call. If `anew` is true, the open window is cut
     * short and gets no key, so the window after it gets the key own_begun + 1. */
    return k->disturbed ? k->own_base + k->last + 1 : k->figures.own_begun + !anew;
}

void sketch_beat(struct sketch *k, const float *x, const struct sketch_moment *now)
{
    k->began = false;
    /* A peer without neighbours takes its own model as the mean, so the distance from the mean is
     * 0. A single model has no consensus distance. */
    if (now->alone) {
        k->last = now->round;
        k->figures = (struct sketch_figures){.xi = (double)NAN,
                                             .relative = (double)NAN,
                                             .rounding = k->figures.rounding,
                                             .round = now->round,
                                             .own_round = now->round,
                                             .own_window = k->figures.own_window + 1,
                                             .own_begun = k->disturbed ? sketch_begun(k, false)
                                                                       : k->figures.own_begun + 1};
        k->open = false;
        return;
    }
    k->figures.rounding = fmax(k->figures.rounding, sketch_rounding(now->n_pairs));
    if (out_of_step(k, now))
        disturb(k);
    k->beaten = true;
    k->last = now->round;
    if (k->disturbed) {
        survey(k, x, now);
        return;
    }
    /* The window counts only jobs that mixed with a neighbour, because other jobs leave the
     * averages unchanged. */
    if (k->mixed > 0) {
        k->mixed = 0;
        k->beats++;
        accelerate(k);
    }
    bool over = k->open && is_over(k, now);
    if (over && !now->anew)
        end_window(k, now->place.n);
    if (k->open && (over || now->anew))
        k->window++;
    if (!k->open || over || now->anew)
        begin_window(k, x, now);
}

size_t sketch_nominal(const struct sketch *k)
{
    /* The header of a delta has about 24 bytes for the sketch: the tag, the averages u and q (top
     * of sketch.h), and a length. */
    return compress_nominal(k->fine) + 24;
}

size_t sketch_word_bytes(const struct sketch *k)
{
    return compress_nominal(k->raw) + 24;
}
