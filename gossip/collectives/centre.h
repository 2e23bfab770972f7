/* gossip/collectives/centre.h -- the server of --mixer ps: workers push updates and pull models.
 *
 * The server is a pure state machine. The caller (peer/node/collectives/parameter_server.c) passes
 * the messages of the workers in and sends the answers.
 *
 *   worker in round c --push C(p_c)--> z += C(p_c) / m --when the answer is due--> answer
 *
 * The mode decides when pushes are added to the model z and when a worker in round c is answered:
 *
 *   sync     All pushes of a round are added at once: z moves by their mean, in the order of
 *            vertices. The worker is answered after all pushes of round c are added.
 *   ssp:s    Each push is divided by m and added on arrival. The worker is answered when every
 *            counted worker has done round c - s.
 *   async    Each push is divided by m and added on arrival. The worker is answered at once.
 *
 * c is the clock of a worker: the number of rounds that it has done. m is the number of counted
 * workers, for which the server waits; the server's own worker is one of them. (ssp: Ho et al.
 * 2013, section 3.) In the last round no worker is answered before all have pushed, so all end
 * with the same model.
 *
 * An answer is Q(z - a), where a is the model that the worker has been sent. Both ends know a. What
 * the codec Q omits stays in z - a and is sent later. Workers that were sent the same model share
 * one copy of it and get the same answer. The answer is the whole model instead if the codec omits
 * nothing, after the last round, and for a worker without a copy: a new or returned worker, or one
 * whose session was lost. At the start all workers have the initial model. In sync mode a worker
 * that is sent the whole model gets the copy that the other workers have.
 *
 *   message   [statistics][message of the codec]    whole model: n_floats floats
 *
 * Running statistics are averaged like the model and sent uncompressed.
 */
#ifndef GOSSIP_COLLECTIVES_CENTRE_H
#define GOSSIP_COLLECTIVES_CENTRE_H

#include "gossip/mixers/mixing.h"

enum {
    /* Maximum number of workers that the server waits for ("counted" workers). */
    CENTRE_COUNTED_MAX = 256,
    /* Maximum number of workers in the table. A worker that the server does not wait for is dropped
     * if a new worker needs room. */
    CENTRE_WORKERS_MAX = 512
};

struct centre_copy
{
    uint32_t refs;
    float v[]; /* Model that was sent to all workers that share this copy, dim floats. */
};

struct centre_worker
{
    bool known; /* True: the slot of the table belongs to a worker. False: the slot is free. */
    uint8_t id[WIRE_ID_BYTES];
    /* Session on which the caller has asked the worker how many rounds it has done. Used by the
     * caller only. */
    uint64_t asked;
    /* counts: the server waits for this worker. spoke: the worker has reported how many rounds it
     * has done. */
    bool counts, spoke;
    /* clock: number of rounds that the worker has done, as far as the server knows. have: round of
     * the last answer that the worker received, as the worker itself has reported it. */
    uint64_t clock, have;
    bool waits; /* True: the worker waits for the answer to its last push or request. */
    /* True: the server has no valid copy of the worker's model, so the next answer is the whole
     * model. */
    bool whole;
    uint64_t told; /* Round of the last answer that was sent to the worker. */
    /* Copy of the model that the server sent last to the worker. NULL: the next answer is the whole
     * model, or answers are not compressed. */
    struct centre_copy *copy;
    uint8_t *push; /* Bytes of the worker's push that is not added to the model yet. NULL: none. */
    size_t n_push;
};

struct centre_config
{
    /* Mixing data of the peer that is the server. Pushes are encoded with its codec DELTA_RUN. Must
     * outlive struct centre. */
    const struct mixing *mixing;
    /* Codec of answers. centre_open() takes ownership. NULL: answers are whole models. */
    struct compress *codec;
    uint64_t rounds, draw_key;
    /* Mode of the parameter server, which decides when it adds pushes and answers workers (table at
     * the top of this file). `sync` selects sync, `bounded` selects ssp. If both are false, the
     * mode is async. */
    bool sync, bounded;
    /* ssp only: largest number of rounds by which a worker may be ahead of the slowest worker. */
    uint32_t staleness;
    const float *z; /* Model with which the server starts, n_floats values. */
    /* Round of the run after which the start model was made. 0: the start model is the initial
     * model of the run. */
    uint64_t round;
};

struct centre
{
    struct centre_config config;
    /* z: the server's model. sum: the sum of pushes that are to be added to it. n_floats each. */
    float *z, *sum;
    /* Scratch for the running statistics in a push (the update that a worker sends). */
    float *values;
    uint64_t round;    /* In sync mode: last round whose pushes are added to the model z. */
    uint64_t n_pushes; /* Number of pushes added to the model so far. */
    /* Copy of the initial model, shared by the workers to which no answer was sent yet. NULL after
     * the first push. */
    struct centre_copy *initial;
    struct centre_worker *worker;
    /* Workers that the server waits for, in the order of the vertices. */
    struct centre_worker *counted[CENTRE_COUNTED_MAX];
    uint32_t n_counted;
};

/* Opens the server. Returns 0 or -ENOMEM. After an error nothing is left open, and the codec is
 * closed. */
int centre_open(struct centre *c, const struct centre_config *config);
void centre_close(struct centre *c);

/* Replaces the server's model by z, the model after `round`. All copies of sent models become
 * invalid, so the next answer to each worker is the whole model. */
void centre_set(struct centre *c, const float *z, uint64_t round);

/* Define the set of counted workers, those that the server waits for. centre_clear() empties the
 * set, and centre_count() adds one worker; call it in the order of the vertices. The data of a
 * known worker are kept. centre_count() returns NULL if the table is full. */
void centre_clear(struct centre *c);
struct centre_worker *centre_count(struct centre *c, const uint8_t id[WIRE_ID_BYTES]);
/* Returns the worker with this id, or NULL if it is unknown. */
struct centre_worker *centre_find(struct centre *c, const uint8_t id[WIRE_ID_BYTES]);

/* ---- compressed messages: pushes, and answers that are not a whole model ---- */

/* Returns whether the bytes of a push, or of an answer that is not a whole model, are valid in this
 * run. Callable from any thread. */
bool centre_valid(const struct mixing *m, const uint8_t *bytes, size_t n);
/* Applies a valid push or compressed answer to a model of n_floats values. */
void centre_apply(const struct mixing *m, const uint8_t *bytes, size_t n, float *model);

/* ---- messages from workers ---- */

/* Handles the report of a worker after a restart or on a new session: it has done `clock` rounds
 * and has the answer to round `have`. */
void centre_here(struct centre *c, struct centre_worker *w, uint64_t clock, uint64_t have);
/* Handles a worker that has done `clock` rounds and asks for the model without an update. */
void centre_ask(struct centre_worker *w, uint64_t clock);
enum centre_verdict { CENTRE_TAKEN, CENTRE_NO_MEMORY, CENTRE_BAD };
/* Stores a copy of a worker's push of round `clock`. A push of a round that is already part of the
 * model is ignored, but the worker still gets an answer. CENTRE_BAD: the message is invalid, or the
 * worker waits for an answer to an earlier push. */
enum centre_verdict centre_push(struct centre *c, struct centre_worker *w, uint64_t clock,
                                const uint8_t *bytes, size_t n);

/* ---- results ---- */

/* Adds stored pushes to the model, as far as the mode (sync, ssp or async) allows it now. O(dim)
 * per push. */
void centre_add(struct centre *c);

struct centre_answer
{
    struct centre_worker *to[CENTRE_COUNTED_MAX];
    uint32_t n;
    bool whole;
    /* Round to which the answer belongs. sync: round of the server's model. ssp and async: number
     * of rounds that the answered worker has done. */
    uint64_t round;
    /* The server's model (dim floats) and its running statistics. Set if the answer is the whole
     * model. */
    const float *model, *statistics;
    /* Number of bytes of the compressed answer. Set if the answer is not the whole model. */
    size_t n_coded;
};

/* Returns the maximum length in bytes of an answer that is not a whole model. */
size_t centre_bound(const struct centre *c);
/* Makes the next answer, for the workers a->to[0..n). These workers then no longer wait for an
 * answer. `coded` has room for centre_bound() bytes. Returns false if no worker can be answered
 * now. Pointers in *a are valid until the next call. O(dim). */
bool centre_answer(struct centre *c, struct centre_answer *a, uint8_t *coded);

/* Returns the counted worker for which the other workers wait: one that has not reported its rounds
 * yet, or else the one that has done the fewest rounds. NULL: no worker is counted, or the slowest
 * one itself waits for an answer. */
const struct centre_worker *centre_awaited(const struct centre *c);

#endif
