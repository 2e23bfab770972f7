/* tests/bench/bench_compress_parts.h -- parts of bench_compress: a stopwatch, a reference
 * implementation of top-k, and the coders of positions measured by themselves. */
#ifndef TESTS_BENCH_BENCH_COMPRESS_PARTS_H
#define TESTS_BENCH_BENCH_COMPRESS_PARTS_H

#include "compress/codec.h"
#include "compress/coding/positions.h"
#include "compress/compress.h"

#include "nn/math/rng.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Repeats a call for `limit` seconds and keeps the shortest time, because other processes only
 * add time. */
#define BEST_OF(limit, seconds, call)                                                              \
    do {                                                                                           \
        (seconds) = 1e9;                                                                           \
        double start_ = now_s();                                                                   \
        do {                                                                                       \
            double t_ = now_s();                                                                   \
            call;                                                                                  \
            t_ = now_s() - t_;                                                                     \
            (seconds) = t_ < (seconds) ? t_ : (seconds);                                           \
        } while (now_s() - start_ < (limit));                                                      \
    } while (0)
#define BEST(seconds, call) BEST_OF(0.2, seconds, call)

/* ---- quickselect ---- */

static inline void swap_floats(float *a, float *b)
{
    float t = *a;
    *a = *b;
    *b = t;
}

/* Hoare's quickselect: returns the k-th largest element of `a`. The order of `a` changes. */
static inline float quickselect(float *a, size_t n, size_t k)
{
    ptrdiff_t low = 0, high = (ptrdiff_t)n - 1, at = (ptrdiff_t)k - 1;
    while (low < high) {
        float pivot = a[low + (high - low) / 2];
        ptrdiff_t i = low, j = high;
        while (i <= j) {
            while (a[i] > pivot)
                i++;
            while (a[j] < pivot)
                j--;
            if (i <= j)
                swap_floats(&a[i++], &a[j--]);
        }
        if (at <= j)
            high = j;
        else if (at >= i)
            low = i;
        else
            break;
    }
    return a[at];
}

/* Selects the top k as in a textbook: computes the magnitudes, runs quickselect, and collects the
 * entries above the threshold. */
static inline size_t naive_top(const float *x, const float *x_hat, size_t n, size_t k,
                               float *scratch, float *value, uint32_t *index)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabsf(x[i] - x_hat[i]);
    float t = quickselect(scratch, n, k);
    for (size_t i = 0; i < n && found < k; i++)
        if (fabsf(x[i] - x_hat[i]) >= t) {
            value[found] = x[i] - x_hat[i];
            index[found++] = (uint32_t)i;
        }
    return found;
}

static inline double time_naive_top(const float *x, const float *x_hat, size_t n, size_t k)
{
    float *scratch = malloc(n * sizeof *scratch);
    float *value = malloc(k * sizeof *value);
    uint32_t *index = malloc(k * sizeof *index);
    assert(scratch != NULL && value != NULL && index != NULL);
    double t;
    size_t found = 0;
    BEST(t, found = naive_top(x, x_hat, n, k, scratch, value, index));
    assert(found == k);
    free(scratch);
    free(value);
    free(index);
    return t;
}

/* ---- positions ---- */

static inline bool read_positions(enum positions_how how, const uint8_t *src, size_t len, size_t n,
                                  uint32_t *index)
{
    struct positions p;
    bool proper = positions_open(&p, how, n, n, src, len);
    for (size_t at = 0; proper && at < p.k; at += CODEC_CHUNK) {
        size_t count = p.k - at < CODEC_CHUNK ? p.k - at : CODEC_CHUNK;
        proper = positions_next(&p, index, count);
    }
    return proper;
}

/* Measures each coder of positions on the positions of a random subset, which has this `share` of
 * the numbers 0 to n - 1. */
static inline void bench_positions(size_t n, double share, double rice_put, double rice_get)
{
    uint32_t *index = malloc(n * sizeof *index);
    uint32_t chunk[CODEC_CHUNK];
    uint8_t *bytes = malloc(positions_bound(POSITIONS_AUTO, n, n));
    assert(index != NULL && bytes != NULL);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (rng_unit_at(3, i) < (float)share)
            index[k++] = (uint32_t)i;
    for (int how = POSITIONS_AUTO; positions_names[how] != NULL; how++) {
        double put, get;
        size_t len = 0;
        bool proper = true;
        BEST(put, len = positions_put((enum positions_how)how, index, k, n, bytes));
        BEST(get, proper &= read_positions((enum positions_how)how, bytes, len, n, chunk));
        assert(proper);
        put = 1e-6 * (double)k / put;
        get = 1e-6 * (double)k / get;
        const char *word = how != POSITIONS_RICE ? ""
                           : put >= TARGET_SLACK * rice_put && get >= TARGET_SLACK * rice_get
                               ? "ok"
                               : "SHORT";
        printf("  %-7s %4.1f %%  put %7.0f  get %7.0f Midx/s  %6.3f bits each"
               "  %s\n",
               positions_names[how], 100.0 * share, put, get, 8.0 * (double)len / (double)k, word);
    }
    free(index);
    free(bytes);
}

#endif
