/* peer/report/events.h -- rows of metrics as a file for TensorBoard (peer/tensorboard/event.h).
 *
 * Steps are rounds; those of the last phase count on. A drift is at the round that it speaks of, and
 * there once. Bytes are totals over all starts. The time on the wall is that of the start, which a
 * simulation has none of: then it counts from 1970.
 */
#ifndef PEER_REPORT_EVENTS_H
#define PEER_REPORT_EVENTS_H

#include "peer/report/run.h"
#include "peer/report/text.h"

/* All of a peer's file; *n_mark gets how many of its first bytes are those of any file of this run
 * and peer. */
void report_events_peer(struct report_text *out, const struct report_peer *peer, size_t *n_mark);

/* What the file is called, which TensorBoard knows it by: "events.out.tfevents.TIME.hearsay". */
enum { REPORT_EVENTS_NAME = 64 };
void report_events_name(char name[REPORT_EVENTS_NAME], const struct report_peer *peer);

#endif
