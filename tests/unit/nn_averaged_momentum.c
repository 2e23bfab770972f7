/* tests/unit/nn_averaged_momentum.c -- the moments of Adam that peers exchange and mix
 * (`--momentum-kind averaged`): the bound of a step, values from hostile neighbours, a peer that
 * joins late, and a restart. */
#include "nn/train/averaged_momentum.h"

#include "nn/math/state.h"
#include "nn_training.h"

static const struct optimiser betas[] = {
    {.kind = OPTIMISER_ADAM, .momentum = 0.9, .beta2 = 0.999, .use = MOMENTUM_MIXED},
    {.kind = OPTIMISER_ADAM, .momentum = 0.9, .beta2 = 0.95, .use = MOMENTUM_MIXED},
    {.kind = OPTIMISER_ADAM, .momentum = 0.5, .beta2 = 0.9999, .use = MOMENTUM_MIXED},
    {.kind = OPTIMISER_ADAM, .momentum = 0.99, .beta2 = 0.9802, .use = MOMENTUM_MIXED}};
enum { BETAS = sizeof betas / sizeof *betas };

static void make_step(const struct optimiser *o, uint64_t t, size_t n, float *x, float *m,
                      float *root, const float *grad, double lr)
{
    struct segment all = {.n = n, .trained = true};
    struct optimiser_step step = {.segments = &all,
                                  .n_segments = 1,
                                  .x = x,
                                  .grad = grad,
                                  .m = m,
                                  .v = root,
                                  .t = t,
                                  .lr = lr};
    optimiser_step(o, &step);
}

/* The moments of Adam's own steps pass unchanged, for gradients of any sign and scale. The longest
 * possible ratio |m'| / r nearly reaches the bound: gradients that grow by beta2 / beta1 per step. */
static void keeps_own_moments(void **state)
{
    enum { N = 64, STEPS = 3000 };
    (void)state;
    for (size_t i = 0; i < BETAS; i++) {
        const struct optimiser *o = &betas[i];
        double bound = averaged_momentum_bound(o), most = 0;
        float x[N] = {0}, m[N] = {0}, root[N] = {0}, grad[N], was_m[N], was_root[N];
        for (uint64_t t = 1; t <= STEPS; t++) {
            for (size_t k = 0; k < N; k++) {
                double z = (double)rng_unit_at(rng_key(i, RNG_TEST, 51, t), k);
                double u = (double)rng_unit_at(rng_key(i, RNG_TEST, 52, t), k);
                bool rare = k % 4 == 1 && u < 0.98;
                grad[k] = rare ? 0 : (float)((z - 0.5) * exp(k % 4 == 2 ? 20 * (u - 0.5) : 0));
            }
            /* Smaller values are 0, because their squares would not fit in a float. */
            double grown = pow(o->beta2 / o->momentum, (double)t - STEPS);
            grad[0] = grown > 1e-12 ? (float)grown : 0;
            grad[1] *= t < 5 ? 1 : 0;
            make_step(o, t, N, x, m, root, grad, 0);
            memcpy(was_m, m, sizeof m);
            memcpy(was_root, root, sizeof root);
            averaged_momentum_admit(o, m, root, N);
            assert_memory_equal(m, was_m, sizeof m);
            for (size_t k = 0; k < N; k++) {
                double ratio = root[k] > 0 ? fabs((double)m[k]) / (double)root[k] : 0;
                most = fmax(most, ratio);
                if (!(root[k] <= 1.00001f * was_root[k]))
                    fail_msg("betas %zu, step %d: root[%zu] is raised from %g to %g", i, (int)t, k,
                             (double)was_root[k], (double)root[k]);
            }
        }
        print_message("betas %g, %g: largest |m'| / r %.3g, bound %.3g\n", o->momentum, o->beta2,
                      most, bound);
        assert_true(most > 0.4 * bound && most <= 1.00001 * bound);
    }
}

/* Whatever a neighbour has added to the moments, afterwards they are finite, r is not negative, and
 * no step is longer than the longest step of Adam. */
static void limits_hostile_moments(void **state)
{
    static const float values[] = {
        0,          -0.0f,  1,     -1,     1e-30f,          -1e-30f,
        1e30f,      -1e30f, 3e38f, -3e38f, (float)INFINITY, (float)-INFINITY,
        (float)NAN, 1e-8f,  1e15f, -1e15f};
    enum { V = sizeof values / sizeof *values, N = V * V };
    const double lr = 0.01;
    (void)state;
    for (size_t i = 0; i < BETAS; i++) {
        double bound = averaged_momentum_bound(&betas[i]);
        float x[N] = {0}, m[N], root[N], grad[N] = {0};
        for (size_t k = 0; k < N; k++) {
            m[k] = values[k / V];
            root[k] = values[k % V];
        }
        averaged_momentum_admit(&betas[i], m, root, N);
        for (size_t k = 0; k < N; k++)
            if (!(isfinite(m[k]) && isfinite(root[k]) && root[k] >= 0
                  && fabs((double)m[k]) <= 1.00001 * bound * (double)root[k]))
                fail_msg("m %g, root %g: admitted as %g, %g", (double)values[k / V],
                         (double)values[k % V], (double)m[k], (double)root[k]);
        for (uint64_t t = 1000; t < 1003; t++) {
            float before[N];
            memcpy(before, x, sizeof x);
            for (size_t k = 0; k < N; k++)
                grad[k] = (float)(k % 3) - 1;
            make_step(&betas[i], t, N, x, m, root, grad, lr);
            for (size_t k = 0; k < N; k++)
                if (!(fabs((double)x[k] - (double)before[k]) <= 1.0001 * lr * bound
                      && isfinite(m[k]) && isfinite(root[k])))
                    fail_msg("m %g, root %g: a step of %g", (double)values[k / V],
                             (double)values[k % V], (double)x[k] - (double)before[k]);
        }
    }
}

/* With a constant gradient g, all peers have m' = g and r = |g|, whatever the numbers of their steps
 * are. If a peer joins after 500 steps, a round in which both ends mix half of the other's moments
 * changes nothing. Without the correction of the moments the peers' steps would have other lengths
 * for hundreds of rounds. */
static void joiner_does_not_disturb(void **state)
{
    enum { N = 3, JOINS = 500, ROUNDS = 520 };
    static const float grad[N] = {1, -1e-4f, 30};
    const double lr = 0.01;
    float x[2][N] = {{0}}, m[2][N] = {{0}}, root[2][N] = {{0}};
    (void)state;
    for (uint64_t t = 1; t <= ROUNDS; t++) {
        for (uint32_t p = 0; p < 2 && !(p == 1 && t <= JOINS); p++) {
            float before[N];
            memcpy(before, x[p], sizeof before);
            averaged_momentum_admit(&betas[0], m[p], root[p], N);
            make_step(&betas[0], p == 0 ? t : t - JOINS, N, x[p], m[p], root[p], grad, lr);
            for (size_t k = 0; k < N; k++)
                if (!(fabs(fabs((double)x[p][k] - (double)before[k]) - lr) <= 2e-4 * lr))
                    fail_msg("step %d of peer %u moves x[%zu] by %g, expected %g", (int)t, p, k,
                             (double)x[p][k] - (double)before[k], lr);
        }
        for (size_t k = 0; k < N && t > JOINS; k++) {
            m[0][k] = m[1][k] = (m[0][k] + m[1][k]) / 2;
            root[0][k] = root[1][k] = (root[0][k] + root[1][k]) / 2;
        }
    }
}

/* ---- in the trainer ---- */

static void bed_open_averaged(struct bed *b, const char *spec, const char *kind)
{
    bed_open_on(b, spec, kind, 1);
    b->config.momentum = &momentum_averaged;
    b->config.optimiser = (struct optimiser){
        .kind = OPTIMISER_ADAMW, .momentum = 0.9, .beta2 = 0.999, .weight_decay = 0.01};
    b->config.schedule.lr = 0.001;
}

/* Without exchange, the models are those of plain Adam except for rounding errors. */
static void alone_it_is_adam(void **state)
{
    struct bed own, local;
    double off = 0;
    (void)state;
    bed_open_averaged(&own, "resnet:8", "cifar10");
    bed_open_averaged(&local, "resnet:8", "cifar10");
    local.config.momentum = NULL;
    bed_start(&own);
    bed_start(&local);
    assert_true(own.face.companion[0] == own.trainer.momentum
                && own.face.companion[1] == own.trainer.second && !own.face.conserved);
    assert_true(local.face.companion[0] == NULL);
    (void)steps(&own, 0, 2);
    (void)steps(&local, 0, 2);
    for (size_t k = 0; k < own.face.n_params; k++)
        off = fmax(off, fabs((double)own.x[k] - (double)local.x[k]));
    print_message("two steps of a ResNet: off by %.2g\n", off);
    assert_true(off <= 2e-5);
    bed_close(&own);
    bed_close(&local);
}

/* Changes the moments as an exchange with a lossy codec could do: some values of r become
 * negative. */
static void exchange(struct bed *b, uint64_t round)
{
    size_t n = segments_trained(b->model.segments, b->model.n_segments);
    for (size_t k = 0; k < n; k++) {
        b->face.companion[0][k] += 1e-3f * ((float)((k + round) % 7) - 3);
        b->face.companion[1][k] += 1e-3f * ((float)((k + round) % 5) - 2);
    }
}

/* Makes two local steps of round `round`. They must be no longer than two of the longest steps of
 * Adam and their weight decay, whatever the exchange did to the moments. */
static void limited_steps(struct bed *b, uint64_t round)
{
    float *was = vector(b);
    double bound = averaged_momentum_bound(&b->config.optimiser), most = 0;
    memcpy(was, b->x, b->face.n_params * sizeof *was);
    (void)steps(b, round, 2);
    for (size_t k = 0; k < b->face.n_params; k++)
        most = fmax(most, fabs((double)b->x[k] - (double)was[k]));
    assert_true(most > 0 && most <= 2.02 * b->config.schedule.lr * bound);
    free(was);
}

/* Another trainer that reads the saved state continues with the same bits. */
static void restarts_with_the_same_bits(void **state)
{
    struct bed one, two;
    struct state w = {0}, r;
    (void)state;
    bed_open_averaged(&one, "mlp:784-32-10", "mnist");
    bed_open_averaged(&two, "mlp:784-32-10", "mnist");
    bed_start(&one);
    bed_start(&two);
    for (uint64_t round = 0; round < 5; round++) {
        (void)steps(&one, round, 2);
        exchange(&one, round);
    }
    state_write(&w);
    one.face.state(one.face.self, &w);
    assert_int_equal(state_end(&w), 0);
    memcpy(two.x, one.x, one.face.n_params * sizeof *one.x);
    state_read(&r, w.bytes, w.n, w.section, w.n_sections);
    two.face.state(two.face.self, &r);
    assert_int_equal(state_end(&r), 0);
    for (uint64_t round = 5; round < 9; round++) {
        limited_steps(&one, round);
        (void)steps(&two, round, 2);
        same_x(&one, &two);
        exchange(&one, round);
        exchange(&two, round);
    }
    state_close(&w);
    bed_close(&one);
    bed_close(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_own_moments), cmocka_unit_test(limits_hostile_moments),
        cmocka_unit_test(joiner_does_not_disturb), cmocka_unit_test(alone_it_is_adam),
        cmocka_unit_test(restarts_with_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
