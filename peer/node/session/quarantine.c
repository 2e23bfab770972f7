/* peer/node/session/quarantine.c -- refuses sessions with protocol violators for a time.
 *
 * The first violation of a peer leads to a quarantine of 1 s. Each further violation doubles the
 * time, up to 5 min. If the peer behaves for 10 min after the end of a quarantine, its next one
 * lasts 1 s again.
 *
 * During a quarantine this peer does not dial the violator (dial.c). If the violator dials, this
 * peer closes the session before any message. A repeated violation thus causes neither log lines
 * nor the transfer of a model.
 */
#include "peer/node/session/sessions_state.h"

#include "peer/node/mark.h"
#include "peer/node/timers.h"

#include <assert.h>
#include <string.h>

/* Returns the index of the peer's entry in the table of violators, or QUARANTINE_IDS if it has
 * none. The search stops at the first free entry, because entries are filled in order and never
 * freed. */
static size_t find(const struct quarantine *q, const uint8_t *id)
{
    for (size_t i = 0; i < QUARANTINE_IDS && q->at[i].last.gap_us != 0; i++)
        if (memcmp(q->at[i].id, id, WIRE_ID_BYTES) == 0)
            return i;
    return QUARANTINE_IDS;
}

/* Returns the time of the last violation. 0: the entry is free. */
static int64_t since_us(const struct quarantine *q, size_t i)
{
    return q->at[i].last.next_us - q->at[i].last.gap_us;
}

/* Returns the index of the first free entry, or else of the oldest violation. */
static size_t oldest(const struct quarantine *q)
{
    size_t best = 0;
    for (size_t i = 1; i < QUARANTINE_IDS; i++)
        if (since_us(q, i) < since_us(q, best))
            best = i;
    return best;
}

/* Asserts the invariants of the table. O(QUARANTINE_IDS). */
static void quarantine_check(const struct quarantine *q, int64_t now_us)
{
    bool used = true;
    for (size_t i = 0; i < QUARANTINE_IDS; i++) {
        const struct backoff *last = &q->at[i].last;
        assert(used || last->gap_us == 0); /* find() stops at the first free entry. */
        used = last->gap_us != 0;
        backoff_check(last, QUARANTINE_US, QUARANTINE_MAX_US);
        assert(since_us(q, i) <= now_us);
    }
}

void quarantine_add(struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us)
{
    size_t i = find(q, id);
    bool known = i < QUARANTINE_IDS;
    i = known ? i : oldest(q);
    struct backoff *last = &q->at[i].last;
    bool again = known && now_us - last->next_us < QUARANTINE_FORGIVEN_US;
    MARK_IF(!again, "quarantine: first violation");
    MARK_IF(again, "quarantine: repeated violation");
    if (!again)
        last->gap_us = 0;
    backoff_wait(last, QUARANTINE_US, QUARANTINE_MAX_US, now_us);
    memcpy(q->at[i].id, id, WIRE_ID_BYTES);
    quarantine_check(q, now_us);
    assert(quarantine_holds(q, id, now_us));
}

bool quarantine_knows(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    return find(&s->quarantine, id) < QUARANTINE_IDS;
}

bool quarantine_holds(const struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us)
{
    size_t i = find(q, id);
    return i < QUARANTINE_IDS && now_us < q->at[i].last.next_us;
}
