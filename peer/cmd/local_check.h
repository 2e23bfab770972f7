/* peer/cmd/local_check.h -- checks a run of `hearsay local` before it begins, so that the parent
 * process reports an error once instead of every child process. */
#ifndef PEER_CMD_LOCAL_CHECK_H
#define PEER_CMD_LOCAL_CHECK_H

#include "nn/models/model.h"
#include "peer/cmd/out.h"

/* Checks the flags, the data and the model. On success returns CMD_OK, and sets `*flags` to the run
 * flags of the peers (with min-peers) and `*run` to the complete run. Also sets `*model`, which the
 * caller closes. Otherwise returns an exit code after a message on stderr. */
int cmd_local_check(const struct options *o, struct run_flags *flags, struct run *run,
                    struct model *model);

/* Examines the directory `out` (borrowed) like cmd_out_examine(). If a run has begun there, also
 * checks that the directory of each peer belongs to that run and to that peer. Returns CMD_OK, or
 * CMD_USAGE after a message on stderr. */
int cmd_local_check_out(const struct options *o, struct cmd_out *dir, const char *out,
                        const struct run *run);

#endif
