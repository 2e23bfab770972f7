/* peer/cmd/status_member.h -- converts what an observer knows of members and the run to the form that
 * `status` displays. */
#ifndef PEER_CMD_STATUS_MEMBER_H
#define PEER_CMD_STATUS_MEMBER_H

#include "peer/cmd/observe.h"
#include "peer/cmd/watch_view.h"

enum {
    CMD_STATUS_RUN_MAX = 256
}; /* Size of the buffer for the description of a run, in characters. */

/* Fills `out` with the figures of a member. Rates are NaN, because they need two answers.
 * `now_ns`: uv_hrtime(). */
void cmd_status_member(struct watch_member *out, const struct cmd_observed *m, uint64_t now_ns);
/* Writes a short description of the run; "" if no run is known. */
void cmd_status_run(char out[CMD_STATUS_RUN_MAX], const struct cmd_observe *w);

#endif
