/* nn/files/file.h -- reads a data file, plain or gzip, from front to back.
 *
 * This is the only module that uses zlib. The first two bytes of a file show whether it is gzip. A
 * file whose name ends in .gz but which is not gzip is refused. A gzip file must end with a
 * complete member and a correct checksum: a truncated or corrupt file is an error, not a short
 * file.
 *
 *   path --file_open--> size bound --file_get, file_get, ...--> 0 at the end
 *
 * file_bound() gives an upper bound of the contents before anything is read: the size of a plain
 * file, or 1,032 times the size of a gzip file, because deflate cannot compress better. A reader
 * compares sizes in a header with the bound before it allocates memory. A header with a false size
 * then costs at most the bound, and a small file never costs much.
 *
 * Every failure gives one message that begins with the file's path.
 */
#ifndef NN_FILES_FILE_H
#define NN_FILES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FILE_ERROR_MAX = 320 /* Size of an error message, in bytes with the NUL. */
};

struct file; /* An open file. Opaque. */

/* Receives progress while a file is read. call() is called every few MiB with the number of bytes
 * on disk that were read and their total. `call` may be NULL. */
struct file_progress
{
    void (*call)(void *self, const char *path, uint64_t done, uint64_t total);
    void *self;
    /* Sum of the hashes of all files that are read with this struct. A hash covers the unpacked
     * bytes, so the sum does not depend on the names and the order of the files, nor on whether
     * they are compressed. file_close() adds the hash of the closed file. NULL: no hash is
     * computed. */
    uint64_t *hash;
};

/* Opens a regular file for reading. From then on the program refuses to overwrite the file with one
 * of its outputs (nn/files/replace.h). Returns 0 or a negative errno with a message: -ENOENT,
 * -EACCES, ..., -ENOMEM, or -EINVAL if the file is not regular, or has a name in .gz and is not
 * gzip. */
__attribute__((warn_unused_result)) int file_open(struct file **f, const char *path,
                                                  char error[FILE_ERROR_MAX]);

/* Opens a file as file_open() does, but never unpacks gzip. */
__attribute__((warn_unused_result)) int file_open_plain(struct file **f, const char *path,
                                                        char error[FILE_ERROR_MAX]);

/* Opens a file as file_open_plain() does, but the program may later overwrite the file
 * (nn/files/replace.h). */
__attribute__((warn_unused_result)) int file_open_no_input(struct file **f, const char *path,
                                                           char error[FILE_ERROR_MAX]);
void file_close(struct file *f);

/* file_bound() returns the largest number of bytes that reading can give: for a plain file, this is
 * the size of the file. file_is_plain() returns whether the file is not gzip. */
uint64_t file_bound(const struct file *f);
bool file_is_plain(const struct file *f);

/* Reads the next n bytes, or fewer at the end of the file. *got is their number. At the end of a
 * gzip file, its checksum has been verified. Returns 0, -EINVAL for corrupt or truncated gzip data,
 * or a negative errno of read(), with a message. */
__attribute__((warn_unused_result)) int file_get(struct file *f, void *dst, size_t n, size_t *got,
                                                 char error[FILE_ERROR_MAX]);

/* Reports progress from now on, every few MiB of the file on disk and at its end. If progress->hash
 * is not NULL, the file's hash is computed from now on. */
void file_watch(struct file *f, const struct file_progress *progress);

/* Reads a whole file of at most `limit` bytes into *bytes, which the caller frees. The memory grows
 * with the bytes read. Returns the same errors as file_open() and file_get(), and -EFBIG if the
 * file is longer than the limit. `progress` may be NULL. */
__attribute__((warn_unused_result)) int file_read(const char *path, size_t limit,
                                                  const struct file_progress *progress,
                                                  uint8_t **bytes, size_t *n,
                                                  char error[FILE_ERROR_MAX]);

/* Reads a small text file, which is not unpacked, into text[0..cap) and adds a NUL. Returns the
 * same errors as file_open_plain() and file_get(), -EFBIG if the file has `cap` bytes or more, and
 * -EINVAL if the file has a NUL byte. After an error the text is empty. */
__attribute__((warn_unused_result)) int file_read_text(const char *path, char *text, size_t cap,
                                                       char error[FILE_ERROR_MAX]);

/* Opens a regular file for reading and never blocks, not even on a named pipe. All files that the
 * program reads are opened with this function. Returns the descriptor, or a negative errno with a
 * message: -EINVAL if the path is a directory, named pipe, socket or device. */
__attribute__((warn_unused_result)) int file_open_fd(const char *path, char error[FILE_ERROR_MAX]);

/* Returns -EINVAL with a message if the path is a directory, named pipe, socket or device. Returns
 * 0 if the path is a regular file, is missing or cannot be inspected. Follows symbolic links. */
__attribute__((warn_unused_result)) int file_check_regular(const char *path,
                                                           char error[FILE_ERROR_MAX]);

/* file_exists() returns whether a file or directory has this path. file_is_directory() returns
 * whether a directory has this path. */
bool file_exists(const char *path);
bool file_is_directory(const char *path);

/* Identity of the file at a path, after following links. Two names of one file have equal
 * identities. inode 0: the file cannot be inspected. */
struct file_id
{
    uint64_t device, inode;
};

struct file_id file_identify(const char *path);

/* Reads the first bytes of a file, unpacked: *n bytes, at most cap. *whole: true if the file has no
 * more bytes. The program may later overwrite the file (nn/files/replace.h). Returns the same
 * errors as file_open() and file_get(). */
__attribute__((warn_unused_result)) int file_head(const char *path, uint8_t *bytes, size_t cap,
                                                  size_t *n, bool *whole,
                                                  char error[FILE_ERROR_MAX]);

/* Lists the names in a directory, in byte order, without directories and without names that begin
 * with a dot: (*names)[0..*n), to be freed by file_list_free(). Returns 0, -EFBIG if there are more
 * than `most` names, or another negative errno. After an error *names is NULL. */
__attribute__((warn_unused_result)) int file_list(const char *dir, size_t most, char ***names,
                                                  size_t *n, char error[FILE_ERROR_MAX]);
void file_list_free(char **names, size_t n);

/* Returns the version of the loaded zlib, such as "1.2.13". */
const char *file_zlib_version(void);

/* Returns the last component of a path: the part after the last slash. */
const char *file_base_name(const char *path);

/* Writes "PATH: message" to `error`. A long path is cut at its front, so that the message stays
 * complete. Bytes of the message that are not printable ASCII become \xNN. Returns -EINVAL, so a
 * caller can refuse a file in one statement. */
__attribute__((format(printf, 3, 4))) int file_error(char error[FILE_ERROR_MAX], const char *path,
                                                     const char *format, ...);

/* Writes "PATH: WHAT: text of the errno `code`" to `error`, after a failed system call. Returns
 * -code. */
int file_world_error(char error[FILE_ERROR_MAX], const char *path, const char *what, int code);

/* Writes "PATH: cannot read: no memory" to `error`. Returns -ENOMEM. */
int file_no_memory(char error[FILE_ERROR_MAX], const char *path);

#endif
