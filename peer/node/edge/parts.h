/* peer/node/edge/parts.h -- sends deltas in fragments during the last local step (--overlap layer).
 *
 * The optimiser updates the last layers of a model first, so the end of a delta is encoded first.
 * The fragments of a delta are sent in the order in which they are encoded, as PART messages:
 *
 *   worker      local steps ... | last step, layer by layer | the first layers
 *   messages                          PART       PART         PART   DELTA without payload
 *
 * The DELTA message makes the fragments valid. A neighbour gets a DELTA with the complete payload
 * if no fragment was sent on its current session, or if the delta is sent again. If training
 * diverged in this job, a DELTA with another payload follows the fragments, and only its payload
 * is used (edge_gather()).
 */
#ifndef PEER_NODE_EDGE_PARTS_H
#define PEER_NODE_EDGE_PARTS_H

#include "peer/node/edge/edges.h"

/* Called when a job is planned. Records that no fragment of the job's delta was sent yet. */
void parts_begin(struct edges *es);
/* Sends the newly encoded fragment of the delta to each neighbour that can take it. A delta is
 * encoded from its last byte to its first. n: number of bytes encoded so far, at the end of the
 * current job's delta. */
void parts_send(struct edges *es, size_t n);
/* Called before the delta `sent` is sent to neighbour b. If fragments of it were sent, sends the
 * rest as a fragment, too. Returns true if the neighbour then has the whole payload, so that the
 * DELTA message needs no payload. */
bool parts_complete(struct edges *es, struct neighbour *b, const struct edge_sent *sent);
/* Releases the packets that the last step of the node sent. The driver has finished reading
 * them. */
void parts_release(struct edges *es);

#endif
