/* peer/cmd/compressors_measure.c -- measures message length, contraction and speed of codecs. */
#include "nn/math/rng.h"
#include "peer/cmd/compressors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DRAWS = 4,  /* Number of random vectors over which the contraction is averaged. */
    REPEATS = 3 /* Least number of measurements of each operation. */
};

static const double clock_s = 20e-6; /* Least duration of a measurement, in seconds. */
/* The measurement of an operation is repeated until this time has passed, in seconds. */
static const double repeat_s = 0.1;
/* Once an operation has been measured for this time, in seconds, it is not measured again. At least
 * one measurement is completed. */
static const double repeats_max_s = 2.0;

/* Round number that is passed to the encoders. In such a late round, no sparse codec is still in
 * its warm-up. */
static const uint64_t late_round = UINT32_MAX;

struct bench
{
    const struct cmd_compressors *t;
    struct compress *c;
    float *x, *y;  /* x: vector to compress. y: vector to which messages are applied. */
    uint64_t draw; /* Number of the random vector that is in `x`. */
    uint8_t *message;
    size_t len;
    struct compress_stat stat;
    /* Contraction of the first message: the share of |x|^2 that the message transfers. */
    double delta;
    int err;
    char *error;
};

/* ---- Vectors and messages ---- */

static void fill(struct bench *b, uint64_t draw)
{
    if (b->draw == draw)
        return;
    struct rng r = rng_stream(rng_key(b->t->seed, RNG_TEST, draw, 0));
    for (size_t i = 0; i < b->t->n; i++)
        b->x[i] = (float)rng_normal(&r);
    b->draw = draw;
}

static void clear(struct bench *b)
{
    memset(b->y, 0, b->t->n * sizeof *b->y);
}

static int bench_fail(struct bench *b, const char *spec, const char *what, int err)
{
    snprintf(b->error, CMD_COMPRESSORS_ERROR_MAX, "%s: %s", spec, what);
    return err;
}

static void close_spec(struct bench *b)
{
    free(b->message);
    b->message = NULL;
    compress_close(b->c);
    b->c = NULL;
}

static int open_spec(struct bench *b, const char *spec)
{
    int err = compress_open(&b->c, spec, b->t->segments, b->t->n_segments);
    if (err == 0)
        b->message = malloc(compress_bound(b->c));
    if (err == 0 && b->message == NULL)
        err = -ENOMEM;
    if (err == 0)
        return 0;
    close_spec(b);
    const struct segment *last = &b->t->segments[b->t->n_segments - 1];
    char many[96];
    snprintf(many, sizeof many, "found %zu parameters, expected at most %u", last->offset + last->n,
             UINT32_MAX);
    if (err == -EINVAL && last->offset + last->n > UINT32_MAX)
        return bench_fail(b, spec, many, err);
    return bench_fail(
        b, spec, err == -ENOMEM ? "out of memory" : "the compressor does not fit this model", err);
}

static void encode(struct bench *b)
{
    struct compress_input in = {.draw = rng_key(b->t->seed, RNG_DRAW, b->draw, 0),
                                .round = late_round,
                                .x = b->x,
                                .x_hat = b->y};
    b->err |= compress_encode(b->c, &in, b->message, &b->len, &b->stat);
}

static void validate(struct bench *b)
{
    b->err |= compress_validate(b->c, b->message, b->len) ? 0 : -EBADMSG;
}

static void apply(struct bench *b)
{
    compress_apply(b->c, b->message, b->len, b->y);
}

static void axpy(struct bench *b)
{
    vec_axpy(b->y, 0.5f, b->x, b->t->n);
}

static void copy(struct bench *b)
{
    memcpy(b->y, b->x, b->t->n * sizeof *b->y);
}

/* Encodes, validates and applies the first message of a new encoder. `draw`: number of the random
 * vector. Sets b->len and b->delta. Fails if the error that the encoder reports is not the error
 * that remains after decoding. Returns 0 or a negative errno. */
static int first_message(struct bench *b, const char *spec, uint64_t draw)
{
    fill(b, draw);
    clear(b);
    b->err = 0;
    encode(b);
    if (b->err != 0)
        return bench_fail(b, spec, "the codec refuses to encode normally distributed values",
                          b->err);
    validate(b);
    if (b->err != 0)
        return bench_fail(b, spec, "the codec cannot decode its own message (a bug in this codec)",
                          b->err);
    apply(b);
    double x2 = vec_norm2(b->x, b->t->n), e2 = vec_dist2(b->x, b->y, b->t->n);
    b->delta = 1.0 - e2 / x2;
    /* The encoder may compute the remaining error by a formula. Compare its result with the error
     * that really remains in the decoded vector. */
    if (fabs(b->stat.x2 - x2) <= 1e-5 * x2 && fabs(b->stat.e2 - e2) <= 1e-5 * e2 + 1e-12 * x2)
        return 0;
    char what[160];
    snprintf(what, sizeof what,
             "the encoder reports a remaining error of %.9g, but decoding leaves %.9g (a bug in "
             "this codec)",
             b->stat.e2, e2);
    return bench_fail(b, spec, what, -EPROTO);
}

/* ---- Measuring times ---- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the time of one call of `call`, in seconds. The time is measured several times and the
 * shortest counts, because other processes may slow down the machine. */
static double fastest(struct bench *b, void (*call)(struct bench *))
{
    double best = INFINITY, begin = now_s(), gone = 0.0;
    /* calls: number of calls in one measurement. repeats: number of measurements so far. */
    size_t calls = 1, repeats = 0;
    while ((repeats < REPEATS || gone < repeat_s) && (repeats == 0 || gone < repeats_max_s)) {
        double t = now_s();
        for (size_t i = 0; i < calls; i++)
            call(b);
        double end = now_s();
        gone = end - begin;
        if (end - t < clock_s) {
            calls *= 2;
            continue;
        }
        best = fmin(best, (end - t) / (double)calls);
        repeats++;
    }
    return best;
}

/* Times the operations axpy and memcpy, with which codecs are compared. They are timed again before
 * each codec, and the fastest time counts. So other load on the machine affects codecs and these
 * operations alike. */
static void time_machine(struct bench *b, struct cmd_compressors *t)
{
    fill(b, 0);
    clear(b);
    t->axpy_s = fmin(t->axpy_s, fastest(b, axpy));
    t->memcpy_s = fmin(t->memcpy_s, fastest(b, copy));
}

static void time_row(struct bench *b, struct cmd_compressors_row *r)
{
    fill(b, 0);
    clear(b);
    r->encode_s = fastest(b, encode);
    r->validate_s = fastest(b, validate);
    r->apply_s = fastest(b, apply);
}

/* ---- Measuring the rows of the table ---- */

/* Measures one codec. If `measured` is set, measures the contraction over DRAWS vectors and the
 * times. Otherwise measures only the message length for one vector. Returns 0 or a negative
 * errno. */
static int measure_row(struct bench *b, struct cmd_compressors_row *r)
{
    uint64_t draws = b->t->measured ? DRAWS : 1;
    int err = 0;
    for (uint64_t draw = 0; draw < draws && err == 0; draw++) {
        err = open_spec(b, r->spec);
        if (err != 0)
            return err;
        err = first_message(b, r->spec, draw);
        r->delta += b->delta / (double)draws;
        r->bytes = draw == 0 ? b->len : r->bytes;
        close_spec(b);
    }
    if (err != 0 || !b->t->measured)
        return err;
    err = open_spec(b, r->spec);
    if (err != 0)
        return err;
    time_row(b, r);
    close_spec(b);
    return b->err != 0
               ? bench_fail(b, r->spec,
                            "a later message of the same vector failed (a bug in this codec)",
                            b->err)
               : 0;
}

static void say(const struct cmd_compressors *t, size_t i)
{
    if (t->measured && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s", i < t->n_rows ? t->rows[i].spec : "");
}

int cmd_compressors_measure(struct cmd_compressors *t, char error[CMD_COMPRESSORS_ERROR_MAX])
{
    struct bench b = {.t = t,
                      .draw = UINT64_MAX,
                      .error = error,
                      .x = malloc(t->n * sizeof(float)),
                      .y = malloc(t->n * sizeof(float))};
    int err = b.x != NULL && b.y != NULL ? 0 : -ENOMEM;
    if (err != 0)
        bench_fail(&b, "the vectors", "out of memory", err);
    t->axpy_s = t->memcpy_s = INFINITY;
    for (size_t i = 0; i < t->n_rows && err == 0; i++) {
        say(t, i);
        if (t->measured)
            time_machine(&b, t);
        err = measure_row(&b, &t->rows[i]);
    }
    say(t, t->n_rows);
    free(b.x);
    free(b.y);
    return err;
}

/* ---- When compression pays ---- */

static double compute_s(const struct cmd_compressors *t, const struct cmd_compressors_row *r)
{
    return r->encode_s + t->neighbours * (r->validate_s + r->apply_s);
}

double cmd_compressors_with(const struct cmd_compressors *t, const struct cmd_compressors_row *r)
{
    return compute_s(t, r) + t->neighbours * 8.0 * (double)r->bytes / t->uplink;
}

double cmd_compressors_without(const struct cmd_compressors *t)
{
    return t->neighbours * 32.0 * (double)t->n / t->uplink;
}

double cmd_compressors_pays_below(const struct cmd_compressors *t,
                                  const struct cmd_compressors_row *r)
{
    /* Number of bits by which the compressed message is shorter than n float32 values. */
    double saved = 32.0 * (double)t->n - 8.0 * (double)r->bytes;
    return saved > 0.0 ? t->neighbours * saved / compute_s(t, r) : 0.0;
}
