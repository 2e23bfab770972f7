/* peer/node/membership_log.h -- the roll call: who is silent, dead, back or gone, told once each.
 *
 * The table of members is looked at with each tick, and what has changed in it since that was
 * last told becomes a line for people: who, since when, and what follows for the graph.
 * Members of whom the same is to be told share a line. One that comes and goes has a line or
 * two a minute: what it did in between is counted.
 *
 *    ALIVE --silent--> SUSPECT --dead--> DEAD        from any of them: back, or left
 */
#ifndef PEER_NODE_MEMBERSHIP_LOG_H
#define PEER_NODE_MEMBERSHIP_LOG_H

#include "peer/node/edges.h"

/* A member that was ever told of. */
struct membership_log_entry
{
    uint8_t id[WIRE_ID_BYTES];
    enum member_state told, seen; /* What people know; what it was when last looked at. */
    int64_t since_us;             /* It was last heard then; 0: never by us. */
    uint32_t n_untold;            /* It changed so often since it was told. */
    double lines;                 /* So many lines may be spent on it at once, */
    int64_t lines_us;             /* as of then. */
};

struct membership_log
{
    struct env *env;
    struct sessions *sessions;
    const struct edges *edges;
    struct membership_log_entry *at; /* In no order; owned. */
    size_t n, cap;
    uint64_t changes; /* members_changes() when it was last looked. */
    bool waits;       /* Something is untold for want of lines. */
};

void membership_log_init(struct membership_log *r, struct env *env, struct sessions *s,
                         const struct edges *es);
void membership_log_close(struct membership_log *r);
void membership_log_tick(struct membership_log *r);

#endif
