/* nn/files/replace.h -- writes results: regular files are replaced atomically, other outputs are
 * streams.
 *
 *   PATH is ...                          what happens
 *   ------------------------------------ ----------------------------------------------------
 *   absent, or a regular file            PATH.tmp-PID-i is written, fsynced and renamed to PATH
 *   a symbolic link                      the target of the link is replaced, the link is kept
 *   a device, a pipe or a socket         the bytes are written to it; nothing is created or renamed
 *   a directory                          refused: -EISDIR
 *   a file that this program has read    refused: -REPLACE_INPUT, after replace_protect_inputs()
 *
 * After a crash, a regular file has either its old or its new contents. replace_is_left_over()
 * recognises the names of temporary files that a crash leaves.
 */
#ifndef NN_FILES_REPLACE_H
#define NN_FILES_REPLACE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    REPLACE_PATH_MAX = 4096,
    /* Error code if an output is also an input. No file operation returns this errno, so it is free
     * for this use. */
    REPLACE_INPUT = ENOTUNIQ
};

/* An open output, between replace_begin() and replace_end(). */
struct replace
{
    int fd;
    bool streams; /* True: PATH is a device, a pipe or a socket, and `name` is not used. */
    char path[REPLACE_PATH_MAX]; /* Path of the file to replace, with symbolic links resolved. */
    char name[REPLACE_PATH_MAX]; /* Path of the temporary file. */
};

/* Opens an output. A new file gets the permissions of the umask, a replaced file keeps its
 * permissions. Opening a pipe waits for a reader. Returns 0 or a negative errno. After an error,
 * replace_end() must not be called. */
__attribute__((warn_unused_result)) int replace_begin(struct replace *r, const char *path);

/* Writes the next n bytes. Returns 0 or a negative errno. */
__attribute__((warn_unused_result)) int replace_put(struct replace *r, const void *bytes, size_t n);

/* Closes an output. `err`: result of replace_put(). If err < 0, writing failed: the old file stays
 * unchanged, and err is returned. Otherwise the file is replaced, and file and directory are synced
 * to the disk. Returns 0 or a negative errno. */
__attribute__((warn_unused_result)) int replace_end(struct replace *r, int err);

/* Writes a whole file: replace_begin(), replace_put() and replace_end(). */
__attribute__((warn_unused_result)) int replace_file(const char *path, const void *bytes, size_t n);

/* Checks whether replace_begin() would accept PATH, for commands that compute for a long time
 * before they write. Returns 0, -EISDIR, -REPLACE_INPUT or another negative errno. Changes
 * nothing. */
__attribute__((warn_unused_result)) int replace_check(const char *path);

/* Returns the text for an error that a replace_...() function returned (a negative errno), for an
 * error message. */
const char *replace_why(int err);

/* From now on, remembers each file that file_open() opens as an input of this program, by device
 * and inode. Only commands call this function, because a program that uses the library may want to
 * read a file and then replace it. */
void replace_protect_inputs(void);

/* Adds the open file `fd` to the program's inputs, which replace_begin() refuses to overwrite. Does
 * nothing unless replace_protect_inputs() was called before. */
void replace_add_input(int fd);

/* Syncs a directory to the disk, so that the names in it are durable. Returns 0, also if the file
 * system does not support this, or a negative errno. */
__attribute__((warn_unused_result)) int replace_sync(const char *dir);

/* Returns true if `name`, without its directory, is the name of a temporary file of `base`. */
bool replace_is_left_over(const char *name, const char *base);

#endif
