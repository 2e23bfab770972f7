/* peer/http/status.h -- a snapshot as one JSON object, for pages and scripts.
 *
 * Names are those of metrics.jsonl and of `hearsay status --json` where the same is meant;
 * peer/http/README.md lists the others. What is not known is null. The history is the longest part
 * and changes least: its text is kept, and only what came since is made anew.
 */
#ifndef PEER_HTTP_STATUS_H
#define PEER_HTTP_STATUS_H

#include "peer/http/snapshot.h"
#include "peer/http/text.h"

/* The history's points as text. Begin with zeros; text_close(&points) at the end. */
struct status_history
{
    struct text points;
    size_t n;         /* So many are in it, */
    uint64_t thinned; /* as they were after so many thinnings. */
};

/* Appends the object, as it is at now_us (the clock of taken_us), and a newline. */
void status_write(struct text *t, struct status_history *h, const struct snapshot *s,
                  int64_t now_us);

#endif
