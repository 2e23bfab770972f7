/* nn/models/printable.h -- any bytes as UTF-8 that a terminal can be given, one byte at a time.
 *
 *   in    h e l l o  ESC  c3  a9   ff   e2 82 |end
 *   out   h e l l o   ?   - c3 a9   ?     -     ?        ? is U+FFFD, - nothing yet
 *
 * What passes: printable ASCII, tabs, newlines, and whole characters of UTF-8 (RFC 3629: no
 * overlong forms, no surrogates, at most U+10FFFF) but for the controls U+0080 to U+009F. All
 * else becomes the replacement character, one for each run that cannot be the beginning of a
 * character any more.
 */
#ifndef NN_MODELS_PRINTABLE_H
#define NN_MODELS_PRINTABLE_H

#include <stddef.h>
#include <stdint.h>

enum { PRINTABLE_MAX = 8 }; /* Bytes that one call writes at most. */

/* Begins with zeros. */
struct printable
{
    uint8_t held[4]; /* First bytes of a character that is not complete yet. */
    size_t n, need;  /* Number of bytes so far, and of the whole character. */
};

/* Take a byte and write what is certain now, with no NUL. Returns how many bytes that are. */
size_t printable_put(struct printable *p, uint8_t byte, char out[PRINTABLE_MAX]);

/* Ends the text. An incomplete character is replaced. */
size_t printable_end(struct printable *p, char out[PRINTABLE_MAX]);

#endif
