/* tests/unit/compress_proved.c -- proved properties of codecs, tested on every kind of vector:
 * identities and bounds of the whole error, and bounds of each element's error. */
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N_MAX = 4097 };

static float v[N_MAX];

/* One block of a vector: its values before (v) and after (c) encoding and decoding. */
struct outcome
{
    const float *v, *c;
    size_t n;
    double x2, e2, max, l1;
    double arg; /* Parameter of the codec on which the proved bound depends. */
};

static double error_of(const struct outcome *o, size_t i)
{
    return fabs((double)o->v[i] - (double)o->c[i]);
}

static double size_of(const struct outcome *o, size_t i)
{
    return fabs((double)o->v[i]);
}

/* ---- the error of a block, exactly ---- */

static double exact_none(const struct outcome *o)
{
    (void)o;
    return 0.0;
}

static double exact_sign(const struct outcome *o)
{
    return o->x2 - o->l1 * o->l1 / (double)o->n;
}

/* onebit: each value is replaced by the mean of the values >= 0, or by the mean of the values <
 * 0. */
static double exact_onebit(const struct outcome *o)
{
    double plus = 0.0, minus = 0.0, n_plus = 0.0;
    for (size_t i = 0; i < o->n; i++) {
        bool negative = o->v[i] < 0.0f;
        *(negative ? &minus : &plus) += (double)o->v[i];
        n_plus += !negative;
    }
    double n_minus = (double)o->n - n_plus;
    return o->x2 - (n_plus > 0 ? plus * plus / n_plus : 0.0)
           - (n_minus > 0 ? minus * minus / n_minus : 0.0);
}

/* Returns the sum of the squares of all values with a magnitude below `least`. */
static double squares_below(const struct outcome *o, double least)
{
    double sum = 0.0;
    for (size_t i = 0; i < o->n; i++)
        sum += size_of(o, i) < least ? size_of(o, i) * size_of(o, i) : 0.0;
    return sum;
}

static double exact_threshold(const struct outcome *o)
{
    return squares_below(o, o->arg);
}

static double exact_share_of_max(const struct outcome *o)
{
    return squares_below(o, o->arg * o->max);
}

static int by_size(const void *a, const void *b)
{
    double x = fabs((double)*(const float *)a);
    double y = fabs((double)*(const float *)b);
    return (x > y) - (x < y);
}

/* topk: the error is the sum of the n - k smallest squares. */
static double exact_topk(const struct outcome *o)
{
    static float sorted[N_MAX];
    size_t rest = o->n - (size_t)ceil(o->arg * (double)o->n - 1e-9);
    double sum = 0.0;
    memcpy(sorted, o->v, o->n * sizeof *sorted);
    qsort(sorted, o->n, sizeof *sorted, by_size);
    for (size_t i = 0; i < rest; i++)
        sum += (double)sorted[i] * (double)sorted[i];
    return sum;
}

/* ---- bounds of the error of a block ---- */

static double at_most_none(const struct outcome *o)
{
    return o->x2;
}

/* The largest value is sent exactly, so the contraction delta is at least 1/n. */
static double at_most_largest(const struct outcome *o)
{
    return o->x2 - o->max * o->max;
}

static double at_most_nth(const struct outcome *o)
{
    return o->x2 * (1.0 - 1.0 / (double)o->n);
}

static double at_most_share(const struct outcome *o)
{
    return o->x2 * o->arg;
}

static double at_most_int8(const struct outcome *o)
{
    return o->x2 * fmin((double)o->n / 64516.0, 1.0 - 1.0 / (double)o->n);
}

static double at_most_3lc(const struct outcome *o)
{
    double s = o->arg;
    return o->x2 - (1.0 - (s - 1.0) * (s - 1.0)) * o->max * o->max;
}

static double at_most_sign(const struct outcome *o)
{
    return exact_sign(o);
}

/* ---- bounds of the error of an element ---- */

static double each_own(const struct outcome *o, size_t i)
{
    return size_of(o, i);
}

static double each_share(const struct outcome *o, size_t i)
{
    return o->arg * size_of(o, i);
}

static double each_int8(const struct outcome *o, size_t i)
{
    return fmin(size_of(o, i), o->max / 254.0);
}

/* Bound of the error of fp16: 2^-11 of the value, but at least 2^-38 of the block's largest
 * value. */
static double each_fp16(const struct outcome *o, size_t i)
{
    return fmax(0x1p-11 * size_of(o, i), 0x1p-38 * o->max);
}

/* Bound of the error of dyn8, relative to the value. The bound depends on how many decades the
 * value is below the block's largest value. */
static double each_dyn8(const struct outcome *o, size_t i)
{
    double a = size_of(o, i) / o->max;
    double most = a > 0.1 ? 0.07 : a > 0.01 ? 0.11 : a > 1e-3 ? 0.19 : 1.0;
    return most * size_of(o, i);
}

/* The error of a value is at most half the distance between two levels. */
static double each_level(const struct outcome *o, size_t i)
{
    (void)i;
    return o->max / o->arg;
}

/* The properties that are claimed for one compressor. Claims about relative errors are not tested
 * with subnormal values, because the relative error of a subnormal float is not bounded. */
static const struct claim
{
    const char *spec;
    size_t block; /* Number of values per block. 0: the whole vector is one block. */
    double (*exact)(const struct outcome *);
    double (*most)(const struct outcome *);
    double (*each)(const struct outcome *, size_t);
    double arg;
} claims[] = {
    {"none", 0, exact_none, NULL, NULL, 0},
    {"topk:1", 0, exact_none, NULL, NULL, 0},
    {"randk:1", 0, exact_none, NULL, NULL, 0},
    {"fp16", 1024, NULL, NULL, each_fp16, 0},
    {"bf16", 0, NULL, at_most_share, NULL, 0x1p-16},
    {"bf16", 0, NULL, NULL, each_share, 0x1p-8},
    {"int8", 256, NULL, at_most_int8, each_int8, 0},
    {"int8:0", 0, NULL, at_most_nth, each_int8, 0},
    {"int8:4096", 4096, NULL, at_most_int8, each_int8, 0},
    {"dyn8", 0, NULL, at_most_largest, each_dyn8, 0},
    {"dyn8:64", 64, NULL, at_most_largest, each_dyn8, 0},
    {"nat", 0, NULL, NULL, each_share, 0.78},
    {"nat,scale=raw", 0, NULL, NULL, each_own, 0},
    {"nat,round=near", 0, NULL, NULL, each_share, 1.0 / 3.0},
    {"sign:0", 0, exact_sign, NULL, NULL, 0},
    {"sign", 512, exact_sign, NULL, NULL, 0},
    {"sign:8", 8, exact_sign, NULL, NULL, 0},
    {"onebit", 0, exact_onebit, at_most_sign, NULL, 0},
    {"onebit:64", 64, exact_onebit, at_most_sign, NULL, 0},
    {"qsgd:4", 512, NULL, at_most_nth, NULL, 0},
    {"qsgd:2:64", 64, NULL, at_most_nth, NULL, 0},
    {"qsgd:4,scale=raw", 512, NULL, NULL, each_level, 2 * 7},
    {"qsgd:4,scale=raw,round=sr", 512, NULL, NULL, each_level, 7},
    {"qsgd:3:64:l2,round=sr", 64, NULL, at_most_none, NULL, 0},
    {"tern,clip=0", 0, NULL, at_most_nth, each_own, 0},
    {"tern:64", 64, NULL, at_most_nth, NULL, 0},
    {"tern:64,round=sr", 64, NULL, at_most_none, NULL, 0},
    {"thr2", 0, NULL, at_most_nth, NULL, 0},
    {"thr2:1000:64", 64, NULL, at_most_nth, NULL, 0},
    {"thr2:0.5,form=mxnet", 0, NULL, at_most_none, each_own, 0},
    {"dorefa", 0, NULL, at_most_none, NULL, 0},
    {"dorefa:1", 0, exact_sign, NULL, NULL, 0}, /* With two levels, dorefa:1 equals sign. */
    {"3lc", 0, NULL, at_most_largest, each_own, 0},
    {"3lc:1.75", 0, NULL, at_most_3lc, each_own, 1.75},
    {"topk:0.01", 0, exact_topk, NULL, NULL, 0.01},
    {"topk:0.3/ef", 0, exact_topk, NULL, NULL, 0.3},
    {"thr:0.5", 0, exact_threshold, NULL, NULL, 0.5},
    {"adath", 0, exact_share_of_max, at_most_largest, NULL, 0.5},
    {"aji:0.1", 0, NULL, at_most_largest, NULL, 0},
    {"adaq:0.1", 0, NULL, at_most_nth, NULL, 0},
    {"adaq:0.1+none", 0, NULL, at_most_largest, NULL, 0},
    {"wangni:0.1", 0, NULL, at_most_none, NULL, 0},
    {"randk:0.1", 0, NULL, at_most_none, each_own, 0},
};

static struct outcome outcome_of(const float *from, const float *c, size_t n, double arg)
{
    struct outcome o = {.v = from, .c = c, .n = n, .arg = arg};
    o.x2 = vec_norm2(from, n);
    o.e2 = vec_dist2(from, c, n);
    for (size_t i = 0; i < n; i++) {
        o.max = fmax(o.max, size_of(&o, i));
        o.l1 += size_of(&o, i);
    }
    return o;
}

static bool within(double found, double most, double x2)
{
    return found <= most * (1.0 + 1e-5) + 1e-6 * x2;
}

static const char *broken(const struct claim *c, const struct outcome *o)
{
    if (c->exact != NULL) {
        double exact = c->exact(o);
        if (!(fabs(o->e2 - exact) <= 1e-5 * exact + 1e-6 * o->x2))
            return "the error is not what it is to be";
    }
    if (c->most != NULL && !within(o->e2, c->most(o), o->x2))
        return "the error is above its bound";
    for (size_t i = 0; c->each != NULL && i < o->n; i++)
        if (!within(error_of(o, i), c->each(o, i), 0.0))
            return "an element's error is above its bound";
    return NULL;
}

static void check_claim(const struct claim *c, int kind, size_t n)
{
    struct bench_rig r;
    size_t block = c->block == 0 || c->block > n ? n : c->block;
    rig_open(&r, c->spec, n);
    for (uint64_t draw = 0; draw < 3; draw++) {
        assert_int_equal(rig_code(&r, draw, v), 0);
        for (size_t at = 0; at < n; at += block) {
            size_t m = n - at < block ? n - at : block;
            struct outcome o = outcome_of(v + at, r.out + at, m, c->arg);
            const char *what = broken(c, &o);
            if (what != NULL)
                fail_msg("%s: n=%zu vector=%d block at %zu: %s", c->spec, n, kind, at, what);
        }
    }
    rig_close(&r);
}

static void test_claims(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 8, 17, 64, 257, 1000, 4097};
    for (int kind = 0; kind < VECTOR_KINDS; kind++) {
        if (kind == VECTOR_DENORMAL)
            continue;
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            vector_fill(v, sizes[s], (enum vector_kind)kind, 1);
            for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++)
                check_claim(&claims[i], kind, sizes[s]);
        }
    }
}

/* Averaged over random draws, the contraction delta is at least the proved one. */
static void test_means(void **state)
{
    (void)state;
    enum { SIDE = 30, N = SIDE * SIDE, DRAWS = 200 };
    static const struct
    {
        const char *spec;
        double delta;
    } means[] = {
        {"randk:0.1", 0.1},
        {"randk:0.5", 0.5},
        {"nat", 8.0 / 9.0},
        {"nat,scale=raw", 7.0 / 8.0},
        {"lowrank:2", 2.0 / SIDE},
        {"lowrank:8", 8.0 / SIDE},
        {"atomo:3", 3.0 / (3 + SIDE)},
        {"wangni:0.1", 0.1},
        {"wangni:0.5+none", 0.5},
        {"qsgd:6:0:l2,round=sr,scale=inv1w,levels=16", 1.0 / (1.0 + 30.0 / 16.0)},
        {"qsgd:6:0:l2,round=sr,levels=16", 1.0 / (1.0 + 30.0 / 16.0)},
    };
    static const enum vector_kind kinds[] = {VECTOR_GAUSS, VECTOR_LAPLACE, VECTOR_HEAVY,
                                             VECTOR_CONSTANT};
    struct segment square = {.n = N, .rows = SIDE, .cols = SIDE};
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < sizeof means / sizeof means[0]; i++) {
            double sum = 0.0, squares = 0.0;
            vector_fill(v, N, kinds[k], 2);
            for (uint64_t draw = 0; draw < DRAWS; draw++) {
                /* Each draw needs a new compressor, because the bound is for the first message of
                 * lowrank. */
                struct bench_rig r;
                rig_open_model(&r, means[i].spec, &square, 1);
                double delta = rig_delta(&r, draw, v);
                sum += delta;
                squares += delta * delta;
                rig_close(&r);
            }
            double mean = sum / DRAWS;
            double se = sqrt(fmax(squares / DRAWS - mean * mean, 0) / DRAWS);
            if (!(mean >= means[i].delta * (1.0 - 1e-6) - 5.0 * se))
                fail_msg("%s on vector %d: mean delta %.4f, at least %.4f", means[i].spec,
                         (int)kinds[k], mean, means[i].delta);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
