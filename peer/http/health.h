/* peer/http/health.h -- decides whether a peer is healthy and whether it is ready, with a reason.
 *
 *   healthy: the event loop runs, or has not started yet (the peer is reading its data)
 *   ready:   the peer trains, is in the consensus phase, or is finishing; otherwise the reason says
 *            what it waits for
 */
#ifndef PEER_HTTP_HEALTH_H
#define PEER_HTTP_HEALTH_H

#include "peer/http/snapshot.h"

enum {
    /* An event loop that publishes no snapshot for this time, in microseconds, counts as
     * hanging. */
    HEALTH_SILENT_US = 10 * 1000 * 1000,
    HEALTH_TEXT = 160
};

/* health_live() returns whether the peer is healthy, and health_ready() whether it is ready.
 * now_us: present time of the monotonic clock, in microseconds. Both write the reason to `text`,
 * which may be NULL. */
bool health_live(const struct snapshot *s, int64_t now_us, char text[HEALTH_TEXT]);
bool health_ready(const struct snapshot *s, int64_t now_us, char text[HEALTH_TEXT]);

#endif
