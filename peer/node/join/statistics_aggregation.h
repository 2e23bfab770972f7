/* peer/node/join/statistics_aggregation.h -- creates the run from the column statistics of all
 * members.
 *
 * If each peer has data files of its own, inputs must be scaled by the statistics of all files. A
 * peer therefore does not create the run from its own file. Each peer signs the statistics of its
 * data (struct node_pool in node.h) and sends them in a MOMENTS message. Peers without a run
 * forward each member's statistics once over each session. The *creator* of the run is chosen as
 * follows:
 *
 *   1. Only members that are configured to create a run are considered.
 *   2. Of these, the ones whose set of label names the largest number of members have.
 *   3. Of these, the ones with the most label names.
 *   4. Of these, the first one in the order of the member table.
 *
 *   MOMENTS --check signature and content--> stored --forwarded--> all peers without a run
 *                                              |
 *      creator, with matching statistics of --min-peers members:  creates the run, in member order
 *      all other peers:                                           adopt the run from its HELLO
 *
 * The run depends only on which members' statistics the creator has, not on the order in which they
 * arrived. If two runs are created, peers choose one of them by the usual rule (run_context.h). A
 * peer that joins or returns later adopts the run unchanged.
 *
 * If a process sends statistics more than once, only the first ones are used. An invalid message is
 * a protocol violation and changes nothing. A peer whose columns do not match those of the creator
 * ends with an error message. The creator leaves out members whose columns do not match its own.
 */
#ifndef PEER_NODE_JOIN_STATISTICS_AGGREGATION_H
#define PEER_NODE_JOIN_STATISTICS_AGGREGATION_H

#include "peer/node/session/sessions.h"

/* The column statistics of members that this peer has received. */
struct statistics_aggregation;

/* Returns an empty store, or NULL if memory is exhausted. The pointer arguments are borrowed. */
struct statistics_aggregation *statistics_aggregation_open(struct env *env, struct sessions *s);
/* Frees *p. NULL is allowed. */
void statistics_aggregation_close(struct statistics_aggregation *p);

/* Signs and stores this peer's own statistics, if it has any. Called once, at the start. Returns
 * true if this peer is configured to create the run from combined statistics. This peer must then
 * not use config.run. */
bool statistics_aggregation_start(struct statistics_aggregation *p);

/* Handles a MOMENTS message. To be called only while there is no run. */
void statistics_aggregation_take(struct statistics_aggregation *p, const struct link *l,
                                 const struct wire_moments *m);

/* Forwards statistics, prints what this peer waits for, and creates the run if this peer is the
 * creator and has enough statistics. To be called in each step while there is no run. Returns true
 * if *run was created. May end the node. */
bool statistics_aggregation_look(struct statistics_aggregation *p, struct run *run);

/* Drops all stored statistics. Called as soon as there is a run. */
void statistics_aggregation_forget(struct statistics_aggregation *p);

/* Returns whether a live member is configured to create the run from the members' column
 * statistics. */
bool statistics_aggregation_gathers(const struct statistics_aggregation *p);

#endif
