/* nn/data/quote.h -- bytes from a stranger's file or flag, made fit to be shown in a sentence.
 *
 * What was found stands in quotes; a byte that is not printable ASCII becomes \xNN, so that a
 * file cannot write to a terminal; what is longer than about QUOTE_SHOWN bytes is cut off.
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

/* "nothing" (without quotes) where n is 0. */
struct quote quote_bytes(const uint8_t *bytes, size_t n);

/* Quotes a string in the same way. */
struct quote quote_string(const char *text);

#endif
