/* peer/cmd/logits.c -- runs the forward pass of a model over a whole data set. */
#include "peer/cmd/logits.h"

#include <errno.h>
#include <stdlib.h>

enum { BATCH = 32 };

/* Computes the logits of the samples `at` to `at` + n - 1, and passes them to `a->take`. Returns
 * the result of `a->take`. */
static int answer(const struct cmd_logits *a, const struct model_plan *plan, float *arena,
                  size_t at, uint32_t n)
{
    struct model_pass pass = {.n = n, .x = a->x, .plan = plan, .arena = arena};
    if (a->m->sparse)
        pass.rows = (struct sparse_rows){a->set->start + at, a->set->column, a->set->entry};
    else
        for (uint32_t i = 0; i < n; i++)
            dataset_sample(a->set, at + i, model_input(a->m, &pass, i));
    return a->take(a->self, at, n, model_forward(a->m, &pass));
}

int cmd_logits(const struct cmd_logits *a)
{
    struct model_plan plan;
    int err = model_plan_init(&plan, a->m, BATCH, false);
    if (err < 0)
        return err;
    float *arena = aligned_alloc(64, (plan.n_floats * sizeof(float) + 63) / 64 * 64);
    if (arena == NULL)
        err = -ENOMEM;
    for (size_t at = 0; at < a->set->n && err == 0; at += BATCH) {
        size_t left = a->set->n - at;
        err = answer(a, &plan, arena, at, left < BATCH ? (uint32_t)left : BATCH);
    }
    free(arena);
    model_plan_close(&plan);
    return err;
}
