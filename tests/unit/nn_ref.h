/* tests/unit/nn_ref.h -- noise, seeds, poison and nearness, for the tests of nn/. */
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

/* n normal deviates, in both precisions (equal values). */
static inline void ref_noise(uint64_t key, double scale, double *d, float *f, size_t n)
{
    struct rng r = rng_stream(key);
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)(scale * rng_normal(&r));
        d[i] = (double)f[i];
    }
}

/* n numbers, uniform in [-1, 1). */
static inline void ref_uniform(uint64_t key, float *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f[i] = 2 * rng_unit_at(key, i) - 1;
}

/* The seed of random changes: 1, or what SEED= says. It is printed, so that a
 * failure can be replayed. */
static inline uint64_t ref_seed(void)
{
    const char *text = getenv("SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 1;
    printf("SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* Something that must be overwritten before it is used. */
static inline void ref_poison(float *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f[i] = NAN;
}

/* |got - want| within tol of want's size, and not NaN. */
static inline bool ref_near(double got, double want, double tol)
{
    return fabs(got - want) <= tol * (1 + fabs(want));
}

#endif
