/* gossip/exchange/piece.c -- divides a model into pieces, sketches them, and compares the pieces of
 * different sources. */
#include "gossip/exchange/piece.h"

#include "gossip/exchange/outlier_filter.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

size_t piece_floats(size_t n)
{
    size_t part = (n + PIECE_PARTS - 1) / PIECE_PARTS;
    return part < PIECE_FLOATS_MIN   ? PIECE_FLOATS_MIN
           : part > PIECE_FLOATS_MAX ? PIECE_FLOATS_MAX
                                     : part;
}

size_t piece_count(size_t n)
{
    size_t each = piece_floats(n);
    return n == 0 ? 1 : (n + each - 1) / each;
}

size_t piece_at(size_t n, size_t p, size_t *n_floats)
{
    size_t each = piece_floats(n), at = p * each;
    assert(p < piece_count(n));
    *n_floats = n - at < each ? n - at : each;
    return at;
}

size_t piece_bytes_max(size_t n)
{
    size_t sketches = piece_count(n) * PIECE_SKETCH, each = piece_floats(n);
    size_t piece = each < n ? each : n;
    return (piece > sketches ? piece : sketches) * sizeof(float);
}

void piece_sketch(uint64_t key, const float *x, size_t n, uint8_t *out)
{
    for (size_t p = 0; p < piece_count(n); p++) {
        size_t n_floats, at = piece_at(n, p, &n_floats);
        double sum[PIECE_SKETCH] = {0};
        float sketch[PIECE_SKETCH];
        for (size_t i = at; i < at + n_floats; i++) {
            uint64_t h = rng_at(key, i);
            sum[h % PIECE_SKETCH] += h >> 63 ? (double)x[i] : -(double)x[i];
        }
        for (size_t k = 0; k < PIECE_SKETCH; k++)
            sketch[k] = (float)sum[k];
        memcpy(out + p * sizeof sketch, sketch, sizeof sketch);
    }
}

/* Returns the squared distance of the sketches a and b, summed over the pieces that came from
 * `source`. */
static double dist2(const struct piece_view *v, size_t source, const float *a, const float *b)
{
    double sum = 0;
    for (size_t i = 0; i < v->n_pieces * PIECE_SKETCH; i++)
        if (v->from[i / PIECE_SKETCH] == source)
            sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

/* Compares models over the pieces that came from `source`. Returns the squared distance from the
 * model of source `witness` to the nearest model of a third source. NaN: there is no third
 * source. */
static double others2(const struct piece_view *v, size_t source, size_t witness)
{
    double least2 = (double)NAN;
    for (size_t k = 0; k < v->n_sources; k++) {
        if (k == source || k == witness || v->own[k] == NULL)
            continue;
        double d2 = dist2(v, source, v->own[k], v->own[witness]);
        least2 = d2 >= least2 ? least2 : d2;
    }
    return least2;
}

/* Returns whether source `witness` confirms the pieces that came from `source`, that is, whether
 * these pieces are no farther from the witness's model than models of one run can be. */
static bool agrees(const struct piece_view *v, size_t source, size_t witness)
{
    double d2 = dist2(v, source, v->come, v->own[witness]);
    double way2 = dist2(v, source, v->initial, v->own[witness]);
    double near2 = others2(v, source, witness);
    if (!(d2 <= (double)PIECE_WAYS * PIECE_WAYS * way2))
        return false;
    return isnan(near2) || !outlier_filter_apart(d2, near2, way2);
}

bool piece_further(const struct piece_view *v, size_t source, size_t *other)
{
    *other = source;
    for (size_t k = 0; k < v->n_sources; k++)
        if (k != source && v->own[k] != NULL)
            *other = k;
    assert(*other != source);
    return dist2(v, source, v->come, v->initial) >= dist2(v, source, v->own[*other], v->initial);
}

enum piece_verdict piece_judge(const struct piece_view *v, size_t source)
{
    size_t n = 0, n_agree = 0;
    for (size_t k = 0; k < v->n_sources; k++) {
        if (k == source || v->own[k] == NULL)
            continue;
        n++;
        n_agree += agrees(v, source, k);
    }
    if (n == 0)
        return PIECE_ALONE;
    if (2 * n_agree >= n)
        return PIECE_CONFIRMED;
    return n == 1 ? PIECE_DISPUTED : PIECE_REFUSED;
}
