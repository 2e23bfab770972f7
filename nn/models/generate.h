/* nn/models/generate.h -- a language model continues a text, byte by byte.
 *
 *   fed     t h e _ q u i c k _        at most the last `context` bytes
 *   model   logits of the byte after each of them; only the last logits are used
 *   next    drawn from softmax(logits / temperature) of the top_k largest, then fed
 *
 * Language models are causal: logits do not depend on later bytes. A text shorter than the context
 * can therefore be padded. Each byte costs a forward pass over a whole sample, because the sliding
 * window moves every byte to another position. The same model, text, settings and seed give the
 * same bytes on one machine.
 */
#ifndef NN_MODELS_GENERATE_H
#define NN_MODELS_GENERATE_H

#include "nn/math/rng.h"
#include "nn/models/model.h"

enum { GENERATE_CLASSES = 256 };

struct generate_config
{
    /* A language model, that is a model for data of the form DATA_TEXT. Borrowed. */
    const struct model *m;
    const float *x; /* Parameters of the model, borrowed. */
    /* Temperature, the divisor of the logits. 1: bytes have the model's probabilities. 0: the most
     * likely byte is always chosen. */
    double temperature;
    /* top-k sampling: the next byte is drawn from the top_k most likely bytes. 0: from all
     * bytes. */
    uint32_t top_k;
    uint64_t seed;
};

struct generate
{
    struct generate_config config;
    struct model_plan plan;
    float *arena;
    struct rng rng;
    uint32_t context, n; /* Capacity of `window`, and number of bytes in it at present. */
    uint8_t window[DATA_CONTEXT_MAX];
};

/* Prepares generation. Returns 0 or -ENOMEM. Asserts that the model is a language model. */
__attribute__((warn_unused_result)) int generate_init(struct generate *g,
                                                      const struct generate_config *config);
void generate_close(struct generate *g);

/* Appends n bytes to the text that is continued. */
void generate_feed(struct generate *g, const uint8_t *text, size_t n);

/* Draws the next byte and appends it to the text. Returns the byte, or -EDOM if the logits are not
 * finite. Asserts that text was fed before. */
__attribute__((warn_unused_result)) int generate_next(struct generate *g);

/* Returns the class that the uniform number u in [0, 1) selects from GENERATE_CLASSES logits. Of
 * equal logits the lower class comes first. Returns -EDOM if a logit is not finite. */
__attribute__((warn_unused_result)) int generate_pick(const float *logits, double temperature,
                                                      uint32_t top_k, double u);

#endif
