/* nn/models/printable.h -- converts any bytes to UTF-8 that is safe for a terminal, one byte at a
 * time.
 *
 *   in    h e l l o  ESC  c3  a9   ff   e2 82 |end
 *   out   h e l l o   ?   - c3 a9   ?     -     ?        ? is U+FFFD, - no output yet
 *
 * Printable ASCII, tabs and newlines are unchanged. So are complete UTF-8 characters (RFC 3629: no
 * overlong forms, no surrogates, at most U+10FFFF), except the control characters U+0080 to U+009F.
 * All other bytes become the replacement character U+FFFD. A sequence that cannot begin a character
 * becomes one U+FFFD.
 */
#ifndef NN_MODELS_PRINTABLE_H
#define NN_MODELS_PRINTABLE_H

#include <stddef.h>
#include <stdint.h>

/* Largest number of bytes that printable_put() or printable_end() writes. */
enum { PRINTABLE_MAX = 8 };

/* State of the conversion of one text. Initialise with zeros. */
struct printable
{
    uint8_t held[4]; /* First bytes of a character that is not complete yet. */
    /* n: number of bytes in `held`. need: number of bytes that the complete character has. */
    size_t n, need;
};

/* Converts one byte. Writes the output that later bytes cannot change, without a NUL, and returns
 * its length in bytes, which may be 0. */
size_t printable_put(struct printable *p, uint8_t byte, char out[PRINTABLE_MAX]);

/* Ends the text: an incomplete character at its end becomes U+FFFD. Returns the length of the
 * output in bytes. */
size_t printable_end(struct printable *p, char out[PRINTABLE_MAX]);

#endif
