/* tests/bench/bench_hostile.c -- compares the cost of hostile and valid messages.
 *
 *   bench_hostile [SPEC...]
 *
 * Prints for each compressor the time to check and apply a valid message, and the largest time of
 * many mutated messages. A mutated message is checked and, if it is valid, applied. A message that
 * takes more than 4 times as long as a valid one is marked, and the exit code is then 1. */
#include "tests/unit/compress_mutate.h"
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <time.h>

enum { ROWS = 200, N = 100 * ROWS, MUTANTS = 1500, SEEDS = 5 };

static float v[N], x_hat[N];

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Checks a message and applies it if it is valid. Returns the time in nanoseconds. */
static double cost_once(const struct bench_rig *r, const uint8_t *m, size_t len, bool *proper)
{
    double start = now_ns();
    *proper = compress_validate(r->c, m, len);
    if (*proper)
        compress_apply(r->c, m, len, x_hat);
    return now_ns() - start;
}

/* Returns the shortest time of several calls, because other processes on the machine only add
 * time. */
static double cost(const struct bench_rig *r, const uint8_t *m, size_t len, size_t times,
                   bool *proper)
{
    double least = INFINITY;
    while (times-- > 0)
        least = fmin(least, cost_once(r, m, len, proper));
    return least;
}

struct worst
{
    double ns, ratio;
    size_t len, passed;
};

/* Measures mutated copies of one valid message. */
static void try_mutants(struct bench_rig *r, struct rng *rng, double honest, struct worst *w)
{
    size_t room = r->len + 64;
    uint8_t *m = malloc(room);
    assert(m != NULL);
    for (size_t i = 0; i < MUTANTS / SEEDS; i++) {
        size_t len = r->len;
        bool proper = false;
        memcpy(m, r->bytes, len);
        for (size_t times = 1 + rng_below(rng, 4); times > 0; times--)
            len = mutate(rng, m, len, room);
        double ns = cost_once(r, m, len, &proper);
        w->passed += proper;
        if (!(ns > w->ratio * honest))
            continue;
        /* Measures a slow message a second time, because an interruption of the process may have
         * made the first time too long. */
        ns = cost(r, m, len, 15, &proper);
        if (ns > w->ratio * honest)
            *w = (struct worst){ns, ns / honest, len, w->passed};
    }
    free(m);
}

static bool bench_one(const char *spec)
{
    static const enum vector_kind kinds[SEEDS] = {VECTOR_GAUSS, VECTOR_LAPLACE, VECTOR_SPARSE,
                                                  VECTOR_TIES, VECTOR_HEAVY};
    struct segment square = {.n = N, .rows = ROWS, .cols = N / ROWS};
    struct rng rng = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    struct bench_rig r;
    struct worst w = {0};
    double honest = 0.0;
    bool proper;
    rig_open_model(&r, spec, &square, 1);
    /* Mutated messages are compared with the slowest valid message. */
    for (size_t i = 0; i < SEEDS; i++) {
        vector_fill(v, N, kinds[i], i);
        int err = rig_code(&r, i, v);
        assert(err == 0);
        honest = fmax(honest, cost(&r, r.bytes, r.len, 50, &proper));
    }
    for (size_t i = 0; i < SEEDS; i++) {
        vector_fill(v, N, kinds[i], i);
        int err = rig_code(&r, i, v);
        assert(err == 0);
        try_mutants(&r, &rng, honest, &w);
    }
    printf("%-44s %9.0f ns  worst %9.0f ns  %5.2fx  %5zu of %d pass%s\n", spec, honest, w.ns,
           w.ratio, w.passed, MUTANTS, w.ratio > 4.0 ? "  ABOVE 4x" : "");
    rig_close(&r);
    return w.ratio <= 4.0;
}

int main(int argc, char **argv)
{
    static struct tested list[SPECS_MAX];
    size_t n_specs = specs_all(list);
    bool fine = true;
    for (int i = 1; i < argc; i++)
        fine &= bench_one(argv[i]);
    for (size_t i = 0; argc == 1 && i < n_specs; i++)
        fine &= bench_one(list[i].spec);
    return fine ? 0 : 1;
}
