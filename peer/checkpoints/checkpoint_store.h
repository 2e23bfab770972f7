/* peer/checkpoints/checkpoint_store.h -- keeps the last two checkpoints of a peer, so that a crash
 * at any time leaves one intact.
 *
 *   checkpoint-0.safetensors    step 120                   step 120
 *   checkpoint-1.safetensors    step 90     -- rename -->  step 150, the newest
 *   checkpoint.tmp              step 150: written, synced
 *
 * A slot is one of the two files. A new checkpoint replaces the slot that does not hold the newest
 * one. It is written to a temporary file and synced. The temporary file is renamed over the slot,
 * and the directory is synced. Only then checkpoint_store_write() returns 0. After a crash,
 * checkpoint_store_load() finds the last checkpoint for which checkpoint_store_write() returned 0,
 * or a newer one. The disk holds two checkpoints and, during a write, the temporary file.
 *
 * After any failure the temporary file is deleted, and the next try writes a new one. A failed
 * write leaves both slots unchanged, except if the last step fails, the sync of the directory: then
 * the slot has already been replaced. The caller must make sure that only one peer at a time writes
 * to a directory.
 */
#ifndef PEER_CHECKPOINTS_CHECKPOINT_STORE_H
#define PEER_CHECKPOINTS_CHECKPOINT_STORE_H

#include "peer/checkpoints/checkpoint_file.h"
#include "peer/checkpoints/disk.h"

#include <stdatomic.h>

enum { SLOTS = 2, CHECKPOINT_STORE_PATH_MAX = 1024 };

/* The checkpoint store of one peer: two slots in one directory. */
struct checkpoint_store
{
    const struct disk *disk; /* File operations on the directory of the checkpoints, borrowed. */
    /* Path of the checkpoint directory, used in messages only. Borrowed. */
    const char *dir;
    /* Slot (0 or 1) with the newest checkpoint. The next write replaces the other slot. -1: both
     * slots are empty or unusable. */
    int newest;
    /* Pieces of the checkpoint file that is being written. Reused, so that a write rarely allocates
     * memory. */
    struct checkpoint_file_pieces pieces;
    /* Any thread may set this flag to stop a write, which then fails with -ECANCELED after at most
     * 4 MiB. The store never clears the flag. */
    atomic_bool stop;
};

/* Second half of a warning that the checkpoints of a directory do not name the peer that wrote
 * them. The first half is the path of the directory. */
#define CHECKPOINT_STORE_UNOWNED                                                                   \
    ": its checkpoints name no owner, because an older version of hearsay wrote them; they are "   \
    "used"

/* Checkpoints that checkpoint_store_load() found in a directory. */
struct checkpoint_store_found
{
    /* Number of good checkpoints: 0, 1 or 2. */
    size_t n;
    /* The `n` good checkpoints, newest first. At equal step counters slot 0 comes first. */
    struct checkpoint_file image[SLOTS];
    int slot[SLOTS]; /* Slot (0 or 1) of each good checkpoint in image[]. */
    /* Number of unusable files. An unusable file stays on disk until the next write, which replaces
     * it before it replaces a good checkpoint. */
    size_t n_bad;
    struct checkpoint_store_bad
    {
        int slot;
        /* Why the file is unusable. -EINVAL: its content is damaged. Other values: an I/O or memory
         * error, and a second try may succeed. */
        int err;
        char why[FILE_ERROR_MAX];
    } bad[SLOTS];
};

/* Initialises an empty store. `disk` and `dir` are borrowed and must outlive `s`. Reads no file. */
void checkpoint_store_open(struct checkpoint_store *s, const struct disk *disk, const char *dir);
/* Frees the memory of the store. The files stay. */
void checkpoint_store_close(struct checkpoint_store *s);

/* Returns the file name of a slot (0 or 1), without the directory. */
const char *checkpoint_store_name(int slot);

/* Reads both checkpoint files into `*f`, and deletes a temporary file that a crash left. Files of
 * more than `most` bytes count as unusable. A missing file counts as neither good nor unusable. */
void checkpoint_store_load(struct checkpoint_store *s, uint64_t most,
                           struct checkpoint_store_found *f);
/* Frees the checkpoints that checkpoint_store_load() found. */
void checkpoint_store_found_close(struct checkpoint_store_found *f);

/* Returns the owner's public key, in hexadecimal, from the newest checkpoint that contains this
 * key. Valid until checkpoint_store_found_close(). NULL: no checkpoint contains its owner's key. */
const char *checkpoint_store_owner(const struct checkpoint_store_found *f);

/* Checks that the checkpoints found by checkpoint_store_load() belong to the peer `own`: they must
 * contain its public key (`own->owner`). A checkpoint written by an older version of hearsay
 * contains no key. In this case `*unowned` becomes true, and the peer's name is compared instead,
 * unless `own->name` is NULL (the user gave no name). Returns 0; or -EINVAL with a message that
 * names the file, both peers and what to do. */
__attribute__((warn_unused_result)) int checkpoint_store_check_owner(
    const struct checkpoint_store *s, const struct checkpoint_store_found *f,
    const struct checkpoint_file_label *own, bool *unowned, char error[FILE_ERROR_MAX]);

/* Makes `slot` count as the newest, so that the next write replaces the other slot. Called if the
 * peer rejected the newest checkpoint and resumes from the older one. Without this call the next
 * write would replace the checkpoint that works and keep the rejected one. */
void checkpoint_store_set_newest(struct checkpoint_store *s, int slot);

/* Saves a state as the newest checkpoint. Returns 0 if the checkpoint is durable. Otherwise returns
 * a negative errno with a message, and the newest checkpoint before this call still exists. */
__attribute__((warn_unused_result)) int checkpoint_store_write(
    struct checkpoint_store *s, const struct state *state,
    const struct checkpoint_file_label *label, char error[FILE_ERROR_MAX]);

#endif
