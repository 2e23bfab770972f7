/* nn/data/encoding.h -- files of text in other encodings and with other line ends, made UTF-8 with newlines.
 *
 *   told by                                       becomes
 *   a byte order mark of UTF-16, or NULs as in    UTF-8
 *   ASCII text in UTF-16
 *   bytes that are no UTF-8 (tables only)         UTF-8, as from Windows-1252, which has Latin-1 in it
 *   carriage returns and no newline               newlines
 *
 * A byte order mark of UTF-8 stays: readers pass over it.
 */
#ifndef NN_DATA_ENCODING_H
#define NN_DATA_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What bytes were. */
enum encoding { ENCODING_UTF8, ENCODING_UTF16, ENCODING_1252, ENCODINGS };
extern const char *const encoding_name[ENCODINGS];

/* Make *bytes, *n of them from malloc(), what the table above says; they may move. `any` says that what is
 * no UTF-8 is left as it is. Returns what they were, or -ENOMEM, with *bytes as before. Linear; needs
 * at most three times their size more. */
__attribute__((warn_unused_result)) int encoding_normalise(uint8_t **bytes, size_t *n, bool any);

/* Does encoding_normalise() have anything to do, other than for what is no UTF-8? */
bool encoding_is_odd(const uint8_t *bytes, size_t n);

#endif
