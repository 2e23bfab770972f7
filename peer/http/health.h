/* peer/http/health.h -- does this peer live, and does it take part yet? In a sentence each.
 *
 *   healthy: its loop answers, or it has not begun (it reads its data)
 *   ready:   it trains, settles or serves; a sentence says what it waits for instead
 */
#ifndef PEER_HTTP_HEALTH_H
#define PEER_HTTP_HEALTH_H

#include "peer/http/snapshot.h"

enum {
    HEALTH_SILENT_US = 10 * 1000 * 1000, /* A loop that says nothing for so long hangs. */
    HEALTH_TEXT = 160
};

/* At now_us, by the clock of taken_us. text may be NULL. */
bool health_live(const struct snapshot *s, int64_t now_us, char text[HEALTH_TEXT]);
bool health_ready(const struct snapshot *s, int64_t now_us, char text[HEALTH_TEXT]);

#endif
