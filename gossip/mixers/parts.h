/* gossip/mixers/parts.h -- encodes a delta in fragments while local steps run, last layer first.
 *
 * Used by plan.c and job.c only. In the backward pass the gradients of the last layers are final
 * first. Their part of the delta can therefore be encoded and sent while the gradients of earlier
 * layers are computed. This is wait-free backpropagation (Zhang et al. 2017, "Poseidon", section
 * 4). Small layers are grouped (Shi, Chu, Li 2019, "MG-WFBP"). The first fragment is the end of
 * the delta. Layout of the delta's packet over time:
 *
 *   during local steps   [ free, and scratch of the next fragment | third | second | first ]
 *   after local steps    [ statistics | rest ]  ...              | third | second | first ]
 *   after the job        [ statistics | rest | third | second | first ]
 *
 * Bytes that mixing_part() has returned to the loop thread are not written again during the job,
 * because the loop thread may read them. The finished delta has the same bytes as a delta that is
 * encoded in one piece.
 */
#ifndef GOSSIP_MIXERS_PARTS_H
#define GOSSIP_MIXERS_PARTS_H

#include "gossip/mixers/mixing.h"

/* Selects the job's delta that is encoded in fragments, or none. Called on the loop thread,
 * after all tasks are planned. */
void parts_plan(struct mixing *m);
/* Returns whether some fragments of the task's delta are already encoded; only the rest must
 * then be encoded. Called on the worker. */
bool parts_begun(const struct mixing *m, const struct mixing_task *t);
/* Joins the fragments into one contiguous payload in the packet. Called on the loop thread,
 * after the job. */
void parts_finish(struct mixing *m);

/* Returns the input of the encoder for one task: x and x_hat, dim floats each, and the seed of
 * its random stream. Used by job.c. */
struct compress_input parts_input(const struct mixing *m, const struct mixing_task *t,
                                  const float *x, const float *x_hat);

#endif
