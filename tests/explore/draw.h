/* tests/explore/draw.h -- functions that draw parts of a random plan, used by both versions of the
 * function that draws a whole plan (draw.c and swarm.c). */
#ifndef TESTS_EXPLORE_DRAW_H
#define TESTS_EXPLORE_DRAW_H

#include "cluster.h"

#include "nn/math/rng.h"

/* Returns a random number between low and high, log-uniform. */
double draw_log_uniform(struct rng *r, double low, double high);
/* Returns a random set of the n peers, as bits: usually one peer, sometimes several, rarely all. */
uint32_t draw_set(struct rng *r, uint32_t n);
/* Draws the peers, the time within length_us and the parameters of a fault. */
void draw_fault(struct rng *r, const struct plan *p, enum fault_kind kind, int64_t length_us,
                struct fault *f);
/* Returns whether a fault would have no effect, or would delay peer 0, which the other peers need
 * in order to find the run. Such a fault is drawn again. */
bool draw_is_idle(const struct plan *p, const struct fault *f);
/* Keeps at least two peers running to the end: a permanent fault that would leave fewer peers is
 * limited to 5 s. Lowers min_peers to the number of peers that stay. */
void draw_leave_some(struct plan *p);

/* Gives some plans an outer optimiser (--outer), if their run allows it. Draws from a separate
 * random stream, so that all other parts of the plan of a seed stay the same. Called after all
 * other parts of the run are drawn. */
void draw_outer(struct plan *p, uint64_t seed);

/* Gives some plans an event trigger (--trigger), if their run allows it. Draws from a separate
 * random stream, so that all other parts of the plan of a seed stay the same. */
void draw_trigger(struct plan *p, uint64_t seed);

/* Draws a plan from a seed with version 2 of the drawing function (swarm.c). */
void draw_swarm(struct plan *p, uint64_t seed);

#endif
