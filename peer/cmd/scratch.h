/* peer/cmd/scratch.h -- creates and removes a temporary directory for the files of a run that the
 * user does not want to keep. */
#ifndef PEER_CMD_SCRATCH_H
#define PEER_CMD_SCRATCH_H

#include <stddef.h>

/* Creates a new empty directory in $TMPDIR, or in /tmp, accessible only to this user. Writes its
 * path to out[cap]. Returns 0 or a negative errno. On error, `out` has the path that could not be
 * created. */
__attribute__((warn_unused_result)) int cmd_scratch_make(char *out, size_t cap);

/* Removes a directory with all its contents. Does not follow links, and does not enter other file
 * systems. Returns 0, or a negative errno, in which case a part of the contents may remain. */
__attribute__((warn_unused_result)) int cmd_scratch_remove(const char *dir);

#endif
