/* nn/models/generate.c -- runs a window of text through a model and draws the next byte. */
#include "nn/models/generate.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int generate_init(struct generate *g, const struct generate_config *config)
{
    const struct model *m = config->m;
    assert(m->data.form == DATA_TEXT && m->n_classes == GENERATE_CLASSES);
    assert(m->n_rows >= 1 && m->n_rows <= DATA_CONTEXT_MAX);
    *g = (struct generate){.config = *config, .context = m->n_rows};
    g->rng = rng_stream(rng_key(config->seed, RNG_GENERATE, 0, 0));
    int err = model_plan_init(&g->plan, m, 1, false);
    if (err < 0)
        return err;
    g->arena = aligned_alloc(64, (g->plan.n_floats * sizeof(float) + 63) / 64 * 64);
    if (g->arena != NULL)
        return 0;
    model_plan_close(&g->plan);
    return -ENOMEM;
}

void generate_close(struct generate *g)
{
    if (g->arena != NULL)
        model_plan_close(&g->plan);
    free(g->arena);
    g->arena = NULL;
}

/* Drops the oldest bytes if the text is longer than the context. */
void generate_feed(struct generate *g, const uint8_t *text, size_t n)
{
    if (n > g->context) {
        text += n - g->context;
        n = g->context;
    }
    size_t keep = g->n + n > g->context ? g->context - n : g->n;
    memmove(g->window, g->window + (g->n - keep), keep);
    memcpy(g->window + keep, text, n);
    g->n = (uint32_t)(keep + n);
}

/* A class and its logit. Sorted by descending logit. */
struct ranked
{
    float logit;
    int class;
};

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->class - y->class;
}

int generate_pick(const float *logits, double temperature, uint32_t top_k, double u)
{
    struct ranked r[GENERATE_CLASSES];
    double weight[GENERATE_CLASSES], sum = 0;
    for (int i = 0; i < GENERATE_CLASSES; i++) {
        if (!isfinite(logits[i]))
            return -EDOM;
        r[i] = (struct ranked){logits[i], i};
    }
    qsort(r, GENERATE_CLASSES, sizeof *r, compare);
    int n = top_k > 0 && top_k < GENERATE_CLASSES ? (int)top_k : GENERATE_CLASSES;
    if (!(temperature > 0))
        return r[0].class;
    for (int i = 0; i < n; i++) {
        weight[i] = exp(((double)r[i].logit - (double)r[0].logit) / temperature);
        sum += weight[i];
    }
    /* The most likely class has the weight exp(0) = 1, so the sum of the weights is at least 1. */
    double left = u * sum;
    int i = 0;
    while (i + 1 < n && left >= weight[i])
        left -= weight[i++];
    return r[i].class;
}

int generate_next(struct generate *g)
{
    const struct model *m = g->config.m;
    assert(g->n > 0);
    struct model_pass pass = {.n = 1, .x = g->config.x, .plan = &g->plan, .arena = g->arena};
    float *in = model_input(m, &pass, 0);
    for (uint32_t i = 0; i < g->context; i++)
        in[i] = i < g->n ? (float)g->window[i] : 0;
    const float *logits = model_forward(m, &pass) + (size_t)(g->n - 1) * m->n_classes;
    int class = generate_pick(logits, g->config.temperature, g->config.top_k, rng_unit(&g->rng));
    if (class >= 0)
        generate_feed(g, &(uint8_t){(uint8_t) class}, 1);
    return class;
}
