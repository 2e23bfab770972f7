/* compress/dense.c -- a values codec over all blocks of a vector, in both directions.
 *
 * Blocks are loaded a batch at a time: subtracting, finding the largest value and
 * summing squares are one pass over memory, and the codec then works on blocks
 * that are still in the first-level cache. A codec that can write before anything
 * is summed up (sign) is given x and x_hat themselves.
 */
#include "compress/dense.h"

#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include <errno.h>

/* The length of all blocks but the last: as the codec has it, or the whole vector. */
static size_t block_of(const struct codec_stage *c, size_t n)
{
    size_t block = c->codec->values->block(c->arg);
    return block == 0 || block > n ? n : block;
}

/* Blocks loaded before the first is encoded: sums of one are added up while
 * the next is read. All of them stay in the L1 cache. */
enum { BATCH_ELEMENTS = 2048, BATCH_MAX = 16 };

static size_t batch_of(size_t block)
{
    size_t fit = block > 0 ? BATCH_ELEMENTS / block : 1;
    return fit < 1 ? 1 : fit < BATCH_MAX ? fit : BATCH_MAX;
}

size_t dense_scratch(const struct codec_stage *c, size_t n)
{
    size_t block = block_of(c, n);
    return block * batch_of(block);
}

/* The last block may be shorter, and its size need not be in proportion. */
size_t dense_size(const struct codec_stage *c, size_t n)
{
    if (n == 0)
        return 0;
    const struct codec_values *f = c->codec->values;
    size_t block = block_of(c, n);
    size_t size = n / block * f->size(c->arg, block);
    return n % block != 0 ? size + f->size(c->arg, n % block) : size;
}

/* Vectors of this many elements and more do not stay in a core's own cache, so that it pays to
 * ask memory for what comes next. */
enum { FAR = 1 << 18 };

/* Blocks that are loaded together: `count` of n elements in all. */
struct batch
{
    struct codec_block b[BATCH_MAX];
    size_t count, n;
};

/* Load the blocks at s->x[at..at+n) with their sums, and add the squares to stat.
 * False if a value is out of range, infinite or
 * NaN: the largest magnitude, compared as bits, shows all three. */
static bool load_blocks(const struct codec_stage *c, const struct codec_source *s, size_t at,
                        const struct dense_scratch *scratch, struct batch *to,
                        struct compress_stat *stat)
{
    struct simd_sums sums[BATCH_MAX];
    size_t block = block_of(c, s->n);
    size_t most = block * batch_of(block);
    unsigned how = (c->codec->values->wants_l1 ? (unsigned)SIMD_L1 : 0u)
                   | (s->n >= FAR ? (unsigned)SIMD_AHEAD : 0u);
    to->n = s->n - at < most ? s->n - at : most;
    to->count = (to->n + block - 1) / block;
    simd_load_blocks(sums, scratch->v,
                     &(struct simd_source){s->x + at, codec_x_hat(s, at), to->n, block, how});
    uint32_t max = 0;
    for (size_t i = 0; i < to->count; i++) {
        size_t in = i * block;
        to->b[i] = (struct codec_block){
            .v = scratch->v + in,
            .n = to->n - in < block ? to->n - in : block,
            .first = at + in,
            .key = s->key,
            .x2 = sums[i].x2,
            .l1 = sums[i].l1,
            .max = bytes_to_float(sums[i].max),
            .work = scratch->work + in,
        };
        stat->x2 += sums[i].x2;
        max = sums[i].max > max ? sums[i].max : max;
    }
    return max < CODEC_LIMIT_BITS;
}

/* A codec that works on several blocks at once is given the batch; one by one for all others.
 * Returns the error, negative if a scale is out of range. */
static double encode_blocks(const struct codec_stage *c, const struct codec_block *b, size_t count,
                            uint8_t *dst)
{
    if (c->codec->values->encode_all != NULL)
        return c->codec->values->encode_all(c->arg, b, count, dst);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        double e2 = c->codec->values->encode(c->arg, &b[i], dst);
        if (!(e2 >= 0.0))
            return -1.0;
        sum += e2;
        dst += c->codec->values->size(c->arg, b[i].n);
    }
    return sum;
}

/* Encode all of s by a codec that needs no loaded blocks. */
static int encode_stream(const struct codec_stage *c, const struct codec_source *s, uint8_t *dst,
                         struct compress_stat *stat)
{
    size_t block = block_of(c, s->n);
    for (size_t at = 0; at < s->n; at += block) {
        size_t n = s->n - at < block ? s->n - at : block;
        struct codec_block b = {.n = n, .first = at, .key = s->key};
        double e2 = c->codec->values->encode_stream(c->arg, s, &b, dst);
        if (!(e2 >= 0.0) || !(b.max < CODEC_LIMIT))
            return -ERANGE;
        stat->x2 += b.x2;
        stat->e2 += e2;
        dst += c->codec->values->size(c->arg, n);
    }
    return 0;
}

/* Encode all of s, a batch of blocks at a time. */
static int encode_batches(const struct codec_stage *c, const struct codec_source *s,
                          const struct dense_scratch *scratch, uint8_t *dst,
                          struct compress_stat *stat)
{
    struct batch batch;
    for (size_t at = 0; at < s->n; at += batch.n) {
        if (!load_blocks(c, s, at, scratch, &batch, stat))
            return -ERANGE;
        double e2 = encode_blocks(c, batch.b, batch.count, dst);
        if (!(e2 >= 0.0))
            return -ERANGE;
        stat->e2 += e2;
        dst += dense_size(c, batch.n);
    }
    return 0;
}

int dense_encode(const struct codec_stage *c, const struct codec_source *s,
                 const struct dense_scratch *scratch, uint8_t *dst, struct compress_stat *stat)
{
    *stat = (struct compress_stat){0};
    if (c->codec->values->encode_stream != NULL)
        return encode_stream(c, s, dst, stat);
    return encode_batches(c, s, scratch, dst, stat);
}

/* The caller has seen that dense_size(n) bytes are there. */
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

/* Blocks are found by their number, as their sizes are known. */
size_t dense_decode(const struct codec_stage *c, const uint8_t *src, size_t n, size_t at, float *v)
{
    const struct codec_values *f = c->codec->values;
    size_t block = block_of(c, n);
    size_t start = at / block * block; /* Where its block begins. */
    size_t size = n - start < block ? n - start : block;
    size_t in = at - start;
    size_t count = size - in < CODEC_CHUNK ? size - in : CODEC_CHUNK;
    src += at / block * f->size(c->arg, block);
    f->decode(c->arg, src, size, in, count, v);
    return count;
}

/* Add a block of n that begins at element `at`, a chunk at a time: straight
 * to where it belongs, if the codec can and the chunk lies in one piece. */
static void apply_block(const struct codec_stage *c, const uint8_t *src, struct target *t,
                        size_t at, size_t n)
{
    float v[CODEC_CHUNK];
    for (size_t in = 0; in < n; in += CODEC_CHUNK) {
        size_t count = n - in < CODEC_CHUNK ? n - in : CODEC_CHUNK;
        size_t span;
        float *y = target_span(t, at + in, count, &span);
        if (c->codec->values->add != NULL && span == count) {
            c->codec->values->add(c->arg, src, n, in, count, y);
        } else {
            c->codec->values->decode(c->arg, src, n, in, count, v);
            target_add(t, at + in, v, count);
        }
    }
}

size_t dense_apply(const struct codec_stage *c, const uint8_t *src, struct target *t, size_t n)
{
    size_t block = block_of(c, n);
    for (size_t at = 0; at < n; at += block) {
        size_t count = n - at < block ? n - at : block;
        apply_block(c, src, t, at, count);
        src += c->codec->values->size(c->arg, count);
    }
    return dense_size(c, n);
}
