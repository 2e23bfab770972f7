/* compress/codecs/quartic.h -- ternary digits packed five to a byte, and run-length coded zeros.
 *
 * The digits 0, 1, 2 stand for -1, 0, +1. A byte is 81a + 27b + 9c + 3d + e, at most 242; 121 is
 * five zeros. A vector is cut into groups of 5 x 1024 digits. A group of r digits is cut into
 * five fifths of m = ceil(r / 5) digits, so that each fifth is one long loop:
 *
 *   digits of a group:  [ a ......... | b ......... | c ... | d ... | e ... ]
 *   bytes of a group:   byte i contains the digits i, m + i, 2m + i, 3m + i, 4m + i
 *
 * In a whole group, a fifth is one chunk. In the last group, digits past the end are 1 (zeros).
 * In total n digits take ceil(n / 5) bytes.
 *
 * Runs (3LC): zero bytes are replaced by run bytes,
 *
 *   243 + (r - 2)    stands for r zero bytes, r = 2..14
 *
 * A run is written as many run bytes of 14, then one byte for the rest (121 itself if one zero
 * byte is left). Thus only 255 may be followed by another run byte, and each vector has exactly
 * one encoding.
 */
#ifndef COMPRESS_CODECS_QUARTIC_H
#define COMPRESS_CODECS_QUARTIC_H

#include "compress/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUARTIC_DIGITS = 5,
    QUARTIC_GROUP = QUARTIC_DIGITS * CODEC_CHUNK, /* Number of ternary digits in a group. */
    /* Number of bytes that a group of digits takes. */
    QUARTIC_BYTES = CODEC_CHUNK,
    QUARTIC_ZERO = 121,
    QUARTIC_MAX = 242,
    QUARTIC_RUN_MAX = 14,
    QUARTIC_LANES = 16
};

static inline size_t quartic_size(size_t n)
{
    return (n + QUARTIC_DIGITS - 1) / QUARTIC_DIGITS;
}

/* Statistics of the values sent as +1 or -1: the sum of |v| in lanes, and their number. */
struct quartic_sent
{
    double sum[QUARTIC_LANES];
    size_t n;
};
double quartic_sum(const struct quartic_sent *sent);

/* Computes the digits of v[0..n): +1 or -1 with the sign of v if 2 |v| > limit[i] >= 0,
 * otherwise 0. Adds to *sent. (Doubling |v| is exact; halving a limit may not be.) */
void quartic_digits(uint8_t *digit, const float *v, const float *limit, size_t n,
                    struct quartic_sent *sent);

/* Writes one group of n <= QUARTIC_GROUP digits. `digit` must have room for 5 * quartic_size(n)
 * digits; those after n are overwritten. */
void quartic_put(uint8_t *dst, uint8_t *digit, size_t n);

/* Decodes v[i] = scale * (digit - 1) for elements [at, at + count) of a vector of n digits. `at`
 * is a multiple of CODEC_CHUNK, and `count` is at most CODEC_CHUNK. */
void quartic_get(const uint8_t *src, size_t n, size_t at, size_t count, float scale, float *v);

/* Returns true if quartic_put() could have written these quartic_size(n) bytes. Sets *any to
 * true if a digit is not zero. */
bool quartic_check(const uint8_t *src, size_t n, bool *any);

/* Writer of a stream with runs. */
struct quartic_writer
{
    uint8_t *at;
    size_t zeros; /* Number of zero bytes that have not been written yet. */
};

/* quartic_write() appends bytes below 243; the output needs room for n_bytes bytes.
 * quartic_finish() writes the pending zeros; `at` is then the end of the stream. */
void quartic_write(struct quartic_writer *w, const uint8_t *src, size_t n_bytes);
void quartic_finish(struct quartic_writer *w);

/* Returns true if src[0..len) is the stream of a vector of n digits that are not all zero. */
bool quartic_check_runs(const uint8_t *src, size_t len, size_t n);

/* Reader of a stream that has been checked. */
struct quartic_reader
{
    const uint8_t *at;
    size_t zeros; /* Number of zero bytes left of the run before `at`. */
};

/* Reads the next n_bytes bytes, with runs expanded. */
void quartic_read(struct quartic_reader *r, uint8_t *dst, size_t n_bytes);

#endif
