/* peer/uv/log_backoff.c -- log backoff: doubles the interval between reports of a repeated
 * event. */
#include "peer/uv/log_backoff.h"

enum { AGAIN_MS = 10 * 1000, AGAIN_MOST_MS = 600 * 1000 };

bool log_backoff_count(struct log_backoff *c, uint64_t now_ms)
{
    bool quiet = now_ms - c->last_ms > AGAIN_MOST_MS;
    c->n++;
    c->last_ms = now_ms;
    if (c->n > 1 && !quiet && now_ms < c->tell_ms)
        return false;
    uint64_t gap_ms = quiet ? 0 : 2 * c->gap_ms;
    gap_ms = gap_ms < AGAIN_MS ? AGAIN_MS : gap_ms < AGAIN_MOST_MS ? gap_ms : AGAIN_MOST_MS;
    c->gap_ms = gap_ms;
    c->tell_ms = now_ms + gap_ms;
    return true;
}
