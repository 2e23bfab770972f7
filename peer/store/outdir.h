/* peer/store/outdir.h -- a directory that belongs to one run.
 *
 *   DIR/run.txt             whose it is (peer/store/owner.h)
 *   DIR/metrics.jsonl       a line a round; each start of the run begins with a line of its own
 *   DIR/model.safetensors   the model
 *   DIR/summary.json        how the run ended; "finished": true, and started again it says so
 *   DIR/peer-0/ ...         the same of each peer, where a command runs several
 *   DIR/old.1/ ...          what --fresh moved aside: a directory like this one
 *   DIR/.lock               locked by the process that writes here; it holds its number
 *
 * A process looks first, which changes nothing. Then it opens: no other process may write there
 * as long as it lives, however that one ended. Then it looks again, claims, and writes.
 * All else in DIR (an identity, a key) is somebody else's and stays.
 */
#ifndef PEER_STORE_OUTDIR_H
#define PEER_STORE_OUTDIR_H

#include "peer/store/owner.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    OUTDIR_PATH_MAX = 1024,
    OUTDIR_WHY_MAX = OWNER_WHY_MAX /* Bytes of a sentence. */
};

enum outdir_state {
    OUTDIR_NEW,      /* It holds no file of a run, or is not there. */
    OUTDIR_BEGUN,    /* It is this run's, which has not finished. */
    OUTDIR_FINISHED, /* It is this run's; summary and models are there. */
    OUTDIR_OTHER,    /* It is another run's. */
    OUTDIR_FOREIGN   /* It holds files of a run, and does not say of which. */
};

struct outdir
{
    char path[OUTDIR_PATH_MAX];
    int lock; /* The lock's descriptor while `open`. */
    bool open;
};

/* mkdir -p, mode 0700 for what is new. 0 or a negative errno. */
__attribute__((warn_unused_result)) int outdir_make(const char *path);

/* Whose is it, for a run of this text (owner_write())? Of the last two `why` gets a clause:
 * which keys differ, or which file is in the way. Changes nothing. */
enum outdir_state outdir_look(const char *path, const char *text, char why[OUTDIR_WHY_MAX]);

/* The text in run.txt. False where there is none that can be read. */
bool outdir_text(const char *path, char text[OWNER_TEXT_MAX]);

/* Is a run there that has finished? Then its summary, to be given back; else NULL. */
json_t *outdir_summary(const char *path);

/* Make the directory, lock it for this process, and remove what a killed one left half written.
 * 0, or a negative errno with a sentence: -EBUSY names the process that has it. */
__attribute__((warn_unused_result)) int outdir_open(struct outdir *d, const char *path,
                                                    char why[OUTDIR_WHY_MAX]);
void outdir_close(struct outdir *d);

/* Checks what outdir_open() and the first writes need, and changes nothing. Does not check whether
 * another process has the directory: that may change at any time. `peers`: the directories
 * of the run's peers are checked, too. Returns 0, or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int outdir_check(const char *path, bool peers,
                                                     char why[OUTDIR_WHY_MAX]);

/* Has any process the directory open? *pid gets its number, 0 where it is not known. */
bool outdir_is_open(const char *path, long *pid);

/* Move all files of a run that are there into a new directory, whose path `moved` gets: "" where
 * there were none. `text` is what is to begin: where run.txt is missing it tells whether peers'
 * directories are in the way, too. What names the run goes last, so that what a crash leaves is
 * still the run's. 0 or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int outdir_fresh(const struct outdir *d, const char *text,
                                                     char moved[OUTDIR_PATH_MAX],
                                                     char why[OUTDIR_WHY_MAX]);

/* Write run.txt, unless it says just that. 0 or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int outdir_claim(const struct outdir *d, const char *text,
                                                     char why[OUTDIR_WHY_MAX]);

/* Open metrics.jsonl of DIR to write behind its last whole line: a torn one, which a kill or a
 * full disk left, is cut off. 0, or a negative errno, and -1 as the descriptor. */
__attribute__((warn_unused_result)) int outdir_append(const char *path, int *fd);

/* Write summary.json. Where it says "finished" the run is over for this directory. 0 or a
 * negative errno. */
__attribute__((warn_unused_result)) int outdir_finish(const char *path, const json_t *summary);

#endif
