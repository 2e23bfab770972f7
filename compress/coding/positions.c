/* compress/coding/positions.c -- writes and reads the positions of a sparse message.
 *
 * Encoded positions begin with a head: k, the code and the length of the stream. The receiver also
 * knows the code from the specification and rejects any other code. Another code would be a second
 * encoding of the same positions, and could be longer than positions_bound().
 */
#include "compress/coding/positions.h"

#include "compress/coding/bytes.h"

#include <assert.h>

const char *const positions_names[] = {"auto", "rice", "ef", "bitmap", NULL};

/* Largest size in bytes of the head: k, code and length of the stream. */
enum { HEAD_MAX = 2 * BYTES_VARINT_MAX + 1 };

/* ---- Sizes of encoded positions ---- */

/* "auto" means the Rice code, which is never longer than the Elias-Fano code and the bitmap (proof
 * in positions.h). */
size_t positions_bound(enum positions_how how, size_t k, size_t n)
{
    switch (how) {
    case POSITIONS_AUTO:
    case POSITIONS_RICE:
        return HEAD_MAX + rice_bound(k, n);
    case POSITIONS_EF:
        return HEAD_MAX + elias_bound(k, n);
    case POSITIONS_BITMAP:
        break;
    }
    return HEAD_MAX + bitmap_size(n);
}

/* Returns the size in bytes of the stream of k random positions. The size of Elias-Fano codes and
 * bitmaps depends on k and n only. */
static size_t nominal_stream(enum positions_how how, size_t k, size_t n)
{
    switch (how) {
    case POSITIONS_AUTO:
    case POSITIONS_RICE:
        return rice_nominal(k, n);
    case POSITIONS_EF:
        return elias_size(k, n);
    case POSITIONS_BITMAP:
        break;
    }
    return bitmap_size(n);
}

size_t positions_nominal(enum positions_how how, size_t k, size_t n)
{
    size_t stream = nominal_stream(how, k, n);
    return bytes_varint_size((uint32_t)k) + 1 + bytes_varint_size((uint32_t)stream) + stream;
}

/* ---- Writing positions ---- */

/* Writes the head: k, the code and the length of the stream. Returns the number of bytes
 * written. */
static size_t put_head(uint8_t *dst, size_t k, unsigned code, size_t stream)
{
    size_t len = bytes_put_varint(dst, (uint32_t)k);
    dst[len++] = (uint8_t)code;
    return len + bytes_put_varint(dst + len, (uint32_t)stream);
}

/* Encodes the positions in the Rice code. A pass over the positions finds the parameter with the
 * shortest stream. The code byte in the head is this parameter. */
static size_t put_rice(const uint32_t *index, size_t k, size_t n, uint8_t *dst)
{
    uint64_t bits;
    unsigned b = rice_best(index, k, n, &bits);
    size_t stream = (size_t)((bits + 7) / 8);
    size_t len = put_head(dst, k, b, stream);
    rice_put(index, k, b, dst + len, stream);
    return len + stream;
}

static size_t put_elias(const uint32_t *index, size_t k, size_t n, uint8_t *dst)
{
    size_t stream = elias_size(k, n);
    unsigned code = POSITIONS_CODE_EF + elias_low_bits(k, n);
    size_t len = put_head(dst, k, code, stream);
    elias_put(index, k, n, dst + len);
    return len + stream;
}

static size_t put_bitmap(const uint32_t *index, size_t k, size_t n, uint8_t *dst)
{
    size_t len = put_head(dst, k, POSITIONS_CODE_BITMAP, bitmap_size(n));
    bitmap_put(index, k, n, dst + len);
    return len + bitmap_size(n);
}

size_t positions_put(enum positions_how how, const uint32_t *index, size_t k, size_t n,
                     uint8_t *dst)
{
    assert(k >= 1 && k <= n);
    switch (how) {
    case POSITIONS_AUTO:
    case POSITIONS_RICE:
        return put_rice(index, k, n, dst);
    case POSITIONS_EF:
        return put_elias(index, k, n, dst);
    case POSITIONS_BITMAP:
        break;
    }
    return put_bitmap(index, k, n, dst);
}

/* ---- Reading positions ---- */

/* Returns true if the code in the head agrees with the specification, and a stream of this code can
 * have this length. The length of a Rice stream depends on the positions, so only its limit is
 * checked here. rice_ended() later checks that the length is exact. */
static bool proper_head(const struct positions *p, enum positions_how how, size_t stream)
{
    switch (how) {
    case POSITIONS_AUTO:
    case POSITIONS_RICE:
        return p->code <= RICE_B_MAX && stream <= rice_bound(p->k, p->n);
    case POSITIONS_EF:
        return p->code == POSITIONS_CODE_EF + elias_low_bits(p->k, p->n)
               && stream == elias_size(p->k, p->n);
    case POSITIONS_BITMAP:
        break;
    }
    return p->code == POSITIONS_CODE_BITMAP && stream == bitmap_size(p->n);
}

/* Only the head (k, code and length) is read here. The stream is checked while its positions are
 * read. */
bool positions_open(struct positions *p, enum positions_how how, size_t most, size_t n,
                    const uint8_t *src, size_t len)
{
    uint32_t k = 0;
    uint32_t stream = 0;
    size_t used = bytes_get_varint(src, len, &k);
    if (used == 0 || k == 0 || k > most || k > n || used == len)
        return false;
    *p = (struct positions){.n = n, .k = k, .code = src[used++]};
    size_t head = bytes_get_varint(src + used, len - used, &stream);
    used += head;
    if (head == 0 || stream > len - used || !proper_head(p, how, stream))
        return false;
    p->used = used + stream;
    src += used;
    if (p->code == POSITIONS_CODE_BITMAP)
        bitmap_open(&p->bitmap, n, src);
    else if (p->code >= POSITIONS_CODE_EF)
        elias_open(&p->elias, k, n, src);
    else
        p->rice = (struct rice_reader){.src = src, .len = stream, .n = n, .b = p->code};
    return true;
}

/* The code byte in the head of the message selects the reader. positions_open() has already checked
 * that the specification allows this code. */
bool positions_next(struct positions *p, uint32_t *index, size_t count)
{
    if (p->code == POSITIONS_CODE_BITMAP)
        return bitmap_get(&p->bitmap, index, count);
    if (p->code >= POSITIONS_CODE_EF)
        return elias_get(&p->elias, index, count);
    return rice_get(&p->rice, index, count);
}

/* A set of positions must have exactly one valid encoding. For a bitmap or an Elias-Fano code it is
 * enough that nothing follows the stream. For a Rice code only the parameter with the shortest
 * stream is valid. */
bool positions_end(const struct positions *p)
{
    if (p->code == POSITIONS_CODE_BITMAP)
        return bitmap_ended(&p->bitmap);
    if (p->code >= POSITIONS_CODE_EF)
        return elias_ended(&p->elias);
    return rice_ended(&p->rice) && rice_least(&p->rice);
}
