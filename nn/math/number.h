/* nn/math/number.h -- reads and writes decimal numbers, and finds a choice in "a|b|c".
 *
 * All decimal numbers of flags, specs, settings and data files are read here. The functions accept
 * no blanks, no hexadecimal digits, no nan and no inf, and refuse a number that does not fit. On
 * failure *value is unchanged, if the function does not say otherwise.
 *
 * Numbers of tables in other notations ("1,957.25") are read by nn/data/notation.h.
 */
#ifndef NN_MATH_NUMBER_H
#define NN_MATH_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NUMBER_TEXT_MAX = 32, /* Bytes that number_real_text() needs, with the NUL. */
    NUMBER_MAX = 127,     /* Longest real number in characters. Longer ones are refused. */
    NUMBER_WANTED_MAX = 80,
    NUMBER_CHOICE_MOST = 4096
};

/* Read the digits at p, a number of at most `most`. Returns the character behind
 * them; NULL where there is no digit or the number is larger. */
const char *number_digits(const char *p, uint64_t most, uint64_t *value);

/* Parses a number that has only one spelling: without leading zeros. */
const char *number_plain(const char *p, uint32_t most, uint32_t *value);

/* Parses a number from 1 to `most`. Returns NULL also if p is NULL, so that calls can be
 * chained. */
const char *number_count(const char *p, uint32_t most, uint32_t *value);

/* Returns true if the whole text consists of digits of a number that fits in 64 bits. */
bool number_whole(const char *text, uint64_t *value);

/* Parses the decimal number at p, at most up to end, to the nearest double:
 *
 *   [+-] (digits [. digits*] | . digits) [(e|E) [+-] digits]
 *
 * Returns the position after the number, or NULL if there is none or if the number has more than
 * NUMBER_MAX characters. A number beyond the range of a double is infinite. */
const uint8_t *number_read(const uint8_t *p, const uint8_t *end, double *value);

/* Returns true if all of p[0..n) is one decimal number, as number_read() accepts it. */
bool number_is(const uint8_t *p, size_t n, double *value);

/* Returns true if the whole text is one finite decimal number, as number_read() accepts it. */
bool number_real(const char *text, double *value);

/* Computes v / divide as a float, rounded once. Returns false if the result is not finite. */
bool number_to_float(double v, double divide, float *x);

/* After number_to_float() has failed: writes the part of the error message that says what was
 * expected. It names the divisor (such as 255) if the divisor may be the cause. */
void number_wanted(double divide, char text[NUMBER_WANTED_MAX]);

/* Write the shortest decimal text that reads back as the same double, without
 * an exponent where people would not write one. */
void number_real_text(double value, char out[NUMBER_TEXT_MAX]);

/* Write four digits of it, for a sentence; "not a number", "infinite" or "minus infinite" where it is
 * that: people are not told of nan. Returns out. */
const char *number_said(double value, char out[NUMBER_TEXT_MAX]);

/* The place of `text` among the choices "a|b|c"; -1 where it is none of them. The last one may be
 * "word:N", for "word:1" to "word:4096" (NUMBER_CHOICE_MOST) in decimal: then what follows its
 * place are those of the greater numbers. */
int number_choice(const char *choices, const char *text);

/* Returns the choice at `place`, which must exist. Sets *length, because the choice does not end
 * with a NUL, and *number to the number that replaces N if the choice is "word:N". */
const char *number_choice_at(const char *choices, uint64_t place, size_t *length, uint32_t *number);

#endif
