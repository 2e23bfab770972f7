/* compress/dense.c -- driver of the values codecs: encodes and decodes a vector block by block.
 *
 * The encoder loads a batch of several blocks at a time. One pass over memory computes the
 * difference x - x_hat, its largest magnitude and its sums of squares. The codec then works on
 * blocks that are still in the L1 cache. A codec that needs no sums before it writes, such as
 * `sign`, reads x and x_hat directly instead.
 */
#include "compress/dense.h"

#include "compress/coding/bytes.h"
#include "compress/simd/simd.h"

#include <errno.h>

/* Returns the length of all blocks except the last one: the codec's block length, or n if the codec
 * has one block for the whole vector. */
static size_t block_of(const struct codec_stage *c, size_t n)
{
    size_t block = c->codec->values->block(c->arg);
    return block == 0 || block > n ? n : block;
}

/* Limits of a batch: largest number of elements and of blocks that are loaded before the first
 * block is encoded. Loading several blocks at once lets the CPU read the next block while it adds
 * up the sums of the block before. A batch fits into the L1 cache. */
enum { BATCH_ELEMENTS = 2048, BATCH_MAX = 16 };

/* Returns the number of blocks of `block` elements that are loaded together as a batch. At least
 * 1. */
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

/* The size of the last block is computed separately, because the last block may be shorter, and the
 * size of a block is not always proportional to its length. */
size_t dense_size(const struct codec_stage *c, size_t n)
{
    if (n == 0)
        return 0;
    const struct codec_values *f = c->codec->values;
    size_t block = block_of(c, n);
    size_t size = n / block * f->size(c->arg, block);
    return n % block != 0 ? size + f->size(c->arg, n % block) : size;
}

/* Length in elements from which a vector does not fit into the cache of a core. Prefetching saves
 * time for such vectors. */
enum { FAR = 1 << 18 };

/* A batch of `count` blocks that are loaded together, with `n` elements in total. */
struct batch
{
    struct codec_block b[BATCH_MAX];
    size_t count, n;
};

/* Loads the batch that begins at element `at` and computes the sums of each block. Adds the sums of
 * squares to stat->x2. Returns false if an element is too large, infinite or NaN. The bit pattern
 * of the largest magnitude shows all three cases. */
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

/* Encodes the blocks of a batch with one call if the codec has encode_all(), otherwise one by one.
 * Returns the sum of the squared errors, or a negative number if a scale is out of range. */
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

/* Encodes the whole difference with a codec that reads x and x_hat directly
 * (codec_values.encode_stream). Returns 0 or -ERANGE. */
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

/* Encodes the whole difference, one batch of blocks at a time. Returns 0 or -ERANGE. */
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

/* The length needs no check here: the caller has checked that src has dense_size(n) bytes. */
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

/* All full blocks have the same size in bytes. Therefore the block of an element is found without a
 * search. */
size_t dense_decode(const struct codec_stage *c, const uint8_t *src, size_t n, size_t at, float *v)
{
    const struct codec_values *f = c->codec->values;
    size_t block = block_of(c, n);
    /* Index of the first element of the block in which element `at` lies. */
    size_t start = at / block * block;
    size_t size = n - start < block ? n - start : block;
    size_t in = at - start;
    size_t count = size - in < CODEC_CHUNK ? size - in : CODEC_CHUNK;
    src += at / block * f->size(c->arg, block);
    f->decode(c->arg, src, size, in, count, v);
    return count;
}

/* Decodes the block of n elements at src and adds it to elements [at, at + n) of the unit, one
 * chunk at a time. If the codec has add() and the chunk is contiguous in the replica, no copy is
 * needed. */
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
