/* tests/unit/nn_round_momentum.c -- the kinds of momentum in the trainer: what they learn from an
 * exchange, rounds that do not directly follow each other, threads, layers, and a restart. */
#include "nn/train/round_momentum.h"

#include "nn/math/state.h"
#include "nn_training.h"

#include <errno.h>

/* One kind of momentum with one optimiser. */
struct arm
{
    const struct momentum_kind *kind;
    enum optimiser_kind optimiser;
};

/* Calls check() for each kind that learns from the change of the model over a round, with each
 * optimiser that the kind supports. */
static void each_arm(void (*check)(const struct arm *a))
{
    uint32_t n = 0;
    for (size_t i = 0; momentum_kind_all[i] != NULL; i++)
        for (int k = OPTIMISER_SGD; k <= OPTIMISER_ADAMW; k++) {
            struct arm a = {momentum_kind_all[i], (enum optimiser_kind)k};
            if (a.kind->learn == NULL || (k != OPTIMISER_SGD && !a.kind->adam))
                continue;
            check(&a);
            n++;
        }
    assert_true(n >= 4);
}

static void bed_open_arm(struct bed *b, const struct arm *a, const char *spec, const char *kind)
{
    bed_open_on(b, spec, kind, 1);
    b->config.momentum = a->kind;
    b->config.optimiser = (struct optimiser){.kind = a->optimiser,
                                             .momentum = 0.8,
                                             .beta2 = 0.95,
                                             .nesterov = true,
                                             .weight_decay = 1e-4};
    if (a->optimiser != OPTIMISER_SGD)
        b->config.schedule.lr = 0.002;
}

/* ---- what the kinds learn ---- */

/* Copies of a trainer's vectors, made before a call of steps(). */
struct vectors
{
    /* Moments m and v, model at the start of the round, and present model x. */
    float *m, *v, *begin, *x;
};

/* Checks the moments of the trainer after the first local steps of a round. `was`: vectors at the
 * end of the round before. way: learning rate times number of local steps of the round before. */
static void moments_are(const struct bed *b, const struct arm *a, const struct vectors *was,
                        double way)
{
    const float *m = b->trainer.momentum, *v = b->trainer.second;
    size_t n = segments_trained(b->model.segments, b->model.n_segments);
    double length = sqrt(vec_dist2(was->begin, was->x, n)) + 1e-8;
    for (size_t k = 0; k < n; k++) {
        double d = (double)was->begin[k] - (double)was->x[k];
        double want = a->kind->use == MOMENTUM_IGNORED ? 0.8 * (double)was->m[k] + d
                      : v == NULL                      ? 0.8 * (double)was->m[k] + 0.2 * d / way
                                                       : 0.8 * (double)was->m[k] + 0.2 * d / length;
        if (!(fabs((double)m[k] - want) <= 1e-5 * fmax(fabs(want), 1)))
            fail_msg("%s: m[%zu] is %g, expected %g", a->kind->name, k, (double)m[k], want);
        want = v != NULL ? 0.95 * (double)was->v[k] + 0.05 * d * d / (length * length) : 0;
        if (v != NULL && !(fabs((double)v[k] - want) <= 1e-5 * want + 1e-12))
            fail_msg("%s: v[%zu] is %g, expected %g", a->kind->name, k, (double)v[k], want);
    }
    for (size_t k = n; k < b->model.n_params; k++)
        assert_true(m[k] == 0); /* Running statistics have no momentum. */
}

/* Between two rounds an exchange changes the model. At the start of a round, this change must be
 * added to the moments. In the first round and after skipped rounds the moments must stay
 * unchanged. */
static void check_rounds_of(const struct arm *a, const char *spec, const char *kind)
{
    struct bed b;
    bed_open_arm(&b, a, spec, kind);
    bed_start(&b);
    size_t size = b.model.n_params * sizeof *b.x;
    size_t trained = segments_trained(b.model.segments, b.model.n_segments) * sizeof *b.x;
    struct vectors was = {vector(&b), vector(&b), vector(&b), vector(&b)};
    static const struct
    {
        uint64_t round;
        uint32_t n;
        bool learns;
    } row[] = {{0, 3, false}, {1, 1, true},  {2, 4, true},  {2, 2, false},
               {4, 1, false}, {3, 1, false}, {4, 2, true},  {40, 1, false},
               {41, 1, true}, {42, 0, true}, {43, 1, false}};
    uint64_t n_learnt = 0;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        memcpy(was.m, b.trainer.momentum, size);
        if (b.trainer.second != NULL)
            memcpy(was.v, b.trainer.second, size);
        memcpy(was.begin, b.trainer.change.begin, trained);
        memcpy(was.x, b.x, size);
        (void)steps(&b, row[k].round, row[k].n);
        n_learnt += row[k].learns;
        assert_int_equal(b.trainer.t, n_learnt);
        if (row[k].learns) {
            double lr = schedule_lr(&b.config.schedule, (double)row[k - 1].round);
            moments_are(&b, a, &was, lr * row[k - 1].n);
            assert_memory_not_equal(b.trainer.momentum, was.m, size);
        } else {
            assert_memory_equal(b.trainer.momentum, was.m, size);
            assert_memory_equal(b.trainer.change.begin, was.x, trained);
        }
        for (size_t i = 0; i < b.model.n_params; i++)
            b.x[i] += 1e-3f * (float)(i % 7);
    }
    free(was.m);
    free(was.v);
    free(was.begin);
    free(was.x);
    bed_close(&b);
}

static void check_rounds(const struct arm *a)
{
    check_rounds_of(a, "mlp:784-32-10", "mnist");
    check_rounds_of(a, "resnet:8", "cifar10");
}

static void test_rounds(void **state)
{
    (void)state;
    each_arm(check_rounds);
}

/* ---- training ---- */

/* A single peer reaches an accuracy of 97 %. */
static void check_learns(const struct arm *a)
{
    struct bed b;
    bed_open_arm(&b, a, "mlp:784-32-10", "mnist");
    bed_start(&b);
    for (uint64_t round = 0; round < 40; round++)
        (void)steps(&b, round, 4);
    double accuracy = evaluate(&b, 0).accuracy;
    if (!(accuracy > 0.97))
        fail_msg("%s, optimiser %d: accuracy %g", a->kind->name, a->optimiser, accuracy);
    bed_close(&b);
}

static void test_learns(void **state)
{
    (void)state;
    each_arm(check_learns);
}

static void done(void *arg, size_t from)
{
    *(size_t *)arg += from > 0;
}

/* A trainer with several threads, or with a callback that reports final layers, makes the same
 * steps as a trainer with one thread and no callback. */
static void check_ways_to_step(const struct arm *a)
{
    struct bed one, layers, threads;
    size_t n_calls = 0;
    bed_open_arm(&one, a, "lenet5", "mnist");
    bed_open_arm(&layers, a, "lenet5", "mnist");
    bed_open_arm(&threads, a, "lenet5", "mnist");
    threads.config.threads = 3;
    bed_start(&one);
    bed_start(&layers);
    bed_start(&threads);
    for (uint64_t round = 0; round < 3; round++) {
        layers.face.watch(layers.face.self, done, &n_calls);
        (void)steps(&one, round, 2);
        (void)steps(&layers, round, 2);
        (void)steps(&threads, round, 2);
        same_x(&one, &layers);
    }
    assert_true(n_calls > 3);
    double apart = sqrt(vec_dist2(one.x, threads.x, one.face.n_params));
    /* The first steps of Adam have the length of the learning rate even where the gradient is
     * only a rounding error, so the sign of such a step depends on the order of the sum. */
    double most = a->optimiser == OPTIMISER_SGD ? 1e-5 : 3e-2;
    if (!(apart <= most * sqrt(vec_norm2(one.x, one.face.n_params))))
        fail_msg("%s, optimiser %d: %g apart, models of length %g", a->kind->name, a->optimiser,
                 apart, sqrt(vec_norm2(one.x, one.face.n_params)));
    bed_close(&one);
    bed_close(&layers);
    bed_close(&threads);
}

static void test_ways_to_step(void **state)
{
    (void)state;
    each_arm(check_ways_to_step);
}

/* ---- restart from a saved state ---- */

/* Another trainer that reads the saved state continues with the same bits. */
static void check_restart(const struct arm *a)
{
    struct bed one, two;
    struct state w = {0}, r;
    bed_open_arm(&one, a, "mlp:784-32-10", "mnist");
    bed_open_arm(&two, a, "mlp:784-32-10", "mnist");
    bed_start(&one);
    bed_start(&two);
    for (uint64_t round = 0; round < 5; round++)
        (void)steps(&one, round, 2);
    state_write(&w);
    one.face.state(one.face.self, &w);
    assert_int_equal(state_end(&w), 0);
    memcpy(two.x, one.x, one.face.n_params * sizeof *one.x);
    state_read(&r, w.bytes, w.n, w.section, w.n_sections);
    two.face.state(two.face.self, &r);
    assert_int_equal(state_end(&r), 0);
    for (uint64_t round = 5; round < 9; round++) {
        (void)steps(&one, round, 2);
        (void)steps(&two, round, 2);
        same_x(&one, &two);
    }
    assert_true(vec_norm2(one.trainer.momentum, one.face.n_params) > 0);
    state_close(&w);
    bed_close(&one);
    bed_close(&two);
}

static void test_restart(void **state)
{
    (void)state;
    each_arm(check_restart);
}

/* A saved state is refused if it has an invalid value or comes from a trainer with local
 * momentum. */
static void test_bad_state(void **state)
{
    (void)state;
    static const double way[] = {-1, (double)NAN, (double)INFINITY};
    const struct arm arm = {momentum_kind_all[1], OPTIMISER_SGD};
    assert_non_null(arm.kind->learn);
    for (size_t k = 0; k < 4; k++) {
        struct bed a, b;
        struct state w = {0}, r;
        bed_open_arm(&a, &arm, "logreg", "mnist");
        bed_open_arm(&b, &arm, "logreg", "mnist");
        if (k == 3)
            a.config.momentum = NULL;
        bed_start(&a);
        bed_start(&b);
        if (k < 3)
            a.trainer.change.way = way[k];
        state_write(&w);
        a.face.state(a.face.self, &w);
        assert_int_equal(state_end(&w), 0);
        state_read(&r, w.bytes, w.n, w.section, w.n_sections);
        b.face.state(b.face.self, &r);
        assert_int_equal(state_end(&r), -EINVAL);
        state_close(&w);
        bed_close(&a);
        bed_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),       cmocka_unit_test(test_learns),
        cmocka_unit_test(test_ways_to_step), cmocka_unit_test(test_restart),
        cmocka_unit_test(test_bad_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
