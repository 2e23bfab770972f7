/* tests/unit/nn_ref.h -- random values, seeds, NaN values and comparisons for the tests of nn/. */
#ifndef TESTS_UNIT_NN_REF_H
#define TESTS_UNIT_NN_REF_H

#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *ref_alloc(size_t n, size_t size)
{
    void *p = aligned_alloc(64, (n * size + 63) / 64 * 64 + 64);
    if (p == NULL)
        abort();
    return p;
}

/* Draws n normal deviates of standard deviation `scale`, and stores the same values as doubles
 * and as floats. */
static inline void ref_noise(uint64_t key, double scale, double *d, float *f, size_t n)
{
    struct rng r = rng_stream(key);
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)(scale * rng_normal(&r));
        d[i] = (double)f[i];
    }
}

/* Draws n floats, uniform in [-1, 1). */
static inline void ref_uniform(uint64_t key, float *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f[i] = 2 * rng_unit_at(key, i) - 1;
}

/* Returns the seed of random tests: 1, or the environment variable SEED. Prints it, so that a
 * failure can be repeated. */
static inline uint64_t ref_seed(void)
{
    const char *text = getenv("SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 1;
    printf("SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* Fills f with NaN, which the tested code must overwrite before it uses the values. */
static inline void ref_poison(float *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f[i] = NAN;
}

/* Returns whether |got - want| is at most tol * (1 + |want|). False for NaN. */
static inline bool ref_near(double got, double want, double tol)
{
    return fabs(got - want) <= tol * (1 + fabs(want));
}

#endif
