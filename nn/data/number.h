/* nn/data/number.h -- numbers as text files and data specs write them.
 *
 * strtod() alone will not do: it takes inf, nan, hex and white space, none of which a data file
 * should have, and it is slow where a file is nothing but numbers.
 */
#ifndef NN_DATA_NUMBER_H
#define NN_DATA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NUMBER_MAX = 127, /* Characters; what is longer is refused as no number. */
    NUMBER_WANTED_MAX = 80
};

/* The decimal number that begins at p, at most up to end:
 *
 *   [+-] (digits [. digits*] | . digits) [(e|E) [+-] digits]
 *
 * to the nearest double. Returns what is behind it; NULL where there is none,
 * or one of more than NUMBER_MAX characters. No inf, nan or hex; no white space
 * is skipped. A number beyond a double's range is infinite. */
const uint8_t *number_read(const uint8_t *p, const uint8_t *end, double *v);

/* Is all of p[0..n) one number? */
bool number_is(const uint8_t *p, size_t n, double *v);

/* v / divide as a float, rounded once; false where that is not finite. */
bool number_to_float(double v, double divide, float *x);

/* What was expected where number_to_float() has failed; it may be the divisor's fault. */
void number_wanted(double divide, char text[NUMBER_WANTED_MAX]);

/* The whole number from 1 to `most` that a string begins with, in the one way
 * to write it (no sign, no leading zero), since specs and kinds are compared as
 * texts. Returns what is behind it; NULL where there is none, and for NULL. */
const char *number_count(const char *p, uint32_t most, uint32_t *v);

#endif
