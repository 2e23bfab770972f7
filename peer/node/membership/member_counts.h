/* peer/node/membership/member_counts.h -- counts of the other members: training, stalled, ended. */
#ifndef PEER_NODE_MEMBERSHIP_MEMBER_COUNTS_H
#define PEER_NODE_MEMBERSHIP_MEMBER_COUNTS_H

#include "peer/node/env.h"

/* The functions below ignore members that are not accepted (gossip/members/endorsements.h). They
 * are O(1), because the member table keeps the counts. Exceptions are stated. */

/* Returns the number of vertices of the topology, including this peer. */
uint32_t member_counts_vertices(const struct env *v);

/* Returns whether another member, accepted or not, is ALIVE. O(members). */
bool member_counts_live(const struct env *v);

/* Returns whether at least one other vertex of the topology has a record with the state `state`. */
bool member_counts_some(const struct env *v, enum record_state state);

/* Returns whether another member has ended its run, with or without a stored model. Such a member
 * counts even if it is dead now. */
bool member_counts_ended(const struct env *v);

/* Returns whether there is another member that is alive, has not ended its run, and has a worker
 * that is not stalled. Such a member will either report the end of its run or die. If the member
 * has restarted, it needs a model from another member. */
bool member_counts_end(const struct env *v);

/* Returns whether another member has a stalled worker, and is neither dead nor has left. */
bool member_counts_hang(const struct env *v);

/* Returns whether at least one other member has ended its run, and each of the remaining members
 * has ended its run, is dead or has left. */
bool member_counts_finished(const struct env *v);

#endif
