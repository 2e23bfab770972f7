/* peer/node/round_protocol.h -- the seam for protocols that bring models together beside the edges.
 *
 * With most mixers the edges bring models together, and a run has no round protocol. The mixers of
 * gossip/collectives have one: a protocol of their own over the sessions, whose result of a round
 * the next job takes.
 *
 *    a job is done --> round_protocol_look() and messages --> the result is there --> the next job
 *
 * The rest of the node knows the functions below only. peer/node/collectives implements the kinds.
 * An instance is opened with the run and closed with it.
 */
#ifndef PEER_NODE_ROUND_PROTOCOL_H
#define PEER_NODE_ROUND_PROTOCOL_H

#include "peer/node/run_context.h"

/* The functions of one kind of protocol. `round` is the number of rounds that this peer has done,
 * `idle` says that no job runs. Within a job the kind does not touch the model. */
struct round_protocol_kind
{
    const char *name;
    /* What a member contributes to a round: "waiting for NAME, whose PART of round N is not here". */
    const char *part;

    /* Returns the state of the instance, or NULL: out of memory. The arguments outlive it. */
    void *(*open)(struct env *env, struct sessions *s, struct run_context *w);
    /* Frees the state. The workshop's run is still open. */
    void (*close)(void *self);
    /* A step of the node begins: the driver is done with the packets of the last step. */
    void (*release)(void *self);
    /* In training and in the consensus phase, at each step of the node: makes progress where that is
     * possible, sends again what was lost, gives up what has taken too long. */
    void (*look)(void *self, uint64_t round, bool idle);
    /* Takes a message. `idle` is false outside of training and the consensus phase. */
    void (*hear)(void *self, const struct link *l, const struct wire_round_protocol *m,
                 uint64_t round, bool idle);

    /* Is the result of this round missing? The next job waits for it. */
    bool (*waits)(const void *self, uint64_t round);
    /* Returns the identity of the member for which this round waits. NULL: for none. */
    const uint8_t *(*awaited)(const void *self, uint64_t round);
    /* Returns the round of the latest result, which may be later than ours. 0: there is none. */
    uint64_t (*completed)(const void *self);
};

/* Returns the kind that this mixer needs. NULL: none. Implemented by peer/node/collectives. */
const struct round_protocol_kind *round_protocol_kind_of(const struct mixer *m);

/* The instance of the present run. Written by round_protocol.c only. All of the functions below
 * take an instance without a kind, too. */
struct round_protocol
{
    const struct round_protocol_kind *kind; /* NULL: the run has none, or there is no run. */
    void *self;
};

/* Opens what the run's mixer needs. The workshop is ready. Without memory the node ends. */
void round_protocol_open(struct round_protocol *p, struct env *env, struct sessions *s,
                         struct run_context *w);
void round_protocol_close(struct round_protocol *p);

/* See struct round_protocol_kind. */
void round_protocol_release(struct round_protocol *p);
void round_protocol_look(struct round_protocol *p, uint64_t round, bool idle);
bool round_protocol_waits(const struct round_protocol *p, uint64_t round);
const uint8_t *round_protocol_awaited(const struct round_protocol *p, uint64_t round);
uint64_t round_protocol_completed(const struct round_protocol *p);

/* A message of a round protocol. In a run without one it is a violation of the protocol. */
void round_protocol_hear(struct round_protocol *p, struct sessions *s, const struct link *l,
                         const struct wire_round_protocol *m, uint64_t round, bool idle);

#endif
