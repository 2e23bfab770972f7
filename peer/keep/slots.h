/* peer/keep/slots.h -- the last two checkpoints of a peer, so that a crash at any moment leaves one.
 *
 *   checkpoint-0.safetensors    beat 120                   beat 120, the newest
 *   checkpoint-1.safetensors    beat 90     -- rename -->  beat 150
 *   checkpoint.tmp              beat 150: written, synced
 *
 * A new one replaces the slot that does not hold the newest: written beside, synced, renamed over
 * it, its directory synced; only then it counts. So of a checkpoint whose writing was said to have
 * succeeded a newer or the same is found after a crash. On disk are two copies at the most, and the
 * temporary one while it is written. After any failure the temporary file is dropped, never synced
 * again, and the next try makes a new file; both slots stay as they were.
 *
 * One peer at a time writes a directory; who sees to that is the caller.
 */
#ifndef PEER_KEEP_SLOTS_H
#define PEER_KEEP_SLOTS_H

#include "peer/keep/disk.h"
#include "peer/keep/image.h"

#include <stdatomic.h>

enum { SLOTS = 2, SLOTS_PATH_MAX = 1024 };

struct slots
{
    const struct disk *disk; /* Borrowed. */
    const char *dir;         /* Borrowed: the directory's path, for sentences. */
    int newest;              /* The slot that is not written next; -1: none is to be spared. */
    struct image_pieces pieces;
    /* Any thread may set it: a writing ends with -ECANCELED at the next few megabytes, until it is
     * cleared. */
    atomic_bool stop;
};

/* End of a note about a directory whose checkpoints name no owner. The note begins with the
 * path. */
#define SLOTS_UNOWNED                                                                              \
    ": its checkpoints name no owner, because an older version wrote them; they are used"

/* What was found at the start. */
struct slots_found
{
    size_t n; /* Good ones, newest first; of two of one beat that of slot 0. */
    struct image image[SLOTS];
    int slot[SLOTS]; /* Where each of them lies. */
    size_t n_bad;    /* They stay on disk until they are overwritten, first of all. */
    struct slots_bad
    {
        int slot;
        int err; /* -EINVAL: its bytes are bad; else the world's error: another try may succeed. */
        char why[FILE_ERROR_MAX];
    } bad[SLOTS];
};

void slots_open(struct slots *s, const struct disk *disk, const char *dir);
void slots_close(struct slots *s);

/* The file of a slot, without its directory. */
const char *slots_name(int slot);

/* Read both slots and remove what a crash has left of a third. Of a slot that is empty nothing is
 * said. Files of more than `most` bytes are bad. */
void slots_load(struct slots *s, uint64_t most, struct slots_found *f);
void slots_found_close(struct slots_found *f);

/* Checks that the checkpoints found by slots_load() belong to the peer `own`: they have its public
 * key (`own->owner`). A checkpoint of an older version names no owner: then *unowned is true, and the
 * names must be equal, unless `own->name` is NULL because the user gave no name. Returns 0;
 * or -EINVAL with a message that names the file, both peers and the remedy. */
__attribute__((warn_unused_result)) int slots_check_owner(const struct slots *s,
                                                          const struct slots_found *f,
                                                          const struct image_label *own,
                                                          bool *unowned,
                                                          char error[FILE_ERROR_MAX]);

/* The peer goes on from the checkpoint in that slot, found by slots_load(): it is spared, and the
 * next one replaces the other. Needed only where that is not the newest (which the peer has
 * refused), as that would else be spared, and found first for ever. */
void slots_resume(struct slots *s, int slot);

/* Keep a state: on the disk when this returns 0. Else a negative errno and a sentence; the one
 * that was kept last is still there. */
__attribute__((warn_unused_result)) int slots_write(struct slots *s, const struct state *state,
                                                    const struct image_label *label,
                                                    char error[FILE_ERROR_MAX]);

#endif
