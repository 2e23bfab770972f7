/* gossip/mixers/mixer.h -- the table of mixing algorithms: what an exchange does to models.
 *
 * A mixer is a guest of struct mixing (mixing.h), which owns what all of them need:
 * the model, edges and their transactions, replicas, codecs, packets, statistics
 * and the sketch. A guest says what a delta means. One job calls it like this:
 *
 *   loop thread   plan     for each edge: which codec does its next delta take?
 *   worker        apply    for each delta that commits: onto the replica
 *                 mix      replicas stand where they should: move x
 *                 ...      the owner's local steps on x
 *                 encode   put together the deltas of this job
 *
 *             a delta of training is            and models move by
 *   choco     a correction of the replica,      gamma w (b - a)
 *             Q(x - a)
 *   average   an update C(u) of the model       w (C_theirs - C_own)
 *   dpsgd     the model                         step w (m_theirs - m_own)
 *   gossip    the model, for one partner        (m_theirs - m_own) / 2
 *
 * The mixers of gossip/collectives send empty deltas: models come together beside the edges.
 *
 * Both ends of an edge must know what a delta is, also where one of them is in the
 * last phase already: the delta's codec says so (enum delta_codec). In the last
 * phase every guest may send corrections of DELTA_FINAL (correction.h).
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

struct mixer
{
    const char *name;

    /* Its deltas of training are updates of the model and bring no models together:
     * the run then needs lock step, and a codec that is not chosen by the drift. */
    bool updates;
    /* They are whole models, in a codec that leaves out digits and nothing else (exact.h). */
    bool whole;
    /* They go to one partner a round, who takes the mean of two: the graph has to be one of such pairs. */
    bool pairs;
    /* In training a round protocol brings models together, and no edge (peer/node/round_protocol.h). */
    bool round_protocol;
    /* Edges in step share no delta: each is told something of its own. */
    bool own_deltas;
    /* encode() puts x - a of every task in order, and nothing else, so that it may begin before the
     * last local step is over (mixing_part()). */
    bool parts;

    /* Allocate what the guest keeps, as m->state. 0 or -ENOMEM. close() frees it, after
     * an open() that failed, too. */
    int (*open)(struct mixing *m, const struct mixing_config *config);
    void (*close)(struct mixing *m);

    /* Loop thread, in the order of the edges. t->edge, t->commit and t->encode are set.
     * Returns an enum delta_codec (or a rung of the ladder). */
    uint32_t (*plan)(struct mixing *m, const struct mixing_task *t,
                     const struct mixing_moment *now);

    /* Any thread: may the message of a delta be stored now and applied later? The
     * codec is one of this run's. Reads nothing but the n bytes. */
    bool (*valid)(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n);

    /* Worker: a valid message changes the replica, bit for bit alike at both ends. */
    void (*apply)(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                  float *replica);

    /* Worker: replicas and weights of all tasks are known. */
    void (*mix)(struct mixing *m);

    /* Worker: mixing_put() for each task that `encodes`. */
    void (*encode)(struct mixing *m);

    /* ---- NULL where there is nothing to say ---- */

    /* Loop thread, before each job of the last phase. `apart`: the models are known to
     * be over the target. NULL: corrections need no decision. */
    void (*settle)(struct mixing *m, bool apart);

    /* In the last phase: is this edge's replica so far from any model (relative to
     * |x|, over `most`) that mixing would part models? NULL: never. */
    bool (*lags)(const struct mixing *m, const struct edge *e, double most);

    /* Between jobs: what the guest keeps besides replicas, for a restart; with sections of
     * its own (nn/math/state.h). NULL: nothing. */
    void (*state)(struct mixing *m, struct state *s);

    /* After encode: our own decoded update, dim floats, 0 where nothing was sent, or
     * NULL if this job encoded none. Valid until the next mix. NULL: no updates. */
    const float *(*sent)(const struct mixing *m);
};

/* Ends with NULL. The order is that of the run key's choices (peer/run/core.c);
 * tests/unit/node_run_flags.c compares the two. */
extern const struct mixer *const mixer_all[];

#endif
