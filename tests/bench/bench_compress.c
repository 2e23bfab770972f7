/* tests/bench/bench_compress.c -- speed of every compressor, compared with memcpy and axpy in the
 * same run. Prints a table; not a test.
 *
 *   bench_compress [LOG2_LENGTH]...        (17 and 26 by default)
 *
 * Measures every codec with its defaults, and the list of bench_compress_targets.h. The speeds of
 * encoding and applying are shown in Gelem/s (10^9 elements per second) and as multiples of the
 * speeds of axpy and memcpy. The target of a codec is a multiple of axpy. Each line ends with the
 * share of the target that is reached, and "ok" or "SHORT". memcpy and axpy are timed again before
 * each line, because the speed of a shared machine changes. Vectors are aligned to 64 bytes. */
#include "tests/bench/bench_compress_targets.h"

#include "tests/bench/bench_compress_parts.h"

#include "compress/codec.h"
#include "compress/codecs/select.h"
#include "compress/compress.h"
#include "compress/simd/simd.h"

#include "nn/math/vec.h"

#include <string.h>

enum {
    ROWS = 256, /* Number of rows of each matrix in a model of 2^17 parameters or more. */
    MATRIX = 1 << 17
};

/* A vector length, and the speeds of memcpy and axpy at this length, in 10^9 elements per
 * second. */
struct yard
{
    size_t n;
    int place;
    float *x, *x_hat;
    double copy, axpy;
    struct segment *segments;
    size_t n_segments;
};

static void measure_yard(struct yard *y)
{
    double copy, axpy;
    BEST_OF(0.06, copy, memcpy(y->x_hat, y->x, y->n * sizeof *y->x));
    BEST_OF(0.06, axpy, vec_axpy(y->x_hat, 0.5f, y->x, y->n));
    y->copy = 1e-9 * (double)y->n / copy;
    y->axpy = 1e-9 * (double)y->n / axpy;
}

static void yard_open(struct yard *y, unsigned log2_n)
{
    *y = (struct yard){.n = (size_t)1 << log2_n, .place = log2_n <= 18 ? PLACE_L2 : PLACE_MEMORY};
    size_t matrix = y->n < MATRIX ? y->n : MATRIX;
    size_t rows = matrix % ROWS == 0 ? ROWS : 1;
    y->n_segments = y->n / matrix;
    y->x = aligned_alloc(64, y->n * sizeof *y->x);
    y->x_hat = aligned_alloc(64, y->n * sizeof *y->x_hat);
    y->segments = calloc(y->n_segments, sizeof *y->segments);
    assert(y->x != NULL && y->x_hat != NULL && y->segments != NULL);
    for (size_t i = 0; i < y->n_segments; i++)
        y->segments[i] = (struct segment){
            .offset = i * matrix, .n = matrix, .rows = rows, .cols = matrix / rows};
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    for (size_t i = 0; i < y->n; i++)
        y->x[i] = (float)rng_normal(&r);
    memset(y->x_hat, 0, y->n * sizeof *y->x_hat);
    measure_yard(y);
}

static void yard_close(struct yard *y)
{
    free(y->x);
    free(y->x_hat);
    free(y->segments);
}

/* ---- compressors ---- */

struct speed
{
    /* Speeds of encoding, validating and applying a message, in 10^9 elements per second. */
    double encode, validate, apply;
    double ratio, delta;
};

/* Returns the speed of encoding without the measurement of the error, in 10^9 elements per
 * second. */
static double unmeasured_speed(const struct yard *y, const char *spec)
{
    struct compress *c;
    int err = compress_open(&c, spec, y->segments, y->n_segments);
    assert(err == 0);
    uint8_t *bytes = malloc(compress_bound(c));
    assert(bytes != NULL);
    memset(bytes, 1, compress_bound(c));
    memset(y->x_hat, 0, y->n * sizeof *y->x_hat);
    struct compress_input in = {.draw = 7, .x = y->x, .x_hat = y->x_hat};
    size_t len = 0;
    double encode;
    BEST(encode, err |= compress_encode(c, &in, bytes, &len, NULL));
    assert(err == 0);
    free(bytes);
    compress_close(c);
    return 1e-9 * (double)y->n / encode;
}

static struct speed speed_of(const struct yard *y, const char *spec)
{
    struct compress *c;
    int err = compress_open(&c, spec, y->segments, y->n_segments);
    assert(err == 0);
    uint8_t *bytes = malloc(compress_bound(c));
    assert(bytes != NULL);
    /* Writes to each memory page of the buffer once, so that page faults are not measured. */
    memset(bytes, 1, compress_bound(c));
    memset(y->x_hat, 0, y->n * sizeof *y->x_hat);
    struct compress_input in = {.draw = 7, .x = y->x, .x_hat = y->x_hat};
    struct compress_stat stat;
    size_t len = 0;
    double encode, validate, apply;
    bool proper = true;
    BEST(encode, err |= compress_encode(c, &in, bytes, &len, &stat));
    BEST(validate, proper &= compress_validate(c, bytes, len));
    BEST(apply, compress_apply(c, bytes, len, y->x_hat));
    assert(err == 0 && proper);
    free(bytes);
    compress_close(c);
    double n = 1e-9 * (double)y->n;
    return (struct speed){n / encode, n / validate, n / apply, 4e9 * n / (double)len,
                          1.0 - stat.e2 / stat.x2};
}

static void print_speed(const struct yard *y, double gelem, double target)
{
    double share = gelem / y->axpy;
    printf(" %8.2f %5.2f %5.2f", gelem, share, gelem / y->copy);
    if (target > 0.0)
        printf(" %5.2f %5.2f %-5s", target, share / target,
               share >= TARGET_SLACK * target ? "ok" : "SHORT");
    else
        printf(" %5s %5s %-5s", "-", "-", "");
}

static void bench_one(struct yard *y, const struct speed_target *t)
{
    measure_yard(y);
    struct speed s = speed_of(y, t->spec);
    printf("%-42s", t->spec);
    print_speed(y, s.encode, t->encode[y->place]);
    print_speed(y, s.apply, t->apply[y->place]);
    printf(" %8.1f %7.1f %7.4f\n", s.validate, s.ratio, s.delta);
    fflush(stdout);
}

static bool listed(const char *name)
{
    for (size_t i = 0; i < N_TARGETS; i++)
        if (strcmp(speed_targets[i].spec, name) == 0)
            return true;
    return false;
}

/* Returns the speed of top-k selection by histograms, in 10^9 elements per second. The codec topk
 * uses histograms if the threshold that it estimates from a sample is wrong. */
static double histogram_speed(const struct yard *y, size_t k)
{
    struct codec_source s = {.x = y->x, .x_hat = y->x_hat, .n = y->n};
    struct codec_pick pick = {
        .index = malloc((k + CODEC_CHUNK) * sizeof *pick.index),
        .value = malloc((k + CODEC_CHUNK) * sizeof *pick.value),
        .scratch = malloc(select_scratch(y->n, k)),
    };
    assert(pick.index != NULL && pick.value != NULL && pick.scratch != NULL);
    int err = 0;
    double t;
    BEST(t, err |= select_top_histogram(&s, k, &pick));
    assert(err == 0 && pick.k == k);
    free(pick.index);
    free(pick.value);
    free(pick.scratch);
    return 1e-9 * (double)y->n / t;
}

/* Compares topk:0.01 (exact top 1 %) with a textbook quickselect. */
static void bench_top(struct yard *y)
{
    measure_yard(y);
    size_t k = codec_share(10000000, y->n);
    memset(y->x_hat, 0, y->n * sizeof *y->x_hat);
    double naive = 1e-9 * (double)y->n / time_naive_top(y->x, y->x_hat, y->n, k);
    double ours = speed_of(y, "topk").encode;
    bool fast = ours >= TARGET_QUICKSELECT * naive && (y->axpy < 2.0 || ours >= TARGET_TOPK_GELEM);
    memset(y->x_hat, 0, y->n * sizeof *y->x_hat);
    double slow = histogram_speed(y, k) / y->axpy;
    double target = target_histogram[y->place];
    printf("top-1 %%: %.2f Gelem/s with its coding, quickselect alone %.3f: "
           "%.1f times (goal %.0f)  %s\n",
           ours, naive, ours / naive, TARGET_QUICKSELECT, fast ? "ok" : "SHORT");
    printf("top-1 %%, by histograms: %.2f of axpy (goal %.2f)  %s\n", slow, target,
           slow >= TARGET_SLACK * target ? "ok" : "SHORT");
}

/* Measures the codec randk without its error measurement. Without this measurement randk reads only
 * the coordinates that it sends. */
static void bench_unmeasured(struct yard *y)
{
    static const char *const specs[] = {"randk", "randk:0.1"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        measure_yard(y);
        double speed = unmeasured_speed(y, specs[i]);
        printf("%s, unmeasured: %.2f Gelem/s, %.2f of axpy\n", specs[i], speed, speed / y->axpy);
    }
}

static void bench_length(unsigned log2_n)
{
    struct yard y;
    assert(log2_n >= 4 && log2_n < 32);
    yard_open(&y, log2_n);
    printf("d = 2^%u, level %s, Gelem/s: memcpy %.2f, axpy %.2f; targets from "
           "%s\n",
           log2_n, simd_level(), y.copy, y.axpy, y.place == PLACE_L2 ? "the L2 cache" : "memory");
    printf("%-42s %8s %5s %5s %5s %5s %-5s %8s %5s %5s %5s %5s %-5s %8s %7s "
           "%7s\n",
           "", "encode", "/axpy", "/copy", "goal", "of it", "", "apply", "/axpy", "/copy", "goal",
           "of it", "", "validate", "ratio", "delta");
    for (size_t i = 0; i < N_TARGETS; i++)
        bench_one(&y, &speed_targets[i]);
    for (size_t i = 0; codec_all[i] != NULL; i++)
        if (!listed(codec_all[i]->name))
            bench_one(&y, &(struct speed_target){.spec = codec_all[i]->name});
    bench_top(&y);
    bench_unmeasured(&y);
    printf("\n");
    yard_close(&y);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        bench_length(17);
        bench_length(26);
    }
    for (int i = 1; i < argc; i++)
        bench_length((unsigned)strtoul(argv[i], NULL, 10));
    printf("positions of 2^22\n");
    bench_positions((size_t)1 << 22, 0.01, TARGET_RICE_PUT, TARGET_RICE_GET);
    bench_positions((size_t)1 << 22, 0.1, TARGET_RICE_PUT, TARGET_RICE_GET);
    return 0;
}
