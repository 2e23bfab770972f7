/* peer/node/pace.h -- --local-steps auto: how many local steps this peer does in a round.
 *
 * In lock step the slowest peer sets the pace of all where each does the same number of
 * steps. So each does as many as it can in one time, which all agree on by gossip: that in
 * which the average peer does H of them.
 *
 *   own    local steps a second of this peer's jobs, with mixing and encoding: a moving average
 *   mean   what it takes for the mean of all peers' own
 *   steps  H own / mean, rounded; from 1 to RUN_STEPS_MORE H
 *
 * Deltas carry `mean`. Each that is heard pulls ours towards it, and a little towards
 * `own`, so that nothing has to be counted and who leaves is forgotten: neighbours agree to a
 * few per cent, and peers far apart on a large graph differ as their neighbourhoods do. What is
 * heard counts as within NEAREST times our own, either way: a liar can make its neighbours do 1
 * step a round, or RUN_STEPS_MORE H, and nothing else.
 *
 * A peer that does many steps would have many times the weight in what all agree on. FedNova
 * (Wang et al. 2020, "Tackling the Objective Inconsistency Problem", section 4) divides each
 * peer's way by its number of steps and multiplies by their mean. So do we, by at most
 * PACE_LONGEST: the way of a few steps made five times as long is a step of five times the
 * learning rate.
 */
#ifndef PEER_NODE_PACE_H
#define PEER_NODE_PACE_H

#include <stdint.h>

struct pace
{
    double own, mean; /* Local steps a second; 0: not known yet. */
};

/* A job with so many local steps took so long. */
void pace_worked(struct pace *p, uint32_t steps, int64_t took_us);

/* Another peer's `mean`; 0: it has none. */
void pace_heard(struct pace *p, double mean);

/* For the next round, where the average peer does `average` and nobody more than `most`. */
uint32_t pace_steps(const struct pace *p, uint32_t average, uint32_t most);

/* What the way of `steps` local steps is to be multiplied by. */
double pace_weight(uint32_t steps, uint32_t average);

#endif
