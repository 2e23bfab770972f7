/* peer/run/exit.h -- exit codes of the program, for the command line and for a node at the end of
 * its run.
 *
 * Scripts depend on these values: 0 means that a run ended in consensus, or that no consensus was
 * required. 3 means that it ended without. peer/node/verdict.h decides between the two. */
#ifndef PEER_RUN_EXIT_H
#define PEER_RUN_EXIT_H

#include <errno.h>
#include <stdbool.h>

enum cmd_exit {
    CMD_OK = 0,
    CMD_FAILED = 1, /* The system failed: a disk, memory, a process. */
    CMD_USAGE = 2,  /* Invalid usage or input. */
    /* The run ended without the required consensus, or diverged. */
    CMD_APART = 3,
    CMD_INTERRUPTED = 130 /* Ctrl-C before there was a result. */
};

/* Returns the exit code for the negative errno `err`. A resource that is exhausted (memory, disk,
 * descriptors) or an I/O error is CMD_FAILED; any other error is taken for bad input and is
 * CMD_USAGE. */
static inline int cmd_exit_of(int err)
{
    bool spent = err == -ENOMEM || err == -EAGAIN || err == -EMFILE || err == -ENFILE
                 || err == -ENOBUFS || err == -ENOSPC || err == -EDQUOT || err == -EFBIG
                 || err == -EIO;
    return spent ? CMD_FAILED : CMD_USAGE;
}

#endif
