/* gossip/collectives/centre.h -- the server's side of --mixer ps: the model that workers push to and pull from.
 *
 * A pure machine: the owner (peer/node/collectives/parameter_server.h) brings what workers say, and carries the answers.
 *
 *   worker of clock c  --push C(p_c)-->  z += C(p_c) / m  --once c is due--> an answer
 *
 *                when pushes are added              a worker of clock c is answered
 *   sync         a round's together, their mean,    after that round
 *                in the order of the vertices
 *   ssp:s        as they come, each the m-th part   once nobody that counts is at less than c - s
 *   async        as they come, each the m-th part   at once
 *
 * (Ho et al. 2013, section 3, for ssp. m: those that count, the server's own worker among them.) After
 * the last round nobody is answered before all are there, so that all end with one model.
 *
 * An answer is Q(z - a), where a is what that worker has been told, which both ends keep: what Q leaves out
 * stays in z - a, and goes out later. Workers that were told the same share one copy, and one answer. With a
 * codec that leaves nothing out, after the last round, and where a worker has no copy (it is new, or back,
 * or its session broke; as the run begins all have the initial model), the answer is the whole model; in sync the copy that the others have.
 *
 *   message   [statistics][message of the codec]    whole: n_floats
 *
 * Running statistics are averaged as the rest is, and go as they are.
 */
#ifndef GOSSIP_COLLECTIVES_CENTRE_H
#define GOSSIP_COLLECTIVES_CENTRE_H

#include "gossip/mixers/mixing.h"

enum {
    CENTRE_COUNTED_MAX = 256, /* So many workers may count. */
    CENTRE_WORKERS_MAX = 512  /* Others are known until their room is needed. */
};

struct centre_copy
{
    uint32_t refs;
    float v[]; /* dim. */
};

struct centre_worker
{
    bool known; /* Else the slot is free. */
    uint8_t id[WIRE_ID_BYTES];
    uint64_t asked;           /* The owner's: the session on which it was asked where it is. */
    bool counts, spoke;       /* It is waited for; it has said where it is. */
    uint64_t clock, have;     /* By its word: rounds pushed; what it was told was after this one. */
    bool waits;               /* For an answer to `clock`. */
    bool whole;               /* It has no copy. */
    uint64_t told;            /* The round of its last answer. */
    struct centre_copy *copy; /* What it was told; NULL: whole, or nothing is compressed. */
    uint8_t *push;            /* Its bytes, not added yet; NULL: there is none. */
    size_t n_push;
};

struct centre_config
{
    const struct mixing *mixing; /* Pushes are of its DELTA_RUN. Outlives the centre. */
    struct compress *codec; /* That of answers, the centre's from now on; NULL: they are whole. */
    uint64_t rounds, draw_key;
    bool sync, bounded; /* Neither: async. */
    uint32_t staleness; /* With `bounded`. */
    const float *z;     /* What it begins with, n_floats, */
    uint64_t round;     /* after this round. */
};

struct centre
{
    struct centre_config config;
    float *z, *sum;    /* n_floats each. */
    float *values;     /* Scratch for the statistics of a push. */
    uint64_t round;    /* In sync: this one and all before it are in z. */
    uint64_t n_pushes; /* Added up. */
    struct centre_copy
        *initial; /* Before the first push: what all have who were told nothing, or NULL. */
    struct centre_worker *worker;
    struct centre_worker *counted[CENTRE_COUNTED_MAX]; /* In the order of the vertices. */
    uint32_t n_counted;
};

/* 0 or -ENOMEM: then nothing is left open, and the codec is closed. */
int centre_open(struct centre *c, const struct centre_config *config);
void centre_close(struct centre *c);

/* z, as it was known to be after this round. */
void centre_set(struct centre *c, const float *z, uint64_t round);

/* Who is waited for, anew: clear, then add each, in order. A worker that was known still is. NULL: full. */
void centre_clear(struct centre *c);
struct centre_worker *centre_count(struct centre *c, const uint8_t id[WIRE_ID_BYTES]);
/* NULL: nobody has counted by that id. */
struct centre_worker *centre_find(struct centre *c, const uint8_t id[WIRE_ID_BYTES]);

/* ---- messages: pushes, and answers that are not whole ---- */

/* Is it one of this run? From any thread. */
bool centre_valid(const struct mixing *m, const uint8_t *bytes, size_t n);
/* model, n_floats, moves by a valid one. */
void centre_apply(const struct mixing *m, const uint8_t *bytes, size_t n, float *model);

/* ---- what a worker says ---- */

/* It has done `clock` rounds, and what it was told was after `have`; a new process, or a new session. */
void centre_here(struct centre *c, struct centre_worker *w, uint64_t clock, uint64_t have);
/* It waits for an answer to this clock, and pushes nothing. */
void centre_ask(struct centre_worker *w, uint64_t clock);
enum centre_verdict { CENTRE_TAKEN, CENTRE_NO_MEMORY, CENTRE_BAD };
/* A push, copied; one that is known is not added again. BAD: it is none of this run, or there is one that
 * has not been answered yet. */
enum centre_verdict centre_push(struct centre *c, struct centre_worker *w, uint64_t clock,
                                const uint8_t *bytes, size_t n);

/* ---- what comes of it ---- */

/* Adds up what may be added. O(dim) a push. */
void centre_add(struct centre *c);

struct centre_answer
{
    struct centre_worker *to[CENTRE_COUNTED_MAX];
    uint32_t n;
    bool whole;
    uint64_t round; /* After which round it is: in sync all of them, else the worker's clock. */
    const float *model, *statistics; /* Whole: dim floats, and the rest of n_floats. */
    size_t n_coded;                  /* Else: bytes that centre_answer() has written. */
};

/* Most bytes of an answer that is not whole. */
size_t centre_bound(const struct centre *c);
/* The next answer, which goes to all of a.to: they do not wait any more. `coded` has room for
 * centre_bound(). False: nobody is due. What is pointed at is valid until the next call. O(dim). */
bool centre_answer(struct centre *c, struct centre_answer *a, uint8_t *coded);

/* Whose word everything waits for: the first of those that count with the least clock; NULL: nobody's. */
const struct centre_worker *centre_awaited(const struct centre *c);

#endif
