/* nn/math/number.h -- parses and prints decimal numbers, and finds a choice in a list "a|b|c".
 *
 * All decimal numbers of flags, specs, settings and data files are parsed here. The functions
 * accept no blanks, no hexadecimal digits, no nan and no inf, and refuse a number that does not
 * fit. On failure *value is unchanged, unless the function says otherwise.
 *
 * Tables in other notations ("1,957.25") are parsed by nn/data/notation.h.
 */
#ifndef NN_MATH_NUMBER_H
#define NN_MATH_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NUMBER_TEXT_MAX = 32, /* Size of the text of number_real_text() in bytes, with the final NUL. */
    NUMBER_MAX = 127, /* Largest number of characters of a real number. Longer texts are refused. */
    NUMBER_WANTED_MAX = 80,
    NUMBER_CHOICE_MOST = 4096
};

/* Parses the digits at p as a number of at most `most`. Returns the position after the digits, or
 * NULL if there is no digit or the number is larger. */
const char *number_digits(const char *p, uint64_t most, uint64_t *value);

/* Parses a number from 0 to `most` without leading zeros, so that each number has one spelling.
 * Returns the position after the number, or NULL if there is no such number. */
const char *number_plain(const char *p, uint32_t most, uint32_t *value);

/* Parses a number from 1 to `most` without leading zeros. Returns the position after the number, or
 * NULL if there is no such number. Also returns NULL if p is NULL, so that calls can be chained. */
const char *number_count(const char *p, uint32_t most, uint32_t *value);

/* Parses a text that has only digits. Returns false if it has other characters, or if the number
 * does not fit in 64 bits. */
bool number_whole(const char *text, uint64_t *value);

/* Parses the decimal number at p, at most up to end, to the nearest double:
 *
 *   [+-] (digits [. digits*] | . digits) [(e|E) [+-] digits]
 *
 * Returns the position after the number, or NULL if there is none or if the number has more than
 * NUMBER_MAX characters. A number beyond the range of a double is infinite. */
const uint8_t *number_read(const uint8_t *p, const uint8_t *end, double *value);

/* Returns whether all of p[0..n) is one decimal number in the syntax of number_read(), and sets
 * *value. */
bool number_is(const uint8_t *p, size_t n, double *value);

/* Returns whether the whole text is one finite decimal number in the syntax of number_read(), and
 * sets *value. */
bool number_real(const char *text, double *value);

/* Sets *x to v / divide, rounded to float. Returns false if the result is not finite. */
bool number_to_float(double v, double divide, float *x);

/* Writes the words of an error message that say which value was expected. Called after
 * number_to_float() has failed. If the cause may be the division by `divide` (such as 255), the
 * words name that divisor. */
void number_wanted(double divide, char text[NUMBER_WANTED_MAX]);

/* Writes the shortest decimal text that reads back as the same double. Numbers from 1 to 1e15 are
 * written without an exponent. */
void number_real_text(double value, char out[NUMBER_TEXT_MAX]);

/* Writes the value with four digits for a message. Values that are not finite are written in words:
 * "not a number", "infinite" or "minus infinite". Returns out. */
const char *number_said(double value, char out[NUMBER_TEXT_MAX]);

/* Returns the ending of a noun after the count n in a message: "" for 1, otherwise "s". */
const char *number_plural(uint64_t n);

/* Returns the index of `text` among the choices "a|b|c", or -1 if it is not one of them. The last
 * choice may be "word:N". It matches "word:1" to "word:4096" (NUMBER_CHOICE_MOST), and its index is
 * increased by the number minus 1. */
int number_choice(const char *choices, const char *text);

/* Returns the choice with index `place`, the inverse of number_choice(). Sets *length, because
 * the choice does not end with a NUL. If the choice is "word:N", *number is the number that
 * replaces N. */
const char *number_choice_at(const char *choices, uint64_t place, size_t *length, uint32_t *number);

#endif
