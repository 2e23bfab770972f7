/* tests/unit/nn_tracking_momentum.c -- Momentum Tracking in the trainer: a step against a plain
 * loop, a peer without exchange, the companion vector, a restart and a rollback. */
#include "nn/train/tracking_momentum.h"

#include "nn/math/state.h"
#include "nn_training.h"

/* ---- one step ---- */

static void check_step(size_t n, bool nesterov)
{
    float x[80], m[80], grad[80], correction[80], sum[80];
    double want_x[80], want_m[80], want_sum[80];
    const double mu = 0.8, decay = 0.1, lr = 0.3;
    const struct optimiser o = {.momentum = mu, .nesterov = nesterov, .weight_decay = decay};
    struct segment all = {.n = n, .decays = true, .trained = true};
    for (size_t k = 0; k < 80; k++) {
        uint64_t key = rng_key(n, RNG_TEST, nesterov, 5);
        x[k] = rng_unit_at(key, 5 * k) - 0.5f;
        m[k] = rng_unit_at(key, 5 * k + 1) - 0.5f;
        grad[k] = rng_unit_at(key, 5 * k + 2) - 0.5f;
        correction[k] = rng_unit_at(key, 5 * k + 3) - 0.5f;
        sum[k] = rng_unit_at(key, 5 * k + 4) - 0.5f;
        double g = (double)grad[k] + decay * (double)x[k];
        double u = mu * (double)m[k] + g, d = nesterov ? g + mu * u : u;
        bool moves = k < n;
        want_m[k] = moves ? u : (double)m[k];
        want_sum[k] = (double)sum[k] + (moves ? d : 0);
        want_x[k] = (double)x[k] - (moves ? lr * (d - (double)correction[k]) : 0);
    }
    struct optimiser_step step = {&all, 1, x, grad, m, NULL, 0, lr, correction, sum};
    optimiser_step(&o, &step);
    for (size_t k = 0; k < 80; k++)
        if (!(fabs((double)x[k] - want_x[k]) <= 1e-6 && fabs((double)m[k] - want_m[k]) <= 1e-6
              && fabs((double)sum[k] - want_sum[k]) <= 1e-6))
            fail_msg("n %zu, nesterov %d: float %zu is wrong", n, nesterov, k);
}

static void test_step(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 70; n++) {
        check_step(n, false);
        check_step(n, true);
    }
}

/* ---- rounds ---- */

static void bed_open_tracking(struct bed *b, const char *spec, bool nesterov)
{
    bed_open_on(b, spec, "mnist", 1);
    b->config.momentum = &momentum_tracking;
    b->config.optimiser.nesterov = nesterov;
}

/* Without exchange the correction stays 0, and plain momentum gives the bits of local momentum. */
static void test_alone(void **state)
{
    struct bed own, local;
    (void)state;
    bed_open_tracking(&own, "lenet5", false);
    bed_open_tracking(&local, "lenet5", false);
    local.config.momentum = NULL;
    bed_start(&own);
    bed_start(&local);
    assert_true(own.face.conserved && own.face.companion[0] != NULL);
    for (uint64_t round = 0; round < 6; round++) {
        (void)steps(&own, round, 1 + (uint32_t)round % 3);
        (void)steps(&local, round, 1 + (uint32_t)round % 3);
        same_x(&own, &local);
        assert_true(vec_norm2(own.trainer.tracking.correction, own.trainer.tracking.n) == 0);
    }
    assert_true(vec_norm2(own.face.companion[0], own.trainer.tracking.n) > 0);
    bed_close(&own);
    bed_close(&local);
}

/* Adds what an exchange could add to the companion. */
static void exchange(struct bed *b, uint64_t round)
{
    for (size_t k = 0; k < b->trainer.tracking.n; k++)
        b->face.companion[0][k] += 0.01f * (float)((k + round) % 7) - 0.03f;
}

/* A round of Momentum Tracking adds to the correction what the exchange has added to the companion
 * (the second vector that peers exchange). The companion has no running statistics, so it is
 * shorter than a model that has them. */
static void test_exchange(void **state)
{
    struct bed b;
    (void)state;
    bed_open_on(&b, "resnet:8", "cifar10", 1);
    b.config.momentum = &momentum_tracking;
    bed_start(&b);
    struct tracking_momentum *t = &b.trainer.tracking;
    assert_true(t->n < b.model.n_params);
    float *want = vector(&b);
    for (uint64_t round = 0; round < 4; round++) {
        (void)steps(&b, round, 2);
        for (size_t k = 0; k < t->n; k++) {
            if (!(fabsf(t->correction[k] - want[k]) <= 1e-4f))
                fail_msg("round %d: c[%zu] is %g, expected %g", (int)round, k,
                         (double)t->correction[k], (double)want[k]);
            want[k] -= b.face.companion[0][k];
        }
        exchange(&b, round);
        for (size_t k = 0; k < t->n; k++)
            want[k] += b.face.companion[0][k];
    }
    free(want);
    bed_close(&b);
}

static void save(struct bed *b, struct state *w)
{
    state_write(w);
    b->face.state(b->face.self, w);
    assert_int_equal(state_end(w), 0);
}

static void restore(struct bed *b, const struct state *w)
{
    struct state r;
    state_read(&r, w->bytes, w->n, w->section, w->n_sections);
    b->face.state(b->face.self, &r);
    assert_int_equal(state_end(&r), 0);
}

/* Another trainer that reads the saved state continues with the same bits. */
static void test_restart(void **state)
{
    struct bed one, two;
    struct state w = {0};
    (void)state;
    bed_open_tracking(&one, "mlp:784-32-10", true);
    bed_open_tracking(&two, "mlp:784-32-10", true);
    bed_start(&one);
    bed_start(&two);
    for (uint64_t round = 0; round < 5; round++) {
        (void)steps(&one, round, 2);
        exchange(&one, round);
    }
    save(&one, &w);
    memcpy(two.x, one.x, one.face.n_params * sizeof *one.x);
    restore(&two, &w);
    for (uint64_t round = 5; round < 9; round++) {
        (void)steps(&one, round, 2);
        (void)steps(&two, round, 2);
        same_x(&one, &two);
        exchange(&one, round);
        exchange(&two, round);
    }
    state_close(&w);
    bed_close(&one);
    bed_close(&two);
}

/* After a rollback the momentum is that of the stored round, and the correction is that of the
 * round that diverged. */
static void test_rollback(void **state)
{
    struct bed b;
    struct state w = {0};
    (void)state;
    bed_open_tracking(&b, "mlp:784-32-10", true);
    bed_start(&b);
    struct tracking_momentum *t = &b.trainer.tracking;
    size_t n = t->n, size = n * sizeof(float);
    float *c = vector(&b), *m = vector(&b);
    (void)steps(&b, 0, 2);
    save(&b, &w);
    memcpy(m, b.trainer.momentum, size);
    for (uint64_t round = 1; round < 4; round++) {
        exchange(&b, round);
        (void)steps(&b, round, 2);
    }
    memcpy(c, t->correction, size);
    for (size_t k = 0; k < n; k++)
        t->companion[k] = t->direction[k] = b.trainer.momentum[k] = (float)NAN;
    restore(&b, &w);
    b.face.rolled_back(b.face.self);
    assert_memory_equal(b.trainer.momentum, m, size);
    (void)steps(&b, 4, 2);
    assert_true(vec_norm2(c, n) > 0);
    assert_true(sqrt(vec_dist2(c, t->correction, n)) <= 1e-6 * sqrt(vec_norm2(c, n)));
    free(c);
    free(m);
    state_close(&w);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step), cmocka_unit_test(test_alone), cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_restart), cmocka_unit_test(test_rollback)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
