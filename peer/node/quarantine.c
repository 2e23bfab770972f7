/* peer/node/quarantine.c -- a table of violators. A new violator replaces the oldest one. */
#include "peer/node/quarantine.h"

#include <string.h>

static const int64_t first_us = 1000 * 1000;               /* Length of the first quarantine. */
static const int64_t most_us = 300 * 1000 * (int64_t)1000; /* Maximum length of a quarantine. */
/* Time without a violation after which the next quarantine is as short as the first one. */
static const int64_t forgiven_us = 600 * 1000 * (int64_t)1000;

/* Returns the index of the peer's entry, or QUARANTINE_IDS if it has none. The search stops at the
 * first free entry, because entries are filled in order and never freed. */
static size_t find(const struct quarantine *q, const uint8_t *id)
{
    for (size_t i = 0; i < QUARANTINE_IDS && q->at[i].for_us != 0; i++)
        if (memcmp(q->at[i].id, id, WIRE_ID_BYTES) == 0)
            return i;
    return QUARANTINE_IDS;
}

static size_t oldest(const struct quarantine *q)
{
    size_t best = 0;
    for (size_t i = 0; i < QUARANTINE_IDS; i++) {
        if (q->at[i].for_us == 0)
            return i;
        if (q->at[i].since_us < q->at[best].since_us)
            best = i;
    }
    return best;
}

void quarantine_add(struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us)
{
    size_t i = find(q, id);
    bool known = i < QUARANTINE_IDS;
    i = known ? i : oldest(q);
    bool again = known && now_us - q->at[i].since_us - q->at[i].for_us < forgiven_us;
    int64_t twice_us = 2 * q->at[i].for_us;
    q->at[i].for_us = !again ? first_us : twice_us < most_us ? twice_us : most_us;
    q->at[i].since_us = now_us;
    memcpy(q->at[i].id, id, WIRE_ID_BYTES);
}

bool quarantine_knows(const struct quarantine *q, const uint8_t id[WIRE_ID_BYTES])
{
    return find(q, id) < QUARANTINE_IDS;
}

bool quarantine_holds(const struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us)
{
    size_t i = find(q, id);
    return i < QUARANTINE_IDS && now_us - q->at[i].since_us < q->at[i].for_us;
}
