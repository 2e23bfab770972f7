/* peer/run/exit.h -- exit codes of the program, used by all commands, and by a node at the end of
 * its run.
 *
 * Scripts depend on these values. 0 means that a run ended in consensus, or that no consensus was
 * required. 3 means that a run ended without the required consensus. peer/node/result/verdict.h
 * decides between the two. */
#ifndef PEER_RUN_EXIT_H
#define PEER_RUN_EXIT_H

#include <errno.h>
#include <stdbool.h>

enum cmd_exit {
    CMD_OK = 0,
    CMD_FAILED = 1, /* The system failed: disk, memory, or a process. */
    CMD_USAGE = 2,  /* The command line or an input file is invalid. */
    /* The run ended without the required consensus, or it diverged. */
    CMD_APART = 3,
    CMD_INTERRUPTED = 130 /* The user pressed Ctrl-C before there was a result. */
};

/* Returns the exit code for the negative errno `err`. CMD_FAILED: a resource is exhausted (memory,
 * disk, descriptors), or there was an I/O error. CMD_USAGE: any other error, which is taken to mean
 * bad input. */
static inline int cmd_exit_of(int err)
{
    bool spent = err == -ENOMEM || err == -EAGAIN || err == -EMFILE || err == -ENFILE
                 || err == -ENOBUFS || err == -ENOSPC || err == -EDQUOT || err == -EFBIG
                 || err == -EIO;
    return spent ? CMD_FAILED : CMD_USAGE;
}

#endif
