/* peer/cmd/status_member.h -- converts what an observer knows of the members, and of the run, to
 * the form that `status` displays. */
#ifndef PEER_CMD_STATUS_MEMBER_H
#define PEER_CMD_STATUS_MEMBER_H

#include "peer/cmd/observe.h"
#include "peer/cmd/watch_view.h"

enum { CMD_STATUS_RUN_MAX = 320 }; /* Size of the buffer for the description of a run, in bytes. */

/* Fills `out` with the figures of the member `m`. The rates are set to NaN, because a rate needs
 * two answers. `now_ns`: present time, from uv_hrtime(). */
void cmd_status_member(struct watch_member *out, const struct cmd_observed *m, uint64_t now_ns);
/* Writes a short description of the run to `out`. Writes "" if no run is known. */
void cmd_status_run(char out[CMD_STATUS_RUN_MAX], const struct cmd_observe *w);

#endif
