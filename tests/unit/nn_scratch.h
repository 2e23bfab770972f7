/* tests/unit/nn_scratch.h -- a directory of small files for one test, removed after it. */
#ifndef TESTS_UNIT_NN_SCRATCH_H
#define TESTS_UNIT_NN_SCRATCH_H

#include <assert.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

struct scratch
{
    char dir[512];
};

static inline void scratch_open(struct scratch *s)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(s->dir, sizeof s->dir, "%s/hearsay-XXXXXX", tmp ? tmp : P_tmpdir);
    char *made = mkdtemp(s->dir);
    assert(made);
}

/* Returns "DIR/name". The text is valid for the next three calls. */
static inline const char *scratch_path(const struct scratch *s, const char *name)
{
    static char path[4][800];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", s->dir, name);
    return path[next];
}

static inline void scratch_remove(const struct scratch *s, const char *name)
{
    unlink(scratch_path(s, name));
}

/* Writes a file. Removes an old file first, because ext4 flushes a file that is truncated and
 * rewritten, which would slow a fuzz test down to minutes. */
static inline void scratch_put(const struct scratch *s, const char *name, const void *bytes,
                               size_t n)
{
    scratch_remove(s, name);
    FILE *f = fopen(scratch_path(s, name), "wb");
    assert(f);
    size_t put = fwrite(bytes, 1, n, f);
    int err = fclose(f);
    assert(put == n && err == 0);
}

/* Reads a whole file into buf[0..cap). Returns its size in bytes. */
static inline size_t scratch_get(const struct scratch *s, const char *name, void *buf, size_t cap)
{
    FILE *f = fopen(scratch_path(s, name), "rb");
    assert(f);
    size_t n = fread(buf, 1, cap, f);
    fclose(f);
    return n;
}

static inline void scratch_put_gz(const struct scratch *s, const char *name, const void *bytes,
                                  size_t n)
{
    gzFile f = gzopen(scratch_path(s, name), "wb6");
    assert(f);
    int put = gzwrite(f, bytes, (unsigned)n);
    int err = gzclose(f);
    assert(put == (int)n && err == Z_OK);
}

/* Returns the number of files in the directory. Removes them if `wipe` is set. */
static inline size_t scratch_count(const struct scratch *s, int wipe)
{
    DIR *d = opendir(s->dir);
    assert(d);
    size_t n = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            n++;
            if (wipe)
                scratch_remove(s, e->d_name);
        }
    closedir(d);
    return n;
}

static inline void scratch_close(struct scratch *s)
{
    scratch_count(s, 1);
    rmdir(s->dir);
}

#endif
