/* nn/math/rng.c -- random streams by counter, and distributions. */
#include "nn/math/rng.h"

#include <assert.h>
#include <math.h>

uint64_t rng_key(uint64_t seed, enum rng_purpose purpose, uint64_t a, uint64_t b)
{
    uint64_t key = rng_at(seed, (uint64_t)purpose);
    key = rng_at(key ^ a, 1);
    return rng_at(key ^ b, 2);
}

struct rng rng_stream(uint64_t key)
{
    return (struct rng){.key = key};
}

uint64_t rng_u64(struct rng *r)
{
    return rng_at(r->key, r->counter++);
}

double rng_unit(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

/* Box and Muller (1958). The method gives two normal numbers at a time. The second one is dropped,
 * so that each draw uses exactly two numbers of the stream. */
double rng_normal(struct rng *r)
{
    double u = 1.0 - rng_unit(r); /* u is in (0, 1], so that its logarithm is finite. */
    double v = rng_unit(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586477 * v);
}

/* The lowest 2^64 mod n numbers are rejected and drawn again, so that all remainders are equally
 * likely. */
uint64_t rng_below(struct rng *r, uint64_t n)
{
    assert(n > 0);
    uint64_t reject = (0 - n) % n; /* 2^64 mod n, the number of values to reject. */
    uint64_t x;
    do {
        x = rng_u64(r);
    } while (x < reject);
    return x % n;
}

void rng_shuffle(struct rng *r, uint32_t *v, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rng_below(r, i);
        uint32_t t = v[i - 1];
        v[i - 1] = v[j];
        v[j] = t;
    }
}

uint64_t rng_hash(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t h = rng_at(n, 0);
    for (size_t i = 0; i < n; i++)
        h = rng_at(h ^ p[i], i);
    return h;
}
