/* peer/run/exit.h -- the program's exit codes, for the command line and for a node that ends.
 *
 * Scripts go by them: 0 says that a run ended in consensus (or that nothing was to be agreed
 * on), 3 that it ended without. peer/node/outcome.h decides between the two.
 */
#ifndef PEER_RUN_EXIT_H
#define PEER_RUN_EXIT_H

#include <errno.h>
#include <stdbool.h>

enum cmd_exit {
    CMD_OK = 0,
    CMD_FAILED = 1,       /* The world failed: a disk, memory, a process. */
    CMD_USAGE = 2,        /* Bad usage or bad input. */
    CMD_APART = 3,        /* The run ended without the consensus that was asked for, or diverged. */
    CMD_INTERRUPTED = 130 /* By Ctrl-C, before there was a result. */
};

/* The code of an error on the way to a result: what the system has run out of is the
 * world's, all else is taken for bad input. */
static inline int cmd_exit_of(int err)
{
    bool spent = err == -ENOMEM || err == -EAGAIN || err == -EMFILE || err == -ENFILE
                 || err == -ENOBUFS || err == -ENOSPC || err == -EDQUOT || err == -EFBIG
                 || err == -EIO;
    return spent ? CMD_FAILED : CMD_USAGE;
}

#endif
