/* compress/randk.c -- ceil(keep * n) random coordinates, one of each stratum.
 *
 * Positions:  seed u64
 *
 * [0, n) is cut into k strata of floor(n/k) or ceil(n/k); one coordinate of
 * each is drawn from the seed, so that positions come out in order, without
 * repetition, and cost eight bytes in all. Values are sent as they are: scaled
 * by n/k the codec would be unbiased and no contraction. Contraction k/n on
 * average over coordinates, at least 1/ceil(n/k).
 */
#include "compress/codec.h"

#include "compress/bytes.h"

#include "nn/rng.h"
#include "nn/vec.h"

#include <errno.h>

enum {
    RANDK_KEEP
};
enum {
    SEED_BYTES = 8
};

static const struct codec_param randk_params[] = {
    {.name = "keep", .kind = CODEC_DECIMAL, .low = 1, .high = 1000000000,
     .preset = CODEC_UNSET, .wants = "in (0, 1]"},
    {.name = NULL},
};

static size_t randk_keep(const int64_t *arg, size_t n)
{
    return codec_share((uint64_t)arg[RANDK_KEEP], n);
}

static size_t randk_scratch(const int64_t *arg, size_t n)
{
    (void)arg;
    (void)n;
    return 0;
}

static size_t randk_bound(const int64_t *arg, size_t n)
{
    (void)arg;
    (void)n;
    return SEED_BYTES;
}

/* Walks the strata: stratum j is [j n / k, (j+1) n / k), n, k < 2^32. */
static inline uint32_t position(uint64_t seed, uint64_t j, uint64_t k,
                                uint64_t n)
{
    uint64_t from = j * n / k;
    uint64_t width = (j + 1) * n / k - from;
    return (uint32_t)(from + ((rng_at(seed, j) >> 32) * width >> 32));
}

/* Walks the source in chunks; a chunk's picks are zeroed there, so that the
 * rest is summed without cancellation. */
static int randk_select(const int64_t *arg, const struct codec_source *s,
                        struct codec_pick *pick)
{
    float v[CODEC_CHUNK];
    size_t total = randk_keep(arg, s->n);
    size_t k = 0;
    uint32_t next = position(s->key, 0, total, s->n);
    pick->seed = s->key;
    pick->rest2 = 0.0;
    for (size_t at = 0; at < s->n; at += CODEC_CHUNK) {
        size_t count = s->n - at < CODEC_CHUNK ? s->n - at : CODEC_CHUNK;
        uint32_t max = codec_load(v, s->x + at,
                                  s->x_hat != NULL ? s->x_hat + at : NULL,
                                  count);
        if (max >= CODEC_LIMIT_BITS)
            return -ERANGE;
        while (k < total && next < at + count) {
            pick->index[k] = next;
            pick->value[k++] = v[next - at];
            v[next - at] = 0.0f;
            if (k < total)
                next = position(s->key, k, total, s->n);
        }
        pick->rest2 += vec_norm2(v, count);
    }
    pick->k = k;
    return 0;
}

static size_t randk_put(const int64_t *arg, size_t n,
                        const struct codec_pick *pick, uint8_t *dst)
{
    (void)arg;
    (void)n;
    bytes_put_u64(dst, pick->seed);
    return SEED_BYTES;
}

static bool randk_open(const int64_t *arg, size_t n, const uint8_t *src,
                       size_t len, struct codec_positions *p)
{
    if (len < SEED_BYTES)
        return false;
    *p = (struct codec_positions){.n = n,
                                  .k = randk_keep(arg, n),
                                  .used = SEED_BYTES,
                                  .seed = bytes_get_u64(src)};
    return true;
}

static bool randk_next(struct codec_positions *p, uint32_t *index,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        index[i] = position(p->seed, p->at + i, p->k, p->n);
    p->at += count;
    return true;
}

static bool randk_end(const struct codec_positions *p)
{
    (void)p;
    return true;
}

static const struct codec_selector randk_selector = {
    .keep = randk_keep,
    .scratch = randk_scratch,
    .bound = randk_bound,
    .nominal = randk_bound,
    .select = randk_select,
    .put = randk_put,
    .open = randk_open,
    .next = randk_next,
    .end = randk_end,
};

const struct codec codec_randk = {
    .name = "randk", .params = randk_params, .selector = &randk_selector};
