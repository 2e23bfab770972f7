/* tests/unit/nn_outer_optimiser.c -- the outer optimiser against torch.optim.SGD, skipped rounds,
 * another peer's momentum, checkpoints, and differences between the models of peers. */
#include "nn/math/state.h"
#include "nn/math/vec.h"
#include "nn/train/outer_optimiser.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, ROUNDS = 6 };

/* Local update of coordinate k in a round. */
static float update(uint64_t round, size_t k)
{
    static const float d[ROUNDS][N] = {{1.0f, -0.5f, 0.25f},   {0.5f, -1.0f, 0.125f},
                                       {-0.25f, 0.75f, 0.0f},  {0.125f, 0.5f, -1.5f},
                                       {2.0f, -0.0625f, 0.5f}, {-1.0f, 0.25f, 0.375f}};
    return d[round][k];
}

static void one_round(struct outer_optimiser *o, float x[N], uint64_t round, uint64_t of)
{
    float before[N];
    memcpy(before, x, sizeof before);
    for (size_t k = 0; k < N; k++)
        x[k] += update(of, k);
    outer_optimiser_step(o, x, before, round);
}

static void expect(const float x[N], const double want[N], const char *what)
{
    for (size_t k = 0; k < N; k++)
        if (!(fabs((double)x[k] - want[k]) <= 1e-6 * fmax(1, fabs(want[k]))))
            fail_msg("%s: coordinate %zu is %.9g, expected %.9g", what, k, (double)x[k], want[k]);
}

/* Expected values: a parameter of float64 that starts at 0, stepped by
 *
 *   torch.optim.SGD([p], lr=LR, momentum=MU, nesterov=True) with p.grad = -update(round)
 *
 * PyTorch 1.13.0a0. The last row has momentum 0 and nesterov=False.
 */
static void is_nesterov_of_torch(void **state)
{
    static const struct
    {
        double lr, momentum, x[ROUNDS][N];
    } rows[] = {{0.7,
                 0.9,
                 {{1.33, -0.665, 0.3325},
                  {2.562, -2.2785, 0.6405},
                  {3.0233, -2.10315, 0.83895},
                  {3.76222, -1.752835, -0.977445},
                  {7.008498, -1.8356765, -1.0022005},
                  {7.3401482, -1.53835885, -0.84073045}}},
                {0.7,
                 0.5,
                 {{1.05, -0.525, 0.2625},
                  {1.75, -1.6625, 0.4375},
                  {1.6625, -1.09375, 0.48125},
                  {1.8375, -0.546875, -1.071875},
                  {3.98125, -0.5140625, -0.7984375},
                  {3.303125, -0.21328125, -0.44296875}}},
                {1,
                 0.6,
                 {{1.6, -0.8, 0.4},
                  {2.76, -2.58, 0.69},
                  {2.756, -1.848, 0.789},
                  {3.1036, -1.0588, -1.5516},
                  {6.43716, -0.98528, -1.25596},
                  {5.637296, -0.503668, -0.778576}}},
                {0.4,
                 0,
                 {{0.4, -0.2, 0.1},
                  {0.6, -0.6, 0.15},
                  {0.5, -0.3, 0.15},
                  {0.55, -0.1, -0.45},
                  {1.35, -0.125, -0.25},
                  {0.95, -0.025, -0.1}}}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct outer_optimiser o;
        float x[N] = {0};
        assert_int_equal(outer_optimiser_init(&o, rows[i].lr, rows[i].momentum, N), 0);
        for (uint64_t t = 0; t < ROUNDS; t++) {
            one_round(&o, x, t, t);
            expect(x, rows[i].x[t], "torch");
        }
        outer_optimiser_close(&o);
    }
}

/* After skipped rounds, the outer momentum u must begin at 0 again. */
static void skipped_rounds_reset(void **state)
{
    struct outer_optimiser o, fresh;
    float x[N] = {0}, y[N];
    (void)state;
    assert_int_equal(outer_optimiser_init(&o, 0.7, 0.9, N), 0);
    assert_int_equal(outer_optimiser_init(&fresh, 0.7, 0.9, N), 0);
    one_round(&o, x, 10, 0); /* The first round may have any number. */
    one_round(&o, x, 11, 1);
    memcpy(y, x, sizeof y);
    one_round(&o, x, 13, 2);
    one_round(&fresh, y, 13, 2);
    assert_memory_equal(x, y, sizeof x);
    assert_memory_equal(o.u, fresh.u, sizeof x);
    outer_optimiser_reset(&o);
    for (size_t k = 0; k < N; k++)
        assert_true(o.u[k] == 0);
    outer_optimiser_close(&o);
    outer_optimiser_close(&fresh);
}

/* A joining peer must continue with the momentum of its donor, at whichever round it joins. An
 * implausible momentum must count as 0. */
static void a_plausible_momentum_is_taken(void **state)
{
    struct outer_optimiser donor, o;
    float x[N] = {0}, x0[N] = {0}, y[N], bad[N];
    (void)state;
    assert_int_equal(outer_optimiser_init(&donor, 0.7, 0.9, N), 0);
    assert_int_equal(outer_optimiser_init(&o, 0.7, 0.9, N), 0);
    one_round(&donor, x, 0, 0);
    assert_true(outer_optimiser_take(&o, donor.u, x, x0));
    memcpy(y, x, sizeof y);
    one_round(&donor, x, 1, 1);
    one_round(&o, y, 77, 1);
    assert_memory_equal(x, y, sizeof x);
    for (size_t k = 0; k < N; k++)
        bad[k] = 1000 * donor.u[k];
    assert_false(outer_optimiser_take(&o, bad, x, x0));
    assert_true(vec_norm2(o.u, N) == 0);
    bad[0] = (float)NAN;
    assert_false(outer_optimiser_take(&o, bad, x, x0));
    assert_true(vec_norm2(o.u, N) == 0);
    outer_optimiser_close(&donor);
    outer_optimiser_close(&o);
}

/* A restored optimiser must continue with the same bits, and must still notice skipped rounds. */
static void checkpoints_keep_every_bit(void **state)
{
    (void)state;
    for (uint64_t skipped = 0; skipped < 2; skipped++) {
        struct outer_optimiser o, back;
        struct state s = {0}, r;
        float x[N] = {0}, y[N];
        assert_int_equal(outer_optimiser_init(&o, 0.7, 0.5, N), 0);
        assert_int_equal(outer_optimiser_init(&back, 0.7, 0.5, N), 0);
        one_round(&o, x, 4, 0);
        one_round(&o, x, 5, 1);
        state_write(&s);
        outer_optimiser_state(&o, &s);
        assert_int_equal(state_end(&s), 0);
        state_read(&r, s.bytes, s.n, s.section, s.n_sections);
        outer_optimiser_state(&back, &r);
        assert_int_equal(state_end(&r), 0);
        memcpy(y, x, sizeof y);
        one_round(&o, x, 6 + skipped, 2);
        one_round(&back, y, 6 + skipped, 2);
        assert_memory_equal(x, y, sizeof x);
        assert_memory_equal(o.u, back.u, sizeof x);
        for (size_t k = 0; k < N && skipped == 1; k++)
            assert_true(o.u[k] == update(2, k));
        state_close(&s);
        outer_optimiser_close(&o);
        outer_optimiser_close(&back);
    }
}

/* Without an outer optimiser, nothing must be added to a checkpoint. */
static void nothing_is_written_without_one(void **state)
{
    struct outer_optimiser none = {.u = NULL};
    struct state s = {0};
    (void)state;
    state_write(&s);
    outer_optimiser_state(&none, &s);
    assert_int_equal(state_end(&s), 0);
    assert_int_equal(s.n_sections, 0);
    state_close(&s);
    outer_optimiser_close(&none);
}

/* ---- differences between the models of peers ---- */

/* Simulates one component of the differences between models, which belongs to the eigenvalue l of
 * the mixing matrix. Local steps reduce it by the share c. Returns its size after `rounds` rounds,
 * if it begins with 1. */
static double left(double l, double lr, double mu, float c, int rounds)
{
    struct outer_optimiser o;
    float x = 1;
    assert_int_equal(outer_optimiser_init(&o, lr, mu, 1), 0);
    for (int t = 0; t < rounds; t++) {
        float before = x;
        x -= c * x;
        outer_optimiser_step(&o, &x, &before, (uint64_t)t);
        x *= (float)l;
    }
    outer_optimiser_close(&o);
    return fabs((double)x);
}

/* Differences decay for every eigenvalue if the outer learning rate is at most 2 (1 -
 * momentum), and for every eigenvalue from 0 on also with larger rates. For a negative eigenvalue l
 * they grow above the rate (1 - momentum) (1 - 1 / l), with c = 1 (peer/run/outer.c). */
static void differences_decay(void **state)
{
    static const double momentum[] = {0.3, 0.5, 0.9, 0.98};
    static const float share[] = {0.1f, 0.5f, 1};
    (void)state;
    for (size_t m = 0; m < sizeof momentum / sizeof momentum[0]; m++)
        for (size_t s = 0; s < sizeof share / sizeof share[0]; s++) {
            double mu = momentum[m], safe = fmin(1, 2 * (1 - mu));
            for (double l = -0.9; l < 0.98; l += 0.07)
                if (!(left(l, safe, mu, share[s], 4000) < 1e-3))
                    fail_msg("momentum %g, eigenvalue %g, share %g", mu, l, (double)share[s]);
            for (double l = 0; l < 0.98; l += 0.07)
                assert_true(left(l, 1, mu, share[s], 4000) < 1e-3);
        }
    for (double l = -0.9; l < -0.1; l += 0.1) {
        double edge = (1 - 0.9) * (1 - 1 / l);
        assert_true(left(l, 0.97 * edge, 0.9, 1, 4000) < 1e-3);
        assert_true(left(l, 1.03 * edge, 0.9, 1, 4000) > 1e3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_nesterov_of_torch),
                                       cmocka_unit_test(skipped_rounds_reset),
                                       cmocka_unit_test(a_plausible_momentum_is_taken),
                                       cmocka_unit_test(checkpoints_keep_every_bit),
                                       cmocka_unit_test(nothing_is_written_without_one),
                                       cmocka_unit_test(differences_decay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
