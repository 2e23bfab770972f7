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

/* ---- Numbers as tables write them. ----
 *
 *   1,957.25   1 957,25   1'957.25   1_957   0,134   1,5e3   (12.5)   $19.5   EUR 3   3.1 %   0x1f
 *
 * A notation is a decimal mark and a thousands separator that a number may have. One cell often
 * has several readings ("1,234" is 1234 or 1.234), so a column intersects those of its cells:
 *
 *   bits         decimal mark   thousands separator of each bit, from the lowest
 *   0x00f        point          comma, space, apostrophe, underscore
 *   0x0f0        comma          point, space, apostrophe, underscore
 *   0x100        none           none: hexadecimal, behind 0x
 *
 * No-break, thin and figure spaces count as spaces, U+2019 as an apostrophe, U+2212 and U+2013 as
 * minus. Parentheses around a number are a minus. A unit may stand before or behind the number: a sign
 * (%, $, EUR) or one of the words of a list ("kg"; a unit of one letter needs a space before it). */
enum {
    NUMBER_POINT = 0x00f,
    NUMBER_COMMA = 0x0f0,
    NUMBER_HEX = 0x100,
    NUMBER_NOTATIONS = 0x1ff,
    NUMBER_UNIT_MAX = 12 /* Bytes of a unit, with the NUL. */
};

enum number_look {
    NUMBER_NONE,   /* No number: a word. */
    NUMBER_BROKEN, /* Digits, separators and signs only, but no notation reads them. */
    NUMBER_WRITTEN /* A number in at least one notation. */
};

/* A number taken apart. */
struct number_written
{
    uint32_t notations;          /* All that read it, as bits. */
    bool minus, point, comma;    /* Its sign; whether it has a point or a comma. */
    char digits[NUMBER_MAX + 1]; /* Without sign and unit, all separators in ASCII. */
    char unit[NUMBER_UNIT_MAX];  /* "" where it has none. */
};

/* Take p[0..n) apart; *w is complete for NUMBER_WRITTEN only. */
enum number_look number_look(const uint8_t *p, size_t n, struct number_written *w);

/* The value in the notations of a mask, which all have the same decimal mark and read it. */
double number_value(const struct number_written *w, uint32_t notations);

/* v / divide as a float, rounded once; false where that is not finite. */
bool number_to_float(double v, double divide, float *x);

/* What was expected where number_to_float() has failed; it may be the divisor's fault. */
void number_wanted(double divide, char text[NUMBER_WANTED_MAX]);

/* The whole number from 1 to `most` that a string begins with, in the one way
 * to write it (no sign, no leading zero), since specs and kinds are compared as
 * texts. Returns what is behind it; NULL where there is none, and for NULL. */
const char *number_count(const char *p, uint32_t most, uint32_t *v);

#endif
