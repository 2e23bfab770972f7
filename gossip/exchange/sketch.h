/* gossip/exchange/sketch.h -- the consensus distance, estimated with no server.
 *
 *   Xi^2 = (1/n) sum_i |x_i - mean|^2
 *
 * Each peer projects its model to a count sketch s_i = S x_i (S: k x d, one
 * random sign a column, from the run's seed; Charikar, Chen, Farach-Colton
 * 2002), so that |s_i - s_j|^2 estimates |x_i - x_j|^2 with a relative rms
 * error of sqrt(2/k): 9 % at k = 256. Averages are found by gossip inside the
 * edge transactions, in *windows* of K exchanges:
 *
 *   window w      begins: s = S x, m = s, q = |x|^2, u = v of window w - 1
 *     K times     m, u and q move towards the neighbours'
 *   ends:         v = |s - m|^2: this peer's own squared distance when w began
 *                 Xi^2 = u: the mean of v, from when w - 1 began
 *
 * So a figure is of a moment 2K exchanges ago, and right for that moment. (The
 * obvious alternative, dynamic average consensus, m += s(now) - s(before), is
 * never late and always low: the newest step of a peer is in its own m already
 * and in nobody else's. Where models mix as fast as sketches do, as with a
 * 4-bit code, it was 14 % low on a ring of 8.)
 *
 * In lock step the averaging is accelerated by a momentum term, as in
 * second-order diffusion (Muthukrishnan, Ghosh, Schultz 1998), which takes
 * about the square root of the rounds.
 *
 * Exchanges are equal and opposite, so the sums of m, u and q over the peers
 * hold through any aborted or repeated one. (Not quite where in lock step a
 * peer misses a beat: its neighbours' momentum has no opposite. The next
 * window makes that good.) Only peers in the same window of the same view of
 * the members mix. A window ends for a peer once each of its pairs has had its
 * K exchanges, or its other end is through already; one of less than K beats
 * gives no figures. Who is two windows behind gives up and joins the latest.
 *
 * On the wire m goes as differences against replicas, like the model: the
 * first of a window raw, then four bits an element.
 */
#ifndef GOSSIP_EXCHANGE_SKETCH_H
#define GOSSIP_EXCHANGE_SKETCH_H

#include "compress/compress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SKETCH_K = 256,
    SKETCH_BYTES_MAX = 4 * SKETCH_K + 64 /* One encoded sketch. */
};

/* What the owner knows when a job has mixed. */
struct sketch_moment
{
    uint64_t view;                   /* Names the set of members; reach and lock_step go with it. */
    uint32_t reach;                  /* Hops across the graph, the same number at all peers. */
    bool lock_step;                  /* All mix once a round: then averaging may be accelerated. */
    bool anew;                       /* Begin a window now: an earlier moment is of no use. */
    struct sketch_pair *const *pair; /* Those of all edges that have not ended. */
    size_t n_pairs;
    bool alone;     /* No pairs because there is nobody else. */
    uint64_t round; /* The run's. */
    double local2;  /* Sum of |b - a|^2 over our edges, as just mixed. */
};

struct sketch_figures
{
    /* Xi and Xi / |mean| as they were when `round` began. NaN before the first figure, and
     * the second also where the sketches say that |mean|^2 is not above 0. */
    double xi, relative;
    uint64_t round;

    /* |x_i - mean| and the same over |mean|, known one window earlier: when `own_round`
     * began. */
    double own, own_relative;
    uint64_t own_round;
    uint64_t own_window; /* Counts the windows that gave such a figure. */
    double own_local2;   /* local2 of that moment. */
};

/* What a window averages (m, u and q above). */
struct sketch_average
{
    float m[SKETCH_K];
    double u, q;
};

/* One peer's estimate. */
struct sketch
{
    uint64_t key; /* Names S. */
    size_t dim;   /* Floats of a model. */

    /* The open window. */
    bool open;         /* There is one. */
    bool began;        /* It began with the last beat. */
    bool adopted;      /* The others are two ahead or more: join theirs at the next beat. */
    uint64_t view;     /* The set of members; another one begins another window. */
    uint64_t round;    /* The run's round when it began. */
    uint32_t window;   /* Counts them within a view. */
    float s[SKETCH_K]; /* S x of that moment. */
    double local2;     /* sketch_moment's, of that moment. */
    struct sketch_average at, before[2]; /* Now; one and two beats ago. */
    size_t mixed;                        /* Exchanges since the last beat. */
    uint32_t beats;                      /* Jobs in this window that mixed. */
    uint32_t n_beats;                    /* K: so many make a figure. */
    double momentum;                     /* 0 where averaging is plain. */

    /* What is left of the window before. */
    double v;            /* This peer's squared distance when that began; under 0: not known. */
    double q_done;       /* The mean of |x|^2 that it found. */
    uint64_t round_done; /* Its `round`. */

    struct sketch_figures figures;
    struct compress *raw, *fine; /* The two codecs of a pair. */
};

/* The replicas of both ends' averages on one edge: a is ours as they have it, b theirs. */
struct sketch_pair
{
    float a[SKETCH_K], b[SKETCH_K];
    uint64_t view; /* Which window they are of. */
    uint32_t window;
    uint32_t round; /* Exchanges committed in that window. */
    bool through;   /* The other end has ended that window. */
};

/* What a delta carries. */
struct sketch_message
{
    uint64_t tag; /* View, window and round of the pair. 0: no sketch. */
    float u, q;
    size_t n; /* Bytes: how m is coded, and its difference from the replica. */
    uint8_t bytes[SKETCH_BYTES_MAX];
};

/* All peers of a run have the same S, by its seed. 0 or -ENOMEM. */
int sketch_init(struct sketch *k, uint64_t run_seed, size_t dim);
void sketch_close(struct sketch *k);

/* S x. Cost: one hash an element, O(dim). */
void sketch_project(const struct sketch *k, const float *x, float out[SKETCH_K]);

/* After the mixing of a job, x being what it left. O(dim) where a window
 * begins, else O(k). */
void sketch_beat(struct sketch *k, const float *x, const struct sketch_moment *now);

/* No window yet: the next message on this edge is raw. */
void sketch_pair_init(struct sketch_pair *p);

/* Our message of a pair's exchange; tag 0 where there is nothing to say now. */
void sketch_put(struct sketch *k, struct sketch_pair *p, struct sketch_message *out);

/* May the message be given to sketch_mix()? From any thread. */
bool sketch_valid(const struct sketch *k, const struct sketch_message *m);

/* Commit an exchange: both messages are there. Where they are not of the same
 * window, nothing is mixed and the pair starts again at both ends. */
void sketch_mix(struct sketch *k, struct sketch_pair *p, double w, const struct sketch_message *own,
                const struct sketch_message *other);

/* Bytes that the usual message of a pair adds to a delta. */
size_t sketch_nominal(const struct sketch *k);

#endif
