/* gossip/collectives/centre.h -- the server of --mixer ps: workers push updates and pull models.
 *
 * A pure state machine. The caller (peer/node/collectives/parameter_server.h) passes the
 * workers' messages in and sends the answers.
 *
 *   worker of clock c  --push C(p_c)-->  z += C(p_c) / m  --when c is due--> an answer
 *
 *   mode     when pushes are added            when a worker of clock c is answered
 *   sync     a round's together, their mean,  after that round
 *            in the order of the vertices
 *   ssp:s    on arrival, each 1/m of it       once no counted worker's clock is below c - s
 *   async    on arrival, each 1/m of it       at once
 *
 * (ssp: Ho et al. 2013, section 3. m is the number of counted workers, including the
 * server's own.) After the last round no worker is answered before all have pushed, so all end
 * with the same model.
 *
 * An answer is Q(z - a), where a is the model that the worker has been sent, known to both
 * ends. What Q omits stays in z - a and is sent later. Workers that were sent the
 * same model share one copy and one answer. The answer is the whole model if the
 * codec omits nothing, after the last round, and for a worker without a copy (new, returned,
 * or with a broken session). At the start all workers have the initial model. In sync mode
 * the whole model is the copy that the other workers have.
 *
 *   message   [statistics][message of the codec]    whole: n_floats
 *
 * Running statistics are averaged like the model and sent uncompressed.
 */
#ifndef GOSSIP_COLLECTIVES_CENTRE_H
#define GOSSIP_COLLECTIVES_CENTRE_H

#include "gossip/mixers/mixing.h"

enum {
    CENTRE_COUNTED_MAX = 256, /* Maximum number of counted workers. */
    /* Maximum number of known workers. Those that are not counted are dropped when room is
     * needed. */
    CENTRE_WORKERS_MAX = 512
};

struct centre_copy
{
    uint32_t refs;
    float v[]; /* dim floats: the model that the sharing workers have been sent. */
};

struct centre_worker
{
    bool known; /* False: the slot is free. */
    uint8_t id[WIRE_ID_BYTES];
    /* Used by the caller: session on which the worker was asked for its round. */
    uint64_t asked;
    /* counts: other workers wait for this one. spoke: it has reported its round. */
    bool counts, spoke;
    /* Reported by the worker: rounds pushed, and the round of the last answer it has. */
    uint64_t clock, have;
    bool waits; /* True: the worker waits for an answer to `clock`. */
    /* True: the worker has no copy, so its next answer is the whole model. */
    bool whole;
    uint64_t told; /* Round of the last answer to the worker. */
    /* Model sent to the worker. NULL: the next answer is whole, or nothing is compressed. */
    struct centre_copy *copy;
    uint8_t *push; /* Bytes of a push that is not added yet. NULL: none. */
    size_t n_push;
};

struct centre_config
{
    /* Exchange state, whose DELTA_RUN codec pushes use. Must outlive the centre. */
    const struct mixing *mixing;
    /* Codec of answers, owned by the centre from now on. NULL: answers are whole models. */
    struct compress *codec;
    uint64_t rounds, draw_key;
    bool sync, bounded; /* Mode: sync, or bounded (ssp). Both false: async. */
    uint32_t staleness; /* Allowed staleness in rounds, with `bounded`. */
    const float *z;     /* Initial model of the server, n_floats. */
    uint64_t round;     /* Round after which z was the model. */
};

struct centre
{
    struct centre_config config;
    float *z, *sum;    /* The model, and the sum of pushes to add: n_floats each. */
    float *values;     /* Scratch for the running statistics of a push. */
    uint64_t round;    /* In sync mode: all rounds up to this one are in z. */
    uint64_t n_pushes; /* Number of pushes added so far. */
    /* Initial model, held by workers that were sent nothing, until the first push. May be NULL. */
    struct centre_copy *initial;
    struct centre_worker *worker;
    /* Counted workers, in the order of the vertices. */
    struct centre_worker *counted[CENTRE_COUNTED_MAX];
    uint32_t n_counted;
};

/* Returns 0 or -ENOMEM. After an error nothing is left open and the codec is closed. */
int centre_open(struct centre *c, const struct centre_config *config);
void centre_close(struct centre *c);

/* Sets the model to z, which was the model after `round`. All workers lose their copies. */
void centre_set(struct centre *c, const float *z, uint64_t round);

/* Define the counted workers anew: clear, then count each in order. Data of a known worker is
 * kept. centre_count() returns NULL if the table is full. */
void centre_clear(struct centre *c);
struct centre_worker *centre_count(struct centre *c, const uint8_t id[WIRE_ID_BYTES]);
/* Returns the worker with this id, or NULL if it is unknown. */
struct centre_worker *centre_find(struct centre *c, const uint8_t id[WIRE_ID_BYTES]);

/* ---- messages: pushes, and answers that are not whole ---- */

/* Returns whether a message is valid in this run. Callable from any thread. */
bool centre_valid(const struct mixing *m, const uint8_t *bytes, size_t n);
/* Adds a valid message to a model of n_floats. */
void centre_apply(const struct mixing *m, const uint8_t *bytes, size_t n, float *model);

/* ---- messages from workers ---- */

/* A worker, after a restart or on a new session, has done `clock` rounds and has the answer to
 * round `have`. */
void centre_here(struct centre *c, struct centre_worker *w, uint64_t clock, uint64_t have);
/* A worker waits for an answer to `clock` without pushing an update. */
void centre_ask(struct centre_worker *w, uint64_t clock);
enum centre_verdict { CENTRE_TAKEN, CENTRE_NO_MEMORY, CENTRE_BAD };
/* Stores a copy of a worker's push. A push that was added before is not added again. CENTRE_BAD:
 * the message is invalid, or an earlier push has not been answered. */
enum centre_verdict centre_push(struct centre *c, struct centre_worker *w, uint64_t clock,
                                const uint8_t *bytes, size_t n);

/* ---- results ---- */

/* Adds all pushes that may be added. O(dim) per push. */
void centre_add(struct centre *c);

struct centre_answer
{
    struct centre_worker *to[CENTRE_COUNTED_MAX];
    uint32_t n;
    bool whole;
    /* Round after which the model is valid: in sync mode the server's, else the worker's clock. */
    uint64_t round;
    const float *model, *statistics; /* Whole answer: dim floats, and the statistics. */
    /* Other answer: number of bytes that centre_answer() has written. */
    size_t n_coded;
};

/* Returns the maximum bytes of an answer that is not whole. */
size_t centre_bound(const struct centre *c);
/* Produces the next answer, for all workers in a->to, and clears their `waits`. `coded` has
 * room for centre_bound() bytes. Returns false if no answer is due. Pointers in *a are valid
 * until the next call. O(dim). */
bool centre_answer(struct centre *c, struct centre_answer *a, uint8_t *coded);

/* Returns the counted worker with the least clock, for which the others wait, or NULL. */
const struct centre_worker *centre_awaited(const struct centre *c);

#endif
