/* peer/cmd/scratch.h -- creates and removes a temporary directory, used if the user does not
 * want the files of a run. */
#ifndef PEER_CMD_SCRATCH_H
#define PEER_CMD_SCRATCH_H

#include <stddef.h>

/* Creates a new empty directory in $TMPDIR, or in /tmp, accessible to this user only. Its path
 * is written to out[cap]. Returns 0 or a negative errno; on error `out` has the path that could
 * not be created. */
__attribute__((warn_unused_result)) int cmd_scratch_make(char *out, size_t cap);

/* Removes a directory with all its contents, without following links or leaving its file system.
 * Returns 0, or a negative errno, in which case part of it may remain. */
__attribute__((warn_unused_result)) int cmd_scratch_remove(const char *dir);

#endif
