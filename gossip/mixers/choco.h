/* gossip/mixers/choco.h -- Edge-CHOCO's numbers: mix, and encode the difference.
 *
 * CHOCO-SGD (Koloskova, Stich, Jaggi 2019, algorithm 2) with its state per
 * edge. One job of a peer, on the worker:
 *
 *   plan    (loop thread) which edges commit, which begin anew, which send
 *   mix     per committing edge: a += q_own, b += q_theirs; then, in one pass,
 *           x += sum_e gamma_e w_e (b_e - a_e), in the order of the edges
 *   ...     the owner measures drift and runs its H local steps on x
 *   encode  q = Q(x - a), once per distinct a
 *   finish  (loop thread) the edges' protocol state moves on
 *
 * Edges in the same state share one a, a `struct half`, and one encoded delta.
 * An edge that falls out of step is split off with a copy of its own:
 *
 *   e1 -+                    e1 ---> half (a)       committed: a += q
 *   e2 -+-> half (a)   =>    e2 -/
 *   e3 -+                    e3 ---> half (copy)    still waits
 *
 * All of it is about the trained parameters, a prefix of x. Running statistics
 * lie behind them and go in front of a delta's message (statistics.h).
 *
 * Another mixer (mixer.h) has the same jobs, halves and replicas; its deltas
 * of training are updates of the model, which it applies and encodes itself.
 */
#ifndef GOSSIP_MIXERS_CHOCO_H
#define GOSSIP_MIXERS_CHOCO_H

#include "compress/compress.h"
#include "gossip/exchange/edge.h"
#include "gossip/mixers/mixer.h"
#include "gossip/mixers/statistics.h"

enum {
    CHOCO_HASH_EVERY = 64 /* Rounds between comparisons of the replicas. */
};

struct half
{
    float *v;
    float *memory; /* Of the average mixer with error feedback, else NULL. */
    uint32_t refs;
    struct half *next; /* In the list of those in use, or of the free ones. */
};

/* How one edge takes part in a job. Filled by the owner for choco_plan(). */
struct choco_turn
{
    struct edge *edge;
    bool commit;     /* edge_ready(). */
    bool encode;     /* Make our next delta. */
    uint32_t codec;  /* enum delta_codec, or a rung. */
    bool sketch;     /* The delta carries a sketch, */
    bool statistics; /* and the values of running statistics. */
    /* The rest is the job's: copies, so that a reset of the edge meanwhile
     * (loop thread) and the worker never meet. */
    uint64_t epoch, round;
    struct edge_sent ours;  /* Committing: our delta, */
    struct edge_got theirs; /* and theirs. */
    struct half *half;      /* Our a for this job, */
    struct half *source;    /* which begins as a copy of this one, or NULL. */
    struct packet *made;    /* Encoding: the payload of `sent`. */
    struct edge_sent sent;
    bool fresh;      /* b begins anew at x0, */
    bool fresh_half; /* and this turn sets the half to x0. */
    bool applies;    /* The one turn of a group that applies `ours`. */
    bool encodes;    /* The one turn of a group that encodes. */
    double w;
};

/* One neighbour's term of the mixing pass. */
struct choco_term
{
    const float *a, *b;
    float coefficient; /* gamma w */
    double d2;         /* Out: |b - a|^2 */
    struct choco_turn *turn;
};

/* What the average mixer keeps (average.h): dim floats each. */
struct average
{
    float *u;        /* x before the local steps of this job. */
    float *withheld; /* Of our updates, what is not in x; or NULL. */
    float *sum;      /* Scratch: of decoded updates. */
    size_t n_sent;   /* Different updates that the last job encoded. */
    double lazy;     /* 1/2 where weights are halved, else 1. */
};

struct choco
{
    size_t dim;      /* Trained parameters. */
    size_t n_floats; /* The whole model: running statistics lie behind them. */
    const struct mixer *mixer;
    bool remembers; /* Error feedback of a mixer whose deltas are updates. */
    struct average average;
    float *x;                             /* The model: n_floats. */
    float *x0;                            /* The run's initial model: where replicas begin. */
    struct compress *codec[DELTA_CODECS]; /* NULL: not of this run. */
    struct statistics statistics;
    struct sketch sketch;
    struct packet_pool pool;
    struct half *halves, *free_halves;
    double fixed_gamma; /* 0: auto. */
    uint64_t draw_key;
    size_t cap; /* Longest payload of any codec. */

    struct choco_turn *turn; /* Room for cap_turns: choco_turns(). */
    struct choco_term *term;
    size_t n_turns, cap_turns;
    uint64_t run_round;
    uint32_t degree, settled;
    double local2; /* Sum of |b - a|^2 over the edges of the last mixing. */
    bool diverged; /* x - a is not finite: nothing was encoded. */
};

struct choco_config
{
    const struct segment *segments; /* Trained ones first. */
    size_t n_segments;
    const char *spec[DELTA_CODECS]; /* NULL: none in this run. */
    double fixed_gamma;
    uint64_t run_seed, draw_key;
    const struct mixer *mixer; /* NULL: CHOCO. */
    /* Where the mixer's deltas are updates; CHOCO has it built in. */
    bool error_feedback;
    bool lazy; /* With half the weights: on any graph that may not be complete. */
};

/* Every how many deltas does something of so many bytes go along, so that it has
 * at most a twentieth of the bytes of messages of `message` bytes? So often do
 * sketches and statistics, which tell of a training and do not steer it. */
uint64_t choco_every(size_t n_bytes, size_t message);

/* Allocates x and x0 too, both zero: the owner writes the run's initial model
 * to both. 0, -EINVAL or -ENOMEM (then nothing is left open). */
int choco_init(struct choco *c, const struct choco_config *config);
void choco_close(struct choco *c);

/* An edge of this run; closing gives its replicas back. Not while a job that
 * uses the edge runs. */
int choco_edge_open(struct choco *c, struct edge *e, const uint8_t self[WIRE_ID_BYTES],
                    const uint8_t other[WIRE_ID_BYTES]);
void choco_edge_close(struct choco *c, struct edge *e);

/* What our deltas of this job will say. */
struct choco_intent
{
    uint64_t run_round;
    uint32_t degree, settled;
};

/* Make room for n turns, zeroed. 0 or -ENOMEM. */
int choco_turns(struct choco *c, size_t n);

/* Loop thread, after choco_turns(): fill c->turn[0..n) (edge, commit, encode,
 * codec, sketch, statistics) in neighbour order, then call this. 0, or -ENOMEM: there is no
 * job, and nothing but closing may follow. */
int choco_plan(struct choco *c, const struct choco_intent *intent);

/* Worker: the two passes. run_round is that of the state after local steps. */
void choco_mix(struct choco *c);
void choco_encode(struct choco *c);

/* Loop thread, after the job: advance what was committed, hand out what was
 * encoded (e->cur), drop what a reset overtook. */
void choco_finish(struct choco *c);

/* May a payload of this codec be stored in an edge and committed? From any
 * thread. */
bool choco_valid(const struct choco *c, uint32_t codec, const uint8_t *payload, size_t len);

/* x_hat += C of a valid payload, whatever statistics it has in front. */
void choco_apply(const struct choco *c, uint32_t codec, const uint8_t *payload, size_t len,
                 float *x_hat);

/* Is a delta of this codec an update of the model (mixer.h)? Else it corrects a
 * replica. */
static inline bool choco_is_update(const struct choco *c, uint32_t codec)
{
    return c->mixer->updates && codec == DELTA_RUN;
}

/* Have all edges been told the same? Else there is more than one half. */
static inline bool choco_in_step(const struct choco *c)
{
    return c->halves == NULL || c->halves->next == NULL;
}

/* x += coefficient (b - a) over n terms, block by block; fills in their d2. */
void choco_mix_terms(float *x, size_t dim, struct choco_term *term, size_t n);

#endif
