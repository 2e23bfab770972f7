/* peer/cmd/scratch.c -- creates a temporary directory with mkdtemp() and removes it with nftw(). */
#define _XOPEN_SOURCE 700 /* _XOPEN_SOURCE makes nftw() available. */
#include "peer/cmd/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

/* Largest number of directories that nftw() keeps open at the same time. */
enum { DESCRIPTORS = 16 };

int cmd_scratch_make(char *out, size_t cap)
{
    const char *temporary = getenv("TMPDIR");
    int n = snprintf(out, cap, "%s/hearsay-XXXXXX",
                     temporary != NULL && *temporary ? temporary : "/tmp");
    if (n < 0 || (size_t)n >= cap)
        return -ENAMETOOLONG;
    return mkdtemp(out) == NULL ? -errno : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

int cmd_scratch_remove(const char *dir)
{
    errno = 0;
    if (nftw(dir, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0)
        return 0;
    return errno != 0 ? -errno : -EIO;
}
