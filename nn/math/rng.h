/* nn/math/rng.h -- seedable random numbers, addressed by counter.
 *
 * The i-th number of a stream is a pure function of (key, i), so a result
 * never depends on threading, blocking or SIMD width: a kernel that handles
 * element i asks for number i. `struct rng` walks a stream where order is
 * natural. This is the only randomness in the core.
 *
 *   seed --rng_key(seed, purpose, who, when)--> key --rng_at(key, i)--> bits
 */
#ifndef NN_MATH_RNG_H
#define NN_MATH_RNG_H

#include <stddef.h>
#include <stdint.h>

/* What a stream is for: the first word of every rng_key(), all in one place so
 * that no two users share a stream. */
enum rng_purpose {
    RNG_INIT = 1, /* The run's initial model. */
    RNG_SAMPLE,   /* Mini-batch order of one peer. */
    RNG_SHARD,    /* Who owns which sample. */
    RNG_DRAW,     /* Random choices of a codec. */
    RNG_TOPOLOGY, /* Random graphs. */
    RNG_SKETCH,   /* Buckets and signs of the drift sketch. */
    RNG_GLYPHS,   /* The built-in data set. */
    RNG_PEER,     /* A node's own choices: jitter, whom to ask. */
    RNG_NETWORK,  /* The simulated network. */
    RNG_TEST,     /* Tests. */
    RNG_AUGMENT,  /* What is done to a training image. */
    RNG_GENERATE  /* Text that a model goes on with. */
};

struct rng
{
    uint64_t key;
    uint64_t counter;
};

/* Derive the key of a stream. Different arguments give streams independent
 * enough to hand one to each peer and round. */
uint64_t rng_key(uint64_t seed, enum rng_purpose purpose, uint64_t a, uint64_t b);

/* The i-th 64 uniform bits of a stream: SplitMix64 (Steele, Lea, Flood 2014),
 * whose state is a counter, evaluated at position i. */
static inline uint64_t rng_at(uint64_t key, uint64_t i)
{
    uint64_t z = key + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The i-th uniform float in [0, 1), 24 bits of it. */
static inline float rng_unit_at(uint64_t key, uint64_t i)
{
    return (float)(rng_at(key, i) >> 40) * 0x1p-24f;
}

struct rng rng_stream(uint64_t key);

/* Next 64 bits; next uniform double in [0, 1) of 53 bits; next normal deviate
 * of mean 0 and variance 1 (Box-Muller, takes two numbers). */
uint64_t rng_u64(struct rng *r);
double rng_unit(struct rng *r);
double rng_normal(struct rng *r);

/* Uniform integer in [0, n), without modulo bias. Asserts n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);

/* Fisher-Yates: a uniform permutation of v[0..n). */
void rng_shuffle(struct rng *r, uint32_t *v, size_t n);

/* 64-bit hash of a byte string, for turning a name into a stream's `a`.
 * Not cryptographic: equal on every machine, that is all. */
uint64_t rng_hash(const void *bytes, size_t n);

#endif
