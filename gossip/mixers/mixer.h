/* gossip/mixers/mixer.h -- the interface of a mixing algorithm, and the table of all of them.
 *
 * A mixer is the algorithm by which a peer combines its model with the models of its
 * neighbours: CHOCO-SGD, D-PSGD, all-reduce and others. `--mixer NAME` selects one for the
 * whole run. A mixer is a constant table of functions. It decides what a delta contains and
 * how the model moves.
 *
 * The mixer does not handle messages, lost sessions or checkpoints of shared data. Two lower layers
 * do that for every mixer:
 *
 *   layer               thread   task
 *   edge (edge.h)       loop     stores the two deltas of an exchange; resends after a lost session
 *   mixing (mixing.h)   both     owns the model; decides which exchanges commit; shares buffers
 *   mixer               worker   arithmetic on vectors of m->dim floats: apply, mix, encode
 *
 * Terms:
 *
 *   delta     the message that one peer sends over one edge in one round
 *   replica   a vector that both ends of an edge compute from the deltas sent over it.
 *             `a` is the replica of the peer's own model, `b` that of the neighbour's model.
 *   commit    an exchange is committed at both ends or at neither: each end applies both
 *             deltas to its replicas and then mixes
 *   job       one peer's work for one round
 *   task      the work for one edge in a job (struct mixing_task)
 *
 * Order of the calls in one job:
 *
 *   thread   call     times                             purpose
 *   loop     settle   once, in the consensus phase      prepare the mixer for the job
 *   loop     plan     once per edge                     choose the codec of the next delta
 *   worker   apply    once per replica that commits     add the committed delta to the replica
 *   worker   mix      once                              move the model x by the new replicas
 *   worker   (none)                                     the node runs the local steps on x
 *   worker   encode   once                              encode the deltas to send after the job
 *
 * A delta that encode() makes in one job is applied in a later job, after the neighbour's delta
 * of the same exchange has arrived. valid() has checked a neighbour's delta on arrival.
 *
 * Mixers that exchange models over edges. C and Q are codecs, m is a model as it was sent, p is
 * the sum of a peer's updates that are not sent yet, and w is the mixing weight of the edge:
 *
 *   name      contents of a training delta           change of x per edge       described in
 *   choco     compressed difference Q(x - a)         gamma w (b - a)            choco.h
 *   average   compressed update C(p)                 w (C_theirs - C_own)       average.h
 *   dpsgd     whole model m                          step w (m_theirs - m_own)  dpsgd.h
 *   gossip    whole model m, one partner per round   (m_theirs - m_own) / 2     gossip.h
 *
 * The mixers allreduce, sma and ps (gossip/collectives) send empty deltas during training. A
 * round protocol outside the edges combines their models.
 *
 * Rules that every mixer must follow:
 *
 * 1. Both ends of an edge compute bitwise equal replicas. apply() therefore depends on its
 *    arguments and on constants of the run only, never on m->x or on time.
 * 2. One end of an edge may be in training while the other is in the consensus phase. The
 *    codec number in the delta's header (enum delta_codec) tells the receiver what the delta
 *    contains. plan() must therefore give each kind of delta its own codec number. In the
 *    consensus phase a mixer may send corrections with codec DELTA_FINAL (correction.h).
 * 3. Tasks are processed in the order of the array m->task, so that equal runs give equal bits.
 *
 * As an example, these are the functions of a mixer that averages whole models with all
 * neighbours, in training and in the consensus phase. zeros is a vector of m->dim zeros in
 * m->state. tests/unit/sim_guest.c has the complete source.
 *
 *   plan     return DELTA_RUN
 *   valid    return codec == DELTA_RUN && mixing_decodes(m, codec, message, n)
 *   apply    fill the replica with 0; mixing_add(m, codec, message, n, replica)
 *   mix      for each task t with t->commit: x += t->w (b - a), all in one correction_pass()
 *   encode   for each task t with t->encodes: mixing_put(m, t, m->x, zeros)
 *
 * To add a mixer, define a const struct mixer and add it to mixer_all (mixer.c). choco.c is the
 * shortest complete mixer here. README.md in this folder lists the other steps.
 */
#ifndef GOSSIP_MIXERS_MIXER_H
#define GOSSIP_MIXERS_MIXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct edge;
struct mixing;
struct mixing_config;
struct mixing_moment;
struct mixing_task;
struct state;

/* One mixing algorithm: its properties, and the functions that struct mixing calls. The table is
 * constant. Data that a mixer keeps for one peer belong in m->state. */
struct mixer
{
    const char *name; /* Value of the run key and of the option `mixer`, such as "choco". */

    /* ---- properties; false unless the mixer sets them ---- */

    /* True: training deltas carry model updates and do not pull models together. The run must then
     * be in lock step, and cannot use --compress auto. */
    bool updates;
    /* True: training deltas carry whole models. Their codec may round values but must not drop any
     * (exact.h). */
    bool whole;
    /* True: in each round of training a peer exchanges with one partner, and both continue with the
     * mean of their two models. The topology must give each peer one partner per round. */
    bool pairs;
    /* True: in training a round protocol (peer/node/round_protocol.h) combines the models, and the
     * edges do not. */
    bool round_protocol;
    /* True: every edge gets a delta that is encoded for this edge alone. False: edges that have
     * the same replica share one encoded delta. */
    bool own_deltas;
    /* True: encode() only calls mixing_put() with x and the replica `a`, for each edge in order.
     * mixing_part() can then encode the fragments of a delta one by one, while the last local step
     * still runs. */
    bool parts;
    /* True: the mixer can mix companion vectors, too (mixing.h). Its deltas and corrections must
     * come from mixing_put(), mixing_add() and correction_mix(). */
    bool companion;

    /* ---- required functions ---- */

    /* open() allocates the mixer's data for one peer and stores them in m->state. Returns 0 or
     * -ENOMEM. close() frees these data; it is also called after an open() that failed. */
    int (*open)(struct mixing *m, const struct mixing_config *config);
    void (*close)(struct mixing *m);

    /* Returns the codec of the next delta of edge t->edge: an enum delta_codec, or DELTA_RUNG plus
     * a level of --compress auto. Called on the loop thread, once per edge. Of
     * the task only `edge`, `commit`, `encode`, `degree` and `more` are set at this time. */
    uint32_t (*plan)(struct mixing *m, const struct mixing_task *t,
                     const struct mixing_moment *now);

    /* Returns whether message[0..n) is a valid delta of this mixer, so that apply() cannot fail on
     * it. The message comes from another peer and may contain any bytes. `codec` is a codec of this
     * run. Called on any thread, so it reads only the message and constants of the run. */
    bool (*valid)(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n);

    /* Applies a valid delta message[0..n) to a replica (mixing.h). Called on the worker. Both
     * ends of an edge call it for the same deltas and must get bitwise equal replicas. */
    void (*apply)(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                  float *replica);

    /* Moves the model m->x by the exchanges of all tasks that have `commit` set. Called on the
     * worker, after the replicas and weights of all tasks have been updated. */
    void (*mix)(struct mixing *m);

    /* Encodes the deltas of this job: calls mixing_put() once for each task with `encodes` set.
     * Called on the worker, after the local steps. */
    void (*encode)(struct mixing *m);

    /* ---- optional functions: NULL is allowed ---- */

    /* Prepares the next job of the consensus phase. Called on the loop thread before each such job.
     * `apart` is true if the consensus distance is known to exceed the target. NULL: the mixer
     * needs no preparation. */
    void (*settle)(struct mixing *m, bool apart);

    /* Returns whether the replica of edge e is too far from the model to be used in the consensus
     * phase: the distance, relative to |x|, exceeds `most`. An exchange over such an edge would
     * push the models apart. NULL: the replicas always follow the model. */
    bool (*lags)(const struct mixing *m, const struct edge *e, double most);

    /* Saves the mixer's own data in a checkpoint, or restores them from it (nn/math/state.h). The
     * shared part saves the replicas. Called between jobs; starts its own sections in `s`. NULL:
     * the mixer has no data to save. */
    void (*state)(struct mixing *m, struct state *s);

    /* Returns the peer's own update as its receivers decode it: m->dim floats, 0 where no value was
     * sent. Called after encode(); the result is valid until the next mix(). Returns NULL if the
     * job encoded no update. NULL in this table: the mixer sends no updates. */
    const float *(*sent)(const struct mixing *m);
};

/* All mixers, terminated by NULL. The order equals the order of the choices of the run key `mixer`
 * (peer/run/core.c). tests/unit/node_run_flags.c compares the two. */
extern const struct mixer *const mixer_all[];

#endif
