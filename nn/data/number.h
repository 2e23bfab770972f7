/* nn/data/number.h -- parses numbers in text files and data specs.
 *
 * strtod() alone is not suitable: it accepts inf, nan, hex and white space, which a data file
 * should not have, and it is slow for files that consist of numbers.
 */
#ifndef NN_DATA_NUMBER_H
#define NN_DATA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NUMBER_MAX = 127, /* Longest number in characters. Longer ones are refused. */
    NUMBER_WANTED_MAX = 80
};

/* Parses the decimal number at p, at most up to end, to the nearest double:
 *
 *   [+-] (digits [. digits*] | . digits) [(e|E) [+-] digits]
 *
 * Returns the position after the number, or NULL if there is none or if the number has more than
 * NUMBER_MAX characters. Does not accept inf, nan or hex, and does not skip white space. A number
 * beyond the range of a double is infinite.
 */
const uint8_t *number_read(const uint8_t *p, const uint8_t *end, double *v);

/* Returns true if all of p[0..n) is one decimal number. */
bool number_is(const uint8_t *p, size_t n, double *v);

/* ---- Numbers in the notations of tables. ----
 *
 *   1,957.25   1 957,25   1'957.25   1_957   0,134   1,5e3   (12.5)   $19.5   EUR 3   3.1 %   0x1f
 *
 * A notation is a decimal mark and a thousands separator that a number may have. One cell often can
 * be read in several notations ("1,234" is 1234 or 1.234). The notation of a column is one in which
 * all of its cells can be read.
 *
 *   bits         decimal mark   thousands separator of each bit, from the lowest
 *   0x00f        point          comma, space, apostrophe, underscore
 *   0x0f0        comma          point, space, apostrophe, underscore
 *   0x100        none           none: hexadecimal, after 0x
 *
 * No-break, thin and figure spaces count as spaces, U+2019 as an apostrophe, U+2212 and U+2013 as
 * minus signs. Parentheses around a number mean minus. A unit may precede or follow the number: a
 * sign (%, $), a currency (EUR) or a word of a list ("kg"). A unit of one letter needs a space
 * before it.
 */
enum {
    NUMBER_POINT = 0x00f,
    NUMBER_COMMA = 0x0f0,
    NUMBER_HEX = 0x100,
    NUMBER_NOTATIONS = 0x1ff,
    NUMBER_UNIT_MAX = 12 /* Bytes of the longest unit, with the NUL. */
};

enum number_look {
    NUMBER_NONE,   /* A word. */
    NUMBER_BROKEN, /* Only digits, separators and signs, which no notation can read. */
    NUMBER_WRITTEN /* A number in at least one notation. */
};

/* A parsed number. */
struct number_written
{
    uint32_t notations;       /* Notations in which the number can be read, as bits. */
    bool minus, point, comma; /* minus: the number is negative. point, comma: the number has one. */
    /* The number without sign and unit, with all separators in ASCII. */
    char digits[NUMBER_MAX + 1];
    char unit[NUMBER_UNIT_MAX]; /* Unit of the number. "": none. */
};

/* Parses p[0..n). *w is complete only if the result is NUMBER_WRITTEN. */
enum number_look number_look(const uint8_t *p, size_t n, struct number_written *w);

/* Returns the value of a number. All bits of `notations` must be bits of w->notations and have the
 * same decimal mark. */
double number_value(const struct number_written *w, uint32_t notations);

/* Computes v / divide as a float, rounded once. Returns false if the result is not finite. */
bool number_to_float(double v, double divide, float *x);

/* Writes the expected text after number_to_float() has failed. The text names the divisor if the
 * divisor may be the cause. */
void number_wanted(double divide, char text[NUMBER_WANTED_MAX]);

/* Parses the whole number from 1 to `most` at p. Accepts no sign and no leading zero, because specs
 * and kinds are compared as texts. Returns the position after the number, or NULL if there is none
 * or if p is NULL. */
const char *number_count(const char *p, uint32_t most, uint32_t *v);

#endif
