/* Milliseconds of one core per SGD step (forward, loss, backward, update; batch
 * 64, no data loading) of each model, beside the sgemm peak of the same run.
 *
 *   bench_nn [model ...]      default: lenet5 mlp:784-512-512-10 logreg
 *
 * The share of the peak counts the products' multiply-adds only: 2 flops each,
 * forward, gradient by weights, gradient by inputs (but the first layer's). */
#include "nn/blas.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "nn/optimiser.h"
#include "nn/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    BATCH = 64,
    TRIALS = 9
};

/* Seconds of this thread's processor time: what else runs hardly counts. */
static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *noise(size_t n, uint64_t a)
{
    float *v = aligned_alloc(64, (n * sizeof *v + 63) / 64 * 64);
    if (v == NULL)
        exit(1);
    for (size_t i = 0; i < n; i++)
        v[i] = rng_unit_at(rng_key(1, RNG_TEST, a, 0), i) - 0.5f;
    return v;
}

/* Flops a second of a 512-cube, the best of a few. */
static double sgemm_peak(void)
{
    size_t n = 512;
    float *a = noise(n * n, 1), *b = noise(n * n, 2), *c = noise(n * n, 3);
    struct blas_gemm g = {.m = n, .n = n, .k = n, .a = a, .lda = n, .b = b,
                          .ldb = n, .c = c, .ldc = n};
    double best = 1e9;
    blas_init();
    for (int i = 0; i < 40; i++) {
        double t = now_s();
        blas_gemm(&g);
        t = now_s() - t;
        best = t < best ? t : best;
    }
    free(a);
    free(b);
    free(c);
    return 2.0 * 512 * 512 * 512 / best;
}

static double step_flops(const struct model *m)
{
    double flops = 0;
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct layer *l = &m->layers[i];
        size_t rows, cols;
        layer_op(l->kind)->params(l, &rows, &cols);
        double map = (double)l->out.h * l->out.w;
        flops += 2.0 * (double)(rows * cols) * map * (i == 0 ? 2 : 3);
    }
    return flops * BATCH;
}

struct times
{
    double forward, backward, update;
};

static double sum(struct times t)
{
    return t.forward + t.backward + t.update;
}

static struct times step(const struct model *m, const struct model_pass *p,
                         struct optimiser_step *s, const uint8_t *labels)
{
    double t0 = now_s();
    float *z = model_forward(m, p);
    struct loss_batch b = {BATCH, m->n_classes, z, labels};
    (void)loss_softmax(&b, z);
    double t1 = now_s();
    model_backward(m, p, z);
    double t2 = now_s();
    struct optimiser o = {.momentum = 0.9, .nesterov = true,
                          .weight_decay = 1e-4};
    optimiser_step(&o, s);
    return (struct times){t1 - t0, t2 - t1, now_s() - t2};
}

static void bench(const char *spec, double peak)
{
    static struct model m;
    char error[MODEL_ERROR_MAX];
    if (model_init(&m, spec, (struct shape){1, 28, 28}, 10, error) != 0) {
        fprintf(stderr, "%s\n", error);
        exit(2);
    }
    size_t n_arena = model_arena(&m, BATCH, true);
    float *arena = noise(n_arena, 4), *grad = noise(m.n_params, 5);
    float *x = noise(m.n_params, 6), *momentum = calloc(m.n_params, 4);
    float *sample = noise(784, 7);
    uint8_t labels[BATCH];
    model_params(&m, 1, x);
    struct model_pass p = {.n = BATCH, .x = x, .grad = grad, .arena = arena,
                           .n_arena = n_arena};
    struct optimiser_step s = {m.segments, m.n_segments, x, grad, momentum,
                               1e-3};
    for (uint32_t i = 0; i < BATCH; i++) {
        labels[i] = (uint8_t)(i % 10);
        model_input(&m, &p, i, sample);
    }
    struct times best = {1, 1, 1};
    for (int trial = 0; trial < TRIALS; trial++) {
        struct times t = {0};
        int reps = 40;
        for (int i = 0; i < reps; i++) {
            struct times one = step(&m, &p, &s, labels);
            t.forward += one.forward / reps;
            t.backward += one.backward / reps;
            t.update += one.update / reps;
        }
        if (sum(t) < sum(best))
            best = t;
    }
    printf("%-22s %7.3f ms/step  (forward %.3f, backward %.3f, update %.3f)  "
           "%5.1f GF/s  %4.1f %% of peak\n",
           m.spec, 1e3 * sum(best), 1e3 * best.forward, 1e3 * best.backward,
           1e3 * best.update, 1e-9 * step_flops(&m) / sum(best),
           100 * step_flops(&m) / sum(best) / peak);
    free(arena);
    free(grad);
    free(x);
    free(momentum);
    free(sample);
}

int main(int argc, char **argv)
{
    static const char *const all[] = {"lenet5", "mlp:784-512-512-10",
                                      "logreg"};
    double peak = sgemm_peak();
    printf("sgemm peak %.1f GF/s (512-cube, one thread)\n", 1e-9 * peak);
    for (int i = 1; i < argc; i++)
        bench(argv[i], peak);
    for (size_t i = 0; argc < 2 && i < sizeof all / sizeof all[0]; i++)
        bench(all[i], peak);
    return 0;
}
