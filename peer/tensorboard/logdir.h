/* peer/tensorboard/logdir.h -- the event file of a run that goes on, and its place.
 *
 *   DIR/NAME/events.out.tfevents.TIME.RUN.PID     a start of a run
 *   DIR/NAME/events.out.tfevents...               the same run, gone on with: TensorBoard reads both
 *   DIR/NAME@2/...                                another run, or the same begun anew
 *
 * Each start has a file of its own, and nothing that is there is ever written to. A record is
 * written in one piece, at once, so that a reader sees it; what a full disk has of one is cut off, so
 * that those behind it can be read.
 */
#ifndef PEER_TENSORBOARD_LOGDIR_H
#define PEER_TENSORBOARD_LOGDIR_H

#include "peer/tensorboard/event.h"

#include <stdbool.h>

enum {
    LOGDIR_PATH_MAX = 1280,
    LOGDIR_MOST = 9999 /* Runs of one name, at most. */
};

/* Whose file it is to be. Texts are borrowed for the call. */
struct logdir_start
{
    const char *dir;  /* It is there. */
    const char *name; /* The peer's. */
    const char *run;  /* A number of the run, fit for a file's name. */
    bool goes_on;     /* Rounds of this run may be there: then they and these are one curve. */
    int64_t step;     /* The first that will come. */
    double wall_s;    /* Seconds since 1970. */
    long pid;
};

struct logdir
{
    char path[LOGDIR_PATH_MAX]; /* The directory while opening, then the file; for messages. */
    int fd;                     /* -1: there is no file. */
    int64_t end;                /* Its whole records are so many bytes. */
};

/* Make a file with what begins it. 0, or a negative errno, and then there is none, and l->path is
 * what was at fault. */
__attribute__((warn_unused_result)) int logdir_open(struct logdir *l, const struct logdir_start *s);

/* Write a record of n bytes; 0 bytes are none. 0, or a negative errno: then the file is as it was,
 * and the next may be tried. A file that cannot be cut back is closed: from then on -EBADF. */
__attribute__((warn_unused_result)) int logdir_put(struct logdir *l, const uint8_t *record,
                                                   size_t n);

void logdir_close(struct logdir *l);

#endif
