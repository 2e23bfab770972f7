#include "compress/sparse.h"

#include "nn/rng.h"

#include <assert.h>

size_t sparse_bound(const struct sparse *c, size_t n)
{
    const struct codec_selector *f = c->selector->codec->selector;
    const int64_t *arg = c->selector->arg;
    return f->bound(arg, n) + dense_size(c->coder, f->keep(arg, n));
}

size_t sparse_nominal(const struct sparse *c, size_t n)
{
    const struct codec_selector *f = c->selector->codec->selector;
    const int64_t *arg = c->selector->arg;
    return f->nominal(arg, n) + dense_size(c->coder, f->keep(arg, n));
}

int sparse_encode(const struct sparse *c, const struct codec_source *s,
                  struct sparse_scratch *scratch, uint8_t *dst, size_t *len,
                  struct compress_stat *stat)
{
    const struct codec_selector *f = c->selector->codec->selector;
    struct codec_pick *pick = &scratch->pick;
    struct codec_source from = *s;
    from.key = rng_at(s->key, CODEC_STREAM_SELECT);
    *len = 0;
    *stat = (struct compress_stat){0};
    int err = f->select(c->selector->arg, &from, pick);
    if (err != 0)
        return err;
    if (pick->k == 0)
        return 0;
    struct codec_source taken = {
        .x = pick->value,
        .n = pick->k,
        .key = rng_at(s->key, CODEC_STREAM_VALUES),
    };
    *len = f->put(c->selector->arg, s->n, pick, dst);
    err = dense_encode(c->coder, &taken, &scratch->dense, dst + *len, stat);
    if (err != 0)
        return err;
    *len += dense_size(c->coder, pick->k);
    stat->x2 += pick->rest2;
    stat->e2 += pick->rest2;
    return 0;
}

size_t sparse_check(const struct sparse *c, const uint8_t *src, size_t len,
                    size_t n)
{
    const struct codec_selector *f = c->selector->codec->selector;
    struct codec_positions p;
    if (!f->open(c->selector->arg, n, src, len, &p))
        return 0;
    size_t values = dense_size(c->coder, p.k);
    if (values > len - p.used)
        return 0;
    uint32_t index[CODEC_CHUNK];
    for (size_t at = 0; at < p.k; at += CODEC_CHUNK) {
        size_t count = p.k - at < CODEC_CHUNK ? p.k - at : CODEC_CHUNK;
        if (!f->next(&p, index, count))
            return 0;
    }
    if (!f->end(&p) || !dense_check(c->coder, src + p.used, p.k))
        return 0;
    return p.used + values;
}

size_t sparse_apply(const struct sparse *c, const uint8_t *src, size_t len,
                    float *x_hat, size_t n)
{
    const struct codec_selector *f = c->selector->codec->selector;
    struct codec_positions p;
    bool proper = f->open(c->selector->arg, n, src, len, &p);
    assert(proper && dense_size(c->coder, p.k) <= len - p.used);
    uint32_t index[CODEC_CHUNK];
    float v[CODEC_CHUNK];
    for (size_t at = 0, count; at < p.k; at += count) {
        count = dense_decode(c->coder, src + p.used, p.k, at, v);
        proper = f->next(&p, index, count);
        assert(proper);
        for (size_t i = 0; i < count; i++)
            x_hat[index[i]] += v[i];
    }
    return p.used + dense_size(c->coder, p.k);
}
