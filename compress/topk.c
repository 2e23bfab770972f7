/* compress/topk.c -- the ceil(keep * n) coordinates of largest magnitude.
 *
 * Positions:  k varint | b u8 | bytes varint | Rice stream (compress/rice.h)
 *
 * Ties go to the lowest index; zeros are never sent, so k may be smaller than
 * keep says. Contraction at least k/n; the error is exactly the sum of the
 * n - k smallest squares.
 */
#include "compress/codec.h"

#include "compress/bytes.h"
#include "compress/rice.h"
#include "compress/select.h"

#include <assert.h>

enum {
    TOPK_KEEP
};

static const struct codec_param topk_params[] = {
    {.name = "keep", .kind = CODEC_DECIMAL, .low = 1, .high = 1000000000,
     .preset = CODEC_UNSET, .wants = "in (0, 1]"},
    {.name = NULL},
};

static size_t topk_keep(const int64_t *arg, size_t n)
{
    return codec_share((uint64_t)arg[TOPK_KEEP], n);
}

static size_t topk_scratch(const int64_t *arg, size_t n)
{
    return select_scratch(n, topk_keep(arg, n));
}

static size_t topk_bound(const int64_t *arg, size_t n)
{
    return 2 * BYTES_VARINT_MAX + 1 + rice_bound(topk_keep(arg, n), n);
}

static size_t topk_nominal(const int64_t *arg, size_t n)
{
    return 7 + rice_nominal(topk_keep(arg, n), n);
}

static int topk_select(const int64_t *arg, const struct codec_source *s,
                       struct codec_pick *pick)
{
    return select_top(s, topk_keep(arg, s->n), pick, NULL);
}

static size_t topk_put(const int64_t *arg, size_t n,
                       const struct codec_pick *pick, uint8_t *dst)
{
    (void)arg;
    unsigned b = rice_best(pick->index, pick->k, n);
    size_t len = bytes_put_varint(dst, (uint32_t)pick->k);
    dst[len++] = (uint8_t)b;
    /* The stream's length comes before it but is known after it. */
    uint8_t *stream = dst + len + BYTES_VARINT_MAX;
    size_t n_bytes = rice_put(pick->index, pick->k, b, stream);
    len += bytes_put_varint(dst + len, (uint32_t)n_bytes);
    memmove(dst + len, stream, n_bytes);
    return len + n_bytes;
}

static bool topk_open(const int64_t *arg, size_t n, const uint8_t *src,
                      size_t len, struct codec_positions *p)
{
    uint32_t k;
    uint32_t n_bytes;
    size_t used = bytes_get_varint(src, len, &k);
    if (used == 0 || k == 0 || k > topk_keep(arg, n) || used == len)
        return false;
    unsigned b = src[used++];
    size_t head = bytes_get_varint(src + used, len - used, &n_bytes);
    if (b > RICE_B_MAX || head == 0)
        return false;
    used += head;
    if (n_bytes > len - used || n_bytes > rice_bound(k, n))
        return false;
    *p = (struct codec_positions){.n = n, .k = k, .used = used + n_bytes};
    p->rice = (struct rice_reader){
        .src = src + used, .len = n_bytes, .n = n, .b = b};
    return true;
}

static bool topk_next(struct codec_positions *p, uint32_t *index, size_t count)
{
    return rice_get(&p->rice, index, count);
}

static bool topk_end(const struct codec_positions *p)
{
    return rice_ended(&p->rice);
}

static const struct codec_selector topk_selector = {
    .keep = topk_keep,
    .scratch = topk_scratch,
    .bound = topk_bound,
    .nominal = topk_nominal,
    .select = topk_select,
    .put = topk_put,
    .open = topk_open,
    .next = topk_next,
    .end = topk_end,
};

const struct codec codec_topk = {
    .name = "topk", .params = topk_params, .selector = &topk_selector};
