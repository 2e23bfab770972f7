/* peer/checkpoints/disk.h -- file operations on one directory, as function pointers that a test can
 * replace by a faulty disk.
 *
 *   create --> write, write, ... --> sync --> close     makes the bytes of a file durable
 *   rename, unlink --> sync_dir                         makes the names durable
 *
 * After a power loss, each write and each name that was not synced may be lost or kept,
 * independently of the others. A failed call may have done a part of its work. A file whose sync
 * failed must be discarded: a second sync of the file may return 0 although data was lost. Each
 * call returns 0 (create: a file number >= 0) or a negative errno.
 */
#ifndef PEER_CHECKPOINTS_DISK_H
#define PEER_CHECKPOINTS_DISK_H

#include <stddef.h>
#include <stdint.h>

/* A directory and its file operations. Every operation takes `self` as its first argument. */
struct disk
{
    void *self;
    /* Creates a new, empty file. -EEXIST if the name is taken. */
    int (*create)(void *self, const char *name);
    /* Appends all `n` bytes to the file. */
    int (*write)(void *self, int file, const void *p, size_t n);
    /* Makes the file's content durable (fsync). */
    int (*sync)(void *self, int file);
    int (*close)(void *self, int file); /* Closes the file, even if the call returns an error. */
    /* Renames a file atomically and replaces the file `to` if there is one. */
    int (*rename)(void *self, const char *from, const char *to);
    /* Deletes the file with this name. */
    int (*unlink)(void *self, const char *name);
    /* Makes renames and deletions in the directory durable. */
    int (*sync_dir)(void *self);
    /* Reads a whole file into `*bytes`, which the caller frees. Returns 0; -ENOENT if there is no
     * file; -EFBIG if the file has more than `most` bytes; -EISDIR for a directory; -ELOOP for a
     * symbolic link; -ENXIO for a pipe or device. */
    int (*read)(void *self, const char *name, uint64_t most, uint8_t **bytes, size_t *n);
};

/* Opens the local directory `path`. Returns 0 or a negative errno. After an error disk_close() must
 * not be called. */
__attribute__((warn_unused_result)) int disk_open(struct disk *d, const char *path);
/* Closes the directory and frees `d->self`. */
void disk_close(struct disk *d);

#endif
