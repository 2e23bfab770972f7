/* tests/unit/nn_alloc.c -- once a trainer is there, steps and evaluations
 * allocate nothing: every call of the allocator is counted, in a build without
 * sanitizers on glibc (which has its own allocator under a second name). */
#include "nn_training.h"

#if defined(__GLIBC__) && !defined(HEARSAY_SANITIZED)

static _Atomic size_t n_calls;

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
    n_calls++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    n_calls++;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    n_calls++;
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    n_calls++;
    return __libc_memalign(align, n);
}

static void check(const char *spec, const char *kind, uint32_t threads)
{
    static struct bed b;
    bed_open_on(&b, spec, kind, 3);
    b.config.threads = threads;
    b.config.optimiser.kind = OPTIMISER_ADAM;
    b.config.optimiser.beta2 = 0.999;
    b.config.optimiser.clip = 1;
    b.config.augment = (struct augment){.crop = true, .flip = true};
    bed_start(&b);
    (void)steps(&b, 0, 1); /* OpenBLAS takes its buffers at first use. */
    (void)evaluate(&b, 0);
    size_t before = n_calls;
    (void)steps(&b, 1, 2);
    (void)steps(&b, 20, 2); /* These rounds are in another epoch. */
    (void)evaluate(&b, 0);
    if (n_calls != before)
        fail_msg("%s, %u threads: %zu allocations in a step", spec, (unsigned)threads,
                 n_calls - before);
    bed_close(&b);
}

static void test_steps_allocate_nothing(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        check("logreg", "libsvm/60x10/0", threads);
        check("mlp:60-32-10", "csv/60x10/0", threads);
        check("lenet5", "mnist", threads);
        check("resnet:8", "cifar10", threads);
        check("lstm:2x16", "text/12", threads);
        check("gpt:2x32", "text/12", threads);
    }
    size_t before = n_calls;
    free(calloc(1, 100));
    assert_int_equal(n_calls, before + 1); /* It does count. */
}

#else

static void test_steps_allocate_nothing(void **state)
{
    (void)state;
    print_message("skipped: the allocator is not ours to count here\n");
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
