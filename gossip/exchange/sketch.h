/* gossip/exchange/sketch.h -- estimates the consensus distance without a server.
 *
 *   Xi^2 = (1/n) sum_i |x_i - mean|^2
 *
 * Each peer i projects its model to a count sketch s_i = S x_i (Charikar, Chen, Farach-Colton
 * 2002). S is a matrix of k x d with one random sign in each column, derived from the run's seed,
 * for k = SKETCH_K and d trained parameters. |s_i - s_j|^2 estimates |x_i - x_j|^2 with a relative
 * rms error of sqrt(2/k), which is 9 % for k = 256. Averages of sketches are computed by gossip, as
 * part of the exchanges on the edges, in *windows* of K exchanges:
 *
 *   window w starts    s = S x, m = s, q = |x|^2, u = v of window w - 1
 *     K times          m, u and q move towards the values of the neighbours
 *   window w ends      v = |s - m|^2   squared distance of this peer's model from the mean when w
 *                                      started
 *                      Xi^2 = u        mean of the v of all peers, of window w - 1
 *
 * A figure therefore describes a time 2K exchanges ago, and is correct for that time. The usual
 * alternative is dynamic average consensus, m += s(now) - s(before). It has no delay, but its
 * result is always too low, because a peer's newest step is in its own m and in no other. On a ring
 * of 8 the result was 14 % too low when models mixed as fast as sketches, as with a 4-bit codec.
 * The averaging has a momentum term (as in second-order diffusion: Muthukrishnan, Ghosh, Schultz
 * 1998). With it, about the square root of the number of rounds is enough. K follows from the
 * spectral gap of the graph. With a smaller K, a peer's m would still be partly its own s, and the
 * distance |s - m| too small.
 *
 * Averaging is correct only if each peer exchanges with every neighbour in every round, among the
 * same members. After one missing exchange the averages are wrong. A peer whose averages may be
 * wrong becomes *disturbed*, permanently:
 *
 *   state         source of figures          leaves the state
 *   undisturbed   averages by gossip         if an exchange, round or member is missing, if the run
 *                                            is not in lock step, or if a neighbour is disturbed
 *   disturbed     tree aggregation           never
 *                 (tree_aggregation.h)
 *
 * A disturbed peer stops averaging and takes part in tree aggregation, which depends on no
 * particular exchange. Its next message tells each neighbour that it is disturbed. This message
 * takes the place of the average that would have been wrong, and the neighbour becomes disturbed,
 * too. No wrong average is therefore published. In a run without faults, all figures come from
 * averages by gossip.
 *
 * In messages, m is encoded as its difference from a replica, like the model: the first m of a
 * window uncompressed, later ones with four bits per element.
 */
#ifndef GOSSIP_EXCHANGE_SKETCH_H
#define GOSSIP_EXCHANGE_SKETCH_H

#include "compress/compress.h"
#include "gossip/exchange/tree_aggregation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SKETCH_BYTES_MAX = 4 * SKETCH_K + 64 /* Largest number of bytes of an encoded sketch. */
};

/* State of a peer after a job has mixed: the input of sketch_beat(). The node and mixing_beat() set
 * the fields. */
struct sketch_moment
{
    uint64_t view; /* Number that identifies the current set of members. */
    /* This peer's position in the spanning trees over the current members. mixing_beat() sets part
     * of it. */
    struct tree_aggregation_place place;
    bool draining;    /* True: this peer completes pending exchanges but makes no new deltas. */
    size_t n_commits; /* Number of exchanges that the job committed. */
    /* True: an averaging window must begin now, because the caller needs a recent consensus
     * distance. */
    bool anew;
    /* States of the n_pairs edges that take part: those that have had an epoch and are not
     * EDGE_DONE. */
    struct sketch_pair *const *pair;
    size_t n_pairs;
    double gap; /* Spectral gap of the graph, equal at all peers. 0: not measured. */
    bool alone; /* True: this peer has no edges, because it has no neighbours. */
    /* True: an edge of the graph has never been open, so the neighbour takes no part in the
     * averaging. */
    bool missing;
    uint64_t round; /* Step counter of this peer, including rounds of the consensus phase. */
    /* Sum over this peer's edges of |b - a|^2, the squared distance of the two replicas, from the
     * last mixing. */
    double local2;
};

/* The newest figures of the consensus distance. */
struct sketch_figures
{
    /* Xi and Xi / |mean| at the start of round `round`. NaN: no figure yet, this peer had no
     * neighbours, or the estimates contradict each other. `relative` is also NaN if |mean|^2 is not
     * known. */
    double xi, relative;
    uint64_t round;

    /* Distance of this peer's model from the mean, |x_i - mean|, and this distance divided by
     * |mean|. Both describe the start of round `own_round`, and are known one averaging window
     * earlier than xi. NaN: no figure yet. */
    double own, own_relative;
    uint64_t own_round;
    /* Number of windows so far, of averaging or of tree aggregation, that have produced a value of
     * `own`, the distance of this peer's model from the mean. While this peer has no neighbours,
     * each job counts as a window. */
    uint64_t own_window;
    /* Order key of the window that produced `own`, the distance of this peer's model from the mean.
     * A later window has a larger key. 0: there is no such distance yet. */
    uint64_t own_begun;
    /* Sum of |b - a|^2, the squared distance of the two replicas, over this peer's edges. Measured
     * at the start of the window that produced `own`. */
    double own_local2;

    /* Bound of the rounding error of float32 in the consensus distances, relative to |mean|. Its
     * square is added to the square of each distance. 0: this peer has never had a neighbour. */
    double rounding;
};

/* The values that are averaged in an averaging window: m, u and q, as defined at the top of this
 * file. */
struct sketch_average
{
    float m[SKETCH_K];
    double u, q;
};

/* State of one peer's estimate of the consensus distance. Written by sketch.c, and by state.c when
 * a checkpoint is read. */
struct sketch
{
    uint64_t key; /* Key from which the matrix S is derived. */
    size_t dim;   /* Number of trained parameters of a model. */

    /* True: the consensus distance is computed by tree aggregation. Never becomes false again. */
    bool disturbed;
    /* True: sketch_beat() was called at least once while this peer had neighbours. */
    bool beaten;
    uint64_t last; /* Step counter at the last call of sketch_beat(). */
    /* Index of the tree-aggregation window that produced the figures of the consensus distance. 0:
     * no such window. */
    uint64_t surveyed;
    /* Offset that is added to the step counters of tree aggregation. It keeps the order keys of
     * windows (own_begun) increasing when tree aggregation replaces averages as the source of the
     * consensus distance. */
    uint64_t own_base;
    struct tree_aggregation survey;

    /* The fields from `open` to `momentum` describe the current window of averaging. */
    bool open;  /* True: an averaging window has begun and has not ended. */
    bool began; /* True: an averaging window began with the last call of sketch_beat(). */
    /* Number that identifies the set of members when the window began. A change of the set ends
     * averaging by gossip for the rest of the run. */
    uint64_t view;
    uint64_t round;    /* Step counter when the averaging window began. */
    uint32_t window;   /* Number of the current averaging window. */
    float s[SKETCH_K]; /* Sketch S x of the model when the averaging window began. */
    /* Sum of |b - a|^2, the squared distance of the two replicas, over this peer's edges when the
     * averaging window began. */
    double local2;
    /* at: the current averages m, u and q. before[0] and before[1]: these averages after the last
     * and the second-last job that mixed with a neighbour. */
    struct sketch_average at, before[2];
    /* Number of exchanges mixed in the current averaging window since the last call of
     * sketch_beat(). */
    size_t mixed;
    /* Number of jobs of the current averaging window that mixed with at least one neighbour. */
    uint32_t beats;
    uint32_t n_beats; /* K: number of exchanges per edge after which a window of averaging ends. */
    double momentum;  /* Momentum coefficient of the averaging. 0: none. */

    /* The fields v, q_done, mean2_done and round_done describe the previous averaging window. */
    /* Squared distance of this peer's model from the mean when the previous averaging window began.
     * Negative: unknown. */
    double v;
    double q_done; /* Mean of |x|^2 over all peers, from the previous averaging window. */
    /* Squared norm of the mean sketch, from the previous averaging window. 0: unknown. */
    double mean2_done;
    uint64_t round_done; /* Step counter when the previous averaging window began. */

    struct sketch_figures figures;
    /* Codecs of sketch messages: uncompressed, and with four bits per element. */
    struct compress *raw, *fine;
};

/* Sketch state of one edge. a: replica of this peer's average m. b: replica of the neighbour's
 * average. */
struct sketch_pair
{
    float a[SKETCH_K], b[SKETCH_K];
    uint32_t window; /* Number of the averaging window to which the replicas belong. */
    /* Number of exchanges committed on this edge in the current averaging window. */
    uint32_t round;
    struct tree_aggregation_pair survey;
};

/* A message for the averaging of sketches, or for tree aggregation. Each delta can carry one such
 * message. */
struct sketch_message
{
    /* Tag that identifies the set of members, the window, and the round of the edge in that
     * window. In a message of tree aggregation the tag has other fields (sketch.c). 0: there is
     * no message. */
    uint64_t tag;
    /* Averages u and q (see the top of this file). In a message of tree aggregation: sum of squared
     * distances, and sum of squared norms. */
    float u, q;
    /* Number of bytes of the encoded average m, including one byte that names the encoding. m is
     * encoded as its difference from a replica. */
    size_t n;
    uint8_t bytes[SKETCH_BYTES_MAX];
};

/* Initialises the estimate for models of `dim` trained parameters. All peers of a run derive the
 * same matrix S from the run's seed. Returns 0 or -ENOMEM. */
int sketch_init(struct sketch *k, uint64_t run_seed, size_t dim);
void sketch_close(struct sketch *k);

struct state; /* Reader or writer of a checkpoint, defined in nn/math/state.h. */
/* Saves the estimate to a checkpoint, or restores it, as a section of its own. The sketch state of
 * each edge (struct sketch_pair) is saved with the edge. */
void sketch_state(struct sketch *k, struct state *s);

/* Computes the sketch S x. Cost: one hash per element, O(dim). */
void sketch_project(const struct sketch *k, const float *x, float out[SKETCH_K]);

/* Updates the estimate after a job has mixed. x: the model after mixing. O(dim) if an averaging
 * window begins, else O(SKETCH_K). */
void sketch_beat(struct sketch *k, const float *x, const struct sketch_moment *now);

/* Initialises the state of an edge, so that the next sketch on this edge is uncompressed. The
 * caller sets the edge's place in the spanning trees with tree_aggregation_pair_place(). */
void sketch_pair_init(struct sketch_pair *p);
/* Initialises the state of an edge that is reset. The edge keeps its place in the spanning
 * trees. */
void sketch_pair_reset(struct sketch_pair *p);

/* Writes the sketch message for the next exchange of an edge. Its tag is 0 if there is nothing to
 * send. */
void sketch_put(struct sketch *k, struct sketch_pair *p, struct sketch_message *out);

/* Returns the order key of the time of this call. A distance with a larger key (own_begun) comes
 * from a window that begins after this call. anew: true if the next call of sketch_beat() begins a
 * window. */
uint64_t sketch_begun(const struct sketch *k, bool anew);

/* Records that the model was replaced by another peer's model of a later round. This peer sends no
 * report for tree-aggregation windows that began in the skipped rounds. */
void sketch_passed_over(struct sketch *k);
/* Returns whether a received sketch message is valid for sketch_mix(). Callable from any thread. */
bool sketch_valid(const struct sketch *k, const struct sketch_message *m);

/* Mixes this peer's averages with those of the neighbour, after both sketch messages of an exchange
 * have arrived. w: mixing weight of the edge. If the messages belong to different windows, this
 * peer becomes disturbed (see the top of this file) and stops averaging. */
void sketch_mix(struct sketch *k, struct sketch_pair *p, double w, const struct sketch_message *own,
                const struct sketch_message *other);

/* Returns a bound of the rounding error of float32 in a relative distance, if n_pairs neighbours
 * correct a model in each round. */
double sketch_rounding(size_t n_pairs);

/* Returns the number of bytes that a sketch with four bits per element adds to a delta. */
size_t sketch_nominal(const struct sketch *k);
/* Returns the number of bytes that a report or result of tree aggregation adds to a delta. */
size_t sketch_word_bytes(const struct sketch *k);

#endif
