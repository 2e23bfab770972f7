/* peer/node/session/limits.h -- limits how often something is repeated: back-off, quota, recent
 * cases. A struct of zeros is the initial state of each type.
 */
#ifndef PEER_NODE_SESSION_LIMITS_H
#define PEER_NODE_SESSION_LIMITS_H

#include "gossip/wire/wire.h"

/* Repeats of one action, with an interval that doubles. Times are in microseconds. */
struct backoff
{
    int64_t next_us; /* Earliest time of the next repeat. */
    int64_t gap_us;  /* Last interval between two repeats. 0: there was none. */
};

/* Doubles the interval, from least_us up to most_us, and returns it. */
int64_t backoff_grow(struct backoff *b, int64_t least_us, int64_t most_us);
/* Doubles the interval like backoff_grow(), and sets the time of the next repeat to now_us plus the
 * doubled interval. */
void backoff_wait(struct backoff *b, int64_t least_us, int64_t most_us, int64_t now_us);
/* Asserts that the interval is 0 or from least_us to most_us. */
void backoff_check(const struct backoff *b, int64_t least_us, int64_t most_us);

/* Number of events in the current interval of a fixed length. */
struct quota
{
    int64_t since_us; /* Start of the current interval, in microseconds. */
    uint32_t n;       /* Number of events in the current interval, counted by the caller. */
};

/* Returns whether fewer than `most` events were counted in the current interval. An interval lasts
 * per_us or longer: the first call after per_us begins the next one. */
bool quota_left(struct quota *q, uint32_t most, int64_t per_us, int64_t now_us);

enum { RECENT_MAX = 32 /* Largest capacity of a list of recent cases. */ };

/* The latest cases of an event that concerns one peer, for example a warning about the peer. */
struct recent
{
    struct recent_case
    {
        uint8_t id[WIRE_ID_BYTES]; /* The peer. */
        uint64_t what;             /* Number that distinguishes the cases of one peer. */
        int64_t until_us;          /* Time at which the case is forgotten, in microseconds. */
        int64_t last_us;           /* Last time that recent_add() was called for this case. */
    } at[RECENT_MAX];
    /* Number of cases added so far. With a capacity of `cap`, the next one replaces at[n % cap]. */
    uint32_t n;
};

/* Returns whether the case is remembered already. If not, adds the case, which is remembered until
 * until_us. The list has a capacity of `cap` cases, and a new case replaces the oldest one.
 * O(cap). */
bool recent_add(struct recent *r, uint32_t cap, const uint8_t id[WIRE_ID_BYTES], uint64_t what,
                int64_t until_us, int64_t now_us);

#endif
