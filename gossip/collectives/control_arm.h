/* gossip/collectives/control_arm.h -- what the mixers of this folder have in common.
 *
 * A round protocol (peer/node/round_protocol.h) gives the mixer its result of a round, which the next
 * mix takes. Edges (of a complete graph) carry no values in training: an empty delta is how peers keep
 * lock step, and what the drift's sketches ride on. The consensus phase has nothing to do but to find
 * out that models are equal. Where faults have left one apart, and only there, it sends corrections
 * (correction.h), as `average` does.
 */
#ifndef GOSSIP_COLLECTIVES_CONTROL_ARM_H
#define GOSSIP_COLLECTIVES_CONTROL_ARM_H

#include "gossip/mixers/mixer.h"

/* The first member of each mixer's state. */
struct control_arm
{
    bool corrects;       /* Consensus phase: deltas are corrections from now on. */
    const float *result; /* Taken by the next mix, n_floats of the round protocol. NULL: none. */
    uint64_t round;      /* The result's: round of the run, */
    uint64_t view;       /* and members that took part, members_view(). */
};

/* The next mix takes `result`, which stays valid until then. NULL: takes the last one back. */
void control_arm_give(struct mixing *m, const float *result, uint64_t round, uint64_t view);

/* At the end of a mixer's mix: the result is taken, corrections are mixed. */
void control_arm_mix(struct mixing *m);

/* See struct mixer. */
uint32_t control_arm_plan(struct mixing *m, const struct mixing_task *t,
                          const struct mixing_moment *now);
bool control_arm_valid(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n);
void control_arm_apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                       float *replica);
void control_arm_encode(struct mixing *m);
void control_arm_settle(struct mixing *m, bool apart);
bool control_arm_lags(const struct mixing *m, const struct edge *e, double most);

#endif
