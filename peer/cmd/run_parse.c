/* peer/cmd/run_parse.c -- parses run descriptions of both kinds (SGD runs, and layout runs of
 * programs that bring their own model), and finds the shape of the model. */
#include "peer/cmd/run_parse.h"

#include "peer/cmd/training.h"
#include "peer/run/layout_keys.h"
#include "peer/sgd/sgd_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int cmd_run_parse(struct run *run, const char *text, size_t n, char error[RUN_ERROR_MAX])
{
    char of_layout[RUN_ERROR_MAX];
    if (run_from_text(run, &sgd_keys, text, n, error) == 0
        || run_from_text(run, &layout_keys, text, n, of_layout) == 0)
        return 0;
    return -EINVAL;
}

bool cmd_run_is_layout(const struct run *run)
{
    return run->trainer == &layout_keys;
}

int cmd_run_model(struct model *m, const struct run *run, char error[RUN_ERROR_MAX])
{
    if (!cmd_run_is_layout(run))
        return cmd_training_model(m, run, error);
    const struct layout_values *v = layout_values(run);
    size_t trained = (size_t)v->trained, beside = (size_t)(v->floats - v->trained);
    *m = (struct model){.n_params = (size_t)v->floats};
    m->segments = calloc(2, sizeof *m->segments);
    if (m->segments == NULL) {
        snprintf(error, RUN_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    m->segments[m->n_segments++] = (struct segment){
        .name = "tensors", .n = trained, .rows = 1, .cols = trained, .trained = true};
    if (beside > 0)
        m->segments[m->n_segments++] = (struct segment){
            .name = "statistics", .offset = trained, .n = beside, .rows = 1, .cols = beside};
    return 0;
}
