/* tests/bench/bench_nn.c -- milliseconds per SGD step of each model on one thread, with the peak
 * speed of sgemm for comparison. A step is forward, loss, backward, and an update with Nesterov
 * momentum.
 *
 *   bench_nn [--json] [--layers] [--batch N] [--context N] [--norm KIND]
 *            [--seconds S] [--cpu-time] [SPEC ...]
 *
 * Images are noise of 3x32x32 for vgg11 and resnet, and of 1x28x28 for other models. The time of a
 * step is the median. The clock is the wall clock or, with --cpu-time for a busy machine, the CPU
 * time of the process. GFLOP/s count the multiply-adds of the layers by the definition of
 * convolutions and products, whatever a kernel saves. Each multiply-add counts 2 flops, in the
 * forward pass, for the gradient of the weights, and for the gradient of the inputs (except in the
 * first layer). --layers splits the fastest step by layer. --json prints one line for a program. */
#include "nn/layers/loss.h"
#include "nn/math/blas.h"
#include "nn/math/rng.h"
#include "nn/models/model.h"
#include "nn/train/optimiser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PEAK_CUBE = 1024, PEAK_TRIALS = 8, WARM_STEPS = 2, STEPS_MAX = 4096, LAYERS_MAX = 512 };

struct bench_options
{
    bool json, layers;
    uint32_t batch, context;
    enum model_norm norm;
    double seconds;
};

struct times
{
    double forward, backward, update;
    /* Seconds of the forward and the backward pass of each layer, with --layers. */
    double layer[LAYERS_MAX][2];
};

/* The measured model and the memory of a training step. */
struct subject
{
    const struct bench_options *options;
    struct model m;
    struct model_plan plan;
    struct model_pass pass;
    struct optimiser_step step;
    uint16_t *labels;
};

static clockid_t running_clock = CLOCK_MONOTONIC;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(running_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *room(size_t n, size_t size)
{
    size_t bytes = ((n + LAYER_SLACK) * size + 63) / 64 * 64;
    void *v = aligned_alloc(64, bytes);
    if (v == NULL)
        exit(1);
    memset(v, 0, bytes);
    return v;
}

static float *noise(size_t n, uint64_t a)
{
    float *v = room(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = rng_unit_at(rng_key(1, RNG_TEST, a, 0), i) - 0.5f;
    return v;
}

/* Returns the floating-point operations per second of a large matrix product: the best of several
 * trials. */
static double sgemm_peak(void)
{
    size_t n = PEAK_CUBE;
    float *a = noise(n * n, 1), *b = noise(n * n, 2), *c = noise(n * n, 3);
    struct blas_gemm g = {
        .m = n, .n = n, .k = n, .a = a, .lda = n, .b = b, .ldb = n, .c = c, .ldc = n};
    double best = 1e9;
    blas_init();
    for (int i = 0; i < PEAK_TRIALS; i++) {
        double t = now_s();
        blas_gemm(&g);
        t = now_s() - t;
        best = t < best ? t : best;
    }
    free(a);
    free(b);
    free(c);
    return 2.0 * (double)(n * n * n) / best;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static struct data_shape shape_for(const char *spec, uint32_t context)
{
    if (begins(spec, "lstm") || begins(spec, "gpt"))
        return (struct data_shape){DATA_TEXT, 1, context, 1, 256};
    if (begins(spec, "vgg") || begins(spec, "resnet"))
        return (struct data_shape){DATA_IMAGES, 3, 32, 32, 10};
    return (struct data_shape){DATA_IMAGES, 1, 28, 28, 10};
}

static void fill_input(struct subject *s)
{
    bool text = s->m.data.form == DATA_TEXT;
    size_t dim = shape_size(s->m.in);
    uint64_t key = rng_key(1, RNG_TEST, 7, 0);
    for (uint32_t i = 0; i < s->pass.n; i++) {
        float *to = model_input(&s->m, &s->pass, i);
        for (size_t j = 0; j < dim; j++)
            to[j] = text ? (float)(rng_at(key, i * dim + j) % 256)
                         : 4 * rng_unit_at(key, i * dim + j) - 2;
    }
    for (size_t i = 0; i < (size_t)s->pass.n * s->m.n_rows; i++)
        s->labels[i] = (uint16_t)(rng_at(key, i) % s->m.n_classes);
}

static void subject_open(struct subject *s, const char *spec, const struct bench_options *o)
{
    char error[MODEL_ERROR_MAX];
    struct data_shape shape = shape_for(spec, o->context);
    s->options = o;
    if (model_init(&s->m, spec, o->norm, &shape, error) != 0) {
        fprintf(stderr, "bench_nn: %s\n", error);
        exit(2);
    }
    if (s->m.n_layers > LAYERS_MAX || model_plan_init(&s->plan, &s->m, o->batch, true) != 0)
        exit(1);
    size_t n = s->m.n_params;
    float *x = room(n, sizeof *x), *grad = room(n, sizeof *grad);
    model_params(&s->m, 1, x);
    s->pass = (struct model_pass){.n = o->batch,
                                  .x = x,
                                  .grad = grad,
                                  .plan = &s->plan,
                                  .arena = room(s->plan.n_floats, sizeof(float))};
    s->step = (struct optimiser_step){.segments = s->m.segments,
                                      .n_segments = s->m.n_segments,
                                      .x = x,
                                      .grad = grad,
                                      .m = room(n, sizeof(float)),
                                      .lr = 1e-3};
    s->labels = room((size_t)o->batch * s->m.n_rows, sizeof *s->labels);
    fill_input(s);
}

static void subject_close(struct subject *s)
{
    free(s->pass.arena);
    free(s->pass.grad);
    free(s->step.x);
    free(s->step.m);
    free(s->labels);
    model_plan_close(&s->plan);
    model_close(&s->m);
}

/* ---- Forward and backward passes with a clock around each layer. ---- */

static struct layer_pass layer_at(const struct subject *s, size_t i)
{
    const struct layer *l = &s->m.layers[i];
    const struct model_plan *a = &s->plan;
    float *arena = s->pass.arena;
    struct layer_pass p = {.n = s->pass.n,
                           .training = true,
                           .x = s->pass.x,
                           .grad = s->pass.grad,
                           .rows = &s->pass.rows,
                           .in = arena,
                           .out = arena + a->out[i],
                           .keep = arena + a->keep[i],
                           .scratch = arena + a->scratch};
    if (l->from >= 0)
        p.in = arena + a->out[l->from];
    if (l->with != LAYER_NONE)
        p.with = l->with < 0 ? arena : arena + a->out[l->with];
    return p;
}

static float *gradient_of(const struct subject *s, int of, size_t i, bool *add)
{
    if (of < 0 || s->plan.d_out[of] == MODEL_NOWHERE)
        return NULL;
    *add = s->plan.last_reader[of] != i;
    return s->pass.arena + s->plan.d_out[of];
}

static float *forward_by_layer(const struct subject *s, struct times *t)
{
    for (size_t i = 0; i < s->m.n_layers; i++) {
        const struct layer *l = &s->m.layers[i];
        struct layer_pass p = layer_at(s, i);
        double begun = now_s();
        layer_op(l->kind)->forward(l, &p);
        t->layer[i][0] = now_s() - begun;
    }
    return s->pass.arena + s->plan.out[s->m.n_layers - 1];
}

static void backward_by_layer(const struct subject *s, float *d_logits, struct times *t)
{
    for (size_t i = s->m.n_layers; i-- > 0;) {
        const struct layer *l = &s->m.layers[i];
        bool last = i + 1 == s->m.n_layers;
        t->layer[i][1] = 0;
        if (!last && s->plan.d_out[i] == MODEL_NOWHERE)
            continue;
        struct layer_pass p = layer_at(s, i);
        p.d_out = last ? d_logits : s->pass.arena + s->plan.d_out[i];
        p.d_in = gradient_of(s, l->from, i, &p.add_in);
        p.d_with = gradient_of(s, l->with, i, &p.add_with);
        double begun = now_s();
        layer_op(l->kind)->backward(l, &p);
        t->layer[i][1] = now_s() - begun;
    }
}

/* ---- Steps. ---- */

static void one_step(struct subject *s, struct times *t)
{
    static const struct optimiser sgd = {
        .kind = OPTIMISER_SGD, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-4};
    bool split = s->options->layers;
    double t0 = now_s();
    float *z = split ? forward_by_layer(s, t) : model_forward(&s->m, &s->pass);
    struct loss_batch b = {.n = (size_t)s->pass.n * s->m.n_rows,
                           .n_classes = s->m.n_classes,
                           .logits = z,
                           .labels = s->labels};
    struct loss loss = loss_softmax(&b, z);
    double t1 = now_s();
    if (split)
        backward_by_layer(s, z, t);
    else
        model_backward(&s->m, &s->pass, z);
    double t2 = now_s();
    optimiser_step(&sgd, &s->step);
    t->forward = t1 - t0;
    t->backward = t2 - t1;
    t->update = now_s() - t2;
    /* A step of a model with NaN values takes another time than a normal step, so the measurement
     * stops. */
    if (!(loss.sum >= 0)) {
        fprintf(stderr, "bench_nn: %s diverged\n", s->m.spec);
        exit(1);
    }
}

static double sum(const struct times *t)
{
    return t->forward + t->backward + t->update;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median time of a step. *best receives the times of the fastest step. */
static double run(struct subject *s, struct times *best)
{
    static double steps[STEPS_MAX];
    static struct times t;
    size_t n = 0;
    double begun = 0;
    for (int i = 0; i < WARM_STEPS; i++)
        one_step(s, &t);
    begun = now_s();
    while (n < STEPS_MAX && (n < 3 || now_s() - begun < s->options->seconds)) {
        one_step(s, &t);
        steps[n] = sum(&t);
        if (n == 0 || steps[n] < sum(best))
            *best = t;
        n++;
    }
    qsort(steps, n, sizeof *steps, by_size);
    return steps[n / 2];
}

/* ---- Output. ---- */

static double layer_flops(const struct subject *s, size_t i)
{
    const struct layer *l = &s->m.layers[i];
    const struct layer_op *op = layer_op(l->kind);
    double products = op->products ? op->products(l) : 0;
    return 2.0 * products * s->pass.n;
}

/* Returns how many matrix products the backward pass of a layer takes for each product of its
 * forward pass. 2: one for the weights and one for the input. 1: the input needs no gradient. */
static int backs_of(const struct subject *s, size_t i)
{
    int from = s->m.layers[i].from;
    bool ends = from == LAYER_INPUT || s->plan.d_out[from] == MODEL_NOWHERE;
    return ends ? 1 : 2;
}

static double step_flops(const struct subject *s)
{
    double flops = 0;
    for (size_t i = 0; i < s->m.n_layers; i++)
        flops += layer_flops(s, i) * (1 + backs_of(s, i));
    return flops;
}

static void print_layers(const struct subject *s, const struct times *best)
{
    for (size_t i = 0; i < s->m.n_layers; i++) {
        const struct layer *l = &s->m.layers[i];
        double flops = layer_flops(s, i) * 1e-9;
        int backs = backs_of(s, i);
        const double *t = best->layer[i];
        printf("  %3zu %-10s %4ux%ux%u -> %ux%ux%u%s%s  forward %8.3f ms", i,
               layer_op(l->kind)->name, l->in.c, l->in.h, l->in.w, l->out.c, l->out.h, l->out.w,
               l->with != LAYER_NONE ? " +" : "", l->relu ? " relu" : "", 1e3 * t[0]);
        if (flops > 0)
            printf(" (%5.1f GF/s)", flops / t[0]);
        printf("  backward %8.3f ms", 1e3 * t[1]);
        if (flops > 0)
            printf(" (%5.1f GF/s)", backs * flops / t[1]);
        printf("\n");
    }
}

static void print_one(const struct subject *s, double median, const struct times *best, double peak)
{
    double flops = step_flops(s);
    if (s->options->json) {
        printf("{\"model\": \"%s\", \"median_ms\": %.6f, \"min_ms\": %.6f, "
               "\"forward_ms\": %.6f, \"backward_ms\": %.6f, "
               "\"update_ms\": %.6f, \"gflop\": %.6f, \"arena_mb\": %.3f, "
               "\"peak_gflops\": %.3f}\n",
               s->m.spec, 1e3 * median, 1e3 * sum(best), 1e3 * best->forward, 1e3 * best->backward,
               1e3 * best->update, 1e-9 * flops, 4e-6 * (double)s->plan.n_floats, 1e-9 * peak);
        return;
    }
    printf("%-20s %8.3f ms/step, min %8.3f  (forward %.3f, backward %.3f, "
           "update %.3f)  %5.1f GF/s, %4.1f %% of peak, arena %.1f MB\n",
           s->m.spec, 1e3 * median, 1e3 * sum(best), 1e3 * best->forward, 1e3 * best->backward,
           1e3 * best->update, 1e-9 * flops / median, 100 * flops / median / peak,
           4e-6 * (double)s->plan.n_floats);
    if (s->options->layers)
        print_layers(s, best);
}

static void bench(const char *spec, const struct bench_options *o, double peak)
{
    static struct times best;
    static struct subject s;
    subject_open(&s, spec, o);
    double median = run(&s, &best);
    print_one(&s, median, &best, peak);
    subject_close(&s);
}

/* ---- The command line. ---- */

static void usage(void)
{
    fprintf(stderr, "usage: bench_nn [--json] [--layers] [--batch N] "
                    "[--context N] [--norm batch|group|layer] [--seconds S] "
                    "[--cpu-time] [SPEC ...]\n");
    exit(2);
}

static enum model_norm norm_of(const char *word)
{
    if (strcmp(word, "group") == 0)
        return MODEL_GROUP_NORM;
    if (strcmp(word, "layer") == 0)
        return MODEL_LAYER_NORM;
    if (strcmp(word, "batch") != 0)
        usage();
    return MODEL_BATCH_NORM;
}

/* Sets the option at argv[i]. Returns the number of command-line words that it used. */
static int option(struct bench_options *o, char **argv, int left)
{
    if (strcmp(argv[0], "--json") == 0)
        return o->json = true;
    if (strcmp(argv[0], "--layers") == 0)
        return o->layers = true;
    if (strcmp(argv[0], "--cpu-time") == 0) {
        running_clock = CLOCK_PROCESS_CPUTIME_ID;
        return 1;
    }
    if (left < 2)
        usage();
    if (strcmp(argv[0], "--batch") == 0)
        o->batch = (uint32_t)strtoul(argv[1], NULL, 10);
    else if (strcmp(argv[0], "--context") == 0)
        o->context = (uint32_t)strtoul(argv[1], NULL, 10);
    else if (strcmp(argv[0], "--seconds") == 0)
        o->seconds = strtod(argv[1], NULL);
    else if (strcmp(argv[0], "--norm") == 0)
        o->norm = norm_of(argv[1]);
    else
        usage();
    return 2;
}

int main(int argc, char **argv)
{
    static const char *const all[] = {"logreg", "mlp:784-512-512-10", "lenet5",   "resnet:20",
                                      "vgg11",  "vgg11:bn",           "lstm:256", "gpt:4x128"};
    struct bench_options o = {.batch = 64, .context = 128, .seconds = 1};
    int i = 1;
    while (i < argc && begins(argv[i], "--"))
        i += option(&o, &argv[i], argc - i);
    if (o.batch == 0 || o.context == 0)
        usage();
    double peak = sgemm_peak();
    if (!o.json)
        printf("sgemm peak %.1f GF/s (%d-cube, one thread), batch %u\n", 1e-9 * peak, PEAK_CUBE,
               o.batch);
    bool named = i < argc;
    for (; i < argc; i++)
        bench(argv[i], &o, peak);
    for (size_t j = 0; !named && j < sizeof all / sizeof all[0]; j++)
        bench(all[j], &o, peak);
    return 0;
}
