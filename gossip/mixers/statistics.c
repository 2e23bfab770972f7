/* gossip/mixers/statistics.c -- encodes running statistics and averages them, with a lower limit
 * for variances. */
#include "gossip/mixers/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values above this limit are rejected, so that sums of some thousands of values stay finite. */
static const float most_value = 0x1p64f;

/* Values of the first byte of a payload: the statistics are absent or present. */
enum { ABSENT, PRESENT };

enum { FLOAT_BYTES = 4 };

int statistics_init(struct statistics *s, const struct segment *segments, size_t n_segments)
{
    size_t trained = segments_trained(segments, n_segments);
    size_t n = 0;
    *s = (struct statistics){.apart2 = (double)NAN, .size2 = 1};
    for (size_t i = 0; i < n_segments; i++)
        n += segments[i].trained ? 0 : segments[i].n;
    if (n == 0)
        return 0;
    s->n = n;
    s->owed = calloc(n, sizeof *s->owed);
    s->sum = calloc(n, sizeof *s->sum);
    s->least = calloc(n, sizeof *s->least);
    s->nonnegative = calloc(n, sizeof *s->nonnegative);
    if (s->owed == NULL || s->sum == NULL || s->least == NULL || s->nonnegative == NULL) {
        statistics_close(s);
        return -ENOMEM;
    }
    /* segments[i].offset counts from the start of the model, and `nonnegative` from the first value
     * that is not trained. Therefore `trained` is subtracted. */
    for (size_t i = 0; i < n_segments; i++)
        for (size_t k = 0; k < segments[i].n && !segments[i].trained; k++)
            s->nonnegative[segments[i].offset - trained + k] = segments[i].nonnegative;
    return 0;
}

void statistics_close(struct statistics *s)
{
    free(s->owed);
    free(s->sum);
    free(s->least);
    free(s->nonnegative);
    *s = (struct statistics){0};
}

size_t statistics_bound(const struct statistics *s)
{
    return s->n > 0 ? 1 + FLOAT_BYTES * s->n : 0;
}

/* Returns whether v is in range for statistic number k. The comparisons are written so that a NaN
 * is rejected. */
static bool proper(const struct statistics *s, size_t k, float v)
{
    return v <= most_value && v >= (s->nonnegative[k] ? 0 : -most_value);
}

/* Reads value k of the statistics at p: little-endian, any alignment. */
static float get(const uint8_t *p, size_t k)
{
    const uint8_t *b = p + 1 + FLOAT_BYTES * k;
    uint32_t bits =
        (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Writes value k of the statistics at p: little-endian, any alignment. */
static void put(uint8_t *p, size_t k, float v)
{
    uint8_t *b = p + 1 + FLOAT_BYTES * k;
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    for (int i = 0; i < FLOAT_BYTES; i++)
        b[i] = (uint8_t)(bits >> (8 * i));
}

bool statistics_proper(const struct statistics *s, const float *x)
{
    for (size_t k = 0; k < s->n; k++)
        if (!proper(s, k, x[k]))
            return false;
    return true;
}

size_t statistics_put(const struct statistics *s, bool with, const float *x, uint8_t *out)
{
    if (s->n == 0)
        return 0;
    out[0] = with ? PRESENT : ABSENT;
    for (size_t k = 0; k < s->n && with; k++)
        put(out, k, x[k]);
    return statistics_length(s, out);
}

size_t statistics_length(const struct statistics *s, const uint8_t *p)
{
    if (s->n == 0)
        return 0;
    return p[0] == PRESENT ? 1 + FLOAT_BYTES * s->n : 1;
}

size_t statistics_check(const struct statistics *s, const uint8_t *p, size_t len)
{
    if (s->n == 0)
        return 0;
    /* The length is checked before any value is read, because the bytes come from another peer. */
    if (len == 0 || p[0] > PRESENT || len < statistics_length(s, p))
        return SIZE_MAX;
    for (size_t k = 0; k < s->n && p[0] == PRESENT; k++)
        if (!proper(s, k, get(p, k)))
            return SIZE_MAX;
    return statistics_length(s, p);
}

void statistics_get(const struct statistics *s, const uint8_t *p, float *x)
{
    for (size_t k = 0; k < s->n; k++)
        x[k] = get(p, k);
}

void statistics_term(struct statistics *s, double w, const uint8_t *own, const uint8_t *other)
{
    /* Both ends see which deltas carry running statistics, so either both ends average the
     * statistics or neither does. */
    double apart2 = 0, size2 = 0;
    if (s->n == 0 || own[0] != PRESENT || other[0] != PRESENT)
        return;
    /* The first exchange of a job clears the sums of the previous job. */
    if (s->n_terms++ == 0) {
        memset(s->sum, 0, s->n * sizeof *s->sum);
        s->apart2 = 0;
        s->size2 = 1;
    }
    for (size_t k = 0; k < s->n; k++) {
        float a = get(own, k), b = get(other, k);
        double d = (double)b - (double)a;
        s->least[k] = s->n_terms == 1 || b < s->least[k] ? b : s->least[k];
        s->sum[k] += (float)w * (b - a);
        apart2 += d * d;
        size2 += (double)a * (double)a;
    }
    /* The edge with the largest relative distance is reported, because even one pair of peers whose
     * statistics drift apart is a fault. */
    if (size2 > 0 && apart2 / size2 >= s->apart2 / s->size2) {
        s->apart2 = apart2;
        s->size2 = size2;
    }
}

void statistics_mix(struct statistics *s, float *x)
{
    if (s->n_terms == 0)
        return;
    s->n_terms = 0;
    for (size_t k = 0; k < s->n; k++) {
        /* `to` is the value without the lower limit for variances. x[k] becomes `to` if the limit
         * allows it, otherwise the limit. */
        float to = x[k] - s->owed[k] + s->sum[k];
        float least = x[k] < s->least[k] ? x[k] : s->least[k];
        float floor = s->nonnegative[k] ? least / 2 : to;
        /* A NaN is stored unchanged here; statistics_proper() rejects it later. */
        x[k] = to < floor ? floor : to;
        s->owed[k] = x[k] - to;
    }
}

void statistics_replaced(struct statistics *s)
{
    memset(s->owed, 0, s->n * sizeof *s->owed);
}

double statistics_apart(const struct statistics *s)
{
    /* Before the first averaging apart2 is NaN, so the result is NaN. */
    return s->n > 0 ? sqrt(s->apart2 / s->size2) : 0;
}
