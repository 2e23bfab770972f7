/* peer/node/edge/pace.h -- computes the number of local steps per round of this peer (--local-steps
 * auto).
 *
 * If all peers in lock step do the same number of local steps per round, the slowest peer
 * determines the speed of all. With `auto` each peer does as many steps as it can in a common time,
 * in which an average peer does H steps. Peers find this time by gossip:
 *
 *   own    local steps per second in this peer's jobs, including the time for mixing and encoding:
 *          a moving average
 *   mean   this peer's estimate of the mean of all peers' `own`
 *   steps  H own / mean, rounded; from 1 to RUN_STEPS_MORE H
 *
 * Deltas carry `mean`. Each received value moves this peer's estimate towards it, and also slightly
 * towards `own`. The members need not be counted, and members that left are forgotten. Estimates of
 * neighbours agree to a few per cent. In a large graph, estimates of distant peers differ, because
 * each peer weighs its own neighbourhood more. A received value is limited to between own / 16 and
 * 16 own. A false value can change the number of steps of neighbours, from 1 to RUN_STEPS_MORE H,
 * and has no other effect.
 *
 * A peer with more local steps would have a larger weight in the common model. FedNova (Wang et al.
 * 2020, "Tackling the Objective Inconsistency Problem", section 4) divides each peer's update by
 * its number of steps and multiplies it by the mean number. This peer does the same, but with a
 * factor of at most 2. A larger factor is risky: to multiply the update of a few steps by 5 is like
 * training with 5 times the learning rate.
 */
#ifndef PEER_NODE_EDGE_PACE_H
#define PEER_NODE_EDGE_PACE_H

#include <stdint.h>

/* Training speeds, in local steps per second. */
struct pace
{
    double own, mean; /* Own speed, and estimated mean speed of all peers. 0: unknown. */
};

/* Records that a job with `steps` local steps took took_us microseconds. */
void pace_worked(struct pace *p, uint32_t steps, int64_t took_us);

/* Handles a received `mean` of another peer, in local steps per second. 0: that peer does not know
 * its mean. */
void pace_heard(struct pace *p, double mean);

/* Returns the number of local steps in the next round, from 1 to `most`. average: number of steps
 * of an average peer. */
uint32_t pace_steps(const struct pace *p, uint32_t average, uint32_t most);

/* Returns the factor by which the change of the model in `steps` local steps is multiplied
 * (FedNova), at most 2. average: number of steps of an average peer. */
double pace_weight(uint32_t steps, uint32_t average);

#endif
