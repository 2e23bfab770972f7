/* nn/math/number.h -- decimal numbers and "a|b|c" choices in texts, read strictly.
 *
 * A text is a flag, a spec or a line from a stranger, so nothing is guessed: no
 * blanks, no hexadecimals, no nan or inf, and a number that does not fit is
 * refused instead of cut. On failure *value is untouched.
 *
 * Columns of data files have readers of their own (nn/data/lines.h): they are
 * not NUL-terminated, and there are millions of them.
 */
#ifndef NN_MATH_NUMBER_H
#define NN_MATH_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NUMBER_TEXT_MAX = 32, /* Bytes that number_real_text() needs, with the NUL. */
    NUMBER_CHOICE_MOST = 4096
};

/* Read the digits at p, a number of at most `most`. Returns the character behind
 * them; NULL where there is no digit or the number is larger. */
const char *number_digits(const char *p, uint64_t most, uint64_t *value);

/* The same for a number that has one spelling only: without leading zeros. */
const char *number_plain(const char *p, uint32_t most, uint32_t *value);

/* Is the whole text digits, of a number that fits? */
bool number_whole(const char *text, uint64_t *value);

/* Is the whole text a finite decimal number: a sign, a point and an exponent are
 * allowed? */
bool number_real(const char *text, double *value);

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

/* The choice at `place`, which there must be, and its length: it has no NUL. Of the last one,
 * *number is what its N stands for. */
const char *number_choice_at(const char *choices, uint64_t place, size_t *length, uint32_t *number);

#endif
