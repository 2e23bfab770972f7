/* tests/unit/compress_lowrank.c -- tests the codec `lowrank`: projections, start from the previous
 * factor (warm start), degenerate matrices, and invalid factors. */
#include "tests/unit/compress_matrices.h"

#include <errno.h>
#include <stdio.h>

static const enum vector_kind kinds[] = {VECTOR_GAUSS,    VECTOR_LAPLACE,   VECTOR_HEAVY,
                                         VECTOR_ONE_HOT,  VECTOR_CONSTANT,  VECTOR_ZERO,
                                         VECTOR_DENORMAL, VECTOR_HUGE_TINY, VECTOR_SPARSE};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static struct known known;
static float v[MATRIX_CELLS], scaled[MATRIX_CELLS];

static const char *spec_of(size_t r)
{
    static char spec[32];
    snprintf(spec, sizeof spec, "lowrank:%zu", r);
    return spec;
}

static void test_never_expands(void **state)
{
    (void)state;
    static const size_t ranks[] = {1, 2, 3, 4, 7, 64};
    char what[96];
    for (size_t s = 0; s < MATRIX_SHAPES; s++)
        for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
            for (size_t kind = 0; kind < KINDS; kind++) {
                size_t m = matrix_shapes[s][0], n = matrix_shapes[s][1];
                size_t r = ranks[i];
                bool plain = m * n <= 2 * r * (m + n);
                struct bench_rig rig;
                rig_open_matrix(&rig, spec_of(r), m, n);
                assert_int_equal(compress_bound(rig.c), 1 + 4 * (plain ? m * n : r * (m + n)));
                vector_fill(v, m * n, kinds[kind], 1);
                /* From the second message on, the codec starts from the factor of the previous
                 * message. */
                for (uint64_t draw = 0; draw < 3; draw++) {
                    snprintf(what, sizeof what, "%zux%zu rank %zu vector %d message %d", m, n, r,
                             kinds[kind], (int)draw);
                    assert_int_equal(rig_code(&rig, draw, v), 0);
                    check_message(&rig, v, plain, what);
                    bool sent = rig.len == compress_bound(rig.c);
                    if (!sent && (rig.len != 1 || rig.stat.e2 != rig.stat.x2))
                        fail_msg("%s: %zu bytes", what, rig.len);
                    if (!sent && rig.stat.x2 > 0.0 && kinds[kind] != VECTOR_DENORMAL)
                        fail_msg("%s: nothing was got across", what);
                }
                rig_close(&rig);
            }
}

static void test_exact_recovery(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{64, 40}, {40, 64}, {33, 61}};
    for (size_t s = 0; s < 3; s++)
        for (size_t r = 1; r <= 8; r *= 2)
            for (size_t rank = 1; rank <= r; rank++) {
                struct bench_rig rig;
                known = (struct known){.m = shapes[s][0], .n = shapes[s][1], .k = rank};
                for (size_t i = 0; i < rank; i++)
                    known.sigma[i] = 3.0 / (double)(i + 1);
                known_make(&known, 7);
                rig_open_matrix(&rig, spec_of(r), known.m, known.n);
                for (uint64_t draw = 0; draw < 3; draw++) {
                    double left = 1.0 - rig_delta(&rig, draw, known.x);
                    if (!(sqrt(left) < 1e-5))
                        fail_msg("rank %zu by %zu, message %d: leaves %g", rank, r, (int)draw,
                                 sqrt(left));
                }
                rig_close(&rig);
            }
}

/* Returns the mean contraction of first messages. Each is made by a new compressor. */
static double mean_delta(size_t m, size_t n, size_t r, enum vector_kind kind, size_t draws)
{
    double sum = 0.0;
    for (size_t i = 0; i < draws; i++) {
        struct bench_rig rig;
        vector_fill(v, m * n, kind, 100 + i);
        rig_open_matrix(&rig, spec_of(r), m, n);
        sum += rig_delta(&rig, i, v);
        rig_close(&rig);
    }
    return sum / (double)draws;
}

static void test_contraction(void **state)
{
    (void)state;
    static const struct
    {
        size_t side, r, draws;
        enum vector_kind kind;
        double low, high;
    } cases[] = {
        {45, 1, 50, VECTOR_GAUSS, 1.0 / 45, 0.06},
        {45, 4, 50, VECTOR_GAUSS, 4.0 / 45, 0.20},
        {45, 4, 50, VECTOR_LAPLACE, 4.0 / 45, 0.20},
        {45, 4, 50, VECTOR_CONSTANT, 0.999999, 1.0},
        /* 171 x 171 random values without structure: the contraction is about 2 r / 171 at rank
         * r. */
        {171, 1, 20, VECTOR_GAUSS, 0.0117 - 0.0015, 0.0117 + 0.0015},
        {171, 4, 20, VECTOR_LAPLACE, 0.0460 - 0.0025, 0.0460 + 0.0025},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double mean =
            mean_delta(cases[i].side, cases[i].side, cases[i].r, cases[i].kind, cases[i].draws);
        if (!(mean >= cases[i].low && mean <= cases[i].high))
            fail_msg("case %zu: mean delta %.5f", i, mean);
    }
}

/* If the matrix is the same in every round, the factor that the codec remembers converges to the
 * leading singular vectors of the matrix. */
static void test_warm_start(void **state)
{
    (void)state;
    struct bench_rig warm, cold;
    double best = 0.0, all = 0.0, chance = 0.0, last = 0.0;
    known = (struct known){.m = 60, .n = 40, .k = 40};
    for (size_t i = 0; i < 40; i++) {
        known.sigma[i] = pow(0.8, (double)i);
        all += known.sigma[i] * known.sigma[i];
        best += i < 2 ? known.sigma[i] * known.sigma[i] : 0.0;
    }
    known_make(&known, 3);
    rig_open_matrix(&warm, "lowrank:2", 60, 40);
    for (uint64_t draw = 0; draw < 6; draw++) {
        rig_open_matrix(&cold, "lowrank:2", 60, 40);
        chance += rig_delta(&cold, draw, known.x) / 6.0;
        rig_close(&cold);
        last = rig_delta(&warm, draw, known.x);
    }
    rig_close(&warm);
    if (!(last > chance + 0.02 && last <= best / all + 1e-5 && last > best / all - 0.02))
        fail_msg("warm %.4f, cold %.4f, best %.4f", last, chance, best / all);
}

/* The second matrix uses other columns than the first, so the remembered factor of the first is
 * orthogonal to the second matrix. */
static void test_right_angles(void **state)
{
    (void)state;
    struct bench_rig warm, fresh;
    rig_open_matrix(&warm, "lowrank:2", 40, 30);
    rig_open_matrix(&fresh, "lowrank:2", 40, 30);
    vector_fill(v, 40 * 30, VECTOR_GAUSS, 5);
    memcpy(scaled, v, sizeof scaled);
    for (size_t i = 0; i < 40 * 30; i++)
        *(i % 30 < 15 ? &scaled[i] : &v[i]) = 0.0f;
    assert_true(rig_delta(&warm, 0, v) > 0.0);
    double first = rig_delta(&warm, 1, scaled);
    double second = rig_delta(&warm, 2, scaled);
    double usual = rig_delta(&fresh, 1, scaled);
    if (!(first > 0.02 && second > 0.8 * usual))
        fail_msg("delta %g, then %g; from fresh %g", first, second, usual);
    rig_close(&warm);
    rig_close(&fresh);
}

/* Returns element (k, l) of P^T P for the factor P of a message, computed in double. */
static double gram(const struct bench_rig *r, size_t m, size_t k, size_t l)
{
    double sum = 0.0;
    for (size_t i = 0; i < m; i++)
        sum += (double)bytes_get_float(r->bytes + 1 + 4 * (k * m + i))
               * (double)bytes_get_float(r->bytes + 1 + 4 * (l * m + i));
    return sum;
}

static void test_orthonormal(void **state)
{
    (void)state;
    enum { M = 120, N = 256 };
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t r = 1; r <= 16; r *= 4) {
            struct bench_rig rig;
            rig_open_matrix(&rig, spec_of(r), M, N);
            vector_fill(v, M * N, kinds[kind], 9);
            for (uint64_t draw = 0; draw < 2; draw++) {
                assert_int_equal(rig_code(&rig, draw, v), 0);
                for (size_t k = 0; k < r && rig.len > 1; k++)
                    for (size_t l = 0; l <= k; l++) {
                        double want = k == l ? 1.0 : 0.0;
                        double got = gram(&rig, M, k, l);
                        if (!(fabs(got - want) < 1e-5))
                            fail_msg("vector %d rank %zu: P^T P %zu,%zu is %g", kinds[kind], r, k,
                                     l, got);
                    }
            }
            rig_close(&rig);
        }
}

/* Two peers apply the same messages to their copies of the replica x_hat. The copies must stay
 * equal bit for bit over several rounds, in which the model x changes. */
static void test_replicas(void **state)
{
    (void)state;
    enum { CELLS = 50 * 45 };
    static float a[CELLS], b[CELLS];
    struct bench_rig rig;
    rig_open_matrix(&rig, "lowrank:3", 50, 45);
    vector_fill(a, CELLS, VECTOR_LAPLACE, 1);
    memcpy(b, a, sizeof b);
    for (uint64_t round = 0; round < 8; round++) {
        vector_fill(v, CELLS, VECTOR_GAUSS, round);
        struct compress_input in = {.draw = round, .x = v, .x_hat = a};
        assert_int_equal(compress_encode(rig.c, &in, rig.bytes, &rig.len, &rig.stat), 0);
        assert_true(compress_validate(rig.c, rig.bytes, rig.len));
        compress_apply(rig.c, rig.bytes, rig.len, a);
        compress_apply(rig.c, rig.bytes, rig.len, b);
        assert_memory_equal(a, b, sizeof a);
        double left = vec_dist2(v, a, CELLS);
        assert_true(fabs(left - rig.stat.e2) <= 1e-5 * left);
    }
    rig_close(&rig);
}

/* Scaling the matrix by 2^k keeps the factor P and multiplies the factor Q' by 2^k, bit for bit.
 * This also holds for the factor that the codec remembers. */
static void test_scales(void **state)
{
    (void)state;
    static const int powers[] = {-60, -30, -1, 30, 60};
    enum { M = 33, N = 77, R = 2 };
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++) {
        struct bench_rig one, other;
        rig_open_matrix(&one, "lowrank:2", M, N);
        rig_open_matrix(&other, "lowrank:2", M, N);
        for (uint64_t draw = 0; draw < 4; draw++) {
            vector_fill(v, M * N, draw == 2 ? VECTOR_SPARSE : VECTOR_GAUSS, draw);
            for (size_t j = 0; j < M * N; j++) {
                /* In the second message, the sizes of the rows differ by factors of up to 2^64. */
                v[j] = ldexpf(v[j], draw == 1 ? -2 * (int)(j / N) : 0);
                scaled[j] = ldexpf(v[j], powers[i]);
            }
            assert_int_equal(rig_code(&one, draw, v), 0);
            assert_int_equal(rig_code(&other, draw, scaled), 0);
            assert_int_equal(one.len, 1 + 4 * R * (M + N));
            assert_int_equal(other.len, one.len);
            assert_memory_equal(one.bytes, other.bytes, 1 + 4 * R * M);
            for (size_t j = 1 + 4 * R * M; j < one.len; j += 4) {
                float q = bytes_get_float(one.bytes + j);
                assert_true(bytes_get_float(other.bytes + j) == ldexpf(q, powers[i]));
            }
        }
        rig_close(&one);
        rig_close(&other);
    }
}

/* A vector that the codec refuses does not change the factor that the codec remembers. */
static void test_refusals(void **state)
{
    (void)state;
    enum { CELLS = 45 * 45 };
    struct bench_rig one, other;
    rig_open_matrix(&one, "lowrank:2", 45, 45);
    rig_open_matrix(&other, "lowrank:2", 45, 45);
    for (uint64_t draw = 0; draw < 4; draw++) {
        vector_fill(v, CELLS, VECTOR_GAUSS, draw);
        memcpy(scaled, v, sizeof scaled);
        scaled[draw * 600] = draw % 2 == 0 ? NAN : -INFINITY;
        assert_int_equal(rig_code(&one, draw, scaled), -ERANGE);
        scaled[draw * 600] = 0x1p64f;
        assert_int_equal(rig_code(&one, draw, scaled), -ERANGE);
        /* Each value of the two factors is valid, but a sum of two products exceeds the limit. */
        for (size_t i = 0; i < CELLS; i++)
            scaled[i] = i < 90 ? copysignf(0x1.fp63f, v[i]) : 0.0f;
        assert_int_equal(rig_code(&one, draw, scaled), -ERANGE);
        assert_int_equal(rig_code(&one, draw, v), 0);
        assert_int_equal(rig_code(&other, draw, v), 0);
        assert_int_equal(one.len, other.len);
        assert_memory_equal(one.bytes, other.bytes, one.len);
    }
    rig_close(&one);
    rig_close(&other);
}

static void test_hostile(void **state)
{
    (void)state;
    struct bench_rig rig;
    rig_open_matrix(&rig, "lowrank:2", 20, 30);
    vector_fill(v, 600, VECTOR_GAUSS, 2);
    assert_int_equal(rig_code(&rig, 1, v), 0);
    assert_int_equal(rig.len, 1 + 8 * 50);
    refuse_lengths(&rig);
    static const uint32_t never[] = {0x7fc00000, 0xffc00001, 0x7f800000, 0xff800000, 0x80000000};
    for (size_t at = 1; at < rig.len; at += 4)
        for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
            refuse_bits(&rig, at, never[i]);
    for (size_t at = 1; at < 1 + 8 * 20; at += 4) {
        refuse_bits(&rig, at, bytes_of_float(1.002f));
        refuse_bits(&rig, at, bytes_of_float(-1.002f));
    }
    for (size_t at = 1 + 8 * 20; at < rig.len; at += 4)
        refuse_bits(&rig, at, bytes_of_float(-0x1p70f));
    for (size_t at = 1 + 8 * 20; at < rig.len; at++)
        rig.bytes[at] = 0;
    assert_false(compress_validate(rig.c, rig.bytes, rig.len));
    /* The largest factors that are valid decode to values below the limit. */
    for (size_t at = 1; at < rig.len; at += 4)
        bytes_put_float(rig.bytes + at, at < 161 ? 1.0f : 0x1.fffcp62f);
    assert_true(compress_validate(rig.c, rig.bytes, rig.len));
    compress_apply(rig.c, rig.bytes, rig.len, rig.out);
    for (size_t i = 0; i < rig.n; i++)
        assert_true(fabsf(rig.out[i]) < 0x1p64f);
    for (size_t at = 161; at < rig.len; at += 4)
        bytes_put_float(rig.bytes + at, 0x1p63f);
    assert_false(compress_validate(rig.c, rig.bytes, rig.len));
    rig_close(&rig);
}

/* lowrank encodes each matrix by itself, whether or not the specification says scope=layer. Rules
 * of the specification for other tensors, such as bias=none, must still apply to these tensors. */
static void test_model(void **state)
{
    (void)state;
    const struct segment s[] = {
        {.name = "a.weight", .n = 600, .rows = 20, .cols = 30},
        {.name = "a.bias", .offset = 600, .n = 20, .rows = 20, .cols = 1},
        {.name = "b.weight", .offset = 620, .n = 800, .rows = 80, .cols = 10},
        {.name = "b.bias", .offset = 1420, .n = 8, .rows = 8, .cols = 1},
    };
    static const struct
    {
        const char *spec;
        size_t len;
    } cases[] = {
        {"lowrank:2", 4 + 8 * 50 + 4 * 20 + 8 * 90 + 4 * 8},
        {"lowrank:2,scope=layer", 4 + 8 * 50 + 4 * 20 + 8 * 90 + 4 * 8},
        {"lowrank:2;bias=none", 3 + 8 * 50 + 8 * 90 + 4 * 28},
        {"lowrank;<700=none", 2 + 4 * 628 + 8 * 90},
    };
    vector_fill(v, 1428, VECTOR_GAUSS, 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench_rig rig;
        rig_open_model(&rig, cases[i].spec, s, 4);
        for (uint64_t draw = 0; draw < 3; draw++) {
            assert_int_equal(rig_code(&rig, draw, v), 0);
            assert_int_equal(rig.len, cases[i].len);
            check_message(&rig, v, false, cases[i].spec);
            assert_memory_equal(rig.out + 600, v + 600, 20 * sizeof *v);
        }
        rig_close(&rig);
    }
    struct bench_rig rig;
    rig_open_model(&rig, "lowrank:2;bias=fp16", s, 4);
    assert_int_equal(rig_code(&rig, 1, v), 0);
    assert_true(rig.len < cases[2].len);
    check_message(&rig, v, false, "bias=fp16");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_expands), cmocka_unit_test(test_exact_recovery),
        cmocka_unit_test(test_contraction),   cmocka_unit_test(test_warm_start),
        cmocka_unit_test(test_right_angles),  cmocka_unit_test(test_orthonormal),
        cmocka_unit_test(test_replicas),      cmocka_unit_test(test_scales),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
