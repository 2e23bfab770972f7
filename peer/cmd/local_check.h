/* peer/cmd/local_check.h -- what can be found wrong with a run of `hearsay local` before it begins.
 *
 * Said once by the parent, and not by every child. */
#ifndef PEER_CMD_LOCAL_CHECK_H
#define PEER_CMD_LOCAL_CHECK_H

#include "nn/models/model.h"
#include "peer/cmd/out.h"

/* Flags, data and model against each other. CMD_OK, and *flags are those of the peers (with --min-peers),
 * *run is fixed, and *model is to be closed; else an exit code, with a line on stderr. */
int cmd_local_check(const struct options *o, struct run_flags *flags, struct run *run,
                    struct model *model);

/* Examines the directory `out`, which is borrowed, as cmd_out_look() does. If a run has begun
 * there, each peer's directory must belong to that run and hold that peer's files. Else returns
 * CMD_USAGE. */
int cmd_local_look(const struct options *o, struct cmd_out *dir, const char *out,
                   const struct run *run);

#endif
