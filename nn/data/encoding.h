/* nn/data/encoding.h -- converts text files to UTF-8 with newlines as line ends.
 *
 * A file with a byte order mark of UTF-16, or with NUL bytes as in ASCII text in UTF-16, is
 * converted from UTF-16. In a table, bytes that are not UTF-8 are converted from Windows-1252, a
 * superset of Latin-1. In a file with carriage returns and no newline, carriage returns become
 * newlines. A byte order mark of UTF-8 is kept: the readers skip it.
 */
#ifndef NN_DATA_ENCODING_H
#define NN_DATA_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Encoding of a file. */
enum encoding { ENCODING_UTF8, ENCODING_UTF16, ENCODING_1252, ENCODINGS };
extern const char *const encoding_name[ENCODINGS];

/* Converts *bytes, an allocated buffer of *n bytes, to UTF-8 with newlines as line ends. The buffer
 * may be reallocated. `any`: bytes that are not UTF-8 are kept. Otherwise such bytes are read as
 * Windows-1252. Returns the encoding found, or -ENOMEM with *bytes unchanged. O(n). Needs up to
 * three times the size as additional memory. */
__attribute__((warn_unused_result)) int encoding_normalise(uint8_t **bytes, size_t *n, bool any);

/* Returns whether encoding_normalise() would change the bytes if its argument `any` were true, so
 * that bytes that are not UTF-8 are kept. */
bool encoding_is_odd(const uint8_t *bytes, size_t n);

#endif
