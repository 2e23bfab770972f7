/* peer/cmd/seen.h -- from what an observer holds to what a page of `status` shows. */
#ifndef PEER_CMD_SEEN_H
#define PEER_CMD_SEEN_H

#include "peer/cmd/observe.h"
#include "peer/cmd/watch_view.h"

enum { CMD_SEEN_RUN = 256 }; /* Characters of a run in words. */

/* Its rates are not known: they take two answers. `now_ns` is of uv_hrtime(). */
void cmd_seen_member(struct watch_member *out, const struct cmd_observed *m, uint64_t now_ns);
/* The run in some words; "" while none is known. */
void cmd_seen_run(char out[CMD_SEEN_RUN], const struct cmd_observe *w);

#endif
