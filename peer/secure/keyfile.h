/* peer/secure/keyfile.h -- 32 secret bytes in a file: the cluster key, or an identity's seed.
 *
 * The file is 64 hexadecimal digits and a newline, for its owner only. Errors
 * are one sentence that begins with the file, what was found and what was expected;
 * it never holds a byte of the key. Copies of the secret are wiped.
 */
#ifndef PEER_SECURE_KEYFILE_H
#define PEER_SECURE_KEYFILE_H

#include <stdint.h>

enum { KEYFILE_BYTES = 32, KEYFILE_ERROR_MAX = 512 };

/* Read a key. 0, -EINVAL (no regular file, group or others may use it, wrong
 * size, not hexadecimal) or the system's errno; then key[] is zero. */
__attribute__((warn_unused_result)) int keyfile_read(const char *path, uint8_t key[KEYFILE_BYTES],
                                                     char error[KEYFILE_ERROR_MAX]);

/* Write a new file of mode 0600, on the disk when this returns. Never touches
 * a file that exists (-EEXIST); leaves none behind on failure. */
__attribute__((warn_unused_result)) int keyfile_write(const char *path,
                                                      const uint8_t key[KEYFILE_BYTES],
                                                      char error[KEYFILE_ERROR_MAX]);

/* Writes one line of secret text, followed by a newline, in the same way as keyfile_write(). */
__attribute__((warn_unused_result)) int keyfile_write_text(const char *path, const char *text,
                                                           char error[KEYFILE_ERROR_MAX]);

#endif
