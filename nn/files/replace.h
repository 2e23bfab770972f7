/* nn/files/replace.h -- where results are written: files whole or not at all, pipes as they come.
 *
 *   PATH is ...                          what happens
 *   ------------------------------------ ----------------------------------------------------
 *   not there, or a regular file         PATH.tmp-PID-i is written, fsynced, renamed to PATH
 *   a symbolic link                      the same for the file that the link leads to; the link stays
 *   a device, a pipe or a socket         the bytes are written to it; nothing is created or renamed
 *   a directory                          refused: -EISDIR
 *   a file that this program has read    refused: -REPLACE_INPUT, if replace_protect_inputs() was called
 *
 * A crash at any moment leaves a regular file as it was or as it should be. Temporary files that a
 * crash leaves are recognised by name: replace_is_left_over().
 */
#ifndef NN_FILES_REPLACE_H
#define NN_FILES_REPLACE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    REPLACE_PATH_MAX = 4096,
    REPLACE_INPUT = ENOTUNIQ /* Error: PATH is an input. No call on files returns this number. */
};

/* One output between replace_begin() and replace_end(). */
struct replace
{
    int fd;
    bool streams;                /* PATH is a device, a pipe or a socket: `name` is not used. */
    char path[REPLACE_PATH_MAX]; /* The file to replace, with symbolic links resolved. */
    char name[REPLACE_PATH_MAX]; /* The temporary file. */
};

/* Open an output. A new file gets the rights of the umask, a replaced one keeps its rights. Opening
 * a pipe waits for its reader. 0 or a negative errno: then there is nothing to end. */
__attribute__((warn_unused_result)) int replace_begin(struct replace *r, const char *path);

/* Write the next n bytes. 0 or a negative errno. */
__attribute__((warn_unused_result)) int replace_put(struct replace *r, const void *bytes, size_t n);

/* Close an output. err < 0: writing failed; a regular file stays as it was, and err is returned.
 * Otherwise the bytes, the file in place of the old one and its name are on the disk. 0 or a
 * negative errno. */
__attribute__((warn_unused_result)) int replace_end(struct replace *r, int err);

/* All three at once. */
__attribute__((warn_unused_result)) int replace_file(const char *path, const void *bytes, size_t n);

/* May PATH be written? 0, -EISDIR, -REPLACE_INPUT or another errno of looking at it. Changes
 * nothing: for commands that compute for long before they write. */
__attribute__((warn_unused_result)) int replace_check(const char *path);

/* The reason of a negative errno of these functions, in words. */
const char *replace_why(int err);

/* Is PATH, or what a link of that name leads to, a pipe, a socket or a character device? Nothing
 * is lost by writing to one. */
bool replace_is_stream(const char *path);

/* From now on remember each file that file_open() opens, by device and inode, as an input of this
 * program. For commands; a library must be able to read a file and later replace it. */
void replace_protect_inputs(void);

/* The open file `fd` is an input. Does nothing before replace_protect_inputs(). */
void replace_add_input(int fd);

/* A directory's names to the disk. 0, also where the file system has no such thing, or a
 * negative errno. */
__attribute__((warn_unused_result)) int replace_sync(const char *dir);

/* Is `name`, without its directory, that of a temporary file of `base`? */
bool replace_is_left_over(const char *name, const char *base);

#endif
