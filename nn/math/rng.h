/* nn/math/rng.h -- seedable random numbers, addressed by counter.
 *
 * Number i of a stream is a pure function of (key, i). A result therefore never depends on threads,
 * blocks or SIMD width: a kernel that processes element i uses number i. `struct rng` reads a
 * stream in order. All random numbers of the core come from here.
 *
 *   seed --rng_key(seed, purpose, a, b)--> key --rng_at(key, i)--> 64 random bits
 */
#ifndef NN_MATH_RNG_H
#define NN_MATH_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Purpose of a stream, an argument of rng_key(). All purposes are in this list, so that no two
 * users share a stream. */
enum rng_purpose {
    RNG_INIT = 1, /* Stream for the initial model of the run. */
    RNG_SAMPLE,   /* Stream for the mini-batch order of one peer. */
    RNG_SHARD,    /* Stream for the assignment of samples to peers. */
    RNG_DRAW,     /* Stream for the random choices of a codec. */
    RNG_TOPOLOGY, /* Stream for the edges of random graphs. */
    /* Stream for the buckets and signs of a sketch: a random projection of a model that estimates
     * the consensus distance. */
    RNG_SKETCH,
    RNG_GLYPHS, /* Stream for the images of the built-in data set "glyphs". */
    /* Stream for the choices of a peer: jitter of timers, and which members to contact. */
    RNG_PEER,
    RNG_NETWORK, /* Stream for random events of the simulated network. */
    RNG_TEST,    /* Stream for random inputs of the project's tests. */
    RNG_AUGMENT, /* Stream for random changes to training images. */
    RNG_GENERATE /* Stream for text that a model generates. */
};

struct rng
{
    uint64_t key;
    uint64_t counter;
};

/* Returns the key of a stream of random numbers. Streams with different arguments are independent
 * enough for statistics, for example one stream per peer (a) and round (b). */
uint64_t rng_key(uint64_t seed, enum rng_purpose purpose, uint64_t a, uint64_t b);

/* Returns the i-th 64 random bits of a stream: SplitMix64 (Steele, Lea, Flood 2014), whose state
 * is a counter, evaluated at position i. */
static inline uint64_t rng_at(uint64_t key, uint64_t i)
{
    uint64_t z = key + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns the i-th uniform float of a stream in [0, 1), with 24 random bits. */
static inline float rng_unit_at(uint64_t key, uint64_t i)
{
    return (float)(rng_at(key, i) >> 40) * 0x1p-24f;
}

struct rng rng_stream(uint64_t key);

/* rng_u64() returns the next 64 bits. rng_unit() returns the next uniform double in [0, 1), with 53
 * random bits. rng_normal() returns the next normal deviate with mean 0 and variance 1 (Box-Muller,
 * uses two numbers of the stream). */
uint64_t rng_u64(struct rng *r);
double rng_unit(struct rng *r);
double rng_normal(struct rng *r);

/* Returns a uniform integer in [0, n), without modulo bias. Asserts n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);

/* Applies a uniform random permutation to v[0..n) (Fisher-Yates). */
void rng_shuffle(struct rng *r, uint32_t *v, size_t n);

/* Returns a 64-bit hash of a byte string, for example to turn a name into an argument of rng_key().
 * Equal on every machine. Not cryptographic. */
uint64_t rng_hash(const void *bytes, size_t n);

#endif
