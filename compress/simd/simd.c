/* compress/simd/simd.c -- chooses the kernels for this CPU once, and calls them.
 *
 * Calls go through a pointer to the table of the chosen level (ref, avx2 or avx512). One indirect
 * call per thousand elements costs next to nothing. A test build can force the level with the macro
 * HEARSAY_LEVEL. The limits that kernels rely on are asserted here, for all levels.
 */
#include "compress/simd/simd.h"

#include "compress/simd/table.h"

#include <assert.h>
#include <stdatomic.h>

/* Returns the kernel table of the best instruction set that this CPU supports. Only CPU features
 * that the kernels use are tested, by names that every supported compiler knows. */
static const struct simd_table *choose_table(void)
{
#if defined(HEARSAY_LEVEL) && SIMD_X86
    /* HEARSAY_LEVEL forces the level: 512 (AVX-512), 2 (AVX2) or another value (portable C). */
    return HEARSAY_LEVEL == 512 ? &simd_avx512 : HEARSAY_LEVEL == 2 ? &simd_avx2 : &simd_ref;
#elif SIMD_X86
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
                  && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx512 ? &simd_avx512 : __builtin_cpu_supports("avx2") ? &simd_avx2 : &simd_ref;
#else
    return &simd_ref;
#endif
}

/* Returns the table in use. Several threads may choose the table at the same time. All of them
 * store the same pointer, so no memory ordering is needed. */
static const struct simd_table *table(void)
{
    static const struct simd_table *_Atomic chosen;
    const struct simd_table *t = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (t == NULL) {
        t = choose_table();
        atomic_store_explicit(&chosen, t, memory_order_relaxed);
    }
    return t;
}

/* Returns the name of the instruction set in use. Tests print it to show what they compare. */
const char *simd_level(void)
{
    return table()->name;
}

/* The functions below only forward to the chosen kernels. simd.h describes them. */
struct simd_sums simd_load(float *restrict v, const float *restrict x, const float *restrict x_hat,
                           size_t n, unsigned how)
{
    struct simd_sums sums = {0};
    struct simd_source s = {x, x_hat, n, n, how};
    simd_load_blocks(&sums, v, &s);
    return sums;
}

void simd_load_blocks(struct simd_sums *sums, float *restrict v, const struct simd_source *s)
{
    assert(s->n <= s->block * SIMD_BLOCKS_MAX);
    table()->load->load(sums, v, s);
}

struct simd_sums simd_load_signs(uint8_t *restrict dst, const float *restrict x,
                                 const float *restrict x_hat, size_t n, unsigned how)
{
    return table()->load->load_signs(dst, x, x_hat, n, how);
}

void simd_sign_put(uint8_t *restrict dst, const float *restrict v, size_t n)
{
    table()->load->sign_put(dst, v, n);
}

void simd_sign_add(float *restrict y, const uint8_t *restrict src, size_t n, float scale)
{
    table()->load->sign_add(y, src, n, scale);
}

float simd_half_put(uint8_t *restrict dst, const float *restrict v, size_t n, float first,
                    float second)
{
    assert(n <= SIMD_CALL_MAX);
    return table()->cast->half_put(dst, v, n, first, second);
}

void simd_half_add(float *restrict y, const uint8_t *restrict src, size_t n, float first,
                   float second)
{
    table()->cast->half_add(y, src, n, first, second);
}

double simd_byte_put(const struct simd_bytes *g, uint8_t *restrict code, const float *restrict v,
                     size_t n)
{
    assert(n <= SIMD_CALL_MAX);
    return table()->cast->byte_put(g, code, v, n);
}

double simd_power_put(struct simd_powers *p, uint8_t *restrict dst, const float *restrict v,
                      size_t n)
{
    assert(n <= SIMD_CALL_MAX && p->first % 2 == 0);
    return table()->cast->power_put(p, dst, v, n);
}

void simd_power_add(float *restrict y, const uint8_t *restrict exponent,
                    const uint8_t *restrict sign, size_t n, float factor)
{
    table()->cast->power_add(y, exponent, sign, n, factor);
}

double simd_sum_squares(const float *square, size_t n)
{
    assert(n <= SIMD_CALL_MAX);
    return table()->cast->sum_squares(square, n);
}

/* Each random word gives two numbers, so `first` must be even: an odd number would begin in the
 * middle of a word. */
void simd_coin(float *u, uint64_t key, size_t first, size_t n)
{
    assert(first % 2 == 0);
    table()->levels->coin(u, key, first, n);
}

struct simd_levels simd_round(const struct simd_grid *g, float *restrict q, const float *restrict v,
                              const float *restrict u, size_t n)
{
    assert(n <= SIMD_CALL_MAX);
    return table()->levels->round(g, q, v, u, n);
}

float simd_code(const struct simd_coder *c, uint16_t *restrict code, const float *restrict q,
                const float *restrict v, size_t n)
{
    assert(n <= SIMD_CALL_MAX);
    return table()->levels->code(c, code, q, v, n);
}

void simd_nibble_add(float *restrict y, const uint8_t *restrict src, size_t n,
                     const float value[16])
{
    table()->levels->nibble_add(y, src, n, value);
}

uint32_t simd_scan(struct simd_scan *s, const float *restrict x, const float *restrict x_hat,
                   size_t n, uint32_t first)
{
    return table()->scan->scan(s, x, x_hat, n, first);
}

void simd_filter(struct simd_scan *s, const float *restrict value, const uint32_t *restrict index,
                 size_t n)
{
    table()->scan->filter(s, value, index, n);
}
