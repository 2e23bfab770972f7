/* The SGD trainer: determinism, batches by round, shared scratch, reports, and
 * that it learns. */
#include "nn_ref.h"

#include "nn/loss.h"
#include "nn/sgd_trainer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

enum {
    N_TRAIN = 200,
    N_TEST = 333, /* No multiple of any batch. */
    BATCH = 16
};

/* Ten classes: one of ten stripes of two rows is bright, on a noisy ground. */
static void fill_set(struct dataset *d, size_t n, uint64_t who)
{
    assert_int_equal(dataset_init(d, "mnist", n), 0);
    uint64_t key = rng_key(1, RNG_TEST, who, 0);
    for (size_t i = 0; i < n; i++) {
        d->labels[i] = (uint8_t)(rng_at(key, i) % 10);
        for (size_t j = 0; j < 784; j++) {
            uint64_t noise = rng_at(key ^ 1, i * 784 + j) % 128;
            bool bright = j / 56 == d->labels[i] + 2u;
            d->pixels[i * 784 + j] = (uint8_t)(noise + (bright ? 100 : 0));
        }
    }
}

struct bed
{
    struct model model;
    struct dataset train, test;
    struct shard shard;
    struct sgd_config config;
    struct sgd_trainer trainer;
    struct trainer face;
    float *x;
};

static char error[MODEL_ERROR_MAX];

static void bed_open(struct bed *b, const char *spec, uint64_t peer)
{
    memset(b, 0, sizeof *b);
    assert_int_equal(model_init(&b->model, spec, (struct shape){1, 28, 28}, 10,
                                error), 0);
    fill_set(&b->train, N_TRAIN, 1);
    fill_set(&b->test, N_TEST, 2);
    struct shard_config shard = {.spec = {.mode = SHARD_OWN}, .seed = 5,
                                 .peer = peer, .local_steps = 4};
    char why[DATA_ERROR_MAX];
    assert_int_equal(shard_open(&b->shard, &shard, &b->train, why), 0);
    b->config = (struct sgd_config){
        .model = &b->model, .train = &b->train, .test = &b->test,
        .shard = &b->shard, .seed = 5, .batch = BATCH,
        .optimiser = {.momentum = 0.9, .nesterov = true, .weight_decay = 1e-4},
        .schedule = {SCHEDULE_COSINE, 0.02, 2, 40}};
}

static void bed_start(struct bed *b)
{
    assert_int_equal(sgd_trainer_init(&b->trainer, &b->config, error), 0);
    b->face = sgd_trainer_face(&b->trainer);
    b->x = ref_alloc(b->face.n_params, sizeof *b->x);
    b->face.init(b->face.self, b->x);
}

static void bed_close(struct bed *b)
{
    free(b->x);
    sgd_trainer_close(&b->trainer);
    shard_close(&b->shard);
    dataset_close(&b->train);
    dataset_close(&b->test);
}

static struct trainer_report steps(struct bed *b, uint64_t round, uint32_t n)
{
    struct trainer_report r;
    b->face.steps(b->face.self, b->x, round, n, &r);
    return r;
}

static struct trainer_report evaluate(struct bed *b, uint64_t max_samples)
{
    struct trainer_report r;
    b->face.evaluate(b->face.self, b->x, max_samples, &r);
    return r;
}

static void same_x(const struct bed *a, const struct bed *b)
{
    assert_memory_equal(a->x, b->x, a->face.n_params * sizeof *a->x);
}

static const char *const specs[] = {"logreg", "mlp:784-32-10", "lenet5"};

static void test_learns(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bed b;
        bed_open(&b, specs[i], 1);
        bed_start(&b);
        struct trainer_report before = evaluate(&b, 0), last = {0};
        for (uint64_t round = 0; round < 40; round++)
            last = steps(&b, round, 4);
        struct trainer_report after = evaluate(&b, 0);
        if (!(before.accuracy < 0.4 && after.accuracy > 0.97 &&
              last.loss < 0.1 && after.loss < 0.2))
            fail_msg("%s: %g -> %g, loss %g, %g", specs[i], before.accuracy,
                     after.accuracy, last.loss, after.loss);
        assert_int_equal(last.n_samples, 4 * BATCH);
        bed_close(&b);
    }
}

/* Two trainers, equal bits; another peer's batches differ. */
static void test_deterministic(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bed a, b, c;
        bed_open(&a, specs[i], 1);
        bed_open(&b, specs[i], 1);
        bed_open(&c, specs[i], 2);
        bed_start(&a);
        bed_start(&b);
        bed_start(&c);
        same_x(&a, &c);
        for (uint64_t round = 0; round < 5; round++) {
            struct trainer_report ra = steps(&a, round, 4);
            struct trainer_report rb = steps(&b, round, 4);
            (void)steps(&c, round, 4);
            assert_true(ra.loss == rb.loss && ra.accuracy == rb.accuracy);
            if (round % 2)
                (void)evaluate(&b, 0); /* Leaves no trace. */
            same_x(&a, &b);
        }
        assert_memory_not_equal(a.x, c.x, a.face.n_params * sizeof *a.x);
        bed_close(&a);
        bed_close(&b);
        bed_close(&c);
    }
}

/* Without momentum a round's steps are a function of x and the round alone,
 * whatever was drawn before. */
static void test_round_decides(void **state)
{
    (void)state;
    struct bed a, b;
    bed_open(&a, "mlp:784-32-10", 1);
    bed_open(&b, "mlp:784-32-10", 1);
    a.config.optimiser.momentum = b.config.optimiser.momentum = 0;
    bed_start(&a);
    bed_start(&b);
    (void)steps(&b, 30, 3);
    (void)steps(&b, 2, 1);
    b.face.init(b.face.self, b.x);
    (void)steps(&a, 17, 4);
    (void)steps(&b, 17, 4);
    same_x(&a, &b);
    bed_close(&a);
    bed_close(&b);
}

/* One step by hand: x - lr(round) * gradient of the batch that the shard
 * draws, and the loss of that batch before the step. */
static void test_one_step(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, "logreg", 1);
    b.config.optimiser = (struct optimiser){0};
    bed_start(&b);
    uint32_t index[BATCH];
    uint8_t labels[BATCH];
    size_t n_arena = model_arena(&b.model, BATCH, true);
    float *arena = ref_alloc(n_arena, sizeof *arena);
    float *grad = ref_alloc(b.face.n_params, sizeof *grad);
    float *x0 = ref_alloc(b.face.n_params, sizeof *x0);
    float sample[784];
    memcpy(x0, b.x, b.face.n_params * sizeof *x0);
    struct model_pass p = {.n = BATCH, .x = x0, .grad = grad, .arena = arena,
                           .n_arena = n_arena};
    shard_batch(&b.shard, 1, 0, BATCH, index);
    for (uint32_t i = 0; i < BATCH; i++) {
        dataset_sample(&b.train, index[i], sample);
        model_input(&b.model, &p, i, sample);
        labels[i] = b.train.labels[index[i]];
    }
    float *z = model_forward(&b.model, &p);
    struct loss_batch batch = {BATCH, 10, z, labels};
    double loss = loss_softmax(&batch, z).sum / BATCH;
    model_backward(&b.model, &p, z);
    struct trainer_report r = steps(&b, 1, 1); /* Warm-up is over: lr 0.02. */
    assert_true(r.loss == loss);
    for (size_t i = 0; i < b.face.n_params; i++)
        assert_true(fabs((double)b.x[i] - ((double)x0[i] -
                                           0.02 * (double)grad[i])) <= 1e-7);
    free(arena);
    free(grad);
    free(x0);
    bed_close(&b);
}

/* A step is as long as lr * clip where the gradient is longer, and weight decay
 * comes on top; a clip that is never reached changes no bit. */
static void test_clip(void **state)
{
    (void)state;
    double length[3];
    for (int k = 0; k < 3; k++) { /* None, far off, close. */
        struct bed b, free_of_it;
        bed_open(&b, "lenet5", 1);
        bed_open(&free_of_it, "lenet5", 1);
        b.config.optimiser = free_of_it.config.optimiser = (struct optimiser){0};
        b.config.optimiser.clip = (double[]){0, 1e6, 0.01}[k];
        bed_start(&b);
        bed_start(&free_of_it);
        float *x0 = ref_alloc(b.face.n_params, sizeof *x0);
        memcpy(x0, b.x, b.face.n_params * sizeof *x0);
        (void)steps(&b, 1, 1);
        (void)steps(&free_of_it, 1, 1);
        length[k] = sqrt(vec_dist2(b.x, x0, b.face.n_params));
        if (k < 2)
            same_x(&b, &free_of_it);
        free(x0);
        bed_close(&b);
        bed_close(&free_of_it);
    }
    assert_true(length[0] > 2 * 0.02 * 0.01);
    if (!(fabs(length[2] / (0.02 * 0.01) - 1) <= 1e-3))
        fail_msg("clipped step of %g, expected %g", length[2], 0.02 * 0.01);
}

/* Factor masking: the momentum of what was sent, and only that, is gone. */
static void test_sent(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, "logreg", 1);
    bed_start(&b);
    (void)steps(&b, 0, 3);
    size_t n = b.face.n_params;
    float *sent = ref_alloc(n, sizeof *sent), *was = ref_alloc(n, sizeof *was);
    memcpy(was, b.trainer.momentum, n * sizeof *was);
    for (size_t i = 0; i < n; i++)
        sent[i] = i % 5 == 0 ? 0.25f : 0;
    b.face.sent(b.face.self, sent);
    assert_true(vec_norm2(was, n) > 0);
    for (size_t i = 0; i < n; i++)
        assert_true(b.trainer.momentum[i] == (i % 5 == 0 ? 0 : was[i]));
    free(sent);
    free(was);
    bed_close(&b);
}

/* Trainers that share scratch do not disturb each other. */
static void test_shared_scratch(void **state)
{
    (void)state;
    struct bed alone, a, b;
    struct sgd_scratch scratch;
    bed_open(&alone, "lenet5", 1);
    bed_open(&a, "lenet5", 1);
    bed_open(&b, "lenet5", 2);
    assert_int_equal(sgd_scratch_init(&scratch, &a.model, BATCH + 5), 0);
    a.config.scratch = b.config.scratch = &scratch;
    bed_start(&alone);
    bed_start(&a);
    bed_start(&b);
    for (uint64_t round = 0; round < 3; round++) {
        (void)steps(&alone, round, 2);
        (void)steps(&a, round, 2);
        (void)steps(&b, round, 2);
    }
    same_x(&alone, &a);
    bed_close(&alone);
    bed_close(&a);
    bed_close(&b);
    sgd_scratch_close(&scratch);
}

/* Evaluation sees each test sample once, whatever the size of its batches. */
static void test_evaluate(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, "mlp:784-32-10", 1);
    bed_start(&b);
    assert_int_equal(evaluate(&b, 0).n_samples, N_TEST);
    assert_int_equal(evaluate(&b, 100000).n_samples, N_TEST);
    assert_true(b.trainer.config.scratch->eval_batch >= BATCH);
    double sum = 0, right = 0;
    for (uint64_t n = 1; n <= 70; n++) {
        struct trainer_report r = evaluate(&b, n);
        assert_int_equal(r.n_samples, n);
        sum = r.loss * (double)n;
        right = r.accuracy * (double)n;
    }
    b.trainer.config.scratch->eval_batch = 13;
    struct trainer_report small = evaluate(&b, 70);
    assert_true(ref_near(small.loss, sum / 70, 1e-6));
    assert_true(ref_near(small.accuracy, right / 70, 1e-12));
    bed_close(&b);
}

/* A model with NaN in it reports NaN, and nothing right. */
static void test_diverged(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bed b;
        bed_open(&b, specs[i], 1);
        bed_start(&b);
        ref_poison(b.x, b.model.segments[0].n);
        struct trainer_report r = evaluate(&b, 20);
        assert_true(isnan(r.loss) && r.accuracy == 0);
        bed_close(&b);
    }
}

static void test_misfit(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, "logreg", 1);
    b.test.height = 27;
    assert_int_equal(sgd_trainer_init(&b.trainer, &b.config, error), -EINVAL);
    assert_non_null(strstr(error, "1x27x28"));
    assert_non_null(strstr(error, "1x28x28"));
    b.test.height = 28;
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_round_decides),
        cmocka_unit_test(test_one_step),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_sent),
        cmocka_unit_test(test_shared_scratch),
        cmocka_unit_test(test_evaluate),
        cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_misfit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
