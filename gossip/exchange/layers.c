/* gossip/exchange/layers.c -- divides a model into layers, sketches them, and computes the
 * consensus distance of each layer from the sketches of all peers. */
#include "gossip/exchange/layers.h"

#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* rounding: largest relative rounding error of a float32. vague: largest relative standard error
 * with which a figure is still reported. */
static const double rounding = 0x1p-24, vague = 0.1;

/* ---- dividing a model into parts ---- */

/* Returns the length of the layer's name in the name of a tensor: 5 for "conv1.weight", a tensor of
 * layer "conv1". A tensor's name without a dot is the layer's name. */
static size_t layer_chars(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);
}

static bool same_layer(const struct segment *s, const struct layers_part *p)
{
    size_t n = layer_chars(s->name);
    return strlen(p->name) == n && memcmp(p->name, s->name, n) == 0;
}

/* Sets the name of part `a` to a range of layers: the first layer of `a` and the last layer of `b`,
 * as in "conv1 to fc1". */
static void join_names(struct layers_part *a, const struct layers_part *b)
{
    char name[LAYERS_NAME_MAX];
    const char *to = strstr(a->name, " to "), *last = strstr(b->name, " to ");
    int first = (int)(to != NULL ? to - a->name : (long)strlen(a->name));
    snprintf(name, sizeof name, "%.*s to %.*s", first, a->name, SEGMENT_NAME_MAX,
             last != NULL ? last + 4 : b->name);
    memcpy(a->name, name, sizeof name);
}

/* Joins two neighbouring parts into one: the pair with the fewest floats in total. */
static void join_smallest(struct layers *l)
{
    size_t best = 0;
    for (size_t i = 1; i + 1 < l->n; i++)
        if (l->part[i].n + l->part[i + 1].n < l->part[best].n + l->part[best + 1].n)
            best = i;
    join_names(&l->part[best], &l->part[best + 1]);
    l->part[best].n += l->part[best + 1].n;
    memmove(&l->part[best + 1], &l->part[best + 2], (l->n - best - 2) * sizeof l->part[0]);
    l->n--;
}

static void set_widths(struct layers *l)
{
    l->n_floats = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct layers_part *p = &l->part[i];
        p->at = l->n_floats;
        p->width = p->n <= LAYERS_K + 1 ? p->n : LAYERS_K + 1;
        l->n_floats += p->width;
    }
}

void layers_cut(struct layers *l, const struct segment *s, size_t n_segments)
{
    *l = (struct layers){.n = 0};
    for (size_t i = 0; i < n_segments && s[i].trained; i++) {
        if (l->n > 0 && same_layer(&s[i], &l->part[l->n - 1])) {
            l->part[l->n - 1].n += s[i].n;
            continue;
        }
        if (l->n == LAYERS_MAX)
            join_smallest(l);
        struct layers_part *p = &l->part[l->n++];
        *p = (struct layers_part){.offset = s[i].offset, .n = s[i].n};
        memcpy(p->name, s[i].name, layer_chars(s[i].name));
    }
    set_widths(l);
}

size_t layers_of_segments(struct layers_part *part, const struct segment *s, size_t n_segments)
{
    size_t n = 0;
    for (; n < n_segments && s[n].trained; n++) {
        part[n] = (struct layers_part){
            .offset = s[n].offset, .n = s[n].n, .at = s[n].offset, .width = s[n].n};
        memcpy(part[n].name, s[n].name, strlen(s[n].name));
    }
    return n;
}

/* ---- sketches ---- */

static bool is_sketch(const struct layers_part *p)
{
    return p->width < p->n;
}

/* Writes the sketch and the squared norm of one part of the model to `out`. The hash of a float
 * depends on its position in the model, so the sketches of different parts have independent
 * errors. */
static void sketch_part(const struct layers_part *p, uint64_t key, const float *x, float *out)
{
    double sum[LAYERS_K] = {0};
    for (size_t i = p->offset; i < p->offset + p->n; i++) {
        uint64_t h = rng_at(key, i);
        double v = (double)x[i];
        sum[h % LAYERS_K] += h >> 63 ? v : -v;
    }
    for (size_t k = 0; k < LAYERS_K; k++)
        out[k] = (float)sum[k];
    out[LAYERS_K] = (float)vec_norm2(x + p->offset, p->n);
}

void layers_sketch(const struct layers *l, uint64_t key, const float *x, float *out)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct layers_part *p = &l->part[i];
        if (is_sketch(p))
            sketch_part(p, key, x, out + p->at);
        else
            memcpy(out + p->at, x + p->offset, p->n * sizeof *x);
    }
}

/* ---- computing the consensus distances ---- */

/* Sums of squares that are computed for one layer of the model, or for all layers together. */
struct sums
{
    /* xi2: squared consensus distance Xi^2. mean2: |mean|^2. norm2: mean of |x_i|^2 over the
     * models, or 0 for a part that is not sketched. */
    double xi2, mean2, norm2;
    /* Variance of the estimate xi2 of the squared consensus distance. 0: xi2 is exact. */
    double variance;
};

/* Returns how many floats of a part of the model are compared between peers: all of them, or the
 * floats of its sketch. */
static size_t compared(const struct layers_part *p)
{
    return is_sketch(p) ? LAYERS_K : p->n;
}

static double dist2_to_mean(const float *x, const double *mean, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += ((double)x[k] - mean[k]) * ((double)x[k] - mean[k]);
    return sum;
}

/* Computes the sums of squares of one part from the n answers or models x[]. `mean` is scratch
 * memory. For a sketch, |mean|^2 is computed from the norms that the peers sent, which have no
 * sketch error: the mean of |x_i|^2 equals |mean|^2 + Xi^2. */
static struct sums sum_part(const struct layers_part *p, const float *const *x, size_t n,
                            double *mean)
{
    struct sums s = {.xi2 = 0};
    size_t width = compared(p);
    memset(mean, 0, width * sizeof *mean);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++)
            mean[k] += (double)x[i][p->at + k] / (double)n;
    for (size_t i = 0; i < n; i++) {
        s.xi2 += dist2_to_mean(x[i] + p->at, mean, width) / (double)n;
        s.norm2 += is_sketch(p) ? (double)x[i][p->at + LAYERS_K] / (double)n : 0;
    }
    for (size_t k = 0; k < width && !is_sketch(p); k++)
        s.mean2 += mean[k] * mean[k];
    if (!is_sketch(p))
        return s;
    s.mean2 = s.norm2 - s.xi2;
    s.variance = 2.0 / LAYERS_K * s.xi2 * s.xi2 + 4 * rounding * rounding * s.norm2 * s.xi2;
    return s;
}

static void add(struct sums *all, const struct sums *s)
{
    all->xi2 += s->xi2;
    all->mean2 += s->mean2;
    all->norm2 += s->norm2;
    all->variance += s->variance;
}

/* Computes the figures of a part from its sums. If all sketches are equal to the last bit, the
 * models are closer than the sketches can resolve: error is then NaN, and the figure is unknown. */
static void figure_of(const struct sums *s, double apart2, struct layers_figure *f)
{
    double unknown = (double)NAN;
    bool sketched = s->norm2 > 0;
    f->error = sketched ? 0.5 * sqrt(s->variance) / s->xi2 : 0;
    bool known = isfinite(s->xi2) && (!sketched || f->error <= vague);
    f->xi = known ? sqrt(s->xi2) : unknown;
    f->relative = !known         ? unknown
                  : s->xi2 == 0  ? 0
                  : s->mean2 > 0 ? sqrt(s->xi2 / s->mean2)
                                 : unknown;
    f->apart = known ? sqrt(apart2) : unknown;
    if (!known) {
        f->error = unknown;
        f->far[0] = f->far[1] = 0;
    }
}

/* Adds the squared distances of all pairs (i, j < i) in one part to `sum`, and sets f->far to the
 * pair that is farthest apart. Returns the square of the largest distance. */
static double farthest(const struct layers_part *p, const float *const *x, size_t n, double *sum,
                       struct layers_figure *f)
{
    double most = 0;
    f->far[0] = f->far[1] = 0;
    for (size_t i = 0, pair = 0; i < n; i++)
        for (size_t j = 0; j < i; j++, pair++) {
            double d2 = vec_dist2(x[i] + p->at, x[j] + p->at, compared(p));
            sum[pair] += d2;
            if (d2 > most) {
                most = d2;
                f->far[0] = j;
                f->far[1] = i;
            }
        }
    return most;
}

/* Sets f->far to the two models that are farthest apart over all parts together. sum[] has the
 * squared distance of each pair. Returns the largest squared distance. */
static double farthest_of_all(const double *sum, size_t n, struct layers_figure *f)
{
    double most = 0;
    f->far[0] = f->far[1] = 0;
    for (size_t i = 0, pair = 0; i < n; i++)
        for (size_t j = 0; j < i; j++, pair++)
            if (sum[pair] > most) {
                most = sum[pair];
                f->far[0] = j;
                f->far[1] = i;
            }
    return most;
}

int layers_measure(const struct layers_part *part, size_t n_parts, const float *const *x, size_t n,
                   struct layers_figure *figure)
{
    size_t widest = 1;
    assert(n > 0);
    for (size_t i = 0; i < n_parts; i++)
        widest = compared(&part[i]) > widest ? compared(&part[i]) : widest;
    double *mean = malloc(widest * sizeof *mean), *pairs = calloc(n * n / 2 + 1, sizeof *pairs);
    int err = mean == NULL || pairs == NULL ? -ENOMEM : 0;
    struct sums all = {.xi2 = 0};
    for (size_t i = 0; i < n_parts && err == 0; i++) {
        struct sums s = sum_part(&part[i], x, n, mean);
        double apart2 = farthest(&part[i], x, n, pairs, &figure[i]);
        figure_of(&s, apart2, &figure[i]);
        add(&all, &s);
    }
    if (err == 0)
        figure_of(&all, farthest_of_all(pairs, n, &figure[n_parts]), &figure[n_parts]);
    free(mean);
    free(pairs);
    return err;
}
