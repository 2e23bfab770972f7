/* tests/unit/compress_atomo.c -- tests the codec `atomo`, which sends random singular triples of a
 * matrix.
 *
 * Tested are absence of bias, the documented variance, that no message increases the error,
 * degenerate spectra, and invalid counts. */
#include "tests/unit/compress_matrices.h"

#include <errno.h>
#include <stdio.h>

static const enum vector_kind kinds[] = {VECTOR_GAUSS,    VECTOR_LAPLACE,  VECTOR_HEAVY,
                                         VECTOR_ONE_HOT,  VECTOR_CONSTANT, VECTOR_ZERO,
                                         VECTOR_DENORMAL, VECTOR_HUGE_TINY};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static struct known known;
static float v[MATRIX_CELLS], scaled[MATRIX_CELLS];

/* Returns the number of singular triples in the message of one matrix. */
static unsigned count_of(const struct bench_rig *r)
{
    return r->len > 1 ? r->bytes[1] : 0;
}

static void test_never_expands(void **state)
{
    (void)state;
    char what[96], spec[32];
    for (size_t s = 0; s < MATRIX_SHAPES; s++)
        for (size_t r = 1; r <= 4; r++)
            for (size_t kind = 0; kind < KINDS; kind++) {
                size_t m = matrix_shapes[s][0], n = matrix_shapes[s][1];
                bool plain = m * n <= 2 * r * (m + n);
                struct bench_rig rig;
                snprintf(spec, sizeof spec, "atomo:%zu", r);
                rig_open_matrix(&rig, spec, m, n);
                vector_fill(v, m * n, kinds[kind], 1);
                for (uint64_t draw = 0; draw < 2; draw++) {
                    snprintf(what, sizeof what, "%zux%zu %s vector %d", m, n, spec, kinds[kind]);
                    assert_int_equal(rig_code(&rig, draw, v), 0);
                    check_message(&rig, v, plain, what);
                    unsigned count = count_of(&rig);
                    if (!plain && count > 0)
                        assert_int_equal(rig.len, 2 + 4 * count * (m + n));
                }
                rig_close(&rig);
            }
}

/* If the rank of the matrix is at most r, each triple is certainly sent, so nothing is lost. */
static void test_exact_recovery(void **state)
{
    (void)state;
    for (size_t rank = 1; rank <= 3; rank++)
        for (uint64_t draw = 0; draw < 20; draw++) {
            struct bench_rig rig;
            known = (struct known){.m = 64, .n = 40, .k = rank, .sigma = {5.0, 0.5, 0.05}};
            known_make(&known, draw);
            rig_open_matrix(&rig, draw % 2 ? "atomo:3" : "atomo:3,scale=raw", 64, 40);
            double left = 1.0 - rig_delta(&rig, draw, known.x);
            if (!(sqrt(left) < 1e-5) || count_of(&rig) != rank)
                fail_msg("rank %zu, draw %d: %u triples leave %g", rank, (int)draw, count_of(&rig),
                         sqrt(left));
            rig_close(&rig);
        }
}

/* Compares, for each singular triple, the mean of its decoded part over all messages with its
 * value. Returns the largest deviation, in standard deviations. weight[i] multiplies the decoded
 * part of triple i. */
static double largest_z(size_t draws, const double *p, const double *weight)
{
    double sum[SIDE_MAX] = {0}, worst = 0.0;
    struct bench_rig rig;
    rig_open_matrix(&rig, "atomo:1,scale=raw", known.m, known.n);
    for (uint64_t draw = 0; draw < draws; draw++) {
        assert_int_equal(rig_code(&rig, draw, known.x), 0);
        for (size_t i = 0; i < known.k; i++)
            sum[i] += weight[i] * known_part(&known, rig.out, i);
    }
    rig_close(&rig);
    for (size_t i = 0; i < known.k; i++) {
        double n = (double)draws, s = known.sigma[i];
        double deviation = s * sqrt((1.0 - p[i]) / p[i] / n);
        worst = fmax(worst, fabs(sum[i] / n - s) / deviation);
    }
    return worst;
}

static void test_unbiased(void **state)
{
    (void)state;
    double p[8], one[8];
    known = (struct known){.m = 8, .n = 8, .k = 8, .sigma = {4, 3, 2.5, 2, 1.5, 1, 0.7, 0.3}};
    known_make(&known, 11);
    for (size_t i = 0; i < 8; i++) {
        /* The singular values sum to 15, so dividing by 15 gives probabilities. */
        p[i] = known.sigma[i] / 15.0;
        one[i] = 1.0;
    }
    double z = largest_z(4096, p, one);
    if (!(z < 5.0))
        fail_msg("biased: z %.2f", z);
    /* With weight p_i, the decoded triples are those of a wrong codec that omits the factor
     * 1 / p_i. The test must detect its bias. */
    z = largest_z(4096, p, p);
    if (!(z > 5.0))
        fail_msg("the test would pass a codec without 1 / p: z %.2f", z);
}

/* Means over many messages that encode one matrix. */
struct means
{
    double rest, count; /* Mean of |v - C(v)|^2 / |v|^2, and mean number of triples per message. */
};

static struct means means_of(const char *spec, size_t draws)
{
    struct means sum = {0};
    struct bench_rig rig;
    rig_open_matrix(&rig, spec, known.m, known.n);
    for (uint64_t draw = 0; draw < draws; draw++) {
        sum.rest += 1.0 - rig_delta(&rig, draw, known.x);
        sum.count += count_of(&rig);
    }
    rig_close(&rig);
    return (struct means){sum.rest / (double)draws, sum.count / (double)draws};
}

/* If no triple is certain to be sent, the relative variance omega is (sum sigma)^2 / (r sum
 * sigma^2) - 1, for the singular values sigma and r expected triples. */
static void test_variance(void **state)
{
    (void)state;
    double sum = 0.0, squares = 0.0;
    known = (struct known){.m = 30, .n = 24, .k = 24};
    for (size_t i = 0; i < 24; i++) {
        known.sigma[i] = 2.0 - 0.05 * (double)i;
        sum += known.sigma[i];
        squares += known.sigma[i] * known.sigma[i];
    }
    known_make(&known, 5);
    double omega = sum * sum / (3.0 * squares) - 1.0;
    struct means raw = means_of("atomo:3,scale=raw", 3000);
    if (!(fabs(raw.rest / omega - 1.0) < 0.05))
        fail_msg("omega %.4f, expected %.4f", raw.rest, omega);
    if (!(fabs(raw.count - 3.0) < 5.0 * sqrt(3.0 / 3000)))
        fail_msg("%.3f triples a message", raw.count);
    struct means ls = means_of("atomo:3", 1000);
    if (!(1.0 - ls.rest >= 1.0 / (1.0 + omega) - 0.01))
        fail_msg("delta %.4f, 1 / (1 + omega) is %.4f", 1.0 - ls.rest, 1.0 / (1.0 + omega));
}

/* Three triples are expected per message. Two of them have probability 1 and are always sent. The
 * remaining expected number, 1, is divided among the other 22 triples. */
static void test_certain(void **state)
{
    (void)state;
    double sum = 0.0, squares = 200.0, variance = 0.0;
    known = (struct known){.m = 30, .n = 24, .k = 24, .sigma = {10, 10}};
    for (size_t i = 2; i < 24; i++) {
        known.sigma[i] = 0.1 + 0.004 * (double)i;
        sum += known.sigma[i];
        squares += known.sigma[i] * known.sigma[i];
    }
    for (size_t i = 2; i < 24; i++)
        variance += known.sigma[i] * (sum - known.sigma[i]);
    known_make(&known, 6);
    struct means raw = means_of("atomo:3,scale=raw", 3000);
    if (!(fabs(raw.rest * squares / variance - 1.0) < 0.05))
        fail_msg("rest %.4f, expected %.4f", raw.rest, variance / squares);
    if (!(fabs(raw.count - 3.0) < 5.0 / sqrt(3000)))
        fail_msg("%.3f triples a message", raw.count);
}

/* All 30 singular values are equal, and one triple is expected. A share of 1/e of the messages has
 * no triple at all. */
static void test_nothing_drawn(void **state)
{
    (void)state;
    size_t nothing = 0, several = 0;
    struct bench_rig rig;
    known = (struct known){.m = 30, .n = 30, .k = 30};
    for (size_t i = 0; i < 30; i++)
        known.sigma[i] = 1.0;
    known_make(&known, 1);
    rig_open_matrix(&rig, "atomo:1", 30, 30);
    for (uint64_t draw = 0; draw < 400; draw++) {
        assert_int_equal(rig_code(&rig, draw, known.x), 0);
        nothing += rig.len == 1;
        several += count_of(&rig) > 1;
        assert_true(rig.len > 1 || rig.stat.e2 == rig.stat.x2);
    }
    rig_close(&rig);
    if (nothing < 100 || nothing > 195 || several < 60)
        fail_msg("%zu of 400 sent nothing, %zu several", nothing, several);
}

/* Equal draw keys give equal messages, and different keys different ones. Scaling by a power of two
 * scales the result, bit for bit. */
static void test_repeats(void **state)
{
    (void)state;
    static const int powers[] = {0, -60, -30, 30, 58};
    enum { M = 33, N = 47 };
    struct bench_rig one, other;
    rig_open_matrix(&one, "atomo:4", M, N);
    rig_open_matrix(&other, "atomo:4", M, N);
    vector_fill(v, M * N, VECTOR_LAPLACE, 2);
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++) {
        for (size_t j = 0; j < M * N; j++)
            scaled[j] = ldexpf(v[j], powers[i]);
        assert_int_equal(rig_code(&one, i, v), 0);
        assert_int_equal(rig_code(&other, i, scaled), 0);
        size_t count = count_of(&one), q = 2 + 4 * count * M;
        assert_int_equal(other.len, one.len);
        assert_memory_equal(one.bytes, other.bytes, q < one.len ? q : 1);
        for (; q < one.len; q += 4)
            assert_true(bytes_get_float(other.bytes + q)
                        == ldexpf(bytes_get_float(one.bytes + q), powers[i]));
    }
    assert_int_equal(rig_code(&one, 1, v), 0);
    assert_int_equal(rig_code(&other, 2, v), 0);
    assert_true(one.len != other.len || memcmp(one.bytes, other.bytes, one.len) != 0);
    scaled[700] = NAN;
    assert_int_equal(rig_code(&other, 2, scaled), -ERANGE);
    scaled[700] = -INFINITY;
    assert_int_equal(rig_code(&other, 2, scaled), -ERANGE);
    rig_close(&one);
    rig_close(&other);
}

static void test_hostile(void **state)
{
    (void)state;
    enum { M = 20, N = 30 };
    struct bench_rig rig;
    uint64_t draw = 0;
    rig_open_matrix(&rig, "atomo:2", M, N);
    vector_fill(v, M * N, VECTOR_GAUSS, 2);
    do
        assert_int_equal(rig_code(&rig, draw++, v), 0);
    while (count_of(&rig) != 2);
    refuse_lengths(&rig);
    static const uint32_t never[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x80000000};
    for (size_t at = 2; at < rig.len; at += 4) {
        for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
            refuse_bits(&rig, at, never[i]);
        refuse_bits(&rig, at, bytes_of_float(at < 2 + 8 * M ? 1.002f : 0x1p70f));
    }
    for (unsigned count = 0; count < 256; count++) {
        rig.bytes[1] = (uint8_t)count;
        assert_int_equal(compress_validate(rig.c, rig.bytes, rig.len), count == 2);
    }
    rig_close(&rig);
}

/* A message with the largest possible number of triples is valid. A message with one more triple is
 * refused. Its length is within compress_bound() only because the bound includes the second matrix
 * of the model. */
static void test_most(void **state)
{
    (void)state;
    enum { M = 20, N = 30, LEN = 3 + 4 * (M + 1) * (M + N) };
    const struct segment s[] = {
        {.n = M * N, .rows = M, .cols = N},
        {.offset = M * N, .n = 60 * 60, .rows = 60, .cols = 60},
    };
    static uint8_t bytes[LEN];
    struct bench_rig rig;
    rig_open_model(&rig, "atomo:2", s, 2);
    assert_true(compress_bound(rig.c) >= LEN);
    bytes[0] = 1;
    for (unsigned count = 1; count <= M + 1; count++) {
        bytes[1] = (uint8_t)count;
        /* The second matrix takes one byte of the message, its number of triples: 0. */
        size_t len = 3 + 4 * count * (M + N);
        bytes_put_float(bytes + len - 5, 1.0f);
        assert_int_equal(compress_validate(rig.c, bytes, len), count <= M);
        bytes_put_float(bytes + len - 5, 0.0f);
    }
    bytes[1] = 0;
    assert_false(compress_validate(rig.c, bytes, 3));
    bytes[1] = 0x81; /* Refused: the count of triples, 1, is encoded in two bytes instead of one. */
    bytes_put_float(bytes + 4 * (M + N) - 1, 1.0f);
    assert_false(compress_validate(rig.c, bytes, 4 + 4 * (M + N)));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_expands), cmocka_unit_test(test_exact_recovery),
        cmocka_unit_test(test_unbiased),      cmocka_unit_test(test_variance),
        cmocka_unit_test(test_certain),       cmocka_unit_test(test_nothing_drawn),
        cmocka_unit_test(test_repeats),       cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
