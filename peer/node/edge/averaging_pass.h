/* peer/node/edge/averaging_pass.h -- detects exact averaging passes, after which the consensus
 * phase ends.
 *
 * With the topology base:K and uncompressed models, one pass of R rounds replaces every model by
 * the mean of all models: each element of the product of its mixing matrices is 1/n
 * (topology/base.c). One-peer-exponential with 2^m members has this property, too. A pass is called
 * *exact* (`clean` in the code) if every exchange took place in its round, at all peers, and among
 * the same members. After an exact pass no estimate of the consensus distance is needed.
 *
 * Let T be the step counter (edges.h) at the end of training, or at the end of the previous cycle.
 * A cycle then consists of two parts:
 *
 *   - Step counters T + 1 to T + R: the exchanges of rounds 0 to R - 1 of the pass.
 *   - Step counters T + R + 1 to T + 2 R + 2: no exchanges. BEATs spread `settled` (edges.h) hop by
 *     hop.
 *
 * Each delta shows whether the pass was exact so far. If so, the delta carries the *number of the
 * pass*, which is derived from the members and from the step counter at which the pass began.
 * Otherwise it carries 0. A peer sends the number while all of these conditions hold:
 *
 *   - when the pass began, no exchange was committed at one end only
 *   - in each round, exactly the exchanges that belong to the round were committed
 *   - both deltas of each exchange were made for this round, were not compressed, and carried the
 *     same number
 *   - no round was skipped or repeated, no edge was reset or distrusted, no running statistics
 *     were computed again, and the members did not change
 *
 * The number travels with the models, over the same exchanges. If a peer still has the number at
 * the end of the pass, all exchanges that contributed to its model were exact, so its model is the
 * mean. The peer does not know whether the other models are the mean, too, because in the last
 * round an exchange between two other peers may have failed. Therefore R + 2 rounds without
 * exchanges follow. In these rounds BEATs carry `settled`, and a peer ends the phase when all peers
 * have reported success. R is at least the number of hops between any two peers. If the phase does
 * not end, the next pass begins.
 *
 * A pass that is not exact does no harm: its exchanges keep the mean and bring the models together,
 * and estimates from sketches may end the phase.
 *
 * The method trusts every member and is not used with --byzantine. After false models from a
 * member, different peers may have different means. Each of them would report a consensus, and no
 * estimate would show the difference.
 */
#ifndef PEER_NODE_EDGE_AVERAGING_PASS_H
#define PEER_NODE_EDGE_AVERAGING_PASS_H

#include <stdbool.h>
#include <stdint.h>

struct edges;
struct neighbour;

/* Progress of the current averaging pass at this peer. Part of struct edges. Written by
 * averaging_pass.c only. */
struct averaging_pass
{
    /* Number of the pass that this peer's deltas carry while the pass is exact so far. 0: there is
     * no pass, or it is not exact. */
    uint64_t clean;
    uint64_t beat; /* Step counter of the next job, if no round is skipped. */
    uint64_t view; /* Hash of the members when the averaging pass began. */
    /* Number of times that this peer had reset an edge, or closed one for distrust, when the pass
     * began. If the number grows during the pass, the pass is not exact. */
    uint64_t n_amiss;
    double norm2;       /* Squared length of this peer's model when the averaging pass began. */
    bool over;          /* True: an exact pass is complete, so this peer's model is the mean. */
    uint64_t over_beat; /* Step counter at the end of the last exact pass. 0: there was none. */
    uint64_t over_view; /* Hash of the members in the last exact pass. */
    /* Bound on the distance of this peer's model from the mean after an exact pass, relative to
     * |x|. Only rounding errors cause this distance. 0: not computed yet. */
    double bound;
};

/* Returns whether the consensus phase has begun and uses exact averaging passes. Passes need
 * uncompressed models of 32-bit values, a gamma that is 1 or automatic, and a topology that has
 * exact passes. Otherwise estimates of the consensus distance end the phase. */
bool averaging_pass_counts(const struct edges *es);

/* Checks the exchanges that the next job commits, and ends or begins a pass. To be called when the
 * job is planned at step counter `beat`, after all changes of the edges. */
void averaging_pass_plan(struct edges *es, uint64_t beat);

/* Sets `over` if another member has finished, this peer's last exact pass ended at most two cycles
 * ago, and the members are the same as in that pass. The end of the other member proves that the
 * pass was exact at all peers. To be called between jobs, at step counter `beat`. */
void averaging_pass_look(struct edges *es, uint64_t beat);
/* Computes `bound`, the bound on the rounding errors of an exact pass, when the pass is complete.
 * To be called after each job. O(dim) after the last job of a pass, else O(1). */
void averaging_pass_done(struct edges *es);

/* Returns whether lock step must wait for the edge to b at step counter `beat`, because the pass
 * cannot be exact without an exchange or a BEAT on this edge. */
bool averaging_pass_needs(const struct edges *es, const struct neighbour *b, uint64_t beat);

/* Returns a bound on the distance of this peer's model from the mean after an exact pass, relative
 * to |x|. Only rounding errors cause this distance. INFINITY: no exact pass is complete. */
double averaging_pass_bound(const struct edges *es);

#endif
