/* peer/sim/disk.c -- a simulated disk, which records each write to a file and each change of a name
 * until it is durable. */
#include "peer/sim/disk.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the array `p` of n elements with room for one more. Aborts if memory is exhausted,
 * because the simulation cannot continue. */
static void *one_more(void *p, size_t n, size_t size)
{
    p = realloc(p, (n + 1) * size);
    assert(p != NULL);
    return p;
}

static bool coin(struct sim_disk *d)
{
    return rng_below(&d->rng, 2) == 0;
}

/* ---- Names ---- */

static struct sim_disk_name *find(struct sim_disk_name *names, const char *name)
{
    for (size_t i = 0; i < SIM_DISK_NAMES; i++)
        if (strcmp(names[i].name, name) == 0)
            return &names[i];
    return NULL;
}

/* Applies a change to a table of names. A name to remove or rename may be missing, because an
 * earlier change may have been lost. */
static void apply(struct sim_disk_name *names, const struct sim_disk_change *c)
{
    struct sim_disk_name *from = c->from[0] != '\0' ? find(names, c->from) : NULL;
    if (from != NULL && from->inode == c->inode)
        from->name[0] = '\0';
    if (c->to[0] == '\0')
        return;
    struct sim_disk_name *to = find(names, c->to);
    if (to == NULL)
        to = find(names, "");
    assert(to != NULL);
    snprintf(to->name, sizeof to->name, "%s", c->to);
    to->inode = c->inode;
}

static void change(struct sim_disk *d, const char *from, const char *to, int inode)
{
    struct sim_disk_change c = {.inode = inode};
    snprintf(c.from, sizeof c.from, "%s", from);
    snprintf(c.to, sizeof c.to, "%s", to);
    apply(d->seen, &c);
    d->change = one_more(d->change, d->n_changes, sizeof *d->change);
    d->change[d->n_changes++] = c;
}

/* ---- Files ---- */

static void drop(struct sim_disk_inode *f)
{
    free(f->bytes);
    free(f->write);
    *f = (struct sim_disk_inode){0};
}

static bool reachable(const struct sim_disk *d, int inode)
{
    if (d->inode[inode].open)
        return true;
    for (size_t i = 0; i < SIM_DISK_NAMES; i++)
        if ((d->seen[i].name[0] != '\0' && d->seen[i].inode == inode)
            || (d->sure[i].name[0] != '\0' && d->sure[i].inode == inode))
            return true;
    for (size_t i = 0; i < d->n_changes; i++)
        if (d->change[i].inode == inode)
            return true;
    return false;
}

static void sweep(struct sim_disk *d)
{
    for (size_t i = 0; i < d->n_inodes; i++)
        if (d->inode[i].used && !reachable(d, (int)i))
            drop(&d->inode[i]);
}

static int new_inode(struct sim_disk *d)
{
    size_t i = 0;
    while (i < d->n_inodes && d->inode[i].used)
        i++;
    if (i == d->n_inodes)
        d->inode = one_more(d->inode, d->n_inodes++, sizeof *d->inode);
    d->inode[i] = (struct sim_disk_inode){.used = true, .open = true};
    return (int)i;
}

static void append(struct sim_disk_inode *f, const void *p, size_t n)
{
    if (n == 0)
        return;
    f->bytes = realloc(f->bytes, f->n + n);
    assert(f->bytes != NULL);
    memcpy(f->bytes + f->n, p, n);
    f->write = one_more(f->write, f->n_writes, sizeof *f->write);
    f->write[f->n_writes++] = (struct sim_disk_write){.at = f->n, .n = n};
    f->n += n;
}

/* ---- Failures of a call ---- */

enum outcome { ALL, PART, NOTHING };

/* Called at the beginning of each disk operation. Counts the operation, and returns whether the
 * operation does all, part or none of its work. Sets *err to the result of the operation: 0 or a
 * negative errno. An operation that returns an error may have done all its work. */
static enum outcome begin(struct sim_disk *d, int *err)
{
    *err = 0;
    if (sim_disk_dead(d)) {
        *err = -EIO;
        return NOTHING;
    }
    d->n_calls++;
    if (d->n_calls != d->fail_at && d->n_calls != d->last)
        return ALL;
    *err = d->n_calls == d->fail_at ? -d->fail_err : -EIO;
    static const enum outcome outcomes[] = {ALL, PART, NOTHING};
    return outcomes[rng_below(&d->rng, 3)];
}

bool sim_disk_dead(const struct sim_disk *d)
{
    return d->last != 0 && d->n_calls >= d->last;
}

/* ---- The calls ---- */

static int sim_create(void *self, const char *name)
{
    struct sim_disk *d = self;
    int err;
    enum outcome o = begin(d, &err);
    if (o == NOTHING)
        return err;
    if (find(d->seen, name) != NULL)
        return -EEXIST;
    int inode = new_inode(d);
    change(d, "", name, inode);
    if (err < 0)
        d->inode[inode].open = false;
    return err < 0 ? err : inode;
}

static int sim_write(void *self, int file, const void *p, size_t n)
{
    struct sim_disk *d = self;
    struct sim_disk_inode *f = &d->inode[file];
    int err;
    enum outcome o = begin(d, &err);
    assert(f->used && f->open);
    size_t used = sim_disk_bytes(d), space = d->space > used ? d->space - used : 0;
    size_t put = o == ALL ? n : o == PART ? (size_t)rng_below(&d->rng, n + 1) : 0;
    append(f, p, put < space ? put : space);
    return err < 0 ? err : put > space ? -ENOSPC : 0;
}

/* If the sync fails, the writes that it did not make durable become SIM_DISK_LOST: no later sync
 * makes them durable. */
static int sim_sync(void *self, int file)
{
    struct sim_disk *d = self;
    struct sim_disk_inode *f = &d->inode[file];
    int err;
    enum outcome o = begin(d, &err);
    assert(f->used && f->open);
    for (size_t i = 0; i < f->n_writes; i++) {
        if (f->write[i].fate != SIM_DISK_PENDING)
            continue;
        if (o == ALL || (o == PART && coin(d)))
            f->write[i].fate = SIM_DISK_SURE;
        else if (err < 0 && !sim_disk_dead(d))
            f->write[i].fate = SIM_DISK_LOST;
    }
    return err;
}

static int sim_close(void *self, int file)
{
    struct sim_disk *d = self;
    int err;
    (void)begin(d, &err);
    assert(d->inode[file].open);
    d->inode[file].open = false;
    return err;
}

static int sim_rename(void *self, const char *from, const char *to)
{
    struct sim_disk *d = self;
    int err;
    enum outcome o = begin(d, &err);
    const struct sim_disk_name *found = find(d->seen, from);
    if (found == NULL)
        return err < 0 ? err : -ENOENT;
    if (o == ALL)
        change(d, from, to, found->inode);
    return err;
}

static int sim_unlink(void *self, const char *name)
{
    struct sim_disk *d = self;
    int err;
    enum outcome o = begin(d, &err);
    const struct sim_disk_name *found = find(d->seen, name);
    if (found == NULL)
        return err < 0 ? err : -ENOENT;
    if (o == ALL)
        change(d, name, "", found->inode);
    return err;
}

/* Makes name changes durable. If the sync fails, the changes that it did not make durable become
 * `lost`: no later sync makes them durable. */
static int sim_sync_dir(void *self)
{
    struct sim_disk *d = self;
    int err;
    enum outcome o = begin(d, &err);
    size_t left = 0;
    for (size_t i = 0; i < d->n_changes; i++) {
        struct sim_disk_change c = d->change[i];
        if (!c.lost && (o == ALL || (o == PART && coin(d)))) {
            apply(d->sure, &c);
            continue;
        }
        c.lost |= err < 0 && !sim_disk_dead(d);
        if (!c.lost || err < 0)
            d->change[left++] = c;
    }
    d->n_changes = left;
    sweep(d);
    return err;
}

static int sim_read(void *self, const char *name, uint64_t most, uint8_t **bytes, size_t *n)
{
    struct sim_disk *d = self;
    int err;
    (void)begin(d, &err);
    *bytes = NULL;
    *n = 0;
    const struct sim_disk_name *found = find(d->seen, name);
    if (err < 0)
        return err;
    if (found == NULL)
        return -ENOENT;
    const struct sim_disk_inode *f = &d->inode[found->inode];
    if (f->n > most)
        return -EFBIG;
    *bytes = malloc(f->n != 0 ? f->n : 1);
    if (*bytes == NULL)
        return -ENOMEM;
    if (f->n > 0)
        memcpy(*bytes, f->bytes, f->n);
    *n = f->n;
    return 0;
}

/* ---- Crashes ---- */

/* Returns how many bytes of a write survive a power loss. */
static size_t survives(struct sim_disk *d, const struct sim_disk_write *w)
{
    if (w->fate == SIM_DISK_SURE)
        return w->n;
    if (w->fate == SIM_DISK_LOST || coin(d))
        return 0;
    return coin(d) ? w->n : (size_t)rng_below(&d->rng, w->n + 1);
}

/* Replaces the lost ranges of a file by zeros or garbage. The file may also be shortened to the
 * last byte that was kept. All remaining bytes are then durable. */
static void lose_writes(struct sim_disk *d, struct sim_disk_inode *f)
{
    size_t end = 0;
    for (size_t i = 0; i < f->n_writes; i++) {
        const struct sim_disk_write *w = &f->write[i];
        size_t kept = survives(d, w);
        int filler = coin(d) ? 0 : (int)rng_below(&d->rng, 256);
        memset(f->bytes + w->at + kept, filler, w->n - kept);
        if (kept > 0)
            end = w->at + kept;
    }
    f->n = coin(d) ? end : f->n;
    f->n_writes = f->n > 0;
    if (f->n > 0)
        f->write[0] = (struct sim_disk_write){.n = f->n, .fate = SIM_DISK_SURE};
}

/* Starts the disk after a power loss with the durable names. No file is open, and no name change
 * is pending. */
static void settle(struct sim_disk *d)
{
    d->n_changes = 0;
    memcpy(d->seen, d->sure, sizeof d->seen);
    for (size_t i = 0; i < d->n_inodes; i++)
        d->inode[i].open = false;
    d->fail_at = d->last = 0;
    sweep(d);
}

void sim_disk_lose_power(struct sim_disk *d)
{
    bool in_order = coin(d);
    size_t n = in_order ? (size_t)rng_below(&d->rng, d->n_changes + 1) : d->n_changes;
    for (size_t i = 0; i < n; i++)
        if (!d->change[i].lost && (in_order || coin(d)))
            apply(d->sure, &d->change[i]);
    settle(d);
    for (size_t i = 0; i < d->n_inodes; i++)
        if (d->inode[i].used)
            lose_writes(d, &d->inode[i]);
}

/* A process crash does not change which data and names are durable. */
void sim_disk_lose_process(struct sim_disk *d)
{
    for (size_t i = 0; i < d->n_inodes; i++)
        d->inode[i].open = false;
    d->fail_at = d->last = 0;
    sweep(d);
}

/* ---- */

void sim_disk_open(struct sim_disk *d, uint64_t key)
{
    *d = (struct sim_disk){.rng = rng_stream(key), .space = SIZE_MAX};
    d->disk = (struct disk){.self = d,
                            .create = sim_create,
                            .write = sim_write,
                            .sync = sim_sync,
                            .close = sim_close,
                            .rename = sim_rename,
                            .unlink = sim_unlink,
                            .sync_dir = sim_sync_dir,
                            .read = sim_read};
}

void sim_disk_close(struct sim_disk *d)
{
    for (size_t i = 0; i < d->n_inodes; i++)
        drop(&d->inode[i]);
    free(d->inode);
    free(d->change);
    *d = (struct sim_disk){0};
}

size_t sim_disk_files(const struct sim_disk *d)
{
    size_t n = 0;
    for (size_t i = 0; i < SIM_DISK_NAMES; i++)
        n += d->seen[i].name[0] != '\0';
    return n;
}

size_t sim_disk_bytes(const struct sim_disk *d)
{
    size_t n = 0;
    for (size_t i = 0; i < SIM_DISK_NAMES; i++)
        if (d->seen[i].name[0] != '\0')
            n += d->inode[d->seen[i].inode].n;
    return n;
}

uint8_t *sim_disk_file(struct sim_disk *d, const char *name, size_t *n)
{
    const struct sim_disk_name *found = find(d->seen, name);
    *n = found != NULL ? d->inode[found->inode].n : 0;
    return found != NULL ? d->inode[found->inode].bytes : NULL;
}
