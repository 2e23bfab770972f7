/* tests/unit/nn_model.h -- data shapes and one open model, for the tests of whole models. */
#ifndef TESTS_UNIT_NN_MODEL_H
#define TESTS_UNIT_NN_MODEL_H

#include "nn/layers/loss.h"
#include "nn/math/rng.h"
#include "nn/models/model.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct data_shape mnist = {DATA_IMAGES, 1, 28, 28, 10},
                               cifar = {DATA_IMAGES, 3, 32, 32, 10},
                               rows = {DATA_ROWS, 12, 1, 1, 4}, sparse = {DATA_SPARSE, 50, 1, 1, 3},
                               text = {DATA_TEXT, 1, 6, 1, 256};

static char error[MODEL_ERROR_MAX];
static struct model m;

/* Opens a model in `m` and closes the previous one. */
static void open_model(const char *spec, const struct data_shape *data)
{
    error[0] = '\0';
    model_close(&m);
    if (model_init(&m, spec, MODEL_BATCH_NORM, data, error) != 0)
        fail_msg("%s: %s", spec, error);
}

static int close_last(void **state)
{
    (void)state;
    model_close(&m);
    return 0;
}

#endif
