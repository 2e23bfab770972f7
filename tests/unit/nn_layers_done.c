/* tests/unit/nn_layers_done.c -- a trainer with a callback reports layers as final during its last
 * step of a round. The model has the same bits as without the callback, and reported layers do not
 * change afterwards. */
#include "nn_training.h"

struct seen
{
    const struct bed *bed;
    /* The parameters from index `from` on, as they were when they were reported as final. */
    float *x;
    size_t from, n_calls;
};

static void done(void *arg, size_t from)
{
    struct seen *s = arg;
    size_t end = s->from;
    if (!(from < end))
        fail_msg("%zu after %zu", from, end);
    memcpy(s->x + from, s->bed->x + from, (end - from) * sizeof *s->x);
    s->from = from;
    s->n_calls++;
}

/* Runs five rounds of three steps with the callback, and compares them with a trainer without
 * it. */
static void check(const char *spec, const char *kind, enum optimiser_kind kind_of)
{
    struct bed a, b;
    bed_open_on(&a, spec, kind, 1);
    bed_open_on(&b, spec, kind, 1);
    a.config.optimiser.kind = b.config.optimiser.kind = kind_of;
    a.config.optimiser.beta2 = b.config.optimiser.beta2 = 0.99;
    bed_start(&a);
    bed_start(&b);
    size_t n = segments_trained(b.model.segments, b.model.n_segments), most = 0;
    struct seen s = {.bed = &b, .x = vector(&b)};
    for (uint64_t round = 0; round < 5; round++) {
        s.from = n;
        s.n_calls = 0;
        b.face.watch(b.face.self, done, &s);
        struct trainer_report ra = steps(&a, round, 3), rb = steps(&b, round, 3);
        assert_true(ra.loss == rb.loss);
        same_x(&a, &b);
        assert_int_equal(s.from, 0);
        assert_memory_equal(s.x, b.x, n * sizeof *s.x);
        most = s.n_calls;
        (void)steps(&a, round, 1);
        /* The callback was given for the previous call of steps() only, so this call of steps()
         * reports no layer. */
        (void)steps(&b, round, 1);
        same_x(&a, &b);
        assert_int_equal(s.n_calls, most);
    }
    print_message("%s: %zu layers\n", spec, most);
    assert_true(most >= 1 && (strcmp(spec, "logreg") == 0 || most > 1));
    free(s.x);
    bed_close(&a);
    bed_close(&b);
}

static void every_model_is_the_same(void **state)
{
    (void)state;
    check("logreg", "mnist", OPTIMISER_SGD);
    check("logreg", "libsvm/60x10/0", OPTIMISER_SGD);
    check("mlp:784-32-20-10", "mnist", OPTIMISER_ADAM);
    check("lenet5", "mnist", OPTIMISER_SGD);
    check("resnet:8", "cifar10", OPTIMISER_SGD);
    check("lstm:2x16", "text/12", OPTIMISER_ADAMW);
    check("gpt:2x32", "text/12", OPTIMISER_ADAMW);
}

/* No layer is reported early with gradient clipping, which needs the norm of the whole gradient,
 * or with several threads, because their gradients must be added first. */
static void some_say_nothing(void **state)
{
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        struct bed b;
        bed_open(&b, "lenet5", 1);
        b.config.optimiser.clip = threads ? 0 : 1;
        b.config.threads = threads ? 2 : 1;
        bed_start(&b);
        struct seen s = {.bed = &b, .x = vector(&b), .from = b.model.n_params};
        b.face.watch(b.face.self, done, &s);
        (void)steps(&b, 0, 2);
        assert_int_equal(s.n_calls, 0);
        free(s.x);
        bed_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_model_is_the_same),
                                       cmocka_unit_test(some_say_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
