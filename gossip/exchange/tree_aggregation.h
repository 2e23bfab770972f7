/* gossip/exchange/tree_aggregation.h -- computes the consensus distance as a sum over a spanning
 * tree.
 *
 * Averaging by gossip (sketch.h) needs every exchange of a window. Tree aggregation needs only one
 * report of each peer, however late. A tree consists of shortest paths (graph_tree() in
 * topology/topology.h). The tree is the same at all peers that know the same members, and changes
 * with the members. There are four trees. In the list of members, their roots are a quarter of its
 * length apart. A *window* is one measurement of the consensus distance. Successive windows use
 * different trees, because a broken edge is seldom part of all trees. A window begins at a point in
 * time that all peers know:
 *
 *   lock step      A window begins at rounds 0, P, 2P, ..., again at the start of the consensus
 *                  phase, and then with a shorter period. All peers compute the same rounds.
 *   no lock step   The first member counts its own rounds. Other peers begin a window when a
 *                  message tells them of it.
 *
 * Steps of a window:
 *
 *   begin   Each peer stores s = S x, the sketch of its model (sketch.h).
 *   up      When all its children have reported, a peer adds up its own value and theirs. It
 *           reports to its parent: the number of peers, the mean of their sketches, the sum of
 *           squared distances from that mean, and the sum of |x|^2.
 *   down    When all children of the root have reported, the root knows Xi^2 and the mean. The
 *           result is passed down hop by hop, and each peer computes its own distance |s - mean|.
 *
 * Sums of squares are combined as in Chan, Golub and LeVeque (1983), so that a distance that is
 * much smaller than the mean keeps its digits. A lost message, a silent peer or a restart only
 * delays a report. A report describes the values that were stored when the window began, no peer is
 * counted twice (`got`), and the root publishes a result only if it has counted all members. A
 * figure is therefore correct for its time, or there is no figure.
 *
 * A peer stores several windows in slots. The number of times that 2 divides a window's index
 * selects the slot: slot v holds indices odd * 2^v, each for 2^(v+1) windows.
 *
 *   slot 0:  1   3   5   7       each stored for 2 windows
 *   slot 1:    2       6         each stored for 4 windows
 *   slot 2:        4             each stored for 8 windows, and so on
 *
 * The last slot holds all other windows.
 *
 * However slow the tree is, some window is therefore stored until its result has travelled up and
 * down the tree.
 *
 * Without lock step, the start of a window reaches the peers at different times. The root knows how
 * long the reports took, and how fast Xi changes from window to window. A result is called *sharp*
 * if Xi has changed by at most a tenth in this time and no peer has begun its consensus phase. A
 * result that is not sharp gives each peer its own distance, but no figure for users. In lock step
 * all results are sharp. Limit: a peer below the quorum mixes several times without leaving its
 * round, so the result of such a round may combine models from before and after a mixing.
 */
#ifndef GOSSIP_EXCHANGE_TREE_AGGREGATION_H
#define GOSSIP_EXCHANGE_TREE_AGGREGATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SKETCH_K = 256, /* Number of floats of a sketch. */
    /* Number of measurements of the consensus distance (windows) that a peer stores, one per
     * slot. */
    TREE_AGGREGATION_SLOTS = 8,
    /* Number of spanning trees. Successive measurements use them in turn. */
    TREE_AGGREGATION_TREES = 4
};

/* Role of a neighbour in a tree, seen from this peer. */
enum tree_aggregation_role {
    TREE_AGGREGATION_ASIDE,  /* The edge to the neighbour is not part of the tree. */
    TREE_AGGREGATION_PARENT, /* The neighbour is this peer's parent in the tree. */
    TREE_AGGREGATION_CHILD   /* The neighbour is a child of this peer in the tree. */
};

/* State of one edge. A reset of the edge clears only `sent` and `told`. */
struct tree_aggregation_pair
{
    enum tree_aggregation_role role[TREE_AGGREGATION_TREES];
    /* Version number of the trees to which the state of this edge belongs. */
    uint64_t built;
    /* For each slot: index of the drift window (measurement) for which the neighbour, as this
     * peer's child in the tree, has reported. */
    uint64_t got[TREE_AGGREGATION_SLOTS];
    /* For each slot: index of the drift window for which a report or result was sent over this
     * edge. */
    uint64_t sent[TREE_AGGREGATION_SLOTS];
    /* Index of the last drift window whose start was announced over this edge (CLOCK message). 0:
     * none was announced. */
    uint64_t told;
    /* Number of deltas since the last report or result was sent over this edge. */
    uint64_t quiet;
};

/* Sum over n peers: their sketches, and the squares for the consensus distance. */
struct tree_aggregation_sum
{
    uint32_t n;    /* Number of peers in the sum. 0: the sum is empty. */
    bool settling; /* True: at least one of the peers in the sum is in its consensus phase. */
    float mean[SKETCH_K]; /* Mean of the sketches of the n peers. */
    double dist2;         /* Sum of the squared distances |s - mean|^2 of the n sketches. */
    double norm2;         /* Sum of the squared norms |x|^2 of the n models. */
};

/* One measurement of the consensus distance (window), stored in a slot. */
struct tree_aggregation_slot
{
    uint64_t index; /* Index of the measurement in this slot. 0: the slot is empty. */
    /* True: the measurement has begun at this peer, and the sum includes this peer's model. */
    bool began;
    uint64_t round; /* Step counter when the measurement began. */
    /* Sum of |b - a|^2, the squared distance of the two replicas, over this peer's edges when the
     * measurement began. */
    double local2;
    float s[SKETCH_K];   /* Sketch of this peer's model when the measurement began. */
    uint32_t n_children; /* Number of children that have reported for this measurement. */
    bool done;           /* True: the sum over all peers is known. */
    /* True: the result is known and "sharp", which means that the consensus distance Xi has changed
     * little since the measurement began (top of this file). */
    bool sharp;
    /* Sum over all peers once it is known. Before that: sum over this peer, if it has begun the
     * measurement, and over the subtrees of the children that have reported. */
    struct tree_aggregation_sum sum;
};

/* Position of this peer in the trees, which follow from the set of members. Set by the node. */
struct tree_aggregation_place
{
    /* Version number of the trees. It changes whenever the trees or the members change. */
    uint64_t built;
    /* n: number of members. depth: depth of the deepest tree in hops, or an upper bound of it. */
    uint32_t n, depth;
    uint32_t reach; /* Number of hops from the first member to the member farthest from it. */
    /* Number of children of this peer in each of the trees. */
    uint32_t n_children[TREE_AGGREGATION_TREES];
    /* root: for each tree, whether this peer is its root. lock_step: whether the run is in lock
     * step. */
    bool root[TREE_AGGREGATION_TREES], lock_step;
    uint64_t n_rounds; /* Number of training rounds. Later rounds belong to the consensus phase. */
    /* Least number of training deltas on an edge between two messages with a report or a result.
     * Also the least number of rounds between two measurements in training. */
    uint64_t pace;
};

/* State of one peer. Written by tree_aggregation.c. sketch.c sets place.n to 0 to restart tree
 * aggregation after the peer has skipped rounds. */
struct tree_aggregation
{
    struct tree_aggregation_place place;
    /* Index of the latest drift window that has begun at this peer. 0: none. */
    uint64_t clock;
    /* Index of the latest drift window that this peer knows to have begun at any peer. */
    uint64_t heard;
    uint64_t round; /* Step counter at the last call of tree_aggregation_beat(). */
    double before2; /* Xi^2 of the latest complete measurement. 0: none. */
    /* Step counter when the latest complete measurement began at this peer. */
    uint64_t before_round;
    struct tree_aggregation_slot slot[TREE_AGGREGATION_SLOTS];
};

/* Kind of a tree-aggregation message that a delta carries over an edge. */
enum tree_aggregation_word {
    TREE_AGGREGATION_NOTHING, /* The delta carries no tree-aggregation message. */
    TREE_AGGREGATION_CLOCK,   /* Message: a measurement has begun. This message carries no sum. */
    TREE_AGGREGATION_UP,      /* Message: report of a child to its parent. */
    /* Message from a parent to its child: a sharp result, whose Xi is exact enough for users (see
     * the top of this file). */
    TREE_AGGREGATION_DOWN,
    /* Message from a parent to its child: a result that is not "sharp", that is, whose Xi is not
     * exact enough for users (see the top of this file). */
    TREE_AGGREGATION_BLURRED
};

/* Records that a job has mixed. round: step counter of this peer. Returns whether a measurement
 * window begins now. The caller must then call tree_aggregation_begin(). */
bool tree_aggregation_beat(struct tree_aggregation *v, const struct tree_aggregation_place *place,
                           uint64_t round);
/* Begins a drift window. s: sketch S x of the current model. norm2: |x|^2. local2: sum of |b - a|^2
 * over this peer's edges. */
void tree_aggregation_begin(struct tree_aggregation *v, const float s[SKETCH_K], double norm2,
                            double local2);

/* Returns the newest complete measurement, or NULL if none is complete. */
const struct tree_aggregation_slot *tree_aggregation_newest(const struct tree_aggregation *v);

/* Chooses the message to send over an edge now. Called once per delta of the edge. Sets *index to
 * the drift window of the message. Sets *sum to the sum that the message carries, which is valid
 * until the next call with this *v. If there is no message, or for a CLOCK message, which carries
 * no sum, *sum keeps its value. */
enum tree_aggregation_word tree_aggregation_say(struct tree_aggregation *v,
                                                struct tree_aggregation_pair *p, uint64_t *index,
                                                const struct tree_aggregation_sum **sum);
/* Sets the neighbour's roles in the trees with version number `built`, after the members have
 * changed. Messages are neither sent nor accepted until tree_aggregation_beat() has received this
 * peer's position in the trees of the same version. */
void tree_aggregation_pair_place(struct tree_aggregation_pair *p,
                                 const enum tree_aggregation_role role[TREE_AGGREGATION_TREES],
                                 uint64_t built);
/* Records that the edge was reset: messages that may have been lost are sent again. */
void tree_aggregation_pair_reset(struct tree_aggregation_pair *p);
/* Handles a message from the neighbour. index: number of the drift window; only its lower 24 bits
 * are used. sum: ignored for a CLOCK message. */
void tree_aggregation_hear(struct tree_aggregation *v, struct tree_aggregation_pair *p,
                           enum tree_aggregation_word word, uint64_t index,
                           const struct tree_aggregation_sum *sum);

#endif
