/* gossip/mixers/mixing.h -- one peer's side of all its exchanges: what every mixer needs.
 *
 * The model x, an edge to each neighbour with its transaction (gossip/exchange/edge.h),
 * replicas, codecs, packets, running statistics and the drift sketch. What a delta
 * means is the mixer's business (mixer.h). One job of a peer:
 *
 *   begin, join, plan  (loop thread) which edges commit, begin anew, get a delta
 *   mix     (worker)   a and b of committing edges, then the mixer moves x
 *   ...                the owner measures drift and runs its H local steps on x
 *   encode  (worker)   the mixer's deltas, once for each distinct replica and codec
 *   finish             (loop thread) the edges' protocol state moves on
 *
 * Between plan and finish the worker owns x, the replicas and the tasks; the loop
 * thread may check what arrives (mixing_valid) and store it, reset edges, and nothing
 * else. Tasks hold copies of what they need, so that a reset meanwhile and the worker
 * never meet.
 *
 *   x:  [ dim trained parameters | running statistics ]    n_floats in all
 *
 * Mixers, replicas and the sketch are about the trained ones. Statistics go in front
 * of a delta's message (statistics.h): payload = [statistics][message of the mixer].
 */
#ifndef GOSSIP_MIXERS_MIXING_H
#define GOSSIP_MIXERS_MIXING_H

#include "compress/compress.h"
#include "gossip/exchange/edge.h"
#include "gossip/mixers/correction.h"
#include "gossip/mixers/mixer.h"
#include "gossip/mixers/replica.h"
#include "gossip/mixers/statistics.h"

enum {
    MIXING_HASH_EVERY = 64 /* Rounds between comparisons of the replicas. */
};

/* What one edge does in a job. */
struct mixing_task
{
    struct edge *edge;
    bool commit;           /* The exchange is ready: apply both deltas. */
    bool encode;           /* Make our next delta. */
    uint32_t codec;        /* That delta's: enum delta_codec, or a rung. */
    bool sketch;           /* It carries a sketch; */
    bool statistics;       /* it carries the values of running statistics. */
    uint32_t degree, more; /* As struct mixing_moment's. */

    /* Filled by mixing_plan(). */
    uint64_t epoch, round;   /* The edge's, when the job was planned. */
    struct edge_sent ours;   /* Committing: our delta, */
    struct edge_got theirs;  /* and theirs. */
    struct replica *replica; /* Our a for this job, */
    struct replica *source;  /* which begins as a copy of this one, or NULL. */
    struct packet *made;     /* Encoding: the payload of `sent`. */
    struct edge_sent sent;   /* Its head is the worker's result. */
    bool fresh;              /* b begins anew at x0. */
    bool fresh_replica;      /* This task sets the replica to x0. */
    bool applies;            /* Among those that commit the same `ours`, it applies it. */
    bool encodes;            /* Among those that share `made`, it encodes it. */

    float momentum;  /* Committing: of this exchange. */
    double w;        /* Set by mixing_mix(): the edge's weight in this exchange. */
    bool distrusted; /* Set by the mixer: what the other end said is not to be believed, */
    bool suspect;    /* as it is what a liar would say for long (trust.h). */
};

/* What our deltas of a job announce. */
struct mixing_announcement
{
    uint64_t run_round;  /* That of the state after the job's local steps. */
    uint64_t checkpoint; /* When one is due; 0: none is. */
    uint32_t degree, settled;
    uint64_t pace;     /* As struct wire_delta's. */
    uint32_t momentum; /* For exchanges of the last phase, as struct wire_delta's; 0: without. */
    uint64_t clean;    /* As struct wire_delta's; for such exchanges, too. */
};

struct mixing
{
    size_t dim, n_floats;
    const struct mixer *mixer;
    void *state;   /* The mixer's own. */
    float *x;      /* The model, n_floats values. */
    bool borrowed; /* x is memory of the owner, which mixing_close() does not free. */
    /* Segments of the model, trained ones first. Borrowed from the owner. NULL and 0: the owner
     * holds no segment in 16 bits. */
    const struct segment *segments;
    size_t n_segments;
    /* Buffer for the model rounded to its segments' types (nn/math/half.h). NULL: no segment has
     * 16 bits. */
    float *rounded;
    float *x0;    /* The run's initial model: where replicas begin. */
    bool fetched; /* mixing_take_model() has replaced x. The mixer may clear it. */
    struct compress *codec[DELTA_CODECS]; /* NULL: not of this run. */
    struct statistics statistics;
    struct sketch sketch;
    struct packet_pool packets;
    struct replica_pool replicas;
    double fixed_gamma;                      /* 0: auto. */
    uint32_t tolerate;                       /* So many neighbours may lie (clip.h); 0: none. */
    uint32_t n_barred;                       /* So many of those have no part in this job. */
    double pull;                             /* As tolerate, in own steps; 0: no limit. */
    uint64_t draw_key;                       /* For the codecs' random streams. */
    size_t cap;                              /* Longest payload of any codec, in bytes. */
    uint64_t sketch_every, statistics_every; /* Deltas of training. */
    uint64_t survey_pace;                    /* The same for a survey's words. */

    struct mixing_task *task; /* Room for cap_tasks. */
    struct correction *term;  /* Scratch of a mixer's mix, as many. */
    size_t n_tasks, cap_tasks;
    struct mixing_announcement announced;
    double local2;    /* Sum of |b - a|^2 over the edges of the last mixing. */
    double way2;      /* |x - x0|^2, as it was in one of the last mixings, */
    uint64_t n_mixed; /* of which there have been so many. */
    double step2;     /* With pull: |local steps|^2, a moving average; 0: none yet. */
    bool settling;    /* What commits is of the last phase, or of its eve. */
    bool diverged;    /* What was to be encoded is not finite: nothing goes out. */

    /* A delta that is encoded in parts while local steps go on, its end first. */
    bool by_layer;
    size_t part_least;
    struct
    {
        struct mixing_task
            *of;  /* The job's first delta that is encoded; NULL: none can be in parts. */
        size_t n; /* So many last bytes of the room in its packet are there. */
        bool begun, dropped;
    } parts;
};

struct mixing_config
{
    const struct segment *segments; /* Trained ones first. */
    size_t n_segments;
    const char *spec[DELTA_CODECS]; /* NULL: none in this run. */
    float *x; /* Room for the model that outlives the mixing; NULL: it is allocated. */
    double fixed_gamma;
    uint32_t tolerate;
    double pull;
    uint64_t run_seed, draw_key;
    const struct mixer *mixer; /* NULL: mixer_all[0]. */
    /* For mixers whose deltas are updates: is what a message leaves out remembered,
     * and is everybody everybody's neighbour at all times? */
    bool error_feedback, complete;
    double step; /* For those whose deltas are whole models: that of training, over 0. */
    /* Deltas of training are compressed layer by layer, and may be made in parts, of so many bytes at
     * least; 0: of what is worth a message. */
    bool by_layer;
    size_t part_least;
};

/* ---- opening ---- */

/* Allocates x0 too, and x where it is given none, both zero: the owner writes the run's initial model
 * to x0 and calls mixing_start(). 0, -EINVAL or -ENOMEM (then nothing is left open). */
int mixing_init(struct mixing *m, const struct mixing_config *config);
void mixing_close(struct mixing *m);

/* The model becomes the run's initial one. */
void mixing_start(struct mixing *m);

/* The model becomes that of n_floats host floats at `bytes`, any alignment. Where
 * it is not finite or has improper statistics: -EINVAL, and x is x0. */
int mixing_take_model(struct mixing *m, const uint8_t *bytes);

size_t mixing_model_bytes(const struct mixing *m);
/* Returns the model at the precision of its owner: x itself, or x with its 16-bit segments
 * rounded. The result is valid until the next call. Published figures and copies that are sent
 * use this model. While a job runs, only the thread of the job may call this function.
 * O(n_floats) if it rounds, else O(1). */
const float *mixing_held_model(const struct mixing *m);
/* Returns |a - b|^2 of two vectors of `dim` floats, each first rounded to the types of the
 * segments. O(dim). */
double mixing_held_dist2(const struct mixing *m, const float *a, const float *b);

/* Copies the result of mixing_held_model() to `out`, which has room for mixing_model_bytes(). */
void mixing_copy_model(const struct mixing *m, struct packet *out);

/* An edge of this run; closing gives its replicas back. Not while a job that
 * uses the edge runs. 0 or -ENOMEM. */
int mixing_edge_open(struct mixing *m, struct edge *e, const uint8_t self[WIRE_ID_BYTES],
                     const uint8_t other[WIRE_ID_BYTES]);
void mixing_edge_close(struct mixing *m, struct edge *e);

/* ---- a restart (nn/math/state.h), between jobs ---- */

/* The model and all that is no edge's. Read into what mixing_init() has opened for the same
 * run; where reading fails it is good for closing only. */
void mixing_state(struct mixing *m, struct state *s);

/* The edges e[0..n) with their replicas and deltas, and what they share. Read into edges that
 * mixing_edge_open() has opened, to the same members in the same order. */
void mixing_edges_state(struct mixing *m, struct edge *const *e, size_t n, struct state *s);

/* ---- a job, on the loop's thread ---- */

/* What the owner knows when it plans a job. */
struct mixing_moment
{
    uint64_t round, n_rounds; /* The run's: done, and in all. */
    bool lock_step;
    bool settling;  /* The last phase. */
    bool draining;  /* No new deltas. */
    bool barred;    /* The other end of the edge has lied: nothing is exchanged with it now. */
    uint32_t codec; /* For deltas of training: DELTA_RUN or a rung. */

    /* Where the graph changes by round, for the edge that joins. */
    uint64_t pass; /* Rounds of a pass; 0 or 1: the graph stands still. */
    bool idle;     /* It is not its turn: no new delta. */
    bool whole;    /* In the last phase: the other end is in it, too, and models go whole. */
    uint32_t degree, more; /* What the delta announces; degree 0: the job's, as all edges'. */
};

/* A new job, without tasks yet, with room for n of them. 0 or -ENOMEM. */
int mixing_begin(struct mixing *m, size_t n);

/* Add what edge e has to do, if anything. Edges join in neighbour order: deltas
 * are applied in that order, never in that of their arrival. */
void mixing_join(struct mixing *m, struct edge *e, const struct mixing_moment *now);

/* How many exchanges the job commits. */
size_t mixing_commits(const struct mixing *m);

/* After the last task: share and split replicas, take packets. 0, or -ENOMEM: there
 * is no job, and nothing but closing may follow. */
int mixing_plan(struct mixing *m, const struct mixing_announcement *says);

/* After the job: advance what was committed, hand out what was encoded (e->cur),
 * drop what a reset overtook. */
void mixing_finish(struct mixing *m);

/* ---- a job, on the worker ---- */

void mixing_mix(struct mixing *m);
/* After mixing: the sketch's beat. Its local2, n_commits and pace are filled in here. */
void mixing_beat(struct mixing *m, struct sketch_moment *now);
/* After local steps, with pull: they went so far, squared. */
void mixing_moved(struct mixing *m, double step2);
void mixing_encode(struct mixing *m);

/* During the last of the local steps: x[from..] of the trained parameters is as the steps will leave
 * it. Encodes what can be; returns how many bytes of the delta there are by now, 0 where it is not made
 * in parts. They stand still until mixing_finish(). */
size_t mixing_part(struct mixing *m, size_t from);
/* x was changed after all: what was encoded is of no use. */
void mixing_drop_parts(struct mixing *m);

/* While the job runs, on the loop's thread: bytes [from, to) of the delta's end, counted backwards, of
 * which mixing_part() has told. */
struct bytes mixing_parts(const struct mixing *m, size_t from, size_t to);
/* Is this task's delta the one? */
bool mixing_has_parts(const struct mixing *m, const struct mixing_task *t);
size_t mixing_part_least(
    const struct mixing *m); /* A part of fewer bytes is not worth a message. */

/* ---- questions ---- */

/* May this payload, or sketch, be stored in an edge and committed? From any thread. */
bool mixing_valid(const struct mixing *m, uint32_t codec, const uint8_t *payload, size_t n);
bool mixing_sketch_valid(const struct mixing *m, const struct sketch_message *sketch);

const struct sketch_figures *mixing_figures(const struct mixing *m);
/* Has every exchange been in step since the run began? Else figures are a survey's. */
bool mixing_undisturbed(const struct mixing *m);
/* Windows that begin from now on have a larger own_begun than this; `anew`: the next
 * beat begins one. */
uint64_t mixing_begun(const struct mixing *m, bool anew);
/* Did a drift window begin with the last beat? */
bool mixing_window_began(const struct mixing *m);

/* The largest |x - a|^2 that the deltas of this job have left. */
double mixing_lag2(const struct mixing *m);

/* As struct mixer's optional calls. */
void mixing_settle(struct mixing *m, bool apart);
bool mixing_lags(const struct mixing *m, const struct edge *e, double most);
const float *mixing_sent(const struct mixing *m);

/* Every how many deltas does something of so many bytes go along, so that it has
 * at most a twentieth of the bytes of messages of `message` bytes? So often do
 * sketches and statistics, which tell of a training and do not steer it. */
uint64_t mixing_every(size_t n_bytes, size_t message);

/* ---- for mixers ---- */

/* The mixer's part of a task's payloads: ours and theirs that commit, and what was made. */
struct bytes mixing_own(const struct mixing *m, const struct mixing_task *t);
struct bytes mixing_other(const struct mixing *m, const struct mixing_task *t);
struct bytes mixing_made(const struct mixing *m, const struct mixing_task *t);

/* The round of the delta that the task makes. */
uint64_t mixing_edge_round(const struct mixing_task *t);

/* Encode x - x_hat, dim floats each, by the task's codec, for it and all that share
 * its packet. Sets m->diverged where the result is not finite. */
void mixing_put(struct mixing *m, struct mixing_task *t, const float *x, const float *x_hat);

/* A mixer's `valid` and `apply` where messages are what mixing_put() writes: does it
 * decode, and v += the decoded difference. */
bool mixing_decodes(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n);
void mixing_add(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n, float *v);

/* Have all edges been told the same? Else there is more than one replica. */
bool mixing_in_step(const struct mixing *m);

#endif
