/* tests/unit/node_hostile_trainer.h -- the model of node_hostile_world.h: a quadratic, with running
 * statistics if a test wants them. */
#ifndef TESTS_UNIT_NODE_HOSTILE_TRAINER_H
#define TESTS_UNIT_NODE_HOSTILE_TRAINER_H

#include "nn/math/rng.h"
#include "peer/node/node.h"

enum { DIM = 48, STATISTICS = 5, FLOATS = DIM + STATISTICS };

static const struct segment segment[2] = {
    {.name = "x", .n = DIM, .rows = 1, .cols = DIM, .n_dims = 1, .dims = {DIM}, .trained = true},
    {.name = "var",
     .offset = DIM,
     .n = STATISTICS,
     .rows = 1,
     .cols = STATISTICS,
     .n_dims = 1,
     .dims = {STATISTICS},
     .nonnegative = true}};

static bool statistics; /* True: the model has running statistics. */
static const char *compressor = "topk:0.25", *topology = "complete";

static inline size_t n_floats(void)
{
    return statistics ? FLOATS : DIM;
}

static inline void quadratic_init(void *self, float *x)
{
    (void)self;
    for (size_t k = 0; k < n_floats(); k++)
        x[k] = 1;
}

static inline void quadratic_steps(void *self, float *x, uint64_t round, uint32_t n,
                                   struct trainer_report *report)
{
    const uint8_t *id = self;
    (void)n;
    for (size_t k = 0; k < DIM; k++)
        x[k] -= 0.1f * (x[k] - rng_unit_at(id[0] + round, k));
    for (size_t k = DIM; k < n_floats(); k++)
        x[k] -= 0.1f * (x[k] - 100 * rng_unit_at(id[0] + round, k));
    *report = (struct trainer_report){.n_samples = 1};
}

static inline void quadratic_evaluate(void *self, const float *x, uint64_t most,
                                      struct trainer_report *report)
{
    (void)self, (void)x, (void)most;
    *report = (struct trainer_report){.n_samples = 1};
}

static inline int quadratic(void *self, const struct run *run, struct trainer *t,
                            char error[RUN_ERROR_MAX])
{
    (void)run, (void)error;
    *t = (struct trainer){.n_params = n_floats(),
                          .segments = segment,
                          .n_segments = statistics ? 2 : 1,
                          .self = self,
                          .init = quadratic_init,
                          .steps = quadratic_steps,
                          .evaluate = quadratic_evaluate};
    return 0;
}

#endif
