/* peer/cmd/scratch.h -- a directory for a run whose files nobody asked for: made, and removed. */
#ifndef PEER_CMD_SCRATCH_H
#define PEER_CMD_SCRATCH_H

#include <stddef.h>

/* Make a new empty directory under $TMPDIR, else /tmp, for this user alone; its path goes to
 * out[cap]. 0 or a negative errno; then `out` has what could not be made. */
__attribute__((warn_unused_result)) int cmd_scratch_make(char *out, size_t cap);

/* Remove a directory with all that is in it, without following links or leaving its file system.
 * 0, or a negative errno: then part of it may be left. */
__attribute__((warn_unused_result)) int cmd_scratch_remove(const char *dir);

#endif
