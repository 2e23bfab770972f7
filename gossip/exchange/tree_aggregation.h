/* gossip/exchange/tree_aggregation.h -- the consensus distance of one moment, counted exactly once a peer
 * along a tree of the graph.
 *
 * Averages by gossip need every exchange of a window; a survey needs every peer's word
 * once, whenever it comes. The tree is one of shortest paths (topology.h, graph_tree()),
 * the same at all who see the same members, and another one when they change. There are
 * four, with their roots a quarter of the members apart, and windows take turns: an edge
 * that cannot be had is seldom in all of them. A *window* is a moment that all peers know:
 *
 *   lock step     rounds 0, P, 2P, ...; in the consensus phase it begins and goes on in
 *                 shorter ones: all peers compute the same ones
 *   else          the first member counts its own rounds; a peer's moment is when it hears
 *
 *   begins        each peer keeps s = S x, the sketch of its model (sketch.h)
 *   up            a peer whose children have all reported adds up its own s and theirs,
 *                 and reports to its parent: how many, their mean, the sum of squared
 *                 distances from it, the sum of |x|^2
 *   down          the root, having heard of all, has Xi^2 and the mean; so has, hop by
 *                 hop, everybody, and each peer its own |s - mean|
 *
 * Sums of squares are put together as Chan, Golub and LeVeque (1983) do, so that a
 * distance much smaller than the mean keeps its digits. Loss, silence and restarts
 * delay a report, and can do no more: it speaks of what was kept when the window
 * began, nobody is counted twice (`got`), and the root publishes only where it has
 * counted all members. So a figure is right for its moment, or there is none.
 *
 * A peer keeps several windows, of which the later replace the earlier by how often 2
 * divides their index: slot v has indices odd * 2^v, each for 2^(v+1) windows.
 *
 *   slot 0:  1   3   5   7       kept while two windows pass
 *        1:    2       6                   four
 *        2:        4                       eight, ... the last slot: the rest
 *
 * So however slow the tree is, some window outlives its way up and down.
 *
 * Without lock step moments are as far apart as the word of a window's beginning takes
 * to spread. The root knows how long all took, and how fast Xi changes from window to
 * window: where Xi may have changed by more than a tenth meanwhile, or where some have
 * begun their consensus phase, the result is not `sharp`, and gives each peer its own distance but no figure for people.
 */
#ifndef GOSSIP_EXCHANGE_TREE_AGGREGATION_H
#define GOSSIP_EXCHANGE_TREE_AGGREGATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SKETCH_K = 256, /* Floats of a sketch. */
    TREE_AGGREGATION_SLOTS = 8,
    TREE_AGGREGATION_TREES = 4
};

/* What the other end of an edge is to us in a tree. */
enum tree_aggregation_role {
    TREE_AGGREGATION_ASIDE,
    TREE_AGGREGATION_PARENT,
    TREE_AGGREGATION_CHILD
};

/* The part of an edge, kept over resets of it. */
struct tree_aggregation_pair
{
    enum tree_aggregation_role role[TREE_AGGREGATION_TREES];
    uint64_t built; /* All of this is of those trees. */
    uint64_t
        got[TREE_AGGREGATION_SLOTS]; /* Windows whose report by this child is in a slot's sum. */
    uint64_t sent[TREE_AGGREGATION_SLOTS]; /* Windows that we have told the other end of, */
    uint64_t told;                         /* and the latest that we said has begun. */
    uint64_t quiet; /* Deltas since our last word of more than a few bytes. */
};

/* Models of n peers put together. */
struct tree_aggregation_sum
{
    uint32_t n;
    bool settling; /* Some of them have trained: their models draw together. */
    float mean[SKETCH_K];
    double dist2; /* Sum of |s - mean|^2. */
    double norm2; /* Sum of |x|^2. */
};

struct tree_aggregation_slot
{
    uint64_t index; /* The window; 0: none. */
    bool began;     /* Our own part is in it: the next four are of that moment. */
    uint64_t round; /* The run's. */
    double local2;  /* Sum of |b - a|^2 over our edges. */
    float s[SKETCH_K];
    uint32_t n_children;             /* So many have reported. */
    bool done;                       /* `sum` is of all peers, */
    bool sharp;                      /* and it hardly matters that their moments were not one. */
    struct tree_aggregation_sum sum; /* Else of us and of the children that have. */
};

/* What the owner knows; the places in the trees go by the view. */
struct tree_aggregation_place
{
    uint64_t built;    /* Another number where the trees or the members are others. */
    uint32_t n, depth; /* Members; the depth of the deepest tree, or more. */
    uint32_t reach;    /* Hops from the first member to the farthest. */
    uint32_t n_children[TREE_AGGREGATION_TREES];
    bool root[TREE_AGGREGATION_TREES], lock_step;
    uint64_t n_rounds; /* So many are trained; later ones are of the consensus phase. */
    uint64_t pace;     /* Deltas of training between two long words on an edge. */
};

struct tree_aggregation
{
    struct tree_aggregation_place place;
    uint64_t clock; /* The latest window that has begun; 0: none. */
    uint64_t heard; /* Without lock step: the latest that the parent knows of. */
    uint64_t round; /* The run's, as of the last beat. */
    double before2; /* Xi^2 of the latest window of which all is known, */
    uint64_t before_round;
    struct tree_aggregation_slot slot[TREE_AGGREGATION_SLOTS];
};

/* What goes over an edge. A result that is not sharp is BLURRED instead of DOWN. */
enum tree_aggregation_word {
    TREE_AGGREGATION_NOTHING,
    TREE_AGGREGATION_CLOCK,
    TREE_AGGREGATION_UP,
    TREE_AGGREGATION_DOWN,
    TREE_AGGREGATION_BLURRED
};

/* After the mixing of a job, at the run's `round`: does a window begin? Then
 * tree_aggregation_begin() has to follow. */
bool tree_aggregation_beat(struct tree_aggregation *v, const struct tree_aggregation_place *place,
                           uint64_t round);
/* s = S x and |x|^2 of the present model. */
void tree_aggregation_begin(struct tree_aggregation *v, const float s[SKETCH_K], double norm2,
                            double local2);

/* The newest window of which all is known; NULL: there is none. */
const struct tree_aggregation_slot *tree_aggregation_newest(const struct tree_aggregation *v);

/* What is to be said on this edge now: of which window, and, but for CLOCK, what of
 * it, valid until the next call. */
enum tree_aggregation_word tree_aggregation_say(struct tree_aggregation *v,
                                                struct tree_aggregation_pair *p, uint64_t *index,
                                                const struct tree_aggregation_sum **sum);
/* The members have changed: the places of the other end in the trees `built`. Nothing
 * is said or heard until the survey has been told of those, too. */
void tree_aggregation_pair_place(struct tree_aggregation_pair *p,
                                 const enum tree_aggregation_role role[TREE_AGGREGATION_TREES],
                                 uint64_t built);
/* The edge has begun anew: what was on its way is said again. */
void tree_aggregation_pair_reset(struct tree_aggregation_pair *p);
/* What the other end said; of `index` the lower 24 bits count. */
void tree_aggregation_hear(struct tree_aggregation *v, struct tree_aggregation_pair *p,
                           enum tree_aggregation_word word, uint64_t index,
                           const struct tree_aggregation_sum *sum);

#endif
