/* gossip/mixers/companion.c -- encodes, decodes and mixes the companion vectors of a model. */
#include "gossip/mixers/companion.h"

#include "nn/math/rng.h"

#include <string.h>

/* Returns the length in bytes of an encoded companion vector, from the length field before it. */
static size_t length(const uint8_t *field)
{
    size_t n = 0;
    for (int i = COMPANION_HEAD; i-- > 0;)
        n = n << 8 | field[i];
    return n;
}

/* Returns whether deltas of this codec contain the companion vectors. */
static bool contains(const struct mixing *m, uint32_t codec)
{
    return m->n_companions > 0 && m->companion_codec[0][codec] != NULL;
}

/* Returns the position of companion vector v in a replica. */
static size_t place(const struct mixing *m, size_t v)
{
    return (1 + v) * m->dim;
}

bool companion_valid(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                     size_t *at)
{
    *at = 0;
    for (size_t v = 0; v < m->n_companions && contains(m, codec); v++) {
        if (n - *at < COMPANION_HEAD || length(message + *at) > n - *at - COMPANION_HEAD)
            return false;
        size_t len = length(message + *at);
        *at += COMPANION_HEAD;
        if (!compress_validate(m->companion_codec[v][codec], message + *at, len))
            return false;
        *at += len;
    }
    return true;
}

size_t companion_add(const struct mixing *m, uint32_t codec, const uint8_t *message, float *replica)
{
    size_t at = 0;
    for (size_t v = 0; v < m->n_companions && contains(m, codec); v++) {
        size_t len = length(message + at);
        at += COMPANION_HEAD;
        compress_apply(m->companion_codec[v][codec], message + at, len, replica + place(m, v));
        at += len;
    }
    return at;
}

/* Encodes companion vector v, with its length field. */
static int put(const struct mixing *m, size_t v, uint32_t codec, const struct compress_input *in,
               uint8_t *message, size_t *n)
{
    /* Each companion vector has a random stream of its own, so its random choices are independent
     * of those for the model and for other companion vectors. */
    struct compress_input own = {.draw = rng_at(in->draw, UINT64_MAX - v),
                                 .round = in->round,
                                 .x = m->companion[v],
                                 .x_hat = in->x_hat + place(m, v)};
    size_t len = 0;
    /* `stat` is passed although it is not used, because the encoder then also checks the values
     * that it does not send. */
    struct compress_stat stat;
    int err =
        compress_encode(m->companion_codec[v][codec], &own, message + COMPANION_HEAD, &len, &stat);
    for (int i = 0; i < COMPANION_HEAD; i++)
        message[i] = (uint8_t)(len >> 8 * i);
    *n += COMPANION_HEAD + len;
    return err;
}

int companion_put(const struct mixing *m, uint32_t codec, const struct compress_input *in,
                  uint8_t *message, size_t *n)
{
    int err = 0;
    *n = 0;
    for (size_t v = 0; v < m->n_companions && contains(m, codec) && err == 0; v++)
        err = put(m, v, codec, in, message + *n, n);
    return err;
}

void companion_mix(const struct mixing *m, const struct correction *term)
{
    const struct mixing_task *t = term->task;
    if (term->refused || !contains(m, t->ours.head.codec) || !contains(m, t->theirs.head.codec))
        return;
    for (size_t v = 0; v < m->n_companions; v++)
        vec_add_diff(m->companion[v], term->coefficient, term->b + place(m, v),
                     term->a + place(m, v), m->dim);
    if (t->edge->flow != NULL)
        vec_add_diff(t->edge->flow, term->coefficient, term->b + m->dim, term->a + m->dim, m->dim);
}

void companion_take_back(const struct mixing *m, struct edge *e)
{
    if (e->flow == NULL)
        return;
    vec_axpy(m->companion[0], -1, e->flow, m->dim);
    memset(e->flow, 0, m->dim * sizeof *e->flow);
}
