/* peer/http/status.h -- a snapshot as one JSON object, for pages and scripts. The keys are the same
 * as in metrics.jsonl and `hearsay status --json`; peer/docs/json.md lists all. Values that are not
 * known are null. The history is the longest part. Its text is stored between two calls, and each
 * call appends only the new points. */
#ifndef PEER_HTTP_STATUS_H
#define PEER_HTTP_STATUS_H

#include "peer/http/snapshot.h"
#include "peer/http/text.h"

/* Text of the history's points. Initialise with zeros. At the end call text_close(&points). */
struct status_history
{
    struct text points;
    size_t n; /* Number of points of the history that `points` contains. */
    /* Value of history.thinned when the text was made. If history.thinned has changed since, points
     * were removed from the history, and the text is made again. */
    uint64_t thinned;
};

/* Appends the snapshot as one JSON object, and a newline. now_us is the present time of the
 * monotonic clock, in microseconds, which the snapshot's time `taken_us` also uses. */
void status_write(struct text *t, struct status_history *h, const struct snapshot *s,
                  int64_t now_us);

#endif
