/* peer/secure/keyfile.h -- 32 secret bytes in a file: the cluster key, or the seed of an identity.
 *
 * The file has 64 hexadecimal digits and a newline, and only its owner may access it. An error
 * message names the file, what was found and what was expected, but never contains a byte of the
 * key. Copies of the secret are wiped.
 */
#ifndef PEER_SECURE_KEYFILE_H
#define PEER_SECURE_KEYFILE_H

#include <stdint.h>

enum { KEYFILE_BYTES = 32, KEYFILE_ERROR_MAX = 512 };

/* Reads a key. Returns 0; -EINVAL if the path is not a regular file, group or others may access it,
 * or its content is not a key; or another negative errno. On failure key[] is zero. */
__attribute__((warn_unused_result)) int keyfile_read(const char *path, uint8_t key[KEYFILE_BYTES],
                                                     char error[KEYFILE_ERROR_MAX]);

/* Writes a new file with mode 0600 and syncs it to disk. Never changes an existing file (-EEXIST).
 * Leaves no file behind on failure. */
__attribute__((warn_unused_result)) int keyfile_write(const char *path,
                                                      const uint8_t key[KEYFILE_BYTES],
                                                      char error[KEYFILE_ERROR_MAX]);

/* Writes one line of secret text, followed by a newline, in the same way as keyfile_write(). */
__attribute__((warn_unused_result)) int keyfile_write_text(const char *path, const char *text,
                                                           char error[KEYFILE_ERROR_MAX]);

#endif
