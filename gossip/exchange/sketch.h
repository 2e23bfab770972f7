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
 * 4-bit code, it was 14 % low on a ring of 8.) The averaging is accelerated by a
 * momentum term, as in second-order diffusion (Muthukrishnan, Ghosh, Schultz
 * 1998), which takes about the square root of the rounds. K goes by the graph's
 * spectral gap: too few exchanges, and a part of each peer's own distance stays in m.
 *
 * All that holds while everybody exchanges with every neighbour in every round, among
 * the same members. One exchange that is missing, and the sums are no longer those of
 * the models, nor is the moment one moment. So who misses one, skips a round, sees
 * other members or runs without lock step is *disturbed*, for good:
 *
 *   undisturbed --an exchange, round or member missing; a word of a survey--> disturbed
 *   averages by gossip                                                   survey (survey.h)
 *
 * It no longer averages but takes part in surveys, which need no exchange in
 * particular. Its neighbours learn of it with the very exchange that would have
 * brought them a wrong sum, and are disturbed, too; thus no wrong average is
 * published, and a run without faults has the figures of one that knows no surveys.
 *
 * On the wire m goes as differences against replicas, like the model: the
 * first of a window raw, then four bits an element.
 */
#ifndef GOSSIP_EXCHANGE_SKETCH_H
#define GOSSIP_EXCHANGE_SKETCH_H

#include "compress/compress.h"
#include "gossip/exchange/tree_aggregation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SKETCH_BYTES_MAX = 4 * SKETCH_K + 64 /* One encoded sketch. */
};

/* What the owner knows when a job has mixed. */
struct sketch_moment
{
    uint64_t view;                       /* Names the set of members; `place` goes with it. */
    struct tree_aggregation_place place; /* Its depth tells of hops across the graph; what survey.h
                                      * calls `pace` is filled in by mixing.h. */
    bool draining;                       /* We exchange nothing more. */
    size_t n_commits;                    /* Exchanges of this job. */
    bool anew;                           /* Begin a window now: an earlier moment is of no use. */
    struct sketch_pair *const *pair;     /* Those of all edges that have not ended. */
    size_t n_pairs;
    double gap;     /* The spectral gap of the graph, the same at all; 0: not measured. */
    bool alone;     /* No pairs because there is nobody else. */
    bool missing;   /* An edge of the graph has never been open: who is behind it has no part. */
    uint64_t round; /* The run's, with those of the consensus phase. */
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
    uint64_t own_begun;  /* Larger where a window began later; 0: there was none. */
    double own_local2;   /* local2 of that moment. */

    /* What float32 may hide of |x_i - mean| / |mean|, to be added to it as a square. 0:
     * there never was anybody else. */
    double rounding;
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

    bool disturbed;    /* Not all exchanges were in step: figures are the survey's. */
    bool beaten;       /* There was a beat, */
    uint64_t last;     /* at that round. */
    uint64_t surveyed; /* Figures are of this window of the survey; 0: of none. */
    uint64_t own_base; /* Added to rounds, so that own_begun goes on rising. */
    struct tree_aggregation survey;

    /* The open window. */
    bool open;         /* There is one. */
    bool began;        /* It began with the last beat. */
    uint64_t view;     /* The set of members; who sees another one is disturbed. */
    uint64_t round;    /* The run's round when it began. */
    uint32_t window;   /* Counts them. */
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
    uint32_t window; /* Which they are of. */
    uint32_t round;  /* Exchanges committed in that window. */
    struct tree_aggregation_pair survey;
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

struct state; /* nn/math/state.h */
/* A section of its own; pairs go with their edges. */
void sketch_state(struct sketch *k, struct state *s);

/* S x. Cost: one hash an element, O(dim). */
void sketch_project(const struct sketch *k, const float *x, float out[SKETCH_K]);

/* After the mixing of a job, x being what it left. O(dim) where a window
 * begins, else O(k). */
void sketch_beat(struct sketch *k, const float *x, const struct sketch_moment *now);

/* No window yet: the next message on this edge is raw. The place in the survey's tree
 * is the owner's to set. */
void sketch_pair_init(struct sketch_pair *p);
/* The same for an edge that begins anew; its place stays. */
void sketch_pair_reset(struct sketch_pair *p);

/* Our message of a pair's exchange; tag 0 where there is nothing to say now. */
void sketch_put(struct sketch *k, struct sketch_pair *p, struct sketch_message *out);

/* Windows that begin from now on have a larger own_begun than this; `anew`: the next
 * beat begins one. */
uint64_t sketch_begun(const struct sketch *k, bool anew);

/* The model has become another's of a later round: windows that began meanwhile are not ours to
 * report. */
void sketch_passed_over(struct sketch *k);
/* May the message be given to sketch_mix()? From any thread. */
bool sketch_valid(const struct sketch *k, const struct sketch_message *m);

/* Commit an exchange: both messages are there. Where they are not of the same
 * window, figures are the survey's from now on. */
void sketch_mix(struct sketch *k, struct sketch_pair *p, double w, const struct sketch_message *own,
                const struct sketch_message *other);

/* What float32 may hide of a relative distance where models take corrections from so many
 * neighbours. */
double sketch_rounding(size_t n_pairs);

/* Bytes that the usual message of a pair adds to a delta. */
size_t sketch_nominal(const struct sketch *k);
/* The same of a survey's report or result. */
size_t sketch_word_bytes(const struct sketch *k);

#endif
