/* gossip/mixers/mixing.h -- the exchange state of one peer, and the part of a job that all mixers
 * share.
 *
 * struct mixing holds the model x, replicas, codecs, packets, running statistics, and the sketch
 * that estimates the consensus distance. The edges (gossip/exchange/edge.h) belong to the caller
 * and join each job. The mixer (mixer.h) defines what a delta means. A peer's own replica on an
 * edge is `a`, and its replica of the neighbour's model is `b`.
 *
 * A job is one peer's work for one round:
 *
 *   call                thread   effect
 *   begin, join, plan   loop     decides which edges commit, reset or encode a delta
 *   mix                 worker   updates the replicas of committing edges; the mixer moves x
 *   (caller)            worker   measures the consensus distance, runs H local steps on x
 *   encode              worker   the mixer encodes one delta per distinct replica and codec
 *   finish              loop     advances the protocol state of the edges
 *
 * Between plan and finish the worker owns x, the replicas and the tasks. During that time the
 * loop thread may only validate and store received deltas (mixing_valid()) and reset edges. Tasks
 * hold copies of the edge state that they need, so a reset does not race with the worker.
 *
 *   x:  [ dim trained parameters | running statistics ]    n_floats in all
 *
 * Mixers, replicas and the sketch use the trained parameters only. Running statistics precede
 * the message of a delta (statistics.h): payload = [statistics][message of the mixer].
 *
 * A trainer may have companion vectors of dim floats, which are exchanged and mixed as x is
 * (--momentum-kind averaged: one with SGD, two with Adam). Replicas and messages then contain all
 * vectors. With two companion vectors:
 *
 *   replica:  [ dim floats of the model | dim floats of companion 0 | dim floats of companion 1 ]
 *   message:  [ n: 4 bytes, little-endian | companion 0, n bytes ]
 *             [ n: 4 bytes, little-endian | companion 1, n bytes ][ model ]
 *
 * Each vector has its own encoder, so a sparse codec selects a share of each. The step size gamma,
 * the outlier filter and all distances depend on the model only, and the companions move with the
 * same step sizes. Deltas with codec DELTA_FINAL contain the model only, because the consensus
 * phase has no local steps. The companions move only if both deltas of an exchange contain them.
 *
 * The companion of --momentum-kind tracking is conserved (struct trainer): its sum over the peers
 * must not change if a peer dies, either. Each edge then stores its flow, the sum of the changes by
 * its exchanges. Both ends add opposite values, so the two flows of an edge are opposite. If an
 * edge is reset or closed, each end that is left subtracts its flow from its companion.
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
    /* Number of exchanges of an edge from one comparison of the replicas' hashes to the next. */
    MIXING_HASH_EVERY = 64,
    MIXING_COMPANIONS = 2 /* Largest number of companion vectors. */
};

/* The work of one edge in a job, which is one peer's work for one round. */
struct mixing_task
{
    struct edge *edge;
    /* True: the own delta and the neighbour's delta are present, and this job applies both. */
    bool commit;
    bool encode; /* True: this job makes the edge's next delta. */
    /* Codec of the delta to encode: an enum delta_codec, or DELTA_RUNG plus a level of --compress
     * auto. */
    uint32_t codec;
    bool sketch;     /* True: the delta to encode carries a sketch. */
    bool statistics; /* True: the delta to encode carries the running statistics. */
    /* Values of the fields `degree` and `more` in the header of the delta to encode, from which
     * both ends compute the mixing weight (struct wire_delta). degree 0: the degree in struct
     * mixing_announcement is used. */
    uint32_t degree, more;

    /* The fields from here to `encodes` are set by mixing_plan(). */
    uint64_t epoch, round; /* Epoch and round of the edge when the job was planned. */
    struct edge_sent ours; /* Own delta that is applied, if the task commits an exchange. */
    /* Neighbour's delta that is applied, if the task commits an exchange. */
    struct edge_got theirs;
    struct replica *replica; /* Replica of the peer's own model, as used on this edge. */
    /* Replica from which `replica` is copied before the delta is applied. NULL: no copy. */
    struct replica *source;
    struct packet *made; /* Packet for the payload of the delta to encode. */
    /* New delta, to be sent after the job. The worker fills in its header. */
    struct edge_sent sent;
    /* True: the edge is reset in this job, so its replica b of the neighbour's model becomes the
     * initial model x0. */
    bool fresh;
    /* True: this task sets the common replica of all edges that are reset in this job to the
     * initial model x0. */
    bool fresh_replica;
    /* True: this task applies the own delta for all tasks that commit the same delta to the same
     * replica. */
    bool applies;
    /* True: this task encodes the delta for all tasks that send the same payload. */
    bool encodes;
    /* True: the delta that this job makes is empty, because the model has moved too little since
     * the last delta with values (--trigger). */
    bool empty;

    /* Momentum coefficient of the exchange. 0 unless the task commits in the consensus phase. */
    float momentum;
    double w; /* Mixing weight of the edge in this exchange. Set by mixing_mix(). */
    /* Set by the mixer: the correction of this exchange was refused or looks malicious. */
    bool distrusted;
    /* Set by the mixer: several exchanges in a row of this edge looked malicious
     * (gossip/exchange/outlier_filter.h). */
    bool suspect;
};

/* Values that this peer announces to the neighbours in all deltas of a job (one peer's work for one
 * round). */
struct mixing_announcement
{
    uint64_t run_round;  /* Step counter of the run after the job's local steps. */
    uint64_t checkpoint; /* Step counter at which the next checkpoint is due. 0: none is due. */
    uint32_t degree, settled;
    /* Mean pace of local steps of all peers, in local steps per 1,000 s (`pace` in struct
     * wire_delta). */
    uint64_t pace;
    /* Momentum for exchanges of the consensus phase, in units of 1 / WIRE_MOMENTUM_ONE. 0: none. */
    uint32_t momentum;
    /* Number of the current exact averaging pass (a sequence of rounds that gives all peers the
     * exact mean), if every exchange of the pass succeeded so far, else 0. Sent as `clean` of
     * struct wire_delta. */
    uint64_t clean;
};

/* The exchange state of one peer, as far as it is common to all mixers. */
struct mixing
{
    size_t dim, n_floats; /* Number of trained parameters, and number of all floats of the model. */
    const struct mixer *mixer;
    void *state; /* Data that the mixer's open() allocated. */
    float *x;    /* The model: n_floats values. */
    /* Companion vectors, which peers exchange and mix like x, for example the momentum: dim floats
     * each, borrowed from the trainer. The first n_companions entries are used. */
    float *companion[MIXING_COMPANIONS];
    size_t n_companions;
    /* True: there is one companion vector, and each edge stores its flow, the sum of the changes of
     * the companion vector by its exchanges. */
    bool conserved;
    bool borrowed; /* True: x is memory of the caller and is not freed by mixing_close(). */
    /* Segments of the model, trained ones first. Borrowed from the caller. NULL: no segment is
     * stored with 16 bits per value. */
    const struct segment *segments;
    size_t n_segments;
    /* Buffer for the model rounded to its segments' types (nn/math/half.h). NULL: no segment has
     * 16 bits. */
    float *rounded;
    float *x0; /* Initial model of the run, n_floats values. Replicas start from it. */
    /* True: mixing_take_model() has replaced x. A mixer that reacts to this clears the flag. */
    bool fetched;
    /* Codecs of deltas, indexed by enum delta_codec. The levels of --compress auto begin at
     * DELTA_RUNG. NULL: the run does not use the codec. */
    struct compress *codec[DELTA_CODECS];
    /* Encoders of each companion vector (for example the momentum), one for each codec in codec[].
     * NULL: deltas with this codec do not contain the companion vector. */
    struct compress *companion_codec[MIXING_COMPANIONS][DELTA_CODECS];
    struct statistics statistics;
    struct sketch sketch;
    struct packet_pool packets;
    struct replica_pool replicas;
    double fixed_gamma; /* Constant consensus step size gamma. 0: adaptive. */
    /* True: during training gamma is at most gamma_semidefinite(), so that the mixing matrix has no
     * negative eigenvalue. Only for constant topologies, and if gamma is not fixed by the user. */
    bool semidefinite;
    /* Number of Byzantine neighbours to tolerate (clip.h). 0: clipping is off. */
    uint32_t tolerate;
    /* Number of neighbours that were proven Byzantine, which take no part in this job. */
    uint32_t n_barred;
    /* Limit of a peer's movement towards its neighbours in one round (clip.h), as a multiple of
     * the length of its own local steps. 0: no limit. */
    double pull;
    /* Event trigger of training deltas (choco.h): a delta is empty while the model is less than
     * `trigger` times the length of a round's local steps away from the replica. 0: no delta is
     * empty. */
    double trigger;
    uint64_t n_empty;  /* Number of empty deltas that the last job has made, over all edges. */
    uint64_t draw_key; /* Seed of the codecs' random streams. */
    /* Length in bytes of the longest payload that any codec can produce. */
    size_t cap;
    /* Each sketch_every-th training delta carries a sketch, and each statistics_every-th one the
     * running statistics. */
    uint64_t sketch_every, statistics_every;
    /* Each survey_pace-th training delta carries a message of the tree aggregation. */
    uint64_t survey_pace;

    /* Array of the n_tasks tasks of the current job. It has room for cap_tasks. */
    struct mixing_task *task;
    /* Scratch array of cap_tasks correction terms, one per neighbour, for the mixer's mix(). */
    struct correction *term;
    size_t n_tasks, cap_tasks;
    struct mixing_announcement announced;
    /* Sum of |b - a|^2, the squared distance of the two replicas, over the edges of the last
     * mixing. */
    double local2;
    /* Squared distance |x - x0|^2 of the model from the initial model, measured at every 8th
     * mixing. */
    double way2;
    uint64_t n_mixed; /* Number of calls of correction_mix() so far. */
    /* Moving average of the squared length of a round's local steps, for --max-pull and --trigger.
     * 0: no value yet. */
    double step2;
    /* True: the exchanges to commit belong to the consensus phase or to the round before it. */
    bool settling;
    /* True: a value to encode was not finite. mixing_finish() then sends no delta. */
    bool diverged;

    /* Settings and state of encoding a delta in fragments during the local steps (parts.h).
     * by_layer: the codec compresses layer by layer, so fragments are possible. part_least: least
     * size of a fragment in bytes. */
    bool by_layer;
    size_t part_least;
    struct
    {
        /* Task whose delta is encoded in fragments, the first one that the job encodes. NULL: no
         * delta can be encoded in fragments. */
        struct mixing_task *of;
        size_t n; /* Number of encoded bytes at the end of the packet's buffer. */
        bool begun, dropped;
    } parts;
};

/* Arguments of mixing_init(). Pointers are borrowed. A field without a comment has the meaning of
 * the field of the same name in struct mixing. */
struct mixing_config
{
    const struct segment *segments; /* Segments of the model, trained ones first. */
    size_t n_segments;
    /* Codec specifications, such as "topk:0.01". NULL: the run does not use the codec. */
    const char *spec[DELTA_CODECS];
    /* Memory of the caller for the model, n_floats values. NULL: mixing_init() allocates the
     * model. */
    float *x;
    /* Companion vectors, without gaps. NULL: there is no such vector. */
    float *companion[MIXING_COMPANIONS];
    bool conserved;
    double fixed_gamma;
    bool semidefinite;
    uint32_t tolerate;
    double pull, trigger;
    uint64_t run_seed, draw_key;
    const struct mixer *mixer; /* Mixer of the run. NULL: the first mixer of mixer_all[]. */
    /* Options of mixers that send model updates. error_feedback: values that a message omits are
     * sent in later messages. complete: the topology is always the complete graph. */
    bool error_feedback, complete;
    /* Step size of training exchanges, greater than 0, for mixers that send whole models. */
    double step;
    /* True: training deltas are compressed layer by layer and may be encoded in fragments of at
     * least part_least bytes. part_least 0: the default of mixing_part_least(). */
    bool by_layer;
    size_t part_least;
};

/* ---- open and close ---- */

/* Initialises *m. Allocates x0, and also x if config->x is NULL; both are zero. The caller then
 * writes the initial model to x0 and calls mixing_start(). Returns 0, -EINVAL or -ENOMEM; after
 * an error nothing is left open. */
int mixing_init(struct mixing *m, const struct mixing_config *config);
void mixing_close(struct mixing *m);

/* Copies the initial model x0 to x. */
void mixing_start(struct mixing *m);

/* Replaces x by the model in `bytes`: n_floats floats in host byte order, at any alignment.
 * Returns 0. If a value is not finite or a statistic is invalid, returns -EINVAL and sets x to
 * x0. */
int mixing_take_model(struct mixing *m, const uint8_t *bytes);

size_t mixing_model_bytes(const struct mixing *m);
/* Returns the model in its stored precision, for publication and for other peers: x itself, or a
 * copy of x with all 16-bit segments rounded. Valid until the next call. While a job runs, only the
 * worker thread may call this function. O(n_floats) if it rounds, else O(1). */
const float *mixing_held_model(const struct mixing *m);
/* Returns |a - b|^2 of two vectors of `dim` floats. Both vectors are first rounded to the number
 * formats of the segments. O(dim). */
double mixing_held_dist2(const struct mixing *m, const float *a, const float *b);

/* Copies the result of mixing_held_model() to `out`, which has room for mixing_model_bytes(). */
void mixing_copy_model(const struct mixing *m, struct packet *out);

/* mixing_edge_open() initialises edge e for this run. Returns 0 or -ENOMEM. mixing_edge_close()
 * frees the memory of the edge, drops its references to replicas, and subtracts the edge's flow
 * from a conserved companion vector (top of this file). Neither function may be called while a job
 * runs. */
int mixing_edge_open(struct mixing *m, struct edge *e, const uint8_t self[WIRE_ID_BYTES],
                     const uint8_t other[WIRE_ID_BYTES]);
void mixing_edge_close(struct mixing *m, struct edge *e);

/* ---- saving to a checkpoint and restoring (nn/math/state.h), between jobs ---- */

/* Saves or restores the model and all state that belongs to no edge. Restores into a struct that
 * mixing_init() opened for the same run. After a failed restore the struct can only be closed. */
void mixing_state(struct mixing *m, struct state *s);

/* Saves or restores the edges e[0..n), their replicas and deltas. Restores into edges that
 * mixing_edge_open() opened to the same members in the same order. */
void mixing_edges_state(struct mixing *m, struct edge *const *e, size_t n, struct state *s);

/* ---- job calls, loop thread ---- */

/* State of the run and of one edge when the caller plans a job. Input of mixing_join(). */
struct mixing_moment
{
    uint64_t round, n_rounds; /* Rounds of the run that are done, and total number of rounds. */
    bool lock_step;
    bool settling; /* True: the peer is in the consensus phase. */
    bool draining; /* True: pending exchanges are completed, but no new delta is made. */
    bool barred;   /* True: the neighbour was proven Byzantine, and the edge exchanges nothing. */
    /* Codec of training deltas: DELTA_RUN, or DELTA_RUNG plus a level of --compress auto. */
    uint32_t codec;

    /* The fields from `pass` on describe the edge. They matter only on a topology that changes from
     * round to round. */
    /* Number of rounds in a pass: the topology repeats after this number of rounds. 0 or 1: the
     * topology is constant. */
    uint64_t pass;
    bool idle; /* True: the edge is not used in this round, so it makes no new delta. */
    /* True: the round belongs to an exact averaging pass (a sequence of rounds that gives all peers
     * the exact mean). Both ends are in the consensus phase and send whole models. */
    bool whole;
    /* Values of the fields `degree` and `more` in the header of the delta, from which both ends
     * compute the mixing weight (struct wire_delta). degree 0: the delta announces the degree in
     * struct mixing_announcement. */
    uint32_t degree, more;
};

/* Starts a job (one peer's work for one round). At most n edges can join it. Returns 0 or
 * -ENOMEM. */
int mixing_begin(struct mixing *m, size_t n);

/* Adds a task for edge e if the edge commits, encodes or is reset in this job. Call it in neighbour
 * order: deltas are applied in the order of the calls, and a fixed order makes the results
 * independent of the order of arrival. */
void mixing_join(struct mixing *m, struct edge *e, const struct mixing_moment *now);

/* Returns the number of exchanges that the job commits. */
size_t mixing_commits(const struct mixing *m);

/* Assigns replicas and packets to the tasks. `says`: values for the headers of all deltas of
 * this job. Called once, after the last mixing_join(). Returns 0 or -ENOMEM; after -ENOMEM *m
 * can only be closed. */
int mixing_plan(struct mixing *m, const struct mixing_announcement *says);

/* Ends the job: advances the edges that committed and stores the encoded deltas in e->cur.
 * Results of edges that were reset during the job are dropped. */
void mixing_finish(struct mixing *m);

/* ---- job calls, worker thread ---- */

void mixing_mix(struct mixing *m);
/* Updates the estimate of the consensus distance. Called once per job, after mixing_mix(). Sets
 * now->local2, now->n_commits and now->place.pace. */
void mixing_beat(struct mixing *m, struct sketch_moment *now);
/* Records step2, the squared length of the change of x by the local steps of this round. Needed
 * only with --max-pull and --trigger. */
void mixing_moved(struct mixing *m, double step2);
void mixing_encode(struct mixing *m);

/* Encodes the next fragment of the delta during the last local step. x[from..dim) must have its
 * final values of this round. Returns the number of bytes encoded so far, or 0 if the delta is
 * not encoded in fragments. These bytes stay unchanged until mixing_finish(). */
size_t mixing_part(struct mixing *m, size_t from);
/* Discards the encoded fragments, because x changed after they were encoded. */
void mixing_drop_parts(struct mixing *m);

/* Returns the encoded bytes at distances `from` to `to` from the end of the delta. `to` is at
 * most the length that mixing_part() returned. Called on the loop thread while the job runs. */
struct bytes mixing_parts(const struct mixing *m, size_t from, size_t to);
/* Returns whether the delta of this task is encoded and sent in fragments (mixing_part()). A job
 * sends at most one of its deltas in fragments. */
bool mixing_has_parts(const struct mixing *m, const struct mixing_task *t);
/* Returns the least size of a fragment, in bytes. A message with fewer bytes would cost more time
 * than it saves. */
size_t mixing_part_least(const struct mixing *m);

/* ---- queries ---- */

/* Returns whether a received payload, or sketch, is valid and may be stored in an edge. Callable
 * from any thread. */
bool mixing_valid(const struct mixing *m, uint32_t codec, const uint8_t *payload, size_t n);
bool mixing_sketch_valid(const struct mixing *m, const struct sketch_message *sketch);

const struct sketch_figures *mixing_figures(const struct mixing *m);
/* Returns whether sketches are averaged by gossip: the run is in lock step, and no exchange, round
 * or member was missing since it began. Otherwise the drift figures come from a tree
 * aggregation. */
bool mixing_undisturbed(const struct mixing *m);
/* Peers estimate the consensus distance in periods called drift windows. A later window has a
 * larger key (own_begun of struct sketch_figures). Returns the key with which the caller can
 * recognise new estimates: an estimate with a larger key comes from a window that begins from now
 * on. `anew`: the caller will start a new window with the next job. */
uint64_t mixing_begun(const struct mixing *m, bool anew);
/* Returns whether the last call of mixing_beat() began a drift window, a period in which peers
 * estimate the consensus distance. */
bool mixing_window_began(const struct mixing *m);

/* Returns the largest |x - a|^2 over the edges that encoded a delta in this job, after the delta.
 * It is the squared length of the part of the model that is still unsent. */
double mixing_lag2(const struct mixing *m);

/* Call the mixer's optional functions of the same name (mixer.h); a missing function counts as
 * false, NULL or no effect. */
void mixing_settle(struct mixing *m, bool apart);
bool mixing_lags(const struct mixing *m, const struct edge *e, double most);
const float *mixing_sent(const struct mixing *m);

/* Returns k such that an attachment of n_bytes bytes (a sketch or running statistics) on every k-th
 * message adds at most 1/20 to the bytes sent. message: length of one message in bytes. Attachments
 * may be late without harm to training. */
uint64_t mixing_every(size_t n_bytes, size_t message);

/* ---- functions for mixers ---- */

/* Return the mixer's message, which is a part of the payload of a delta. mixing_own() and
 * mixing_other(): of the two deltas that the task commits, this peer's and the neighbour's.
 * mixing_made(): of the delta that the task has encoded. */
struct bytes mixing_own(const struct mixing *m, const struct mixing_task *t);
struct bytes mixing_other(const struct mixing *m, const struct mixing_task *t);
struct bytes mixing_made(const struct mixing *m, const struct mixing_task *t);

/* Returns the round, within the edge's epoch, of the delta that the task makes. */
uint64_t mixing_edge_round(const struct mixing_task *t);

/* Returns the length in bytes of a typical message that is encoded with `codec`, a codec of the
 * run. */
size_t mixing_nominal(const struct mixing *m, uint32_t codec);

/* Encodes x - x_hat (dim floats each) with the codec of task t. In a run with a companion vector
 * (top of this file), x_hat is a whole replica, which contains the model and all companions. All
 * tasks that share the packet t->made get the result. Sets m->diverged if the result is not
 * finite. */
void mixing_put(struct mixing *m, struct mixing_task *t, const float *x, const float *x_hat);

/* Makes an empty message for task t, in place of mixing_put(). d2: |x - x_hat|^2, the squared
 * difference that stays unsent. */
void mixing_put_empty(struct mixing *m, struct mixing_task *t, double d2);

/* Functions `valid` and `apply` for a mixer that encodes with mixing_put(). mixing_decodes()
 * returns whether a message decodes. mixing_add() adds the decoded difference to v, a replica. */
bool mixing_decodes(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n);
void mixing_add(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n, float *v);

/* Returns whether all edges have committed the same deltas, so that they share one replica. */
bool mixing_in_step(const struct mixing *m);

#endif
