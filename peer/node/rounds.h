/* peer/node/rounds.h -- whose turn it is, where the graph changes by round (topology/round_schedule.h).
 *
 * Edges to all partners of a pass stand as long as any others do, and their replicas with them;
 * in a round those mix whose turn it is. A delta belongs to the beat that it announces:
 *
 *   job      ... encode |  mix          local steps          encode  |  mix ...
 *   beat            t   |  what was     (those of round t)    t + 1  |
 *                          made for t
 *
 * An edge whose turn it is not makes no delta; it stays where it is, at the round of its epoch,
 * and its ends tell each other their beats. The consensus phase begins its passes anew, as only whole
 * ones are exact; where its models go whole each is followed by beats without any (pass.h). Which weight an exchange has is said by its own two deltas, and the lesser
 * one counts: so it is the same at both ends also while one sees other members than the other,
 * and the mean is kept. What one end has begun out of turn is answered by the other, in the next
 * job: else it would wait for a pass, and be of back then.
 */
#ifndef PEER_NODE_ROUNDS_H
#define PEER_NODE_ROUNDS_H

#include "peer/node/edges.h"

/* The n members have changed, of which we are vertex self, and edges are chosen: whose turn is it
 * when? 0, -EINVAL or -ENOMEM. */
int rounds_choose(struct edges *es, uint32_t n, uint32_t self);

/* The round of its pass for which deltas of this beat of the consensus phase are made, n_rounds or more
 * where only words are said; UINT64_MAX before a first pass of whole models begins. */
uint64_t rounds_place(const struct edges *es, uint64_t beat);

/* Beats from the beginning of a pass of whole models to that of the next. */
uint64_t rounds_cycle(const struct edges *es);

/* Is the edge to mix in the round of this beat? True, too, where the graph stands still. */
bool rounds_turn(const struct edges *es, const struct neighbour *b, uint64_t beat);

/* What the edge does in a job that makes deltas for this beat: fills in what is of graphs
 * that change by round. */
void rounds_plan(const struct edges *es, const struct neighbour *b, uint64_t beat,
                 struct mixing_moment *now);

#endif
