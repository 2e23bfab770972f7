/* peer/checkpoints/checkpoint_store.c -- replaces the older checkpoint: writes a temporary file,
 * syncs it, renames it, syncs the directory. */
#include "peer/checkpoints/checkpoint_store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4 << 20 /* Number of bytes written between two checks of the flag `stop`. */ };

#define TEMPORARY "checkpoint.tmp"

const char *checkpoint_store_name(int slot)
{
    static const char *const names[SLOTS] = {"checkpoint-0.safetensors",
                                             "checkpoint-1.safetensors"};
    return names[slot];
}

static void path_of(const struct checkpoint_store *s, int slot,
                    char path[CHECKPOINT_STORE_PATH_MAX])
{
    snprintf(path, CHECKPOINT_STORE_PATH_MAX, "%s/%s", s->dir, checkpoint_store_name(slot));
}

void checkpoint_store_open(struct checkpoint_store *s, const struct disk *disk, const char *dir)
{
    *s = (struct checkpoint_store){.disk = disk, .dir = dir, .newest = -1};
    atomic_init(&s->stop, false);
}

void checkpoint_store_close(struct checkpoint_store *s)
{
    checkpoint_file_pieces_close(&s->pieces);
}

/* ---- Finding the checkpoints ---- */

static int read_error(int err, uint64_t most, const char *path, char error[FILE_ERROR_MAX])
{
    if (err == -EFBIG)
        file_error(error, path, "found more than %llu bytes, expected fewer",
                   (unsigned long long)most);
    else if (err == -EISDIR || err == -ELOOP || err == -ENXIO)
        file_error(error, path, "found a %s, expected a regular file",
                   err == -EISDIR  ? "directory"
                   : err == -ELOOP ? "symbolic link"
                                   : "special file");
    else
        file_world_error(error, path, "cannot read", -err);
    return err;
}

/* Reads the checkpoint file of one slot. Returns 1 if the checkpoint is good, 0 if there is no
 * file, or a negative errno if the file is unusable. */
static int load(const struct checkpoint_store *s, int slot, uint64_t most,
                struct checkpoint_file *m, char error[FILE_ERROR_MAX])
{
    char path[CHECKPOINT_STORE_PATH_MAX];
    uint8_t *bytes;
    size_t n;
    path_of(s, slot, path);
    int err = s->disk->read(s->disk->self, checkpoint_store_name(slot), most, &bytes, &n);
    if (err == -ENOENT)
        return 0;
    if (err < 0)
        return read_error(err, most, path, error);
    err = checkpoint_file_read(m, bytes, n, path, error);
    if (err < 0)
        free(bytes);
    return err < 0 ? err : 1;
}

/* Sorts two found checkpoints so that the newer one comes first. */
static void put_in_order(struct checkpoint_store_found *f)
{
    if (f->n < SLOTS || f->image[0].label.beat >= f->image[1].label.beat)
        return;
    struct checkpoint_file image = f->image[0];
    int slot = f->slot[0];
    f->image[0] = f->image[1];
    f->slot[0] = f->slot[1];
    f->image[1] = image;
    f->slot[1] = slot;
}

void checkpoint_store_load(struct checkpoint_store *s, uint64_t most,
                           struct checkpoint_store_found *f)
{
    *f = (struct checkpoint_store_found){0};
    (void)s->disk->unlink(s->disk->self, TEMPORARY); /* A crash may have left it. */
    for (int slot = 0; slot < SLOTS; slot++) {
        struct checkpoint_store_bad *bad = &f->bad[f->n_bad];
        int err = load(s, slot, most, &f->image[f->n], bad->why);
        if (err > 0) {
            f->slot[f->n++] = slot;
        } else if (err < 0) {
            bad->slot = slot;
            bad->err = err;
            f->n_bad++;
        }
    }
    put_in_order(f);
    s->newest = f->n > 0 ? f->slot[0] : -1;
}

void checkpoint_store_found_close(struct checkpoint_store_found *f)
{
    for (size_t i = 0; i < f->n; i++)
        checkpoint_file_close(&f->image[i]);
    *f = (struct checkpoint_store_found){0};
}

const char *checkpoint_store_owner(const struct checkpoint_store_found *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->image[i].label.owner != NULL)
            return f->image[i].label.owner;
    return NULL;
}

/* Describes a peer for a message: its name and, if `owner` is known, the first 8 digits of its
 * key. */
static void show_peer(const char *name, const char *owner, char text[128])
{
    if (owner != NULL)
        snprintf(text, 128, "%.64s (key %.8s)", name, owner);
    else
        snprintf(text, 128, "%.64s", name);
}

int checkpoint_store_check_owner(const struct checkpoint_store *s,
                                 const struct checkpoint_store_found *f,
                                 const struct checkpoint_file_label *own, bool *unowned,
                                 char error[FILE_ERROR_MAX])
{
    char path[CHECKPOINT_STORE_PATH_MAX], found[128], expected[128];
    *unowned = false;
    for (size_t i = 0; i < f->n; i++) {
        const struct checkpoint_file_label *l = &f->image[i].label;
        *unowned |= l->owner == NULL;
        /* A peer is identified by its key, because a restart may give it another name. Only a
         * checkpoint that names no key is compared by the peer's name. */
        if (l->owner != NULL ? strcmp(l->owner, own->owner) == 0
                             : own->name == NULL || strcmp(l->name, own->name) == 0)
            continue;
        path_of(s, f->slot[i], path);
        show_peer(l->name, l->owner, found);
        show_peer(own->name != NULL ? own->name : "this peer", own->owner, expected);
        return file_error(
            error, path, "found a checkpoint of %s, expected one of %s; %s", found, expected,
            l->owner == NULL ? "start the peer with the name that it had"
                             : "start each peer with its own directory and identity.key");
    }
    return 0;
}

void checkpoint_store_set_newest(struct checkpoint_store *s, int slot)
{
    assert(slot >= 0 && slot < SLOTS);
    s->newest = slot;
}

/* ---- Writing a checkpoint ---- */

static int put_piece(struct checkpoint_store *s, int file, const uint8_t *p, size_t n)
{
    int err = 0;
    for (size_t at = 0; at < n && err == 0; at += CHUNK) {
        if (atomic_load(&s->stop))
            return -ECANCELED;
        err = s->disk->write(s->disk->self, file, p + at, n - at < CHUNK ? n - at : CHUNK);
    }
    return err;
}

/* Writes all pieces to the temporary file, syncs it and closes it. An error of close() is ignored,
 * because the file is already synced. */
static int put_temporary(struct checkpoint_store *s)
{
    const uint8_t *p;
    size_t n;
    int file = s->disk->create(s->disk->self, TEMPORARY);
    if (file < 0)
        return file;
    int err = 0;
    for (size_t i = 0; err == 0 && checkpoint_file_piece(&s->pieces, i, &p, &n); i++)
        err = put_piece(s, file, p, n);
    if (err == 0)
        err = s->disk->sync(s->disk->self, file);
    (void)s->disk->close(s->disk->self, file);
    return err;
}

/* s->newest changes only after the directory is synced. If this sync fails, a crash may undo the
 * rename, so the next write replaces the same slot again. */
int checkpoint_store_write(struct checkpoint_store *s, const struct state *state,
                           const struct checkpoint_file_label *label, char error[FILE_ERROR_MAX])
{
    char path[CHECKPOINT_STORE_PATH_MAX];
    int slot = s->newest == 0 ? 1 : 0;
    path_of(s, slot, path);
    int err = checkpoint_file_build(&s->pieces, state, label, path, error);
    if (err < 0)
        return err;
    err = put_temporary(s);
    if (err == 0)
        err = s->disk->rename(s->disk->self, TEMPORARY, checkpoint_store_name(slot));
    if (err < 0)
        (void)s->disk->unlink(s->disk->self, TEMPORARY);
    else
        err = s->disk->sync_dir(s->disk->self);
    if (err < 0)
        return file_world_error(error, path, "cannot write", -err);
    s->newest = slot;
    return 0;
}
