/* tests/unit/nn_golden.c -- losses, logits and every gradient tensor of whole
 * models against PyTorch's (tests/golden/nn_*.h, made by
 * tests/golden/make_nn.py). */
#include "tests/unit/nn_golden.h"

#include "nn/layers/loss.h"
#include "nn/math/blas.h"
#include "tests/golden/nn_gpt.h"
#include "tests/golden/nn_lenet5.h"
#include "tests/golden/nn_lstm.h"
#include "tests/golden/nn_resnet20.h"
#include "tests/golden/nn_resnet20_group.h"
#include "tests/golden/nn_vgg11.h"
#include "tests/golden/nn_vgg11_bn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A golden model and ours: the same parameters, input and labels. */
struct pair
{
    const struct golden_model *golden;
    struct model m;
    struct model_plan plan;
    float *x, *grad, *arena, *logits;
    size_t rows;
    uint16_t *labels;
};

static uint32_t key(const char *name, uint32_t salt)
{
    uint32_t h = 2166136261u ^ salt;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static uint32_t word(uint32_t k, size_t i)
{
    uint32_t x = k + (uint32_t)i * 0x9e3779b1u;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

static float unit(uint32_t k, size_t i)
{
    return (float)(word(k, i) >> 8) * 0x1p-23f - 1.0f;
}

static void *room(size_t n, size_t size)
{
    void *v = aligned_alloc(64, (n * size + 63) / 64 * 64);
    assert_non_null(v);
    return v;
}

static const struct golden_tensor *find(const struct golden_model *g, const struct segment *s)
{
    for (size_t i = 0; i < g->n_tensors; i++)
        if (strcmp(g->tensors[i].name, s->name) == 0)
            return &g->tensors[i];
    fail_msg("%s: PyTorch has no %s", g->name, s->name);
    return NULL;
}

/* The segments are PyTorch's tensors: names and shapes, in any order. */
static void check_segments(const struct pair *p)
{
    assert_int_equal(p->m.n_segments, p->golden->n_tensors);
    for (size_t i = 0; i < p->m.n_segments; i++) {
        const struct segment *s = &p->m.segments[i];
        const struct golden_tensor *t = find(p->golden, s);
        size_t n = 1;
        for (uint32_t j = 0; j < t->n_dims; j++)
            n *= t->dims[j];
        if (s->n_dims != t->n_dims || s->n != n
            || memcmp(s->dims, t->dims, s->n_dims * sizeof *s->dims) != 0)
            fail_msg("%s: %s has another shape", p->golden->name, s->name);
        bool running = strstr(s->name, "running_") != NULL;
        assert_int_equal(s->trained, !running);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(s->name, p->m.segments[j].name);
    }
}

static void fill_parameters(struct pair *p)
{
    for (size_t i = 0; i < p->m.n_segments; i++) {
        const struct segment *s = &p->m.segments[i];
        const struct golden_tensor *t = find(p->golden, s);
        uint32_t k = key(s->name, p->golden->salt);
        for (size_t j = 0; j < s->n; j++) {
            float part = t->scale * unit(k, j);
            p->x[s->offset + j] = t->centre + part;
        }
    }
}

/* Element j of a sample of the golden input, [c][h][w], goes to its place. */
static void fill_input(const struct pair *p, const struct model_pass *pass)
{
    const struct golden_model *g = p->golden;
    uint32_t k = key("input", g->salt), c = g->data.channels;
    size_t places = (size_t)g->data.height * g->data.width;
    for (uint32_t i = 0; i < g->n; i++) {
        float *sample = model_input(&p->m, pass, i);
        for (size_t j = 0; j < places * c; j++) {
            size_t number = i * places * c + j;
            sample[j % places * c + j / places] =
                g->data.form == DATA_TEXT ? (float)(word(k, number) >> 24) : unit(k, number);
        }
    }
}

static void pair_open(struct pair *p, const struct golden_model *g)
{
    char error[MODEL_ERROR_MAX];
    *p = (struct pair){.golden = g};
    blas_init();
    if (model_init(&p->m, g->spec, g->norm, &g->data, error) != 0)
        fail_msg("%s: %s", g->name, error);
    check_segments(p);
    p->x = room(p->m.n_params + LAYER_SLACK, sizeof *p->x);
    p->grad = room(p->m.n_params + LAYER_SLACK, sizeof *p->grad);
    fill_parameters(p);
    p->rows = (size_t)g->n * p->m.n_rows;
    p->labels = room(p->rows, sizeof *p->labels);
    uint32_t k = key("labels", g->salt);
    for (size_t i = 0; i < p->rows; i++)
        p->labels[i] = (uint16_t)((word(k, i) >> 8) % g->data.n_classes);
}

/* Prepares a plan, an arena filled with arbitrary values, and the input. */
static struct model_pass begin(struct pair *p, bool training)
{
    assert_int_equal(model_plan_init(&p->plan, &p->m, p->golden->n, training), 0);
    p->arena = room(p->plan.n_floats, sizeof *p->arena);
    for (size_t i = 0; i < p->plan.n_floats; i++)
        p->arena[i] = NAN;
    for (size_t i = 0; i < p->m.n_params; i++)
        p->grad[i] = NAN;
    struct model_pass pass = {
        .n = p->golden->n, .x = p->x, .grad = p->grad, .plan = &p->plan, .arena = p->arena};
    fill_input(p, &pass);
    return pass;
}

static void end(struct pair *p)
{
    model_plan_close(&p->plan);
    free(p->arena);
}

static void pair_close(struct pair *p)
{
    model_close(&p->m);
    free(p->x);
    free(p->grad);
    free(p->labels);
}

static void check_near(const struct pair *p, const char *what, double got, double want,
                       double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s: %s: %.9g, PyTorch has %.9g, tolerance %.2g", p->golden->name, what, got, want,
                 tolerance);
}

static double dot(const struct golden_model *g, const float *v, size_t n)
{
    uint32_t k = key("dot", g->salt);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)unit(k, i);
    return sum;
}

/* Each logit; or each row's inner product, which is as far off as the square
 * root of that many logits, a third of them squared. */
static void check_logits(const struct pair *p, const char *what, const float *z, const double *want)
{
    const struct golden_model *g = p->golden;
    size_t c = g->data.n_classes;
    bool text = g->data.form == DATA_TEXT;
    double tolerance = GOLDEN_LOGIT * g->largest;
    for (size_t i = 0; !text && i < p->rows * c; i++)
        check_near(p, what, (double)z[i], want[i], tolerance);
    for (size_t i = 0; text && i < p->rows; i++)
        check_near(p, what, dot(g, &z[i * c], c), want[i], tolerance * sqrt((double)c / 3));
}

static void check_gradient(const struct pair *p, const struct segment *s, double steepest)
{
    const struct golden_tensor *t = find(p->golden, s);
    const float *v = &p->grad[s->offset];
    bool whole = s->n <= GOLDEN_ALL_OF;
    size_t n = whole ? s->n : GOLDEN_SPREAD;
    char what[160];
    double norm2 = 0;
    for (size_t i = 0; i < s->n; i++)
        norm2 += (double)v[i] * (double)v[i];
    double floor = GOLDEN_FLOOR * steepest;
    double of_value = GOLDEN_VALUE * t->norm / sqrt((double)s->n);
    for (size_t i = 0; i < n; i++) {
        size_t at = whole ? i : i * s->n / GOLDEN_SPREAD;
        snprintf(what, sizeof what, "gradient of %s[%zu]", s->name, at);
        check_near(p, what, (double)v[at], t->values[i], of_value + floor);
    }
    double of_whole = GOLDEN_GRAD * t->norm + floor;
    snprintf(what, sizeof what, "norm of the gradient of %s", s->name);
    check_near(p, what, sqrt(norm2), t->norm, of_whole);
    snprintf(what, sizeof what, "projected gradient of %s", s->name);
    check_near(p, what, dot(p->golden, v, s->n), t->dot, of_whole);
}

static void check_training(struct pair *p)
{
    const struct golden_model *g = p->golden;
    struct model_pass pass = begin(p, true);
    float *z = model_forward(&p->m, &pass);
    check_logits(p, "logit in training", z, g->logits);
    struct loss_batch batch = {
        .n = p->rows, .n_classes = g->data.n_classes, .logits = z, .labels = p->labels};
    struct loss loss = loss_softmax(&batch, z);
    check_near(p, "loss", loss.sum / (double)p->rows, g->loss, GOLDEN_LOSS * g->loss);
    model_backward(&p->m, &pass, z);
    double steepest = 0;
    for (size_t i = 0; i < g->n_tensors; i++)
        steepest = fmax(steepest, g->tensors[i].norm);
    for (size_t i = 0; i < p->m.n_segments; i++)
        check_gradient(p, &p->m.segments[i], steepest);
    end(p);
}

/* Evaluation with running statistics, in a plan whose outputs share memory. */
static void check_evaluation(struct pair *p)
{
    struct model_pass pass = begin(p, false);
    const float *z = model_forward(&p->m, &pass);
    check_logits(p, "logit in evaluation", z, p->golden->tested);
    end(p);
}

static void check_model(void **state)
{
    struct pair p;
    pair_open(&p, *state);
    check_training(&p);
    check_evaluation(&p);
    pair_close(&p);
}

/* The hash is make_nn.py's: its values, by hand. */
static void test_hash(void **state)
{
    (void)state;
    assert_int_equal(key("fc1.weight", 1), 0x198a6f5c);
    assert_int_equal(word(0x198a6f5c, 0), 0x6f0e48f0);
    assert_int_equal(word(0x198a6f5c, 12345), 0x91130940);
}

static const struct golden_model *all[] = {
    &lenet5_golden,         &vgg11_golden, &vgg11_bn_golden, &resnet20_golden,
    &resnet20_group_golden, &lstm_golden,  &gpt_golden};

int main(void)
{
    enum { N = sizeof all / sizeof all[0] };
    struct CMUnitTest tests[1 + N] = {cmocka_unit_test(test_hash)};
    for (size_t i = 0; i < N; i++)
        tests[1 + i] = (struct CMUnitTest){.name = all[i]->name,
                                           .test_func = check_model,
                                           .initial_state = (void *)(uintptr_t)all[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
