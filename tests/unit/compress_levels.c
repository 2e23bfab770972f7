/* tests/unit/compress_levels.c -- tests that every instruction set gives the same messages and
 * replicas.
 *
 * The file is built as a test, which selects the instruction set at run time as the program does.
 * It is also built once per instruction set, as a program that uses only that set and prints one
 * line per case. The test computes the same lines and compares them. */
#include "compress/simd/simd.h"

#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <inttypes.h>
#include <stdio.h>

/* A long vector is left out of slow builds: sanitizers and -O0 make this test ten times as slow,
 * and the long vector tests nothing that depends on the build. */
#if defined(HEARSAY_SANITIZED) || !defined(__OPTIMIZE__)
#define N_MAX 9000
#else
#define N_MAX 70001
#endif

enum {
    N_FEW = 2100, /* Vectors of more than N_FEW values are tested with fewer kinds of data. */
    ROUNDS = 2,
    LINE_MAX_LENGTH = COMPRESS_SPEC_MAX + 128
};

static const size_t sizes[] = {1, 5, 16, 17, 100, 513, 1000, 2085, 9000, 70001};

/* One compressor and the vectors that it encodes. */
struct job
{
    const char *spec;
    size_t n;
    const float *x[ROUNDS];
    float *x_hat; /* Scratch memory of n floats for the replica. */
};

/* Returns a hash of two messages, their decoded values and their reported errors. */
static uint64_t digest(const struct job *j)
{
    size_t rows = j->n % 10 == 0 ? 10 : 1;
    struct segment all = {.n = j->n, .rows = rows, .cols = j->n / rows};
    struct compress *c;
    int err = compress_open(&c, j->spec, &all, 1);
    assert(err == 0);
    uint8_t *bytes = malloc(compress_bound(c));
    assert(bytes != NULL);
    memset(j->x_hat, 0, j->n * sizeof *j->x_hat);
    uint64_t h[ROUNDS][4];
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct compress_input in = {rng_key(round, RNG_TEST, j->n, 0), round, j->x[round],
                                    j->x_hat};
        struct compress_stat stat;
        size_t len;
        err = compress_encode(c, &in, bytes, &len, &stat);
        assert(err == 0 && compress_validate(c, bytes, len));
        compress_apply(c, bytes, len, j->x_hat);
        h[round][0] = rng_hash(bytes, len);
        h[round][1] = vec_hash(j->x_hat, j->n);
        h[round][2] = rng_hash(&stat.x2, sizeof stat.x2);
        h[round][3] = rng_hash(&stat.e2, sizeof stat.e2);
    }
    free(bytes);
    compress_close(c);
    return rng_hash(h, sizeof h);
}

/* Calls `use` with one line of text for each compressor, for one kind of vector. */
static void lines_of(size_t n, enum vector_kind kind, void (*use)(void *context, const char *line),
                     void *context)
{
    static struct tested list[SPECS_MAX];
    static float x[ROUNDS][N_MAX], x_hat[N_MAX];
    size_t n_specs = specs_all(list);
    for (uint64_t round = 0; round < ROUNDS; round++)
        vector_fill(x[round], n, kind, round + 1);
    for (size_t s = 0; s < n_specs; s++) {
        struct job j = {list[s].spec, n, {x[0], x[1]}, x_hat};
        char line[LINE_MAX_LENGTH];
        snprintf(line, sizeof line, "%.*s n=%zu vector=%d %016" PRIx64, COMPRESS_SPEC_MAX, j.spec,
                 n, (int)kind, digest(&j));
        use(context, line);
    }
}

static void each_line(void (*use)(void *context, const char *line), void *context)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && sizes[i] <= N_MAX; i++)
        for (int kind = 0; kind < VECTOR_KINDS; kind++)
            if (sizes[i] <= N_FEW || kind == VECTOR_GAUSS || kind == VECTOR_TIES
                || kind == VECTOR_SPARSE)
                lines_of(sizes[i], (enum vector_kind)kind, use, context);
}

#ifdef HEARSAY_LEVEL

static void print(void *context, const char *line)
{
    (void)context;
    puts(line);
}

int main(void)
{
    fprintf(stderr, "%s\n", simd_level());
    each_line(print, NULL);
    return 0;
}

#else

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#if defined(__x86_64__)
#define HAS(feature) __builtin_cpu_supports(feature)
#else
#define HAS(feature) 0
#endif

/* One program per instruction set computes the messages; the programs run in parallel. This test
 * compares their output line by line. */
enum { LEVELS_MAX = 3 };

struct level
{
    const char *name, *command;
    bool possible;
    FILE *from;
};

static void compare(void *context, const char *line)
{
    struct level *levels = context;
    for (size_t i = 0; i < LEVELS_MAX; i++) {
        char other[LINE_MAX_LENGTH];
        if (levels[i].from == NULL)
            continue;
        if (fgets(other, sizeof other, levels[i].from) == NULL)
            fail_msg("%s ends before %s", levels[i].name, line);
        other[strcspn(other, "\n")] = '\0';
        if (strcmp(line, other) != 0)
            fail_msg("%s makes\n%s, but %s\n%s", simd_level(), line, levels[i].name, other);
    }
}

static void test_levels(void **state)
{
    (void)state;
    struct level levels[LEVELS_MAX] = {
        {"ref", LEVEL_REF " 2>&-", true, NULL},
#ifdef LEVEL_AVX2
        {"avx2", LEVEL_AVX2 " 2>&-", HAS("avx2"), NULL},
        {"avx512", LEVEL_AVX512 " 2>&-",
         HAS("avx512f") && HAS("avx512bw") && HAS("avx512dq") && HAS("avx512vl") && HAS("avx512cd"),
         NULL},
#endif
    };
    for (size_t i = 0; i < LEVELS_MAX; i++) {
        if (levels[i].command == NULL)
            continue;
        if (!levels[i].possible) {
            print_message("%s is left out: not on this CPU\n", levels[i].name);
            continue;
        }
        levels[i].from = popen(levels[i].command, "r");
        assert_non_null(levels[i].from);
    }
    each_line(compare, levels);
    for (size_t i = 0; i < LEVELS_MAX; i++) {
        char rest[8];
        if (levels[i].from == NULL)
            continue;
        if (fgets(rest, sizeof rest, levels[i].from) != NULL)
            fail_msg("%s goes on", levels[i].name);
        assert_int_equal(pclose(levels[i].from), 0);
    }
}

/* ---- threads ---- */

enum {
    THREADS = 4,
    LENGTH_THREADS = 1000 /* Length of the vectors in the test with several threads. */
};

/* One thread, and the hash that it computes for each compressor. */
struct worker
{
    pthread_t thread;
    float x[LENGTH_THREADS], x_hat[LENGTH_THREADS];
    const struct tested *list;
    size_t n_specs;
    uint64_t digest[SPECS_MAX];
};

static void *work(void *arg)
{
    struct worker *w = arg;
    for (size_t s = 0; s < w->n_specs; s++) {
        struct job j = {w->list[s].spec, LENGTH_THREADS, {w->x, w->x}, w->x_hat};
        w->digest[s] = digest(&j);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    static struct worker w[THREADS + 1];
    size_t n_specs = specs_all(list);
    for (size_t i = 0; i <= THREADS; i++) {
        w[i].list = list;
        w[i].n_specs = n_specs;
        vector_fill(w[i].x, LENGTH_THREADS, VECTOR_LAPLACE, 1);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(w[i].thread, NULL), 0);
    /* The main thread must compute the same hashes as the threads that ran in parallel. */
    work(&w[THREADS]);
    for (size_t i = 0; i < THREADS; i++)
        for (size_t s = 0; s < n_specs; s++)
            if (w[i].digest[s] != w[THREADS].digest[s])
                fail_msg("%s: thread %zu made another message", list[s].spec, i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* This test runs first, because it also selects the instruction set for the other test. */
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
