/* nn/files/file.h -- a data file, plain or gzip, read front to back.
 *
 * Only this module uses zlib. The first two bytes of a file show whether it is gzip; a name that ends
 * in .gz with other contents is refused. A gzip file must end with a complete member and a correct
 * checksum: a truncated or corrupt file is an error, not a short file.
 *
 *   path --file_open--> size bound --file_get, file_get, ...--> 0 at the end
 *
 * file_bound() is known before anything is read: the size of a plain file, or
 * 1,032 times that of a gzip file (deflate's best). Who allocates what a
 * header announces compares it with the bound first, so that a lying header
 * costs at most that, and a small file never costs much.
 *
 * Every failure leaves one sentence that begins with the file's path.
 */
#ifndef NN_FILES_FILE_H
#define NN_FILES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FILE_ERROR_MAX = 320 /* Bytes of an error sentence, with the NUL. */
};

struct file; /* Opaque: made by file_open(). */

/* Progress of reading a file. call() gets the bytes of the file on disk that were read, and all of
 * its bytes, after every few MiB. `call` may be NULL. */
struct file_progress
{
    void (*call)(void *self, const char *path, uint64_t done, uint64_t total);
    void *self;
    /* Sum of the hashes of all files that are read with this struct. A hash covers the unpacked
     * bytes, so names, order and compression of the files do not matter. file_close() adds the
     * file. NULL: no hash. */
    uint64_t *hash;
};

/* Opens a regular file for reading. From then on, the file is an input (nn/files/replace.h).
 * Returns 0 or a negative errno with a message: -ENOENT, -EACCES, ..., -ENOMEM, or -EINVAL for a
 * file that is not regular and for a .gz that is not gzip. */
__attribute__((warn_unused_result)) int file_open(struct file **f, const char *path,
                                                  char error[FILE_ERROR_MAX]);

/* Opens a file as file_open() does, but never unpacks the file. */
__attribute__((warn_unused_result)) int file_open_plain(struct file **f, const char *path,
                                                        char error[FILE_ERROR_MAX]);
void file_close(struct file *f);

/* The most bytes that can come out of it; of a plain file, its size. */
uint64_t file_bound(const struct file *f);
bool file_is_plain(const struct file *f);

/* Read the next n bytes, fewer only at the end: *got says how many. At the end
 * of a gzip file its checksum has been verified. 0, -EINVAL (corrupt or
 * truncated gzip) or the read's errno, with a sentence. */
__attribute__((warn_unused_result)) int file_get(struct file *f, void *dst, size_t n, size_t *got,
                                                 char error[FILE_ERROR_MAX]);

/* Say from here on how far it is: each few MiB of the file on disk, and when
 * its end has been read. */
void file_watch(struct file *f, const struct file_progress *progress);

/* Read all of a file of at most `limit` bytes into *bytes, which the caller
 * frees; memory grows with what was read. As file_open() and file_get(), and
 * -EFBIG beyond the limit. `progress` may be NULL. */
__attribute__((warn_unused_result)) int file_read(const char *path, size_t limit,
                                                  const struct file_progress *progress,
                                                  uint8_t **bytes, size_t *n,
                                                  char error[FILE_ERROR_MAX]);

/* Does a file or directory of that name exist? */
bool file_exists(const char *path);
bool file_is_directory(const char *path);

/* Identity of the file that a path leads to, after following links. Equal for two names of one
 * file. inode 0: the file cannot be inspected. */
struct file_id
{
    uint64_t device, inode;
};

struct file_id file_identify(const char *path);

/* Reads the first bytes of a file, unpacked: *n <= cap of them. *whole: the file has no more bytes.
 * The file does not become an input. Errors are those of file_open() and file_get(). */
__attribute__((warn_unused_result)) int file_head(const char *path, uint8_t *bytes, size_t cap,
                                                  size_t *n, bool *whole,
                                                  char error[FILE_ERROR_MAX]);

/* The names in a directory that are no directories and do not begin with a
 * dot, in byte order; (*names)[0..*n), for file_list_free(). 0; -EFBIG with
 * more than `most` of them; or the errno; then *names is NULL. */
__attribute__((warn_unused_result)) int file_list(const char *dir, size_t most, char ***names,
                                                  size_t *n, char error[FILE_ERROR_MAX]);
void file_list_free(char **names, size_t n);

/* The version of the zlib that is loaded, "1.2.13". */
const char *file_zlib_version(void);

/* Returns the part of a path after the last slash. */
const char *file_base_name(const char *path);

/* Write "PATH: message" into error, a long path cut at its front so that the
 * message is whole; its bytes that are not printable ASCII become \xNN. Returns -EINVAL, so that a refusal is one statement. */
__attribute__((format(printf, 3, 4))) int file_error(char error[FILE_ERROR_MAX], const char *path,
                                                     const char *format, ...);

/* A failed system call: write "PATH: WHAT: reason of code" into error. Returns
 * -code. */
int file_world_error(char error[FILE_ERROR_MAX], const char *path, const char *what, int code);

/* Write "PATH: cannot read: no memory" into error. Returns -ENOMEM. */
int file_no_memory(char error[FILE_ERROR_MAX], const char *path);

#endif
