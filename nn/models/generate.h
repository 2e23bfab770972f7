/* nn/models/generate.h -- a model of text goes on with a text, byte by byte.
 *
 *   fed     t h e _ q u i c k _        the last `context` bytes at most
 *   model   logits of what follows each of them; those of the last count
 *   next    drawn from softmax(logits / temperature) of the top_k largest, and fed
 *
 * Models of text are causal: what stands behind the last byte in a sample has no say, so a short
 * text needs no other model. Each byte costs a pass over a whole sample, as a window that slides
 * gives every byte another position. The same model, text, settings and seed give the same bytes
 * on one machine.
 */
#ifndef NN_MODELS_GENERATE_H
#define NN_MODELS_GENERATE_H

#include "nn/math/rng.h"
#include "nn/models/model.h"

enum { GENERATE_CLASSES = 256 };

struct generate_config
{
    const struct model *m; /* Borrowed, of DATA_TEXT. */
    const float *x;        /* Parameters of the model, borrowed. */
    double temperature;    /* 0: always the likeliest; 1: as the model has it. */
    uint32_t top_k;        /* Number of the most likely bytes among which one is drawn. 0: all. */
    uint64_t seed;
};

struct generate
{
    struct generate_config config;
    struct model_plan plan;
    float *arena;
    struct rng rng;
    uint32_t context, n; /* Bytes that a window has at most, and has. */
    uint8_t window[DATA_CONTEXT_MAX];
};

/* 0 or -ENOMEM. Asserts that the model is of text. */
__attribute__((warn_unused_result)) int generate_init(struct generate *g,
                                                      const struct generate_config *config);
void generate_close(struct generate *g);

/* Text that stands before what is next. */
void generate_feed(struct generate *g, const uint8_t *text, size_t n);

/* The next byte, which is fed, too; -EDOM where the model's answers are not finite. Asserts that
 * something was fed. */
__attribute__((warn_unused_result)) int generate_next(struct generate *g);

/* The class of GENERATE_CLASSES logits that u in [0, 1) stands for; of equal logits the lower
 * class comes first. -EDOM where one is NaN or infinite. */
__attribute__((warn_unused_result)) int generate_pick(const float *logits, double temperature,
                                                      uint32_t top_k, double u);

#endif
