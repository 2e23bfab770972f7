/* gossip/mixers/companion.c -- encodes, decodes and mixes the companion vector of a model. */
#include "gossip/mixers/companion.h"

#include "nn/math/rng.h"

#include <string.h>

/* Returns the length in bytes of the encoded companion vector in a message, without the length
 * field before the vector. */
static size_t length(const uint8_t *message)
{
    size_t n = 0;
    for (int i = COMPANION_HEAD; i-- > 0;)
        n = n << 8 | message[i];
    return n;
}

bool companion_valid(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                     size_t *at)
{
    *at = 0;
    if (m->companion_codec[codec] == NULL)
        return true;
    if (n < COMPANION_HEAD || length(message) > n - COMPANION_HEAD)
        return false;
    *at = COMPANION_HEAD + length(message);
    return compress_validate(m->companion_codec[codec], message + COMPANION_HEAD, length(message));
}

size_t companion_add(const struct mixing *m, uint32_t codec, const uint8_t *message, float *replica)
{
    if (m->companion_codec[codec] == NULL)
        return 0;
    compress_apply(m->companion_codec[codec], message + COMPANION_HEAD, length(message),
                   replica + m->dim);
    return COMPANION_HEAD + length(message);
}

int companion_put(const struct mixing *m, uint32_t codec, const struct compress_input *in,
                  uint8_t *message, size_t *n)
{
    /* The companion has a random stream of its own, so its random choices are independent of those
     * for the model. */
    struct compress_input own = {.draw = rng_at(in->draw, UINT64_MAX),
                                 .round = in->round,
                                 .x = m->companion,
                                 .x_hat = in->x_hat + m->dim};
    size_t len;
    *n = 0;
    if (m->companion_codec[codec] == NULL)
        return 0;
    /* `stat` is passed although it is not used, because the encoder then also checks the values
     * that it does not send. */
    struct compress_stat stat;
    int err =
        compress_encode(m->companion_codec[codec], &own, message + COMPANION_HEAD, &len, &stat);
    for (int i = 0; i < COMPANION_HEAD; i++)
        message[i] = (uint8_t)(len >> 8 * i);
    *n = COMPANION_HEAD + len;
    return err;
}

void companion_mix(const struct mixing *m, const struct correction *term)
{
    const struct mixing_task *t = term->task;
    if (m->companion == NULL || term->refused || m->companion_codec[t->ours.head.codec] == NULL
        || m->companion_codec[t->theirs.head.codec] == NULL)
        return;
    vec_add_diff(m->companion, term->coefficient, term->b + m->dim, term->a + m->dim, m->dim);
    if (t->edge->flow != NULL)
        vec_add_diff(t->edge->flow, term->coefficient, term->b + m->dim, term->a + m->dim, m->dim);
}

void companion_take_back(const struct mixing *m, struct edge *e)
{
    if (e->flow == NULL)
        return;
    vec_axpy(m->companion, -1, e->flow, m->dim);
    memset(e->flow, 0, m->dim * sizeof *e->flow);
}
