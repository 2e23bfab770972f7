/* gossip/exchange/outlier_filter.h -- refuses an exchange whose distance is implausible for its
 * edge.
 *
 * The filter is always on and refuses exchanges that do not occur in honest training. There is one
 * exception: an exchange with an honest neighbour that has trained for many more rounds (see
 * below). Let x be this peer's model, a this peer's replica, b the neighbour's replica,
 * D = |b - a|, and x0 the initial model of the run. An exchange adds gamma w (b - a) to x
 * (correction.h). An exchange is *refused*, and x stays unchanged, if both conditions hold:
 *
 *   D > OUTLIER_FILTER_TIMES max(largest D of the epoch so far, |x - a|)
 *   D > OUTLIER_FILTER_WAYS |x - x0|
 *
 * |x - a| is the difference that this peer's delta of the exchange had to transmit. At the start of
 * an epoch, a is x0. In the first exchange, |x - a| is therefore the whole distance of this peer's
 * model from x0, and an honest neighbour's model has moved about as far from x0. The two models are
 * then not much farther apart than |x - a|, even if one peer joins late, when all other models are
 * close together. In later exchanges, the largest D of the epoch is the measure.
 *
 * A neighbour can stay below these limits and still do harm. An edge is called *apart* if its D is
 * more than OUTLIER_FILTER_APART times the D of most other edges, and more than half of |x - x0|.
 * An edge that is apart in successive exchanges becomes *suspect* in either of two cases:
 *
 *   - D has grown to more than OUTLIER_FILTER_GROWN times its value when the edge became apart.
 *     With --trigger this factor is OUTLIER_FILTER_GROWN_TRIGGER: deltas may be empty, and D jumps
 *     at the first delta with values, from the distance of old models to the distance of the
 *     current models. A Byzantine neighbour can use the larger factor to move this peer further.
 *     Only --byzantine limits how far.
 *   - The sum of gamma w since the edge became apart exceeds OUTLIER_FILTER_PULL. This peer has
 *     then moved towards the neighbour by several times the distance, and the edge is still apart.
 *
 * If training itself diverges, all edges grow and no edge is apart. An edge that joins two halves
 * of a healed graph is apart, but its D shrinks.
 *
 * The node closes an edge with a refused or suspect exchange and restarts it later
 * (peer/node/edge/edges_trust.c). Once an edge has been suspect, its limit is lower: an exchange is
 * refused as soon as D is so large that the edge would be apart.
 *
 * All limits depend on the distance |x - x0| of this peer's own model, so a peer whose model has
 * hardly moved cannot judge others. There is no limit in round 0 of the run (correction.c). The
 * distance |x - x0| grows with the number of rounds, at first with the square of this number. Take
 * two honest models, one of which has trained for at most 5/4 as many rounds as the other. The
 * longer of their two distances from x0 is then at most (5/4)^2, or about 1.6, times the shorter
 * one. Unless the angle between their directions from x0 exceeds about 98 degrees, they are less
 * than twice the shorter distance apart. If the neighbour has trained for more than 5/4 as many
 * rounds as this peer, its exchange may be refused although it is honest. This happens if this
 * process was stopped, if it skipped rounds, or, without lock step, if it is slow. A neighbour
 * that was refused during training therefore gets another chance in the consensus phase, when all
 * models have trained for all rounds. The refused exchange has not moved this peer's model.
 *
 * Each peer decides for itself which exchanges it accepts. The two ends of an edge need not agree.
 */
#ifndef GOSSIP_EXCHANGE_OUTLIER_FILTER_H
#define GOSSIP_EXCHANGE_OUTLIER_FILTER_H

#include <stdbool.h>

enum {
    /* First of two limits for the distance |b - a|: this multiple of the largest distance known for
     * the edge. An exchange is refused only if |b - a| exceeds both this limit and the limit of
     * OUTLIER_FILTER_WAYS. */
    OUTLIER_FILTER_TIMES = 32,
    /* Second limit for the distance |b - a|: this multiple of |x - x0|, this peer's distance from
     * the initial model. An exchange is refused only if |b - a| exceeds both this limit and the
     * limit of OUTLIER_FILTER_TIMES. */
    OUTLIER_FILTER_WAYS = 2,
    /* An edge is *apart* if the distance |b - a| of its replicas exceeds this multiple of the
     * distance on most other edges. */
    OUTLIER_FILTER_APART = 16,
    /* Factor by which the distance of an edge that is apart (longer than most other edges) may grow
     * before the edge is suspect. */
    OUTLIER_FILTER_GROWN = 4,
    /* Replaces OUTLIER_FILTER_GROWN in a run with empty deltas (--trigger). D is more than half of
     * |x - x0| when the edge becomes apart, and the models x and y of two honest peers differ by at
     * most |x - x0| + |y - x0|. With the factor 8, an honest neighbour is therefore not suspect if
     * |y - x0| is at most 3 |x - x0|. */
    OUTLIER_FILTER_GROWN_TRIGGER = 8,
    /* An edge that is apart (longer than most other edges) in successive exchanges becomes suspect
     * when the sum of gamma w over these exchanges exceeds this value. */
    OUTLIER_FILTER_PULL = 8
};

/* Distances seen on one edge. Written by outlier_filter.c, and by state.c when a checkpoint is
 * read. */
struct outlier_filter
{
    /* Largest D^2 = |b - a|^2 of this epoch, or of all epochs once the edge has been suspect. 0: no
     * exchange yet. */
    double most2;
    double last2; /* D^2 = |b - a|^2 of the last exchange. 0: no exchange yet in this epoch. */
    /* Sum of gamma w, the share of b - a that moves x, over the exchanges since the edge became
     * apart, that is, much longer than most other edges. */
    double pull;
    /* D^2 = |b - a|^2 of the exchange at which the edge became apart, that is, much longer than
     * most other edges. 0: it is not apart. */
    double from2;
    bool warned; /* True: this edge has been suspect before. */
};

/* Restarts the filter for a new epoch of the edge. If the edge has been suspect before, `most2` and
 * `warned` keep their values. */
void outlier_filter_begin(struct outlier_filter *t);

/* Distances that this peer can measure without trusting the neighbour, just before an exchange is
 * mixed. */
struct outlier_filter_view
{
    /* |x - a|^2, the squared distance of this peer's model from its replica, before this peer's
     * delta is added to the replica. */
    double x2;
    /* |x - x0|^2, the squared distance of this peer's model from the initial model. The value may
     * be a few mixings old. Without --byzantine it is measured again before an exchange is
     * refused. */
    double way2;
    /* Median over the other edges of this peer that commit an exchange in the same job. The value
     * of an edge is D^2 = |b - a|^2 of its previous exchange, or 0 if it has had none in its epoch.
     * The median is 0 if there are no such edges, and also if this edge was never suspect, because
     * it then needs no median. */
    double others2;
};

/* Returns the largest D^2 = |b - a|^2 at which the exchange is accepted. 0: no limit, because no
 * distance is known yet. */
double outlier_filter_limit2(const struct outlier_filter *t, const struct outlier_filter_view *v);

/* Returns whether an edge is "apart" from one other edge: its two replicas are much farther from
 * each other than the replicas of the other edge, and farther than half of |x - x0|. d2: squared
 * distance of the replicas of this edge. other2: squared distance of the replicas of the other
 * edge. way2: |x - x0|^2, squared distance of the model from the initial model. */
bool outlier_filter_apart(double d2, double other2, double way2);

/* Records an exchange that was mixed. d2: |b - a|^2 of the exchange. pull: gamma w, the share of b
 * - a that was added to x. apart: true if d2 is much larger than on most other edges. triggered:
 * true if the run has empty deltas (--trigger). Returns true if the edge is suspect. */
bool outlier_filter_saw(struct outlier_filter *t, double d2, double pull, bool apart,
                        bool triggered);

/* Records that the edge is suspect, which lowers its limit permanently. */
void outlier_filter_warn(struct outlier_filter *t);

#endif
