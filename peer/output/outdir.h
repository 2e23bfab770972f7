/* peer/output/outdir.h -- an output directory, which belongs to one run.
 *
 *   DIR/run.txt             identity of the run to which the directory belongs
 *                           (peer/output/run_lock.h)
 *   DIR/metrics.jsonl       one line per round, and one for each start of the process
 *   DIR/model.safetensors   the model
 *   DIR/summary.json        result of the run; "finished": true if a restart has nothing left to do
 *   DIR/peer-0/ ...         the same files for each peer, if the command runs several peers
 *   DIR/old.1/ ...          an earlier run that --fresh moved away: a directory of the same form
 *   DIR/.lock               locked by the process that writes here; contains its process number
 *
 * Order of use:
 *
 *   1. outdir_inspect() or outdir_check(), which change nothing
 *   2. outdir_open(), which locks the directory until the process ends
 *   3. outdir_inspect() again, outdir_write_identity(), and the other writes
 *
 * Other files in DIR (an identity, a key) do not belong to the run and are never changed.
 */
#ifndef PEER_OUTPUT_OUTDIR_H
#define PEER_OUTPUT_OUTDIR_H

#include "peer/output/run_lock.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    OUTDIR_PATH_MAX = 1024,
    OUTDIR_WHY_MAX = RUN_IDENTITY_WHY_MAX /* Size of an error message, in bytes. */
};

enum outdir_state {
    OUTDIR_NEW,        /* The directory does not exist or holds no file of a run. */
    OUTDIR_UNFINISHED, /* The directory belongs to this run, which has not finished. */
    /* The directory belongs to this run, which has finished, and its models exist. */
    OUTDIR_FINISHED,
    OUTDIR_OTHER_RUN,   /* The directory belongs to another run. */
    OUTDIR_UNKNOWN_RUN, /* The directory holds files of a run, but no run.txt. */
    /* The directory belongs to this run, but its summary.json cannot be read. The run may have
     * finished, and another start would then replace the final model. */
    OUTDIR_DAMAGED
};

/* An output directory that this process has opened with outdir_open(). */
struct outdir
{
    char path[OUTDIR_PATH_MAX];
    int lock; /* Descriptor of the lock file while `open` is true. */
    bool open;
};

/* Makes the directory `path` and its missing parents, like mkdir -p. New directories have mode
 * 0700. Returns 0 or a negative errno. */
__attribute__((warn_unused_result)) int outdir_make(const char *path);

/* Returns the state of the directory `path` as seen by the run with the identity `text`
 * (run_identity_write()). Changes nothing. `why` gets the keys that differ (OUTDIR_OTHER_RUN), the
 * file of an unknown run (OUTDIR_UNKNOWN_RUN), what is wrong with summary.json (OUTDIR_DAMAGED), or
 * "" in the other states. */
enum outdir_state outdir_inspect(const char *path, const char *text, char why[OUTDIR_WHY_MAX]);

/* Opens the file `file` of the directory `path` for reading. Returns NULL if the file is missing or
 * is not a regular file, because opening or reading a FIFO would block. */
FILE *outdir_open_file(const char *path, const char *file);

/* Reads run.txt of the directory `path` into `text`. Returns false if run.txt is missing or cannot
 * be read. */
bool outdir_read_identity(const char *path, char text[RUN_IDENTITY_TEXT_MAX]);

/* Returns the summary of the finished run in the directory `path`, owned by the caller
 * (json_decref()). NULL: no finished run is there. */
json_t *outdir_read_summary(const char *path);

/* Refuses a summary.json that does not say whether the run has finished. Returns 0, also if the file
 * is missing, or -EINVAL with a message that begins with "summary.json". */
__attribute__((warn_unused_result)) int outdir_check_summary(const char *path,
                                                             char why[OUTDIR_WHY_MAX]);

/* Makes the directory, locks it for this process and deletes temporary files of a killed process.
 * Returns 0, or a negative errno with a message in `why`. -EBUSY: another process has the lock, and
 * the message gives its number, if known. */
__attribute__((warn_unused_result)) int outdir_open(struct outdir *d, const char *path,
                                                    char why[OUTDIR_WHY_MAX]);
/* Releases the lock. Does nothing if `d` is not open. */
void outdir_close(struct outdir *d);

/* Refuses a directory, named pipe, socket or device in the place of a file of the run. Reading or
 * writing it might block permanently, or the file could not be written at the end of the run.
 * Returns 0, also if the directory `path` is missing, or -EINVAL with a message. */
__attribute__((warn_unused_result)) int outdir_check_files(const char *path,
                                                           char why[OUTDIR_WHY_MAX]);

/* Checks in advance what outdir_open() and the first writes need, and changes nothing. `peers`: the
 * directories of the run's peers are checked, too. Whether another process has the lock is not
 * checked, because that may change at any time. Returns 0, or a negative errno with a message. */
__attribute__((warn_unused_result)) int outdir_check(const char *path, bool peers,
                                                     char why[OUTDIR_WHY_MAX]);

/* Returns whether any process has the directory open. `*pid` gets the number of that process, 0 if
 * unknown. */
bool outdir_is_locked(const char *path, long *pid);

/* Moves all files of an earlier run into a new directory `old.N`. `moved` gets the path of that
 * directory, "" if there were no files. `text` is the identity of the new run. If run.txt of the
 * earlier run is missing, the directories peer-N are moved if the new run has several peers.
 * run.txt moves last, so that after a crash it still says to which run the remaining files belong.
 * Returns 0 or a negative errno with a message. */
__attribute__((warn_unused_result)) int outdir_move_old_run(const struct outdir *d,
                                                            const char *text,
                                                            char moved[OUTDIR_PATH_MAX],
                                                            char why[OUTDIR_WHY_MAX]);

/* Writes `text` to run.txt, unless run.txt holds that text already. Returns 0 or a negative errno
 * with a message. */
__attribute__((warn_unused_result)) int outdir_write_identity(const struct outdir *d,
                                                              const char *text,
                                                              char why[OUTDIR_WHY_MAX]);

/* Opens metrics.jsonl of the directory `path` for appending. An incomplete last line, left by a
 * killed process or a full disk, is removed first. Returns 0, or a negative errno and -1 in
 * `*fd`. */
__attribute__((warn_unused_result)) int outdir_open_metrics(const char *path, int *fd);

/* Writes summary.json. If the summary says "finished", the next start of the run in this directory
 * has nothing to do. Returns 0 or a negative errno. */
__attribute__((warn_unused_result)) int outdir_write_summary(const char *path,
                                                             const json_t *summary);

#endif
