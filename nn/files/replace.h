/* nn/files/replace.h -- a file written anew: the old one or the new one, never half.
 *
 *   PATH.tmp-PID-i   created (never an existing file), written, fsynced
 *   rename to PATH   its directory fsynced
 *
 * so that a crash at any moment leaves PATH as it was or as it should be. What a crash leaves
 * beside it is told by its name: replace_is_left_over().
 */
#ifndef NN_FILES_REPLACE_H
#define NN_FILES_REPLACE_H

#include <stdbool.h>
#include <stddef.h>

enum { REPLACE_PATH_MAX = 4096 };

/* A file under way. */
struct replace
{
    int fd;
    char path[REPLACE_PATH_MAX], name[REPLACE_PATH_MAX]; /* Where it will be, and is now. */
};

/* Begin, with the rights that the umask gives. 0 or a negative errno: then there is nothing to
 * end. */
__attribute__((warn_unused_result)) int replace_begin(struct replace *r, const char *path);

/* The next n bytes. 0 or a negative errno. */
__attribute__((warn_unused_result)) int replace_put(struct replace *r, const void *bytes, size_t n);

/* End it. err < 0: something failed, PATH stays as it was, and err is returned. Else the bytes
 * go to the disk, the file in the place of PATH's, and the new name to the disk. 0 or a negative
 * errno. */
__attribute__((warn_unused_result)) int replace_end(struct replace *r, int err);

/* All three at once. */
__attribute__((warn_unused_result)) int replace_file(const char *path, const void *bytes, size_t n);

/* A directory's names to the disk. 0, also where the file system has no such thing, or a
 * negative errno. */
__attribute__((warn_unused_result)) int replace_sync(const char *dir);

/* Is `name`, without its directory, that of a file under way to `base`? */
bool replace_is_left_over(const char *name, const char *base);

#endif
