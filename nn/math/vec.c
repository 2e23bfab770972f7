/* nn/math/vec.c -- sums, hashes and checks of flat vectors, with the same bits on every machine. A
 * sum consists of eight partial sums (lanes) in double, which are added in a fixed order. */
#include "nn/math/vec.h"

#include "nn/math/rng.h"

#include <string.h>

enum { LANES = 8 };

/* Returns the sum of the lanes, added in pairs. The order is the same on every machine. */
static double lanes_sum(const double l[LANES])
{
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

/* Adds up LANES partial sums (lanes). Lane j adds the products of the elements j, j + LANES,
 * j + 2 LANES and so on. The result therefore has the same bits with every vector width that the
 * compiler may use. */
VEC_CLONES double vec_dot(const float *a, const float *b, size_t n)
{
    double l[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            l[j] += (double)a[i + j] * (double)b[i + j];
    for (size_t j = 0; i < n; i++, j++)
        l[j] += (double)a[i] * (double)b[i];
    return lanes_sum(l);
}

double vec_norm2(const float *a, size_t n)
{
    return vec_dot(a, a, n);
}

/* The differences are rounded to float. Their squares are computed in double. */
VEC_CLONES double vec_dist2(const float *a, const float *b, size_t n)
{
    double l[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            double d = (double)(a[i + j] - b[i + j]);
            l[j] += d * d;
        }
    for (size_t j = 0; i < n; i++, j++) {
        double d = (double)(a[i] - b[i]);
        l[j] += d * d;
    }
    return lanes_sum(l);
}

VEC_CLONES void vec_axpy(float *restrict y, float s, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += s * x[i];
}

VEC_CLONES void vec_add_diff(float *restrict y, float s, const float *restrict b,
                             const float *restrict a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += s * (b[i] - a[i]);
}

VEC_CLONES void vec_add_heavy(float *restrict y, float *restrict v, float m, float s,
                              const float *restrict b, const float *restrict a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = m * v[i] + s * (b[i] - a[i]);
        y[i] += v[i];
    }
}

/* NaN and infinity have an exponent of all ones. The test uses integers, so that no fast-math build
 * can remove it. */
VEC_CLONES bool vec_finite(const float *a, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, a + i, sizeof bits);
        bad |= (uint32_t)((bits & 0x7f800000u) == 0x7f800000u);
    }
    return bad == 0;
}

/* The hash detects accidental differences between replicas. An attacker can make collisions. */
uint64_t vec_hash(const float *a, size_t n)
{
    /* h holds four independent chains of hashing, so that the CPU overlaps their
     * multiplications. */
    uint64_t h[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, a + i, sizeof bits);
        h[i % 4] = (h[i % 4] ^ bits) * 0x9e3779b97f4a7c15u;
        h[i % 4] ^= h[i % 4] >> 29;
    }
    return rng_hash(h, sizeof h) ^ n;
}

size_t segments_trained(const struct segment *s, size_t n)
{
    size_t floats = 0;
    for (size_t i = 0; i < n && s[i].trained; i++)
        floats += s[i].n;
    return floats;
}
