/* nn/data/quote.h -- quotes bytes from untrusted files and flags for error messages.
 *
 * The bytes are enclosed in double quotes. A byte that is not printable ASCII becomes \xNN, so a
 * file cannot send control codes to a terminal. The text is cut off after about QUOTE_SHOWN bytes.
 */
#ifndef NN_DATA_QUOTE_H
#define NN_DATA_QUOTE_H

#include <stddef.h>
#include <stdint.h>

enum { QUOTE_SHOWN = 40 };

struct quote
{
    char text[QUOTE_SHOWN + 12];
};

/* Returns the quoted text of n bytes. For n = 0 the text is the word nothing, without quotes. */
struct quote quote_bytes(const uint8_t *bytes, size_t n);

/* Returns the quoted text of a string that ends with a NUL. */
struct quote quote_string(const char *text);

#endif
