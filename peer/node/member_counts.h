/* peer/node/member_counts.h -- how far the other members are, by the records that they sign. */
#ifndef PEER_NODE_MEMBER_COUNTS_H
#define PEER_NODE_MEMBER_COUNTS_H

#include "peer/node/env.h"

/* All of them are O(1), where nothing else is said. */

/* Vertices of the graph, ourselves included. */
uint32_t member_counts_vertices(const struct env *v);

/* Is another member alive, as far as we know? O(members). */
bool member_counts_live(const struct env *v);

/* Does some other member that is a vertex say this of itself? */
bool member_counts_some(const struct env *v, enum record_state state);

/* Has the run ended for somebody, well or not, whatever became of it since? */
bool member_counts_ended(const struct env *v);

/* Is somebody alive who has not ended, and whose worker does not hang? It will say how that ended,
 * unless it dies, and where it has come back it needs a model. */
bool member_counts_end(const struct env *v);

/* Does somebody live whose worker hangs? */
bool member_counts_hang(const struct env *v);

/* Have those who could train with us finished, but for the dead? There has to be one. */
bool member_counts_finished(const struct env *v);

#endif
