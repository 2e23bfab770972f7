/* compress/codecs/quartic.h -- ternary digits, five to a byte, and runs of zeros.
 *
 * Digits are 0, 1, 2 for -1, 0, +1. A byte is 81a + 27b + 9c + 3d + e, at most
 * 242; 121 is five zeros. A vector is cut into groups of 5 x 1024 digits, and
 * a group of r digits into five fifths of m = ceil(r / 5), so that each fifth
 * is one long loop:
 *
 *   digits of a group:  [ a ......... | b ......... | c ... | d ... | e ... ]
 *   bytes of a group:   byte i is made of digits i, m + i, 2m + i, 3m + i, 4m + i
 *
 * In whole groups a fifth is a chunk. In the last group digits past the end
 * are 1, zeros. Altogether ceil(n / 5) bytes.
 *
 * Runs (3LC): a run of zero bytes is written as bytes of their own,
 *
 *   243 + (r - 2)    r zero bytes, r = 2..14
 *
 * as many of 14 as there are, then one of the rest, which is 121 itself for a
 * rest of one. So behind one of these a further one only follows a 255, and
 * there is one way to write every vector.
 */
#ifndef COMPRESS_CODECS_QUARTIC_H
#define COMPRESS_CODECS_QUARTIC_H

#include "compress/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUARTIC_DIGITS = 5,
    QUARTIC_GROUP = QUARTIC_DIGITS * CODEC_CHUNK, /* Digits, */
    QUARTIC_BYTES = CODEC_CHUNK,                  /* and bytes of them. */
    QUARTIC_ZERO = 121,
    QUARTIC_MAX = 242,
    QUARTIC_RUN_MAX = 14,
    QUARTIC_LANES = 16
};

static inline size_t quartic_size(size_t n)
{
    return (n + QUARTIC_DIGITS - 1) / QUARTIC_DIGITS;
}

/* What is sent as +1 or -1: the sum of |v|, in lanes, and how many. */
struct quartic_sent
{
    double sum[QUARTIC_LANES];
    size_t n;
};
double quartic_sum(const struct quartic_sent *sent);

/* Digits of v[0..n): that of v's sign where 2 |v| > limit[i] >= 0, else zero's.
 * Adds to *sent. (Twice |v| is exact; half a limit might not be.) */
void quartic_digits(uint8_t *digit, const float *v, const float *limit, size_t n,
                    struct quartic_sent *sent);

/* Write one group of n <= QUARTIC_GROUP digits. digit has room for five times
 * quartic_size(n); what lies behind n is overwritten. */
void quartic_put(uint8_t *dst, uint8_t *digit, size_t n);

/* v[i] = scale * (digit - 1) for i = at..at+count of a vector of n digits. at
 * is a multiple of CODEC_CHUNK, count at most CODEC_CHUNK. */
void quartic_get(const uint8_t *src, size_t n, size_t at, size_t count, float scale, float *v);

/* Are these quartic_size(n) bytes what quartic_put() could have written?
 * *any says whether a digit is not zero. */
bool quartic_check(const uint8_t *src, size_t n, bool *any);

/* A stream with runs, being written. */
struct quartic_writer
{
    uint8_t *at;
    size_t zeros; /* Zero bytes that are not written yet. */
};

/* Append bytes below 243; dst needs room for as many. finish() writes what is
 * outstanding; `at` is then the end. */
void quartic_write(struct quartic_writer *w, const uint8_t *src, size_t n_bytes);
void quartic_finish(struct quartic_writer *w);

/* Is src[0..len) the stream of a vector of n digits that are not all zero? */
bool quartic_check_runs(const uint8_t *src, size_t len, size_t n);

/* A stream being read, which has been checked. */
struct quartic_reader
{
    const uint8_t *at;
    size_t zeros; /* Zero bytes left of the run before `at`. */
};

/* The next n_bytes bytes, runs undone. */
void quartic_read(struct quartic_reader *r, uint8_t *dst, size_t n_bytes);

#endif
