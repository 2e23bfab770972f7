/* compress/sparse.c -- driver of the selectors: encodes chosen positions, then their values.
 *
 * The chosen values are passed to the values codec as a vector of their own, so every selector
 * works with every values codec. The message contains the positions (coding/positions.h), or a seed
 * from which they are derived (randk).
 *
 * A selector may change the values it chose: randk and wangni can scale them up to be unbiased. The
 * error is then measured against the original elements.
 */
#include "compress/sparse.h"

#include "compress/coding/bytes.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <assert.h>

enum { SEED_BYTES = 8 };

static const struct codec_selector *selector_of(const struct sparse *c)
{
    return c->selector->codec->selector;
}

/* Returns true if the message must contain k, the number of chosen elements. With a warm-up, k
 * depends on the round, which a message does not contain, so a selector that sends a seed must also
 * send k. */
static bool sends_k(const struct sparse *c)
{
    const struct codec_selector *f = selector_of(c);
    return f->sends_k != NULL && f->sends_k(c->selector->arg);
}

/* ---- Message sizes ---- */

/* Returns the largest number of bytes in a message before the values: the encoded positions of k
 * elements, or the seed and perhaps k. */
static size_t places_bound(const struct sparse *c, size_t k, size_t n)
{
    if (selector_of(c)->places == NULL)
        return positions_bound(c->positions, k, n);
    return SEED_BYTES + (sends_k(c) ? BYTES_VARINT_MAX : 0);
}

size_t sparse_bound(const struct sparse *c, size_t n)
{
    size_t k = selector_of(c)->most(c->selector->arg, n);
    return places_bound(c, k, n) + dense_size(c->coder, k);
}

size_t sparse_nominal(const struct sparse *c, size_t n)
{
    const struct codec_selector *f = selector_of(c);
    size_t k = f->typical != NULL ? f->typical(c->selector->arg, n) : f->most(c->selector->arg, n);
    size_t places =
        f->places == NULL ? positions_nominal(c->positions, k, n) : places_bound(c, k, n);
    return places + dense_size(c->coder, k);
}

/* ---- Encoding the chosen elements of a unit ---- */

/* Writes the bytes before the values: the positions, or the seed and perhaps k. Returns their
 * number. */
static size_t put_places(const struct sparse *c, size_t n, const struct codec_pick *pick,
                         uint8_t *dst)
{
    if (selector_of(c)->places == NULL)
        return positions_put(c->positions, pick->index, pick->k, n, dst);
    bytes_put_u64(dst, pick->seed);
    if (!sends_k(c))
        return SEED_BYTES;
    return SEED_BYTES + bytes_put_varint(dst + SEED_BYTES, (uint32_t)pick->k);
}

/* Returns the squared error of the chosen elements, for a selector that changed their values.
 * Decodes the bytes just written and compares the result with the original elements. */
static double error_to_truth(const struct sparse *c, const uint8_t *src,
                             const struct codec_pick *pick)
{
    float v[CODEC_CHUNK];
    double e2 = 0.0;
    for (size_t at = 0, count; at < pick->k; at += count) {
        count = dense_decode(c->coder, src, pick->k, at, v);
        e2 += vec_dist2(pick->truth + at, v, count);
    }
    return e2;
}

int sparse_encode(const struct sparse *c, const struct codec_source *s,
                  struct sparse_scratch *scratch, uint8_t *dst, size_t *len,
                  struct compress_stat *stat)
{
    const struct codec_selector *f = selector_of(c);
    struct codec_pick *pick = &scratch->pick;
    struct codec_source from = *s;
    from.key = rng_at(s->key, CODEC_STREAM_SELECT);
    pick->scaled = false;
    pick->rest2 = 0.0;
    *len = 0;
    *stat = (struct compress_stat){0};
    int err = f->select(c->selector->arg, &from, pick);
    if (err == 0 && f->measure != NULL && s->measured)
        err = f->measure(&from, pick);
    if (err != 0)
        return err;
    if (pick->k > 0) {
        struct codec_source taken = {
            .x = pick->value,
            .n = pick->k,
            .key = rng_at(s->key, CODEC_STREAM_VALUES),
        };
        size_t places = put_places(c, s->n, pick, dst);
        err = dense_encode(c->coder, &taken, &scratch->dense, dst + places, stat);
        if (err != 0)
            return err;
        if (pick->scaled) {
            stat->x2 = vec_norm2(pick->truth, pick->k);
            stat->e2 = error_to_truth(c, dst + places, pick);
        }
        *len = places + dense_size(c->coder, pick->k);
    }
    stat->x2 += pick->rest2;
    stat->e2 += pick->rest2;
    return 0;
}

/* ---- Checking and decoding a message ---- */

/* Reader of the positions in a message. */
struct places
{
    /* True: the message contains the positions. False: they are derived from the seed in the
     * message. */
    bool sent;
    size_t n, k; /* Number of elements of the unit, and number of positions in the message. */
    size_t used; /* Number of bytes before the values: the positions, or the seed and perhaps k. */
    size_t at;   /* Number of positions that have already been derived from the seed. */
    uint64_t seed;
    struct positions positions;
};

/* Reads the start of a message that has a seed instead of positions. Returns false if the start is
 * not valid. Every seed is valid, because each seed gives k ascending positions below n. */
static bool open_seeded(struct places *p, const struct sparse *c, size_t most, const uint8_t *src,
                        size_t len)
{
    if (len < SEED_BYTES)
        return false;
    p->seed = bytes_get_u64(src);
    p->used = SEED_BYTES;
    p->k = most;
    if (!sends_k(c))
        return true;
    uint32_t k = 0;
    size_t head = bytes_get_varint(src + SEED_BYTES, len - SEED_BYTES, &k);
    p->k = k;
    p->used += head;
    return head != 0 && k >= 1 && k <= most;
}

/* Reads the start of a message, including k. Returns false if it is not valid. k is at most
 * selector.most(n), which limits the work that a short message can cause. */
static bool open_places(struct places *p, const struct sparse *c, size_t n, const uint8_t *src,
                        size_t len)
{
    const struct codec_selector *f = selector_of(c);
    size_t most = f->most(c->selector->arg, n);
    *p = (struct places){.sent = f->places == NULL, .n = n};
    if (!p->sent)
        return open_seeded(p, c, most, src, len);
    if (!positions_open(&p->positions, c->positions, most, n, src, len))
        return false;
    p->k = p->positions.k;
    p->used = p->positions.used;
    return true;
}

/* Reads or derives the next `count` positions, in ascending order. Returns false if the message
 * does not contain valid positions. */
static bool next_places(struct places *p, const struct sparse *c, uint32_t *index, size_t count)
{
    if (p->sent)
        return positions_next(&p->positions, index, count);
    selector_of(c)->places(c->selector->arg, p->seed, p->n, p->k, p->at, count, index);
    p->at += count;
    return true;
}

/* Returns true if all positions are valid. Positions derived from a seed are valid by
 * construction. */
static bool check_places(struct places *p)
{
    if (!p->sent)
        return true;
    uint32_t index[CODEC_CHUNK];
    for (size_t at = 0; at < p->k; at += CODEC_CHUNK) {
        size_t count = p->k - at < CODEC_CHUNK ? p->k - at : CODEC_CHUNK;
        if (!positions_next(&p->positions, index, count))
            return false;
    }
    return positions_end(&p->positions);
}

/* The length of the message is checked before any position or value is read. */
size_t sparse_check(const struct sparse *c, const uint8_t *src, size_t len, size_t n)
{
    struct places p;
    if (!open_places(&p, c, n, src, len))
        return 0;
    size_t values = dense_size(c->coder, p.k);
    if (values > len - p.used || !check_places(&p) || !dense_check(c->coder, src + p.used, p.k))
        return 0;
    return p.used + values;
}

size_t sparse_apply(const struct sparse *c, const uint8_t *src, size_t len, struct target *t,
                    size_t n)
{
    struct places p;
    bool proper = open_places(&p, c, n, src, len);
    assert(proper && dense_size(c->coder, p.k) <= len - p.used);
    uint32_t index[CODEC_CHUNK];
    float v[CODEC_CHUNK];
    for (size_t at = 0, count; at < p.k; at += count) {
        count = dense_decode(c->coder, src + p.used, p.k, at, v);
        proper = next_places(&p, c, index, count);
        assert(proper);
        target_scatter(t, index, v, count);
    }
    return p.used + dense_size(c->coder, p.k);
}
