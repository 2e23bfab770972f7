/* tests/unit/nn_sgd_trainer.c -- the SGD trainer: determinism, batches as a function of the
 * round, shared scratch memory, reports, and learning. */
#include "nn_training.h"

#include "nn/layers/loss.h"

#include <errno.h>

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
        if (!(before.accuracy < 0.4 && after.accuracy > 0.97 && last.loss < 0.1
              && after.loss < 0.2))
            fail_msg("%s: %g -> %g, loss %g, %g", specs[i], before.accuracy, after.accuracy,
                     last.loss, after.loss);
        assert_int_equal(last.n_samples, 4 * BATCH);
        bed_close(&b);
    }
}

/* Two trainers with equal settings make steps with the same bits. A trainer of another peer draws
 * other batches. */
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
                (void)evaluate(&b, 0); /* An evaluation does not change later steps. */
            same_x(&a, &b);
        }
        assert_memory_not_equal(a.x, c.x, a.face.n_params * sizeof *a.x);
        bed_close(&a);
        bed_close(&b);
        bed_close(&c);
    }
}

/* Without momentum, the steps of a round depend only on the model and the number of the round, not
 * on earlier rounds. */
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

/* One step changes the model to `x - lr * gradient`, for the batch that the shard draws and with
 * the augmentation of each sample. The trainer reports the loss before the step. */
static void check_one_step(const struct augment *augment, float smoothing)
{
    struct bed b;
    bed_open(&b, "logreg", 3);
    b.config.optimiser = (struct optimiser){0};
    b.config.augment = *augment;
    b.config.label_smoothing = (double)smoothing;
    bed_start(&b);
    uint32_t index[BATCH];
    uint16_t labels[BATCH];
    struct model_plan plan;
    assert_int_equal(model_plan_init(&plan, &b.model, BATCH, true), 0);
    float *arena = aligned_alloc(64, (plan.n_floats * 4 + 63) / 64 * 64);
    float *grad = vector(&b), *x0 = vector(&b);
    memcpy(x0, b.x, b.face.n_params * sizeof *x0);
    struct model_pass p = {.n = BATCH, .x = x0, .grad = grad, .plan = &plan, .arena = arena};
    shard_batch(&b.shard, 1, 0, BATCH, index);
    for (uint32_t i = 0; i < BATCH; i++) {
        uint64_t key = rng_key(5, RNG_AUGMENT, 3, 4 * BATCH + i);
        augment_sample(augment, &b.train, index[i], key, model_input(&b.model, &p, i));
        labels[i] = b.train.labels[index[i]];
    }
    float *z = model_forward(&b.model, &p);
    struct loss_batch batch = {
        .n = BATCH, .n_classes = 10, .logits = z, .labels = labels, .smoothing = smoothing};
    double loss = loss_softmax(&batch, z).sum / BATCH;
    model_backward(&b.model, &p, z);
    /* Round 1 is after the warm-up, so the learning rate is 0.02. */
    struct trainer_report r = steps(&b, 1, 1);
    assert_true(r.loss == loss);
    for (size_t i = 0; i < b.face.n_params; i++)
        assert_true(fabs((double)b.x[i] - ((double)x0[i] - 0.02 * (double)grad[i])) <= 1e-7);
    free(arena);
    free(grad);
    free(x0);
    model_plan_close(&plan);
    bed_close(&b);
}

static void test_one_step(void **state)
{
    (void)state;
    check_one_step(&(struct augment){false, false}, 0);
    check_one_step(&(struct augment){true, true}, 0);
    check_one_step(&(struct augment){false, false}, 0.2f);
}

/* If the gradient is longer than the clip, the step has the length `lr * clip`. A clip that is
 * never reached changes no bit of the model. */
static void test_clip(void **state)
{
    (void)state;
    double length[3];
    /* Three cases: no clip, a clip far above the norm of the gradient, and a clip below it. */
    for (int k = 0; k < 3; k++) {
        struct bed b, free_of_it;
        bed_open(&b, "lenet5", 1);
        bed_open(&free_of_it, "lenet5", 1);
        b.config.optimiser = free_of_it.config.optimiser = (struct optimiser){0};
        b.config.optimiser.clip = (double[]){0, 1e6, 0.01}[k];
        bed_start(&b);
        bed_start(&free_of_it);
        float *x0 = vector(&b);
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

/* Tests momentum factor masking: coordinates that were sent lose their momentum, and no others
 * do. */
static void test_sent(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, "logreg", 1);
    bed_start(&b);
    (void)steps(&b, 0, 3);
    size_t n = b.face.n_params;
    float *sent = vector(&b), *was = vector(&b);
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

/* Trainers that share scratch memory do not affect each other. */
static void test_shared_scratch(void **state)
{
    (void)state;
    struct bed alone, a, b;
    struct sgd_scratch *scratch;
    bed_open(&alone, "lenet5", 1);
    bed_open(&a, "lenet5", 1);
    bed_open(&b, "lenet5", 2);
    assert_int_equal(sgd_scratch_open(&scratch, &a.model, BATCH + 5, 1, 0), 0);
    a.config.scratch = b.config.scratch = scratch;
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
    sgd_scratch_close(scratch);
}

/* An evaluation uses each test sample once, whatever the size of its batches. */
static void test_evaluate(void **state)
{
    (void)state;
    struct bed b, wide;
    bed_open(&b, "mlp:784-32-10", 1);
    bed_open(&wide, "mlp:784-32-10", 1);
    b.config.batch = 1;
    wide.config.batch = 150;
    bed_start(&b);
    bed_start(&wide);
    assert_int_equal(evaluate(&b, 0).n_samples, N_TEST);
    assert_int_equal(evaluate(&b, 100000).n_samples, N_TEST);
    double sum = 0;
    for (uint64_t n = 1; n <= 70; n++) {
        struct trainer_report r = evaluate(&b, n), w = evaluate(&wide, n);
        assert_int_equal(r.n_samples, n);
        assert_true(ref_near(r.loss, w.loss, 1e-6) && r.accuracy == w.accuracy);
        /* With one more sample, the sum of the losses must grow, because every loss is above 0. */
        assert_true(r.loss * (double)n > sum);
        sum = r.loss * (double)n;
    }
    struct trainer_report r = evaluate(&b, 0), w = evaluate(&wide, 0);
    assert_true(ref_near(r.loss, w.loss, 1e-6) && ref_near(r.accuracy, w.accuracy, 1e-12));
    bed_close(&b);
    bed_close(&wide);
}

/* If the test set is sorted by label, an evaluation of a part of it must still use all labels. The
 * model of this test always predicts class 0, so the accuracy is the share of this class in the
 * part. */
static void test_evaluate_part(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, "mlp:784-32-10", 1);
    for (size_t i = 0; i < N_TEST; i++)
        b.test.labels[i] = i >= N_TEST / 2;
    bed_start(&b);
    memset(b.x, 0, b.model.n_params * sizeof *b.x);
    /* A large bias of class 0, so that the model always predicts this class. */
    b.x[b.model.n_params - 10] = 5;
    double all = evaluate(&b, 0).accuracy;
    assert_true(fabs(all - 0.5) < 0.01);
    for (uint64_t n = 40; n < N_TEST; n += 17)
        assert_true(fabs(evaluate(&b, n).accuracy - all) < 0.12);
    bed_close(&b);
}

static void count(void *arg)
{
    uint32_t *n = arg;
    ++*n;
}

/* A trainer shows that it makes progress: after each batch, one of its threads calls the `signs`
 * function. */
static void test_signs(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        struct bed b;
        bed_open(&b, "mlp:784-32-10", 1);
        b.config.batch = 10;
        b.config.threads = threads;
        bed_start(&b);
        struct trainer face = sgd_trainer_face(&b.trainer);
        uint32_t n = 0, each = threads == 1 ? 10 : 5;
        struct trainer_report r;
        face.signs(face.self, count, &n);
        for (uint64_t round = 0; round < 7; round++)
            face.steps(face.self, b.x, round, 1, &r);
        assert_int_equal(n, 7);
        n = 0;
        face.evaluate(face.self, b.x, N_TEST, &r);
        assert_in_range(n, (N_TEST / threads + each - 1) / each / 2,
                        (N_TEST / threads + each - 1) / each);
        bed_close(&b);
    }
}

/* A model with NaN parameters has the loss NaN and the accuracy 0. */
static void test_diverged(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bed b;
        bed_open(&b, specs[i], 1);
        bed_start(&b);
        for (size_t k = 0; k < b.model.segments[0].n; k++)
            b.x[k] = NAN;
        struct trainer_report r = evaluate(&b, 20);
        assert_true(isnan(r.loss) && r.accuracy == 0);
        bed_close(&b);
    }
}

static void test_misfit(void **state)
{
    (void)state;
    struct bed b;
    char error[MODEL_ERROR_MAX];
    bed_open(&b, "logreg", 1);
    b.test.shape.height = 27;
    assert_int_equal(sgd_trainer_init(&b.trainer, &b.config, error), -EINVAL);
    assert_non_null(strstr(error, "images of 1x27x28"));
    assert_non_null(strstr(error, "images of 1x28x28"));
    b.test.shape.height = 28;
    b.train.shape.n_classes = 11;
    assert_int_equal(sgd_trainer_init(&b.trainer, &b.config, error), -EINVAL);
    assert_non_null(strstr(error, "10 classes, but the data (mnist)"));
    assert_non_null(strstr(error, "and 11"));
    b.train.shape.n_classes = 10;
    b.train.shape.form = DATA_SPARSE;
    assert_int_equal(sgd_trainer_init(&b.trainer, &b.config, error), -EINVAL);
    assert_non_null(strstr(error, "are sparse rows of"));
    b.train.shape.form = DATA_IMAGES;
    bed_close(&b);
}

/* Training begins with the model in config.init. */
static void test_init(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, "logreg", 1);
    float *init = vector(&b);
    for (size_t i = 0; i < b.model.n_params; i++)
        init[i] = (float)i;
    b.config.init = init;
    bed_start(&b);
    assert_memory_equal(b.x, init, b.model.n_params * sizeof *init);
    free(init);
    bed_close(&b);
}

/* The Adam optimiser has second moments and counts its own steps, independent of the round. Its
 * first step moves every coordinate by lr. */
static void test_adam(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, "mlp:784-32-10", 1);
    b.config.optimiser =
        (struct optimiser){.kind = OPTIMISER_ADAM, .momentum = 0.9, .beta2 = 0.999};
    bed_start(&b);
    float *x0 = vector(&b);
    memcpy(x0, b.x, b.face.n_params * sizeof *x0);
    assert_non_null(b.trainer.second);
    (void)steps(&b, 30, 1);
    assert_int_equal(b.trainer.t, 1);
    double lr = schedule_lr(&b.config.schedule, 30), most = 0;
    for (size_t i = 0; i < b.face.n_params; i++)
        most = fmax(most, fabs((double)(b.x[i] - x0[i])));
    assert_true(fabs(most / lr - 1) <= 1e-3);
    (void)steps(&b, 17, 4);
    assert_int_equal(b.trainer.t, 5);
    for (uint64_t round = 2; round < 20; round++)
        (void)steps(&b, round, 4);
    assert_true(evaluate(&b, 0).accuracy > 0.97);
    free(x0);
    bed_close(&b);
}

/* A run may have rounds of one local step at its beginning and at its end. Each of these rounds
 * advances the learning rate by the fraction of a round that one step is. After the same number of
 * steps, a run with only full rounds must have the same learning rate and the same batches. */
static void test_rounds_of_one_step(void **state)
{
    static const struct
    {
        /* full: in a run with 4 steps in every round, the round that begins after equally many
         * local steps as `round`. */
        uint64_t round, full;
        uint32_t n_steps;
    } rows[] = {{0, 0, 1}, {4, 1, 1}, {7, 1, 0}, {8, 2, 4}, {12, 6, 4}, {13, 7, 1}, {17, 8, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bed a, b;
        bed_open(&a, "logreg", 1);
        bed_open(&b, "logreg", 1);
        a.shard.post_local = 8;
        a.shard.one_step_from = 13;
        bed_start(&a);
        bed_start(&b);
        /* Round 7 of `a` begins at round 1.75 of `b`, so the learning rates of these two are
         * compared. */
        if (rows[i].n_steps == 0) {
            double lr = schedule_lr(&a.config.schedule, shard_rounds(&a.shard, rows[i].round));
            assert_true(fabs(lr - schedule_lr(&a.config.schedule, 1.75)) <= 1e-12);
        } else {
            (void)steps(&a, rows[i].round, rows[i].n_steps);
            (void)steps(&b, rows[i].full, rows[i].n_steps);
            same_x(&a, &b);
        }
        bed_close(&a);
        bed_close(&b);
    }
}

enum { STATISTICS_BATCHES = 4 };

/* Opens a trainer whose steps have the learning rate 0, so that they change only the running
 * statistics. */
static void open_still(struct bed *b, uint32_t threads)
{
    bed_open(b, "lenet5:bn", 1);
    b->config.optimiser = (struct optimiser){0};
    b->config.schedule = (struct schedule){.kind = SCHEDULE_CONSTANT};
    b->config.threads = threads;
    bed_start(b);
}

/* Writes to `mean` the mean of the statistics of the first STATISTICS_BATCHES batches of a round. A
 * step moves a running statistic from `before` to `after`, a tenth of the distance to the statistic
 * of its batch, which is therefore before + 10 (after - before). */
static void mean_of_batches(uint64_t round, double *mean)
{
    struct bed b;
    open_still(&b, 1);
    size_t n = b.face.n_params, trained = segments_trained(b.face.segments, b.face.n_segments);
    float *before = vector(&b), *after = vector(&b);
    memset(mean, 0, n * sizeof *mean);
    memcpy(before, b.x, n * sizeof *before);
    for (uint32_t i = 1; i <= STATISTICS_BATCHES; i++) {
        b.face.init(b.face.self, b.x);
        (void)steps(&b, round, i);
        memcpy(after, b.x, n * sizeof *after);
        assert_memory_equal(before, after, trained * sizeof *after);
        for (size_t k = trained; k < n; k++)
            mean[k] += ((double)before[k] + 10 * ((double)after[k] - (double)before[k]))
                       / STATISTICS_BATCHES;
        memcpy(before, after, n * sizeof *before);
    }
    free(before);
    free(after);
    bed_close(&b);
}

/* Running statistics that are computed again are the mean over the batches of the round, whatever
 * they were before. Parameters and the trainer's state do not change. */
static void test_statistics(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        struct bed b, other;
        open_still(&b, threads);
        open_still(&other, threads);
        size_t n = b.face.n_params, trained = segments_trained(b.face.segments, b.face.n_segments);
        double *mean = calloc(n, sizeof *mean);
        float *x0 = vector(&b);
        assert_true(mean != NULL && trained < n);
        mean_of_batches(7, mean);
        memcpy(x0, b.x, n * sizeof *x0);
        for (size_t k = trained; k < n; k++)
            b.x[k] = 100;
        uint64_t t = b.trainer.t;
        b.face.statistics(b.face.self, b.x, 7, STATISTICS_BATCHES);
        other.face.statistics(other.face.self, other.x, 8, STATISTICS_BATCHES);
        assert_memory_equal(b.x, x0, trained * sizeof *x0);
        assert_true(b.trainer.t == t && vec_norm2(b.trainer.momentum, n) == 0);
        /* With several threads, the statistics of a batch are the means over its parts. */
        double most = threads == 1 ? 1e-3 : 0.05;
        for (size_t k = trained; k < n; k++)
            if (!(fabs((double)b.x[k] - mean[k]) <= most * (0.1 + fabs(mean[k]))))
                fail_msg("%u threads, statistic %zu: %g, expected %g", threads, k, (double)b.x[k],
                         mean[k]);
        assert_memory_not_equal(b.x + trained, other.x + trained, (n - trained) * sizeof *b.x);
        free(mean);
        free(x0);
        bed_close(&b);
        bed_close(&other);
    }
}

/* A model without running statistics has no function that computes them. */
static void test_no_statistics(void **state)
{
    (void)state;
    struct bed b;
    bed_open(&b, "lenet5", 1);
    bed_start(&b);
    assert_null(b.face.statistics);
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
        cmocka_unit_test(test_evaluate_part),
        cmocka_unit_test(test_signs),
        cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_misfit),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_rounds_of_one_step),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_no_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
