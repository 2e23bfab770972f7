/* gossip/collectives/control_arm.h -- code shared by the baseline mixers allreduce, sma and ps.
 *
 * In each round, a round protocol (peer/node/round_protocol.h) computes a new model from the models
 * of all peers and passes it to the mixer. The next mix() uses this model. During training the
 * edges of the complete graph carry empty deltas, which keep peers in lock step. The deltas also
 * carry sketches: random projections of models, from which the distance of the models is estimated.
 * The consensus phase normally only verifies that the models are equal. If faults have left models
 * different, the mixer sends corrections (correction.h), like the mixer `average`. */
#ifndef GOSSIP_COLLECTIVES_CONTROL_ARM_H
#define GOSSIP_COLLECTIVES_CONTROL_ARM_H

#include "gossip/mixers/mixer.h"

/* Data that the mixers allreduce, sma and ps have in common. Must be the first field of each
 * mixer's own data in m->state. */
struct control_arm
{
    /* True: in the consensus phase this peer sends corrections (gossip/mixers/correction.h) instead
     * of empty deltas. */
    bool corrects;
    /* Model that the all-reduce or the parameter server computed for the next mix(), n_floats
     * values. NULL: none. */
    const float *result;
    uint64_t round; /* Round of the run to which the computed model belongs. */
    uint64_t view;  /* Hash of the members whose models were combined, from members_view(). */
};

/* Passes to the next mix() the model that the all-reduce or the parameter server computed for a
 * round. `result` must stay valid until then. NULL withdraws the last result. */
void control_arm_give(struct mixing *m, const float *result, uint64_t round, uint64_t view);

/* Must be called at the end of a mixer's mix(). Forgets the model that the all-reduce or the
 * parameter server computed, and applies the corrections of the exchanges that this job commits. */
void control_arm_mix(struct mixing *m);

/* Functions of struct mixer that the baselines share. mixer.h documents each one. */
uint32_t control_arm_plan(struct mixing *m, const struct mixing_task *t,
                          const struct mixing_moment *now);
bool control_arm_valid(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n);
void control_arm_apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                       float *replica);
void control_arm_encode(struct mixing *m);
void control_arm_settle(struct mixing *m, bool apart);
bool control_arm_lags(const struct mixing *m, const struct edge *e, double most);

#endif
