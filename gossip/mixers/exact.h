/* gossip/mixers/exact.h -- whole models go out and are averaged: what guests of exact averaging share.
 *
 * A delta of training is the sender's model m, in a codec that leaves out nothing but digits (none,
 * fp16), and replicas are the models that were told last:
 *
 *   mix      a = m_own, b = m_theirs, then x += sum over edges of step w (b - a)   (correction.h)
 *   ...      local steps on x
 *   encode   m = x, once for all edges
 *
 * Both ends of an edge know both models of an exchange and take the same step, a number of the run:
 * what one adds the other takes away, so that the mean is kept whichever exchanges fail. Where a
 * codec rounds m, both ends round alike, and x itself keeps all its digits.
 *
 * With --overlap 0 local steps come before the average (adapt, then combine), with --overlap 1 the
 * average is of the models that the steps begin at, as in D-PSGD.
 *
 * The last phase sends corrections Q(x - a) of the replicas, as CHOCO's does, by the rule of gamma
 * where the user gave none: its codec may be any, and momentum is on.
 */
#ifndef GOSSIP_MIXERS_EXACT_H
#define GOSSIP_MIXERS_EXACT_H

#include "gossip/mixers/mixer.h"

/* Functions of struct mixer. */
int exact_open(struct mixing *m, const struct mixing_config *config);
void exact_close(struct mixing *m);
uint32_t exact_plan(struct mixing *m, const struct mixing_task *t, const struct mixing_moment *now);
void exact_apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                 float *replica);
void exact_mix(struct mixing *m);
void exact_encode(struct mixing *m);

#endif
