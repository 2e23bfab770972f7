/* gossip/mixers/exact.h -- exchange of whole models, shared by the mixers dpsgd and gossip.
 *
 * A training delta is the sender's whole model m. Its codec, `none` or `fp16`, drops no value but
 * may round. A replica is the last model that was sent over the edge. One job:
 *
 *   mix      a = m_own, b = m_theirs, then x += sum over edges of step w (b - a)
 *   steps    the caller runs its local steps on x
 *   encode   m = x, once for all edges
 *
 * Both ends of an edge know both models and take the same step. The step size is a constant of
 * the run. What one end adds, the other end subtracts, so failed exchanges do not change the mean
 * of the models. If the codec rounds m, both ends use the rounded m, and x keeps its full
 * precision.
 *
 * With --overlap 0 models are averaged after the local steps (adapt-then-combine). With --overlap
 * 1 they are averaged as they were before the local steps, as in D-PSGD.
 *
 * In the consensus phase the deltas are corrections Q(x - a), as in CHOCO-SGD, with any codec
 * and with momentum. gamma is then adaptive unless the user set it.
 */
#ifndef GOSSIP_MIXERS_EXACT_H
#define GOSSIP_MIXERS_EXACT_H

#include "gossip/mixers/mixer.h"

/* Functions of struct mixer that dpsgd and gossip share. mixer.h documents each one. */
int exact_open(struct mixing *m, const struct mixing_config *config);
void exact_close(struct mixing *m);
uint32_t exact_plan(struct mixing *m, const struct mixing_task *t, const struct mixing_moment *now);
void exact_apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                 float *replica);
void exact_mix(struct mixing *m);
void exact_encode(struct mixing *m);

#endif
