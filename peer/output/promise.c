/* peer/output/promise.c -- writes, reads and removes the file `promise` of an output directory. The
 * file stores what a peer has promised in the finish protocol. */
#include "peer/output/promise.h"

#include "nn/files/file.h"
#include "nn/files/replace.h"
#include "peer/secure/hash.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Sets path[] to the path of the file DIR/promise. Returns false if the path is too long. */
static bool find_path(char path[REPLACE_PATH_MAX], const char *dir)
{
    return snprintf(path, REPLACE_PATH_MAX, "%s/promise", dir) < REPLACE_PATH_MAX;
}

int promise_write(const char *dir, const uint8_t *bytes, size_t n)
{
    char path[REPLACE_PATH_MAX];
    uint8_t file[PROMISE_MAX + HASH_BYTES];
    assert(n > 0 && n <= PROMISE_MAX);
    memcpy(file, bytes, n);
    hash_128(bytes, n, file + n);
    return find_path(path, dir) ? replace_file(path, file, n + HASH_BYTES) : -ENAMETOOLONG;
}

void promise_read(struct promise *p, const char *dir)
{
    char path[REPLACE_PATH_MAX], why[FILE_ERROR_MAX];
    int fd = find_path(path, dir) ? file_open_fd(path, why) : -ENAMETOOLONG;
    uint8_t file[PROMISE_MAX + HASH_BYTES + 1]; /* One byte more, to detect a longer file. */
    ssize_t got = fd >= 0 ? read(fd, file, sizeof file) : -1;
    if (fd >= 0)
        close(fd);
    *p = (struct promise){.n = fd != -ENOENT};
    if (got <= HASH_BYTES || (size_t)got == sizeof file)
        return;
    size_t n = (size_t)got - HASH_BYTES;
    if (hash_128_matches(file, n, file + n))
        memcpy(p->bytes, file, p->n = n);
}

void promise_remove(const char *dir)
{
    char path[REPLACE_PATH_MAX];
    if (find_path(path, dir))
        (void)unlink(path);
}
