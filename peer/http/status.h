/* peer/http/status.h -- a snapshot as one JSON object, for pages and scripts. Names are those of
 * metrics.jsonl and of `hearsay status --json`; peer/http/README.md lists the others. Values
 * that are not known are null. The history is the longest part, so its text is kept, and only
 * new points are appended. */
#ifndef PEER_HTTP_STATUS_H
#define PEER_HTTP_STATUS_H

#include "peer/http/snapshot.h"
#include "peer/http/text.h"

/* The history's points as text. Begin with zeros; text_close(&points) at the end. */
struct status_history
{
    struct text points;
    size_t n;         /* Number of points in the text. */
    uint64_t thinned; /* Value of history.thinned when the text was made. */
};

/* Appends the object, as it is at now_us (the clock of taken_us), and a newline. */
void status_write(struct text *t, struct status_history *h, const struct snapshot *s,
                  int64_t now_us);

#endif
