/* peer/node/statistics_aggregation.h -- before there is a run: what members say of their data, gathered by gossip.
 *
 * Peers with files of their own fix no run by themselves: inputs are scaled by means and scales of all
 * their files. Each says what its own come to (struct node_pool, bytes that only the trainer reads), signed;
 * whoever has no run yet passes on what it hears, each once over each session; and one of those that would
 * fix the run, the first in the order of members, pools what all have said:
 *
 *      MOMENTS --signature, contents--> kept --passed on--> everybody without a run
 *                                         |
 *         the first that founds: moments of --min-peers members --> its run, of all of them in order
 *         the others that found, and those without flags        --> take that run, as any other (HELLO)
 *
 * So there is one run, whatever the order in which messages came, where the same members have gathered; and
 * should there be two, they are settled as two proposals of a run are (workshop.h). Who comes later, or
 * comes back, takes the run as it is. Of each member's process the first word counts; what cannot be is a
 * violation, and changes nothing. Whose data do not go with those of the one that fixes the run ends, and
 * says why.
 *
 * Owned here, and written by pooling.c only.
 */
#ifndef PEER_NODE_STATISTICS_AGGREGATION_H
#define PEER_NODE_STATISTICS_AGGREGATION_H

#include "peer/node/sessions.h"

struct statistics_aggregation_said; /* What one member's process has said. */

struct statistics_aggregation
{
    struct env *env;
    struct sessions *sessions;
    struct statistics_aggregation_said **said; /* n of cap, in the order in which they came. */
    size_t n, cap;
    uint64_t serial;                 /* The last one's. */
    uint64_t told[NODE_LINKS_MAX];   /* What is of a later serial the session has not been told; */
    uint32_t number[NODE_LINKS_MAX]; /* this is that session. */
    int64_t look_us, tell_us;        /* When it is looked again, and when a wait is told of. */
    bool gathers;  /* A member that lives would fix a run so: it is worth waiting. */
    bool left_out; /* That somebody does not fit was told. */
};

void statistics_aggregation_init(struct statistics_aggregation *p, struct env *env,
                                 struct sessions *s);
void statistics_aggregation_close(struct statistics_aggregation *p);

/* At the start. True: our own run is not to be fixed before it is pooled. */
bool statistics_aggregation_start(struct statistics_aggregation *p);

/* A MOMENTS has come, and we have no run. */
void statistics_aggregation_take(struct statistics_aggregation *p, const struct link *l,
                                 const struct wire_moments *m);

/* Without a run: pass on, look, tell of waits. True: *run is fixed, by us. The node may end over it. */
bool statistics_aggregation_look(struct statistics_aggregation *p, struct run *run);

#endif
