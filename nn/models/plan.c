/* nn/models/plan.c -- assigns positions in the arena to the buffers of a pass. Buffers that are not
 * used at the same time may share memory. Time is counted in steps: layer i runs forward in step i
 * and backward in step 2 L - 1 - i, for L layers. A buffer is in use from the step that writes it
 * to the last step that reads it. It gets the lowest position that is free during all these steps.
 * All pairs of buffers are compared, which is cheap for some hundred layers. */
#include "nn/models/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN = 16 /* Number of floats in a cache line of 64 bytes. */
};

struct buffer
{
    size_t at, n;      /* Position of the buffer in the arena, and its size, in floats. */
    size_t born, dies; /* First and last step of the pass in which the buffer is used. */
    size_t *where;     /* Address in the plan to which the position of the buffer is written. */
};

struct places
{
    struct buffer *all; /* Buffers that already have a position, sorted by position. */
    size_t n;
    /* End of the buffer with the highest position. When all buffers are placed, this is the size of
     * the arena in floats. */
    size_t end;
};

/* Gives the buffer a position: the first gap that is large enough between the buffers in use at the
 * same time. */
static void place(struct places *p, struct buffer b)
{
    b.at = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct buffer *o = &p->all[i];
        if (o->born > b.dies || o->dies < b.born)
            continue;
        if (b.at + b.n <= o->at)
            break;
        if (o->at + o->n > b.at)
            b.at = o->at + o->n;
    }
    size_t i = p->n;
    while (i > 0 && p->all[i - 1].at > b.at) {
        p->all[i] = p->all[i - 1];
        i--;
    }
    p->all[i] = b;
    p->n++;
    *b.where = b.at;
    if (b.at + b.n > p->end)
        p->end = b.at + b.n;
}

/* Returns the size of a buffer of n floats and the LAYER_SLACK unused floats after it, rounded up
 * so that the next buffer starts at a cache line. */
static size_t padded(size_t n)
{
    return (n + LAYER_SLACK + ALIGN - 1) / ALIGN * ALIGN;
}

/* Sets needs[i] to true if the backward pass needs the gradient of layer i's output. This is so if
 * layer i has parameters, or if a layer with parameters feeds layer i, directly or through other
 * layers. */
static void find_needs(const struct model *m, bool *needs)
{
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct layer *l = &m->layers[i];
        needs[i] = layer_op(l->kind)->params != NULL || (l->from >= 0 && needs[l->from])
                   || (l->with >= 0 && needs[l->with]);
    }
}

static void find_readers(struct model_plan *plan, const struct model *m)
{
    for (size_t i = 0; i < m->n_layers; i++)
        plan->last_reader[i] = i;
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct layer *l = &m->layers[i];
        if (l->from >= 0)
            plan->last_reader[l->from] = i;
        if (l->with >= 0)
            plan->last_reader[l->with] = i;
    }
}

/* Gives positions to all buffers of layer i. The logits, the output of the last layer, stay in use
 * until the end of the pass. */
static void place_layer(struct model_plan *plan, const struct model *m, struct places *p, size_t i,
                        bool needed)
{
    const struct layer *l = &m->layers[i];
    const struct layer_op *op = layer_op(l->kind);
    size_t last = 2 * m->n_layers - 1, back = last - i;
    size_t n_out = padded(plan->n * shape_size(l->out));
    size_t dies = plan->training ? back : i + 1 == m->n_layers ? last : plan->last_reader[i];
    place(p, (struct buffer){.n = n_out, .born = i, .dies = dies, .where = &plan->out[i]});
    if (!plan->training)
        return;
    size_t keep = op->keep != NULL ? op->keep(l, plan->n) : 0;
    place(p, (struct buffer){.n = padded(keep), .born = i, .dies = back, .where = &plan->keep[i]});
    if (needed && i + 1 < m->n_layers)
        place(p, (struct buffer){.n = n_out,
                                 .born = last - plan->last_reader[i],
                                 .dies = back,
                                 .where = &plan->d_out[i]});
}

/* Gives positions to all buffers of the plan. The buffer of the input is in use during the whole
 * pass, so that the pass does not overwrite its input. */
static void place_all(struct model_plan *plan, const struct model *m, struct places *p,
                      const bool *needs)
{
    size_t scratch = 0, input, last = 2 * m->n_layers - 1;
    size_t dim = m->sparse ? 0 : shape_size(m->in);
    place(p, (struct buffer){.n = padded(plan->n * dim), .born = 0, .dies = last, .where = &input});
    assert(input == 0);
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct layer_op *op = layer_op(m->layers[i].kind);
        size_t n = op->scratch != NULL ? op->scratch(&m->layers[i], plan->n, plan->training) : 0;
        scratch = n > scratch ? n : scratch;
        plan->d_out[i] = MODEL_NOWHERE;
        place_layer(plan, m, p, i, needs[i]);
    }
    place(p,
          (struct buffer){.n = padded(scratch), .born = 0, .dies = last, .where = &plan->scratch});
}

int model_plan_init(struct model_plan *plan, const struct model *m, uint32_t n, bool training)
{
    assert(n > 0);
    size_t layers = m->n_layers;
    *plan = (struct model_plan){.n = n, .training = training};
    size_t *numbers = calloc(4 * layers, sizeof *numbers);
    bool *needs = calloc(layers, sizeof *needs);
    struct places p = {calloc(3 * layers + 2, sizeof *p.all), 0, 0};
    int err = numbers != NULL && needs != NULL && p.all != NULL ? 0 : -ENOMEM;
    if (err == 0) {
        plan->out = numbers;
        plan->d_out = numbers + layers;
        plan->keep = numbers + 2 * layers;
        plan->last_reader = numbers + 3 * layers;
        find_needs(m, needs);
        find_readers(plan, m);
        place_all(plan, m, &p, needs);
        plan->n_floats = p.end;
    } else {
        free(numbers);
    }
    free(needs);
    free(p.all);
    return err;
}

void model_plan_close(struct model_plan *plan)
{
    free(plan->out);
    memset(plan, 0, sizeof *plan);
}
