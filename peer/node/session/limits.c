/* peer/node/session/limits.c -- back-off with doubling, quota for an interval, list of recent
 * cases.
 */
#include "peer/node/session/limits.h"

#include <assert.h>
#include <string.h>

int64_t backoff_grow(struct backoff *b, int64_t least_us, int64_t most_us)
{
    assert(b->gap_us >= 0 && least_us > 0 && least_us <= most_us);
    b->gap_us = b->gap_us == 0 ? least_us : 2 * b->gap_us;
    if (b->gap_us > most_us)
        b->gap_us = most_us;
    return b->gap_us;
}

void backoff_wait(struct backoff *b, int64_t least_us, int64_t most_us, int64_t now_us)
{
    b->next_us = now_us + backoff_grow(b, least_us, most_us);
}

void backoff_check(const struct backoff *b, int64_t least_us, int64_t most_us)
{
    assert(b->gap_us == 0 || (b->gap_us >= least_us && b->gap_us <= most_us));
}

bool quota_left(struct quota *q, uint32_t most, int64_t per_us, int64_t now_us)
{
    if (now_us - q->since_us >= per_us)
        *q = (struct quota){.since_us = now_us};
    return q->n < most;
}

bool recent_add(struct recent *r, uint32_t cap, const uint8_t id[WIRE_ID_BYTES], uint64_t what,
                int64_t until_us, int64_t now_us)
{
    assert(cap <= RECENT_MAX && until_us > now_us);
    for (uint32_t i = 0; i < cap; i++)
        if (r->at[i].until_us > now_us && r->at[i].what == what
            && memcmp(r->at[i].id, id, WIRE_ID_BYTES) == 0) {
            r->at[i].last_us = now_us;
            return true;
        }
    struct recent_case *oldest = &r->at[r->n++ % cap];
    *oldest = (struct recent_case){.what = what, .until_us = until_us, .last_us = now_us};
    memcpy(oldest->id, id, WIRE_ID_BYTES);
    return false;
}
