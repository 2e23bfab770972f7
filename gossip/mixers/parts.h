/* gossip/mixers/parts.h -- a delta that is encoded in parts, its end first, while local steps go on;
 * for plan.c and job.c.
 *
 * Layers whose last gradient step is done stand still while those before them are computed (WFBP:
 * Zhang et al. 2017, "Poseidon", section 4; small ones go together: Shi, Chu, Li 2019, "MG-WFBP"). In
 * the packet of the delta:
 *
 *   while steps go on   [ free, and scratch of the part in the making | third | second | first part ]
 *   then                [ statistics | rest ]  ...                    | third | second | first part ]
 *   after the job       [ statistics | rest | third | second | first part ]
 *
 * Bytes that have been told of are not written to again during the job: the loop's thread may read them.
 * They are those that a delta in one piece would have.
 */
#ifndef GOSSIP_MIXERS_PARTS_H
#define GOSSIP_MIXERS_PARTS_H

#include "gossip/mixers/mixing.h"

/* Loop thread, once the tasks are planned: which delta, if any? */
void parts_plan(struct mixing *m);
/* Worker: is the task's delta the one, and are some parts of it encoded? Then the rest is to be. */
bool parts_begun(const struct mixing *m, const struct mixing_task *t);
/* Loop thread, after the job: the packet's bytes come together. */
void parts_finish(struct mixing *m);

/* What the task's encoder is given, in job.c. */
struct compress_input parts_input(const struct mixing *m, const struct mixing_task *t,
                                  const float *x, const float *x_hat);

#endif
