/* peer/cmd/local_check.h -- checks a run of `hearsay local` before it begins.
 *
 * The parent process reports errors once, instead of every child process.
 */
#ifndef PEER_CMD_LOCAL_CHECK_H
#define PEER_CMD_LOCAL_CHECK_H

#include "nn/models/model.h"
#include "peer/cmd/out.h"

/* Checks flags, data and model against each other. On success returns CMD_OK and sets `*flags`
 * to the run flags of the peers (with min-peers), `*run` to the complete run description, and
 * `*model`, which the caller closes. Otherwise returns an exit code after a message on stderr. */
int cmd_local_check(const struct options *o, struct run_flags *flags, struct run *run,
                    struct model *model);

/* Examines the directory `out`, which is borrowed, as cmd_out_examine() does. If a run has begun
 * there, the directory of each peer must belong to that run and hold that peer's files;
 * otherwise returns CMD_USAGE after a message on stderr. */
int cmd_local_check_out(const struct options *o, struct cmd_out *dir, const char *out,
                        const struct run *run);

#endif
