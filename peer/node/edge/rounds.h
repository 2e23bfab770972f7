/* peer/node/edge/rounds.h -- the edges that exchange in a round, if the topology changes by round.
 *
 * A topology that changes by round is a *pass* of rounds that repeats (topology/round_schedule.h).
 * A peer keeps the edges and replicas of all rounds of the pass. In a round, only the edges of that
 * round make deltas. A delta belongs to the step counter (edges.h) that it announces: the job of
 * round t mixes the deltas made for step counter t, takes the local steps of round t, and encodes
 * the deltas for step counter t + 1.
 *
 * An edge that is not used in a round makes no delta, and its count of exchanges does not grow. Its
 * ends send each other BEATs instead. In the consensus phase the passes start again from round 0,
 * because only complete passes are exact. If whole models are sent, each pass is followed by rounds
 * without exchanges (averaging_pass.h).
 *
 * Both deltas of an exchange contain a mixing weight, and the smaller weight is used. Both ends
 * therefore use the same weight, even while they know different members, and the mean is kept. If
 * one end makes a delta for an edge that the other end does not use in the round, the other end
 * makes its delta in its next job. Otherwise the exchange would wait for a whole pass and be
 * outdated.
 */
#ifndef PEER_NODE_EDGE_ROUNDS_H
#define PEER_NODE_EDGE_ROUNDS_H

#include "peer/node/edge/edges.h"

/* Computes in which rounds of a pass (the sequence of rounds that the topology repeats) each edge
 * is used. Called after the n members have changed and the edges were chosen. self: vertex of this
 * peer. Returns 0, -EINVAL or -ENOMEM. */
int rounds_choose(struct edges *es, uint32_t n, uint32_t self);

/* For the consensus phase: returns the place of step counter `beat` in the current cycle
 * (rounds_cycle()), from 0. If it is less than n_rounds, it is the index of the round of the
 * averaging pass for which deltas of this step counter are made. Otherwise only BEATs are sent.
 * UINT64_MAX: the first averaging pass (with uncompressed models) has not begun. */
uint64_t rounds_place(const struct edges *es, uint64_t beat);

/* Returns the length in rounds of one cycle of the consensus phase: an averaging pass, and the
 * rounds without exchanges that follow it (averaging_pass.h). */
uint64_t rounds_cycle(const struct edges *es);

/* Returns whether the edge to b makes a delta for step counter `beat`. Always true for a constant
 * topology, except for an edge that belongs to training only (b->aside). */
bool rounds_turn(const struct edges *es, const struct neighbour *b, uint64_t beat);

/* Sets the fields of *now that depend on the round. *now: mixing parameters of the edge to b in one
 * job. beat: step counter for which the job makes deltas. */
void rounds_plan(const struct edges *es, const struct neighbour *b, uint64_t beat,
                 struct mixing_moment *now);

#endif
