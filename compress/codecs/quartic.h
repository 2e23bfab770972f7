/* compress/codecs/quartic.h -- ternary digits packed five to a byte, and run-length coded zeros.
 *
 * The ternary digits 0, 1, 2 stand for the values -1, 0, +1. A byte packs five digits a to e as
 * 81a + 27b + 9c + 3d + e, which is at most 242. The byte 121 is five values of zero (a "zero
 * byte"). A vector is cut into groups of 5 x 1024 digits. A group of r digits is cut into five
 * fifths of m = ceil(r / 5) digits, so that each fifth is one long loop:
 *
 *   digits of a group:  [ a ......... | b ......... | c ... | d ... | e ... ]
 *   bytes of a group:   byte i contains the digits i, m + i, 2m + i, 3m + i, 4m + i
 *
 * In a full group, a fifth has CODEC_CHUNK = 1024 digits. In the last group, digits past the end
 * are 1, which stands for zero. In total n digits take ceil(n / 5) bytes.
 *
 * Runs: the codec 3lc replaces two or more successive zero bytes by run bytes:
 *
 *   243 + (r - 2)    stands for r zero bytes, r = 2..14
 *
 * A run is written as run bytes of 14 zero bytes each, then one byte for the rest. The rest of a
 * single zero byte is the byte 121 itself. Thus only 255 may be followed by another run byte, and
 * each vector has exactly one encoding.
 */
#ifndef COMPRESS_CODECS_QUARTIC_H
#define COMPRESS_CODECS_QUARTIC_H

#include "compress/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUARTIC_DIGITS = 5, /* Number of ternary digits in a byte. */
    /* Number of digits in a group. One call packs or unpacks at most one group. */
    QUARTIC_GROUP = QUARTIC_DIGITS * CODEC_CHUNK,
    /* Number of bytes into which a full group of digits is packed. */
    QUARTIC_BYTES = CODEC_CHUNK,
    QUARTIC_ZERO = 121,   /* Byte of five digits that all stand for zero. */
    QUARTIC_MAX = 242,    /* Largest byte that packs five digits. Larger bytes are run bytes. */
    QUARTIC_RUN_MAX = 14, /* Largest number of zero bytes that one run byte stands for. */
    /* Number of partial sums, which a vectorised loop adds up in parallel. */
    QUARTIC_LANES = 16
};

/* Returns the number of bytes of n packed digits, before runs of zero bytes are replaced by run
 * bytes. */
static inline size_t quartic_size(size_t n)
{
    return (n + QUARTIC_DIGITS - 1) / QUARTIC_DIGITS;
}

/* Statistics of the values that are sent as +1 or -1: the sum of their magnitudes, in partial sums,
 * and their number n. */
struct quartic_sent
{
    double sum[QUARTIC_LANES];
    size_t n;
};
/* Returns the sum of the magnitudes of the values sent. */
double quartic_sum(const struct quartic_sent *sent);

/* Computes the digits of v[0..n). v[i] becomes +1 or -1 with its own sign if 2 |v[i]| > limit[i] >=
 * 0, otherwise 0. Adds the values that became +1 or -1 to *sent. (|v| is doubled because that is
 * exact. Halving a limit may not be exact.) */
void quartic_digits(uint8_t *digit, const float *v, const float *limit, size_t n,
                    struct quartic_sent *sent);

/* Writes one group of n <= QUARTIC_GROUP digits to dst. `digit` must have room for 5 *
 * quartic_size(n) digits, because padding is added after the n digits. */
void quartic_put(uint8_t *dst, uint8_t *digit, size_t n);

/* Decodes v[i] = scale * (digit - 1) for elements [at, at + count) of a vector of n digits. `at`
 * is a multiple of CODEC_CHUNK, and `count` is at most CODEC_CHUNK. */
void quartic_get(const uint8_t *src, size_t n, size_t at, size_t count, float scale, float *v);

/* Returns true if quartic_put() could have written these quartic_size(n) bytes. Sets *any to
 * true if a digit is not zero. */
bool quartic_check(const uint8_t *src, size_t n, bool *any);

/* Writer of a stream in which one run byte stands for several zero bytes in succession. */
struct quartic_writer
{
    uint8_t *at; /* Address to which the next byte of the stream is written. */
    /* Number of zero bytes at the end of the input so far. These bytes are not written yet, because
     * more zero bytes may follow in the same run. */
    size_t zeros;
};

/* quartic_write() appends n_bytes packed bytes to the stream and replaces runs of zero bytes by run
 * bytes. The stream needs room for n_bytes more bytes. quartic_finish() writes the zero bytes that
 * are still pending. Afterwards `at` is the end of the stream. */
void quartic_write(struct quartic_writer *w, const uint8_t *src, size_t n_bytes);
void quartic_finish(struct quartic_writer *w);

/* Returns true if src[0..len) is a valid stream of n digits that do not all stand for the value 0.
 * In a stream, one run byte replaces two or more successive zero bytes. */
bool quartic_check_runs(const uint8_t *src, size_t len, size_t n);

/* Reader of a stream in which one run byte stands for several zero bytes in succession. The stream
 * must have been accepted by quartic_check_runs(). */
struct quartic_reader
{
    const uint8_t *at; /* Next byte of the stream to read. */
    size_t zeros; /* Number of zero bytes of the last run byte that are still to be returned. */
};

/* Writes the next n_bytes bytes to dst, with runs expanded to zero bytes. */
void quartic_read(struct quartic_reader *r, uint8_t *dst, size_t n_bytes);

#endif
