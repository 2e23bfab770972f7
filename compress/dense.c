#include "compress/dense.h"

#include "compress/bytes.h"

#include <errno.h>

static size_t block_of(const struct codec_stage *c, size_t n)
{
    size_t block = c->codec->values->block(c->arg);
    return block == 0 || block > n ? n : block;
}

size_t dense_scratch(const struct codec_stage *c, size_t n)
{
    return block_of(c, n);
}

size_t dense_size(const struct codec_stage *c, size_t n)
{
    if (n == 0)
        return 0;
    const struct codec_values *f = c->codec->values;
    size_t block = block_of(c, n);
    size_t size = n / block * f->size(c->arg, block);
    return n % block != 0 ? size + f->size(c->arg, n % block) : size;
}

/* |v - C|^2 of a block, from its bytes. */
static double error2(const struct codec_stage *c, const uint8_t *src,
                     const float *v, size_t n)
{
    float decoded[CODEC_CHUNK];
    double e2 = 0.0;
    for (size_t at = 0; at < n; at += CODEC_CHUNK) {
        size_t count = n - at < CODEC_CHUNK ? n - at : CODEC_CHUNK;
        c->codec->values->decode(c->arg, src, n, at, count, decoded);
        e2 += vec_dist2(v + at, decoded, count);
    }
    return e2;
}

int dense_encode(const struct codec_stage *c, const struct codec_source *s,
                 const struct dense_scratch *scratch, uint8_t *dst,
                 struct compress_stat *stat)
{
    const struct codec_values *f = c->codec->values;
    size_t block = block_of(c, s->n);
    *stat = (struct compress_stat){0};
    for (size_t at = 0; at < s->n; at += block) {
        struct codec_block b = {.v = scratch->v,
                                .n = s->n - at < block ? s->n - at : block,
                                .first = at,
                                .key = s->key,
                                .work = scratch->work};
        uint32_t max = codec_load(scratch->v, s->x + at,
                                  s->x_hat != NULL ? s->x_hat + at : NULL,
                                  b.n);
        if (max >= CODEC_LIMIT_BITS)
            return -ERANGE;
        b.max = bytes_to_float(max);
        b.x2 = vec_norm2(b.v, b.n);
        if (!f->encode(c->arg, &b, dst))
            return -ERANGE;
        stat->x2 += b.x2;
        stat->e2 += error2(c, dst, b.v, b.n);
        dst += f->size(c->arg, b.n);
    }
    return 0;
}

bool dense_check(const struct codec_stage *c, const uint8_t *src, size_t n)
{
    const struct codec_values *f = c->codec->values;
    size_t block = block_of(c, n);
    for (size_t at = 0; at < n; at += block) {
        size_t count = n - at < block ? n - at : block;
        if (!f->check(c->arg, src, count))
            return false;
        src += f->size(c->arg, count);
    }
    return true;
}

size_t dense_decode(const struct codec_stage *c, const uint8_t *src, size_t n,
                    size_t at, float *v)
{
    const struct codec_values *f = c->codec->values;
    size_t block = block_of(c, n);
    size_t start = at / block * block; /* Of this block. */
    size_t size = n - start < block ? n - start : block;
    size_t in = at - start;
    size_t count = size - in < CODEC_CHUNK ? size - in : CODEC_CHUNK;
    src += at / block * f->size(c->arg, block);
    f->decode(c->arg, src, size, in, count, v);
    return count;
}
