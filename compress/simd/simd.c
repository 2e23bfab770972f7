#include "compress/simd/simd.h"

#include "compress/simd/table.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Only what the kernels use, by names that every compiler here knows. */
static const struct simd_table *choose(void)
{
#if defined(HEARSAY_LEVEL) && SIMD_X86
    /* A test pins the level. */
    return HEARSAY_LEVEL == 512 ? &simd_avx512 : HEARSAY_LEVEL == 2 ? &simd_avx2 : &simd_ref;
#elif SIMD_X86
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
                  && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx512 ? &simd_avx512 : __builtin_cpu_supports("avx2") ? &simd_avx2 : &simd_ref;
#else
    return &simd_ref;
#endif
}

/* Any thread may come first: all choose the same. */
static const struct simd_table *table(void)
{
    static const struct simd_table *_Atomic chosen;
    const struct simd_table *t = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (t == NULL) {
        t = choose();
        atomic_store_explicit(&chosen, t, memory_order_relaxed);
    }
    return t;
}

const char *simd_level(void)
{
    return table()->name;
}

struct simd_sums simd_load(float *restrict v, const float *restrict x, const float *restrict x_hat,
                           size_t n, unsigned how)
{
    return table()->load(v, x, x_hat, n, how);
}

struct simd_sums simd_load_signs(uint8_t *restrict dst, const float *restrict x,
                                 const float *restrict x_hat, size_t n, unsigned how)
{
    return table()->load_signs(dst, x, x_hat, n, how);
}

void simd_sign_put(uint8_t *restrict dst, const float *restrict v, size_t n)
{
    table()->sign_put(dst, v, n);
}

void simd_sign_add(float *restrict y, const uint8_t *restrict src, size_t n, float scale)
{
    table()->sign_add(y, src, n, scale);
}

float simd_half_put(uint8_t *restrict dst, const float *restrict v, size_t n, float first,
                    float second)
{
    assert(n <= SIMD_CALL_MAX);
    return table()->half_put(dst, v, n, first, second);
}

void simd_half_add(float *restrict y, const uint8_t *restrict src, size_t n, float first,
                   float second)
{
    table()->half_add(y, src, n, first, second);
}

void simd_coin(float *u, uint64_t key, size_t first, size_t n)
{
    assert(first % 2 == 0);
    table()->coin(u, key, first, n);
}

struct simd_levels simd_round(const struct simd_grid *g, float *restrict q, const float *restrict v,
                              const float *restrict u, size_t n)
{
    assert(n <= SIMD_CALL_MAX);
    return table()->round(g, q, v, u, n);
}

float simd_code(const struct simd_coder *c, uint16_t *restrict code, const float *restrict q,
                const float *restrict v, size_t n)
{
    assert(n <= SIMD_CALL_MAX);
    return table()->code(c, code, q, v, n);
}

void simd_nibble_add(float *restrict y, const uint8_t *restrict src, size_t n,
                     const float value[16])
{
    table()->nibble_add(y, src, n, value);
}

uint32_t simd_scan(struct simd_scan *s, const float *restrict x, const float *restrict x_hat,
                   size_t n, uint32_t first)
{
    return table()->scan(s, x, x_hat, n, first);
}

void simd_filter(struct simd_scan *s, const float *restrict value, const uint32_t *restrict index,
                 size_t n)
{
    table()->filter(s, value, index, n);
}
