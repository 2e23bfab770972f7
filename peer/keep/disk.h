/* peer/keep/disk.h -- files in one directory by eight calls, so that a test can bring a worse disk.
 *
 *   create --> write, write, ... --> sync --> close     a file's bytes are on the disk
 *   rename, unlink --> sync_dir                         and so is its name
 *
 * What is not synced may be lost or kept at a power loss, each write and each name by itself, in
 * any order. A call that failed may have done a part of its work. A file whose sync
 * failed is to be given up: another sync of it may succeed and say nothing of what was lost.
 * Each call returns 0 (create: the file, not negative) or a negative errno.
 */
#ifndef PEER_KEEP_DISK_H
#define PEER_KEEP_DISK_H

#include <stddef.h>
#include <stdint.h>

struct disk
{
    void *self;
    /* A new, empty file; -EEXIST where there is one of that name. */
    int (*create)(void *self, const char *name);
    int (*write)(void *self, int file, const void *p, size_t n); /* All of it, at the end. */
    int (*sync)(void *self, int file);
    int (*close)(void *self, int file); /* It is closed whatever is returned. */
    int (*rename)(void *self, const char *from, const char *to); /* At once, over what is there. */
    int (*unlink)(void *self, const char *name);
    int (*sync_dir)(void *self);
    /* All of a file, for free(). -ENOENT; -EFBIG beyond `most`; -EISDIR, -ELOOP (a link), -ENXIO
     * (a pipe, a device) for what is no regular file. */
    int (*read)(void *self, const char *name, uint64_t most, uint8_t **bytes, size_t *n);
};

/* A directory of the machine's. 0 or a negative errno; then nothing is to be closed. */
__attribute__((warn_unused_result)) int disk_open(struct disk *d, const char *path);
void disk_close(struct disk *d);

#endif
