/* gossip/mixers/mixer.h -- the interface of a mixing algorithm, and the table of all of them.
 *
 * A mixer is the algorithm that combines the models of a peer and its neighbours. struct
 * mixing (mixing.h) owns what all mixers share: the model x, the edges and their
 * transactions, replicas, codecs, packets, running statistics and the sketch. A mixer is a
 * const table of functions that defines what a delta means.
 *
 * A job is one peer's work for one round. The calls to a mixer in a job, in this order:
 *
 *   thread   call     times                     task
 *   loop     plan     once per edge             choose the codec of the edge's next delta
 *   worker   apply    once per committed delta  add the delta to its replica
 *   worker   mix      once                      move x, using the updated replicas
 *   worker   (none)                             the caller runs its local steps on x
 *   worker   encode   once                      build the deltas of this job
 *
 * The mixers with edge exchanges. a is the peer's own replica on an edge and b the
 * neighbour's replica; m is a model as it was sent; w is the mixing weight of the edge:
 *
 *   mixer     delta in training                   change of x per edge       source
 *   choco     difference to the replica, Q(x-a)   gamma w (b - a)            choco.h
 *   average   model update, C(u)                  w (C_theirs - C_own)       average.h
 *   dpsgd     whole model                         step w (m_theirs - m_own)  dpsgd.h
 *   gossip    whole model, to one partner         (m_theirs - m_own) / 2     gossip.h
 *
 * The mixers in gossip/collectives (allreduce, sma, ps) send empty deltas in training. Their
 * models are combined by a round protocol outside the edges.
 *
 * The two ends of an edge may be in different phases, one in training and one in the
 * consensus phase. The codec number of a delta (enum delta_codec) therefore tells the
 * receiver what the delta means. In the consensus phase each mixer may send corrections
 * with codec DELTA_FINAL (correction.h).
 *
 * A new mixer needs a const struct mixer and one entry in mixer_all (mixer.c). choco.c is the
 * shortest complete example.
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

/* One mixing algorithm: its properties, and the functions that struct mixing calls. A mixer has
 * no variables of its own; data that it needs per peer belong into m->state. */
struct mixer
{
    const char *name; /* Value of the run key and option `mixer`, such as "choco". */

    /* True: training deltas are model updates and do not pull models together. Such a mixer
     * needs lock step, and a codec that is not chosen by the consensus distance. */
    bool updates;
    /* True: training deltas are whole models. Their codec may round numbers but drops no value
     * (exact.h). */
    bool whole;
    /* True: each training delta goes to one partner per round, and both partners take the mean
     * of two models. The topology must give each peer one partner per round. */
    bool pairs;
    /* True: in training a round protocol combines the models, not the edges
     * (peer/node/round_protocol.h). */
    bool round_protocol;
    /* True: each edge gets its own delta, even where all edges are in step. */
    bool own_deltas;
    /* True: encode() calls only mixing_put(x, a), for every task in order. Encoding may then
     * start before the last local step ends (mixing_part()). */
    bool parts;

    /* open() allocates the mixer's own data and stores it in m->state. Returns 0 or -ENOMEM.
     * close() frees that data, also after an open() that failed. */
    int (*open)(struct mixing *m, const struct mixing_config *config);
    void (*close)(struct mixing *m);

    /* Returns the codec of the next delta of edge t->edge: an enum delta_codec or a codec level.
     * Called on the loop thread, in the order of the edges; t->edge, t->commit and t->encode are
     * set. */
    uint32_t (*plan)(struct mixing *m, const struct mixing_task *t,
                     const struct mixing_moment *now);

    /* Returns whether the n bytes of a delta's message may be stored now and applied later.
     * Callable from any thread; reads only these bytes. `codec` is a codec of this run. */
    bool (*valid)(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n);

    /* Applies a valid message of n bytes to a replica of m->dim floats. Called on the worker.
     * Both ends of an edge must compute bitwise equal replicas. */
    void (*apply)(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                  float *replica);

    /* Moves the model m->x. Called on the worker, when the replicas and weights of all tasks are
     * known. */
    void (*mix)(struct mixing *m);

    /* Encodes deltas: calls mixing_put() once for each task that has `encodes` set. Called on
     * the worker. */
    void (*encode)(struct mixing *m);

    /* ---- optional functions: NULL is allowed ---- */

    /* Prepares a job of the consensus phase. Called on the loop thread before each such job.
     * `apart` is true if the consensus distance is known to exceed the target. NULL: no
     * preparation is needed. */
    void (*settle)(struct mixing *m, bool apart);

    /* Returns whether mixing over edge e would push models apart in the consensus phase. That
     * happens where the replica's distance from the model, relative to |x|, exceeds `most`.
     * NULL: never. */
    bool (*lags)(const struct mixing *m, const struct edge *e, double most);

    /* Saves or restores the mixer's own data, apart from replicas, in a checkpoint. Called
     * between jobs; opens its own sections (nn/math/state.h). NULL: the mixer has no data to
     * save. */
    void (*state)(struct mixing *m, struct state *s);

    /* Returns this peer's own decoded update after encode(): dim floats, 0 where no value was
     * sent. Returns NULL if the job encoded no update. Valid until the next mix(). NULL: the
     * mixer sends no updates. */
    const float *(*sent)(const struct mixing *m);
};

/* All mixers, terminated by NULL. The order equals the order of the choices of the run key
 * (peer/run/core.c); tests/unit/node_run_flags.c compares the two. */
extern const struct mixer *const mixer_all[];

#endif
