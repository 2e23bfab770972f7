/* tests/unit/nn_sgd_forms.c -- the SGD trainer on dense rows, sparse rows and text, and with
 * several threads. */
#include "nn_training.h"

#include "nn/train/sgd_scratch.h"

/* Checks that after 60 steps the loss of a model is below half of its first loss. */
static void check_learns(const char *spec, const char *kind, uint32_t threads)
{
    struct bed b;
    bed_open_on(&b, spec, kind, 1);
    b.config.threads = threads;
    b.config.optimiser = (struct optimiser){
        .kind = OPTIMISER_ADAMW, .momentum = 0.9, .beta2 = 0.99, .weight_decay = 0.01, .clip = 5};
    bed_start(&b);
    uint32_t rows = b.model.n_rows;
    struct trainer_report before = evaluate(&b, 0), last = {0};
    for (uint64_t round = 0; round < 15; round++)
        last = steps(&b, round, 4);
    struct trainer_report after = evaluate(&b, 0);
    if (!(after.loss < before.loss / 2 && after.accuracy > before.accuracy
          && last.loss < before.loss / 2))
        fail_msg("%s on %s: %g -> %g", spec, kind, before.loss, after.loss);
    assert_int_equal(before.n_samples, N_TEST * rows);
    assert_int_equal(last.n_samples, 4 * BATCH * rows);
    bed_close(&b);
}

static void test_learns(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        check_learns("logreg", "csv/60x10/0", threads);
        check_learns("logreg", "libsvm/60x10/0", threads);
        check_learns("mlp:60-32-10", "libsvm/60x10/0", threads);
        check_learns("gpt:1x32", "text/12", threads);
        check_learns("lstm:32", "text/12", threads);
    }
}

/* Sparse rows give the same losses and models as dense rows with the same values, up to
 * rounding. */
static void test_sparse_is_dense(void **state)
{
    (void)state;
    struct bed dense, sparse;
    bed_open_on(&dense, "logreg", "csv/60x10/0", 1);
    bed_open_on(&sparse, "logreg", "libsvm/60x10/0", 1);
    bed_start(&dense);
    bed_start(&sparse);
    assert_int_equal(dense.face.n_params, sparse.face.n_params);
    memcpy(sparse.x, dense.x, dense.face.n_params * sizeof *dense.x);
    for (uint64_t round = 0; round < 10; round++) {
        double want = steps(&dense, round, 4).loss;
        assert_true(ref_near(steps(&sparse, round, 4).loss, want, 1e-5));
    }
    for (size_t i = 0; i < dense.face.n_params; i++)
        assert_true(ref_near((double)sparse.x[i], (double)dense.x[i], 1e-4));
    for (uint64_t n = 0; n < 70; n += 23) {
        struct trainer_report d = evaluate(&dense, n), s = evaluate(&sparse, n);
        assert_true(ref_near(d.loss, s.loss, 1e-4));
    }
    bed_close(&dense);
    bed_close(&sparse);
}

/* The rows of a text are its bytes, and each byte predicts the next one. With all parameters 0,
 * the loss of each byte is log 256. */
static void test_text_rows(void **state)
{
    (void)state;
    struct bed b;
    bed_open_on(&b, "lstm:16", "text/12", 1);
    bed_start(&b);
    memset(b.x, 0, b.face.n_params * sizeof *b.x);
    struct trainer_report r = evaluate(&b, 10);
    assert_int_equal(r.n_samples, 10 * CONTEXT);
    assert_true(ref_near(r.loss, log(256), 1e-6));
    r = steps(&b, 0, 1);
    assert_int_equal(r.n_samples, BATCH * CONTEXT);
    assert_true(ref_near(r.loss, log(256), 1e-6));
    bed_close(&b);
}

/* Batches of 16 samples, split over 1 to 4 threads, give the same steps up to rounding. The same
 * number of threads gives the same bits. */
static void check_threads(const char *spec, const char *kind, double clip)
{
    struct bed one;
    bed_open_on(&one, spec, kind, 1);
    one.config.optimiser.clip = clip;
    one.config.augment = (struct augment){true, true};
    one.config.label_smoothing = 0.1;
    bed_start(&one);
    struct trainer_report want = {0};
    for (uint64_t round = 0; round < 2; round++)
        want = steps(&one, round, 3);
    for (uint32_t threads = 1; threads <= 4; threads++) {
        struct bed b[2];
        for (int k = 0; k < 2; k++) {
            bed_open_on(&b[k], spec, kind, 1);
            b[k].config = (struct sgd_config){.model = &b[k].model,
                                              .train = &b[k].train,
                                              .test = &b[k].test,
                                              .shard = &b[k].shard,
                                              .seed = 5,
                                              .batch = BATCH,
                                              .threads = threads,
                                              .optimiser = one.config.optimiser,
                                              .schedule = one.config.schedule,
                                              .augment = one.config.augment,
                                              .label_smoothing = 0.1};
            bed_start(&b[k]);
            struct trainer_report r = {0};
            for (uint64_t round = 0; round < 2; round++)
                r = steps(&b[k], round, 3);
            assert_true(ref_near(r.loss, want.loss, 1e-5));
            assert_int_equal(r.n_samples, want.n_samples);
            r = evaluate(&b[k], 101);
            assert_true(ref_near(r.loss, evaluate(&one, 101).loss, 1e-5));
        }
        same_x(&b[0], &b[1]);
        double apart = sqrt(vec_dist2(one.x, b[0].x, one.face.n_params));
        if (!(apart <= 1e-5 * sqrt(vec_norm2(one.x, one.face.n_params))))
            fail_msg("%s, %u threads: %g apart", spec, threads, apart);
        if (threads == 1)
            same_x(&one, &b[0]);
        bed_close(&b[0]);
        bed_close(&b[1]);
    }
    bed_close(&one);
}

static void test_threads(void **state)
{
    (void)state;
    check_threads("mlp:784-32-10", "mnist", 0);
    check_threads("lenet5", "mnist", 0.5);
    check_threads("logreg", "libsvm/60x10/0", 0);
    check_threads("gpt:1x32", "text/12", 0);
}

/* The input of the first normalisation layer does not depend on how threads split a batch, so its
 * running means must equal the means of the whole batch. A batch is split into 3, 2 and 2 samples,
 * which must be weighted by their number. */
static void test_statistics(void **state)
{
    (void)state;
    struct bed b[2];
    for (uint32_t k = 0; k < 2; k++) {
        bed_open_on(&b[k], "resnet:8", "cifar10", 1);
        b[k].config.batch = 7;
        b[k].config.threads = k == 0 ? 1 : 3;
        bed_start(&b[k]);
        (void)steps(&b[k], 0, 1);
    }
    const struct segment *s = b[0].model.segments;
    while (s->trained)
        s++;
    assert_non_null(strstr(s->name, "running_mean"));
    float *init = vector(&b[0]);
    b[0].face.init(b[0].face.self, init);
    for (size_t i = s->offset; i < s->offset + s->n; i++) {
        assert_true(b[0].x[i] != init[i]);
        assert_true(ref_near((double)b[0].x[i], (double)b[1].x[i], 1e-6));
    }
    free(init);
    bed_close(&b[0]);
    bed_close(&b[1]);
}

/* Scratch memory that trainers share may be for more threads than a trainer's batch has samples. A
 * trainer with its own scratch memory uses at most one thread per sample. */
static void test_more_threads_than_samples(void **state)
{
    (void)state;
    struct bed want, b, own;
    struct sgd_scratch *scratch;
    bed_open(&want, "mlp:784-32-10", 1);
    bed_open(&b, "mlp:784-32-10", 1);
    bed_open(&own, "mlp:784-32-10", 1);
    want.config.batch = b.config.batch = own.config.batch = 2;
    assert_int_equal(sgd_scratch_open(&scratch, &b.model, 9, 5, 0), 0);
    b.config.scratch = scratch;
    own.config.threads = 7;
    bed_start(&want);
    bed_start(&b);
    bed_start(&own);
    for (uint64_t round = 0; round < 3; round++) {
        double loss = steps(&want, round, 4).loss;
        assert_true(ref_near(steps(&b, round, 4).loss, loss, 1e-5));
        assert_true(ref_near(steps(&own, round, 4).loss, loss, 1e-5));
    }
    assert_true(ref_near(evaluate(&b, 3).loss, evaluate(&want, 3).loss, 1e-5));
    bed_close(&want);
    bed_close(&b);
    bed_close(&own);
    sgd_scratch_close(scratch);
}

/* An evaluation uses only the scratch memory of the training, with the largest batch that fits
 * into it. */
static void test_evaluation_fits(void **state)
{
    (void)state;
    static const char *const specs[] = {"logreg", "lenet5"};
    for (int i = 0; i < 2; i++) {
        struct bed b;
        struct sgd_scratch *s;
        struct model_plan more;
        bed_open(&b, specs[i], 1);
        assert_int_equal(sgd_scratch_open(&s, &b.model, 33, 2, 0), 0);
        assert_int_equal(s->train.n, 17);
        assert_true(s->eval.n >= 17 && s->eval.n <= SGD_EVAL_BATCH_MAX);
        assert_true(s->eval.n_floats <= s->train.n_floats);
        assert_int_equal(model_plan_init(&more, &b.model, s->eval.n + 1, false), 0);
        assert_true(more.n_floats > s->train.n_floats);
        model_plan_close(&more);
        sgd_scratch_close(s);
        bed_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),          cmocka_unit_test(test_sparse_is_dense),
        cmocka_unit_test(test_text_rows),       cmocka_unit_test(test_threads),
        cmocka_unit_test(test_statistics),      cmocka_unit_test(test_more_threads_than_samples),
        cmocka_unit_test(test_evaluation_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
