/* tests/unit/gossip_piece.c -- tests the pieces of a model, and which sources of pieces a joining
 * peer believes. */
#include "gossip/exchange/piece.h"
#include "nn/math/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 5 * PIECE_FLOATS_MIN + 77, PIECES = 6, SKETCHES = PIECES * PIECE_SKETCH };

/* The pieces cover the model without gaps, no piece is over 1 MiB, and models of medium size have
 * PIECE_PARTS pieces. */
static void test_cuts(void **state)
{
    static const size_t sizes[] = {0,
                                   1,
                                   7,
                                   PIECE_FLOATS_MIN - 1,
                                   PIECE_FLOATS_MIN,
                                   PIECE_FLOATS_MIN + 1,
                                   61706,
                                   16 * 16384,
                                   16 * 16384 + 1,
                                   9231114,
                                   1000003,
                                   16 * PIECE_FLOATS_MAX,
                                   4000000000u};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i], at = 0, each = piece_floats(n);
        assert_true(each >= PIECE_FLOATS_MIN && 4 * each <= 1 << 20);
        for (size_t p = 0; p < piece_count(n); p++) {
            size_t n_floats;
            assert_int_equal(piece_at(n, p, &n_floats), at);
            assert_true(n == 0 || (n_floats > 0 && n_floats <= each));
            assert_true(4 * n_floats <= piece_bytes_max(n));
            at += n_floats;
        }
        assert_int_equal(at, n);
        assert_true(piece_count(n) * PIECE_SKETCH * 4 <= piece_bytes_max(n));
    }
    assert_int_equal(piece_count(61706), 4);
    assert_int_equal(piece_count(1000003), PIECE_PARTS);
}

static void draw(float *x, uint64_t key, float scale)
{
    struct rng r = rng_stream(rng_key(3, RNG_TEST, key, 0));
    for (size_t i = 0; i < N; i++)
        x[i] = scale * (float)rng_normal(&r);
}

static float *sketch_of(uint64_t key, const float *x)
{
    float *s = malloc(SKETCHES * sizeof *s);
    assert_non_null(s);
    piece_sketch(key, x, N, (uint8_t *)s);
    return s;
}

/* Distances of sketches estimate distances of pieces. Sketches with different keys are
 * independent. */
static void test_sketch(void **state)
{
    static float x[N], y[N];
    double d2[PIECES] = {0}, s2[PIECES] = {0};
    (void)state;
    draw(x, 1, 1);
    draw(y, 2, 0.3f);
    for (size_t i = 0; i < N; i++)
        y[i] += x[i];
    for (uint64_t key = 1; key <= 16; key++) {
        float *a = sketch_of(key, x), *b = sketch_of(key, y), *c = sketch_of(key + 100, x);
        assert_memory_not_equal(a, c, SKETCHES * sizeof *a);
        for (size_t k = 0; k < SKETCHES; k++)
            s2[k / PIECE_SKETCH] +=
                ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]) / 16;
        free(a);
        free(b);
        free(c);
    }
    for (size_t i = 0; i < N; i++)
        d2[i / piece_floats(N)] += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    /* The expected error is 18 % / sqrt(16) = 4.5 %. Three times as much, 14 %, is allowed. */
    for (size_t p = 0; p < PIECES; p++)
        assert_true(fabs(s2[p] / d2[p] - 1) < 0.14);
}

/* The distance from sketches must also be right if two models differ by the same constant in all
 * elements. The random signs of the sketch keep these differences from adding up in its buckets. */
static void test_sketch_of_a_shift(void **state)
{
    static float x[N], y[N];
    (void)state;
    draw(x, 1, 1);
    for (size_t i = 0; i < N; i++)
        y[i] = x[i] + 0.3f;
    double s2 = 0, d2 = 16 * N * 0.09;
    for (uint64_t key = 1; key <= 16; key++) {
        float *a = sketch_of(key, x), *b = sketch_of(key, y);
        for (size_t k = 0; k < SKETCHES; k++)
            s2 += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
        free(a);
        free(b);
    }
    assert_true(fabs(s2 / d2 - 1) < 0.1);
}

/* Models of several sources of one run. The model of source k is scale[k] times the sum of x0, a
 * movement common to all sources, and a local part of the source. Pieces come from the sources
 * in turn. */
struct scene
{
    uint8_t from[PIECES];
    struct piece_view v;
    float *own[4], *come, *initial;
};

static void set_scene(struct scene *s, size_t n, const float *scale, float apart)
{
    static float x0[N], way[N], own[4][N], part[N];
    draw(x0, 5, 1);
    draw(way, 6, 0.5f);
    *s = (struct scene){.v = {.n_pieces = PIECES, .n_sources = n, .from = s->from}};
    for (size_t k = 0; k < n; k++) {
        draw(own[k], 10 + k, apart);
        for (size_t i = 0; i < N; i++)
            own[k][i] = (own[k][i] + x0[i] + way[i]) * scale[k];
        s->v.own[k] = s->own[k] = sketch_of(9, own[k]);
    }
    for (size_t p = 0; p < PIECES; p++) {
        size_t n_floats, at = piece_at(N, p, &n_floats);
        s->from[p] = (uint8_t)(p % n);
        memcpy(part + at, own[p % n] + at, n_floats * sizeof *part);
    }
    s->v.come = s->come = sketch_of(9, part);
    s->v.initial = s->initial = sketch_of(9, x0);
}

static void end_scene(struct scene *s)
{
    for (size_t k = 0; k < 4; k++)
        free(s->own[k]);
    free(s->come);
    free(s->initial);
}

/* A joining peer fetches pieces of a model from several members (sources) and compares their
 * models. Honest sources confirm each other if their models are near each other, or if local
 * updates explain the distance. A Byzantine source is refused if three other sources contradict it,
 * and disputed if only one does. It cannot get other sources refused. */
static void test_verdicts(void **state)
{
    static const float lies[] = {-10, 10, 100, -1, 1e18f};
    static const float honest[] = {1, 1, 1, 1};
    struct scene s;
    (void)state;
    for (size_t n = 2; n <= 4; n++)
        for (float apart = 0; apart <= 0.6f; apart += 0.3f) {
            set_scene(&s, n, honest, apart);
            for (size_t k = 0; k < n; k++)
                assert_int_equal(piece_judge(&s.v, k), PIECE_CONFIRMED);
            end_scene(&s);
        }
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        for (size_t liar = 0; liar < 4; liar++) {
            float scale[] = {1, 1, 1, 1};
            scale[liar] = lies[i];
            set_scene(&s, 4, scale, 0.02f);
            for (size_t k = 0; k < 4; k++)
                assert_int_equal(piece_judge(&s.v, k), k == liar ? PIECE_REFUSED : PIECE_CONFIRMED);
            end_scene(&s);
        }
    float two[] = {1, -10};
    size_t other;
    set_scene(&s, 2, two, 0.02f);
    /* Source 1 reports a long local update, which explains the distance between the two sources.
     * Source 0 is therefore confirmed. */
    assert_int_equal(piece_judge(&s.v, 0), PIECE_CONFIRMED);
    assert_int_equal(piece_judge(&s.v, 1), PIECE_DISPUTED);
    assert_true(piece_further(&s.v, 1, &other));
    assert_int_equal(other, 0);
    assert_false(piece_further(&s.v, 0, &other));
    assert_int_equal(other, 1);
    s.v.own[0] = NULL;
    assert_int_equal(piece_judge(&s.v, 1), PIECE_ALONE);
    end_scene(&s);
}

/* Sources of a model are compared with each other by the sketches of their models. A source that
 * has not sent sketches yet is not compared. A NaN in a sketch makes its source disagree with
 * the others, although the message reader accepts no such sketch. */
static void test_witnesses(void **state)
{
    static const float scale[] = {1, 1, 1, 1};
    struct scene s;
    (void)state;
    set_scene(&s, 4, scale, 0.02f);
    s.v.own[1] = s.v.own[3] = NULL;
    /* Source 2 reports a local update of 0, as if it had not trained. */
    memcpy(s.own[2], s.initial, SKETCHES * sizeof *s.initial);
    assert_int_equal(piece_judge(&s.v, 0), PIECE_DISPUTED);
    s.v.own[1] = s.own[1];
    assert_int_equal(piece_judge(&s.v, 0), PIECE_CONFIRMED);
    s.own[1][0] = (float)NAN;
    assert_int_equal(piece_judge(&s.v, 0), PIECE_REFUSED);
    end_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_sketch),
        cmocka_unit_test(test_sketch_of_a_shift),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_witnesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
