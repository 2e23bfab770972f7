/* tests/unit/nn_alloc.c -- local steps and evaluations of a started trainer allocate no memory:
 * alloc_count.h counts every call of the allocator. */
#include "alloc_count.h"
#include "nn_training.h"

static void check(const char *spec, const char *kind, uint32_t threads, uint32_t learners)
{
    static struct bed b;
    bed_open_on(&b, spec, kind, 3);
    b.config.threads = threads;
    b.config.learners = learners;
    b.config.optimiser.kind = OPTIMISER_ADAM;
    b.config.optimiser.beta2 = 0.999;
    b.config.optimiser.clip = 1;
    b.config.augment = (struct augment){.crop = true, .flip = true};
    bed_start(&b);
    /* OpenBLAS allocates its buffers at first use, so allocations of the first step and the first
     * evaluation are not counted. */
    (void)steps(&b, 0, 1);
    (void)evaluate(&b, 0);
    size_t before = alloc_calls;
    (void)steps(&b, 1, 2);
    (void)steps(&b, 20, 2); /* Local steps in another epoch allocate no memory either. */
    (void)evaluate(&b, 0);
    if (alloc_calls != before)
        fail_msg("%s, %u threads, %u learners: %zu allocations in a step", spec, (unsigned)threads,
                 (unsigned)learners, alloc_calls - before);
    bed_close(&b);
}

static void test_steps_allocate_nothing(void **state)
{
    (void)state;
    if (!ALLOC_COUNTS) {
        print_message("skipped: the allocator is not ours to count here\n");
        skip();
    }
    for (uint32_t threads = 1; threads <= 2; threads++) {
        check("logreg", "libsvm/60x10/0", threads, 1);
        check("mlp:60-32-10", "csv/60x10/0", threads, 1);
        check("lenet5", "mnist", threads, 1);
        check("resnet:8", "cifar10", threads, 1);
        check("lstm:2x16", "text/12", threads, 1);
        check("gpt:2x32", "text/12", threads, 1);
        check("lenet5", "mnist", threads, 3);
        check("resnet:8", "cifar10", threads, 3);
    }
    size_t before = alloc_calls;
    alloc_once();
    assert_int_equal(alloc_calls, before + 1); /* Checks that this test does count allocations. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
