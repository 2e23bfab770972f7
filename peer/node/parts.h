/* peer/node/parts.h -- deltas that go out in parts (--overlap layer), at the sender's end of an edge.
 *
 *   worker      local steps ... | last step: layer by layer |  the first layers, the rest
 *   PARTs                            ->        ->           |
 *   at its end                                              |  the rest as a PART, DELTA without payload
 *
 * A neighbour over whose session nothing went ahead gets the DELTA whole, as does one whose session was
 * lost meanwhile, or who has to be told again. Where training ran away in these very steps the parts are
 * of no use, and what follows them is a whole DELTA: it counts alone (edge_gather()).
 */
#ifndef PEER_NODE_PARTS_H
#define PEER_NODE_PARTS_H

#include "peer/node/edges.h"

/* A job makes a delta of which so many bytes are there, its last ones: send those that are new. */
void parts_send(struct edges *es, size_t n);
/* Before `sent` goes out to the neighbour: is its payload there already, or sent by this call? */
bool parts_complete(struct edges *es, struct neighbour *b, const struct edge_sent *sent);
/* The step is over: what the last one sent is the driver's. */
void parts_release(struct edges *es);

#endif
