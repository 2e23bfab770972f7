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
    uint64_t view;  /* Of the members; with it go reach and lock_step. */
    uint32_t reach; /* Hops across the graph, the same number at all peers. */
    bool lock_step;
    bool anew;                       /* Begin a window now: an earlier moment is of no use. */
    struct sketch_pair *const *pair; /* Of all edges that have not ended. */
    size_t n_pairs;
    bool alone;     /* No pairs because there is nobody else. */
    uint64_t round; /* Of the run. */
    double local2;  /* Sum of |b - a|^2 over our edges, as just mixed. */
};

struct sketch_figures
{
    double xi, relative; /* Xi and Xi / |mean|, when `round` began; or NaN. */
    uint64_t round;
    double own, own_relative; /* |x_i - mean|, later: when `own_round` began. */
    uint64_t own_round;
    uint64_t own_window; /* Counts the windows behind `own`. */
    double own_local2;   /* local2 of that moment. */
};

/* What is averaged. */
struct sketch_average
{
    float m[SKETCH_K];
    double u, q;
};

/* One peer's estimate. */
struct sketch
{
    uint64_t key; /* Of S. */
    size_t dim;
    float s[SKETCH_K];
    struct sketch_average at, before[2]; /* Now; one and two beats ago. */
    double v, q_done;                    /* Of the window before; v < 0: there was none. */
    double local2;                       /* When this window began. */
    bool open, adopted;                  /* A window is open; a later one was heard of. */
    bool began;                          /* In the last beat. */
    uint64_t view, round, round_done;
    uint32_t window;
    size_t mixed;            /* Lanes since the last beat. */
    uint32_t beats, n_beats; /* Jobs that mixed; exchanges a pair (K). */
    double momentum;
    struct sketch_figures figures;
    struct compress *raw, *fine; /* The two codecs of a pair. */
};

/* One direction pair of one edge. */
struct sketch_pair
{
    float a[SKETCH_K], b[SKETCH_K];
    uint64_t view;
    uint32_t window, round; /* Exchanges committed in that window. */
    bool through;           /* The other end has ended that window. */
};

/* What a delta carries. */
struct sketch_message
{
    uint64_t tag; /* View, window and round of the pair. 0: no sketch. */
    float u, q;
    size_t n;
    uint8_t bytes[SKETCH_BYTES_MAX];
};

/* 0 or -ENOMEM. */
int sketch_init(struct sketch *k, uint64_t run_seed, size_t dim);
void sketch_close(struct sketch *k);

/* S x. Cost: one hash an element, O(dim). */
void sketch_project(const struct sketch *k, const float *x, float out[SKETCH_K]);

/* After the mixing of a job, x being what it left. O(dim) where a window
 * begins, else O(k). */
void sketch_beat(struct sketch *k, const float *x, const struct sketch_moment *now);

void sketch_pair_init(struct sketch_pair *p);

/* Our half of a pair's exchange. */
void sketch_put(struct sketch *k, struct sketch_pair *p, struct sketch_message *out);

/* May the message be given to sketch_mix()? From any thread. */
bool sketch_valid(const struct sketch *k, const struct sketch_message *m);

/* Commit an exchange: both halves are there. Where they are not of the same
 * window, nothing is mixed and the pair starts again at both ends. */
void sketch_mix(struct sketch *k, struct sketch_pair *p, double w, const struct sketch_message *own,
                const struct sketch_message *other);

/* Bytes of a pair's usual message. */
size_t sketch_nominal(const struct sketch *k);

#endif
