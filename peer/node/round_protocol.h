/* peer/node/round_protocol.h -- the interface of protocols that combine models without edges (a
 * *round protocol*).
 *
 * With most mixers, exchanges over edges combine the models, and a run has no round protocol. The
 * mixers of gossip/collectives (all-reduce, parameter server) have one: it exchanges messages over
 * the sessions, and the next job uses its result.
 *
 *   a job is done --> round_protocol_look(), messages --> the result is there --> the next job
 *
 * The other files of the node use only the functions below. peer/node/collectives implements the
 * kinds of protocols. An instance is opened with the run and closed with it.
 */
#ifndef PEER_NODE_ROUND_PROTOCOL_H
#define PEER_NODE_ROUND_PROTOCOL_H

#include "peer/node/run_context.h"

/* The functions of one kind of protocol. `round`: number of rounds of training that this peer has
 * done. `idle`: true if no job runs and the peer is in training or in the consensus phase. While a
 * job runs, the functions must not access the model. */
struct round_protocol_kind
{
    /* Name of the protocol in messages to the user. */
    const char *name;
    /* Name of a member's contribution to a round: the word PART in the message "waiting for NAME,
     * whose PART of round N has not arrived". */
    const char *part;

    /* Allocates the state of an instance and returns it, or NULL if there is no memory. The
     * arguments must stay valid until close(). */
    void *(*open)(struct env *env, struct sessions *s, struct run_context *w);
    /* Frees the state of an instance. To be called before the run is closed. */
    void (*close)(void *self);
    /* Called when a step of the node begins. Releases the packets of the last step, which the
     * driver has read by now. */
    void (*release)(void *self);
    /* Called at each step of the node in training and in the consensus phase. Continues the
     * protocol, repeats lost messages, and stops waiting after a time limit. */
    void (*look)(void *self, uint64_t round, bool idle);
    /* Handles a message m that arrived on session l. */
    void (*hear)(void *self, const struct link *l, const struct wire_round_protocol *m,
                 uint64_t round, bool idle);

    /* Returns whether the result of `round` is still missing. If so, the next job waits for it. */
    bool (*waits)(const void *self, uint64_t round);
    /* Returns the identity of the member whose message is missing for the result of `round`. NULL:
     * none. */
    const uint8_t *(*awaited)(const void *self, uint64_t round);
    /* Returns the round of the latest result, which may be later than this peer's round. 0: there
     * is no result. */
    uint64_t (*completed)(const void *self);
};

/* Returns the kind of protocol that mixer m needs. NULL: none. Implemented in
 * peer/node/collectives. */
const struct round_protocol_kind *round_protocol_kind_of(const struct mixer *m);

/* The instance of the current run. Written by round_protocol.c only. If the instance has no kind,
 * no function except round_protocol_hear() has an effect, and results are false, NULL or 0. */
struct round_protocol
{
    /* Kind of protocol. NULL: the run has no round protocol, or there is no run. */
    const struct round_protocol_kind *kind;
    /* State of the instance, allocated by kind->open(). */
    void *self;
};

/* Opens the protocol of the run's mixer, if it has one. Requires w->ready. If there is no memory,
 * the node ends. */
void round_protocol_open(struct round_protocol *p, struct env *env, struct sessions *s,
                         struct run_context *w);
void round_protocol_close(struct round_protocol *p);

/* Each of these functions calls the function of the same name in struct round_protocol_kind. */
void round_protocol_release(struct round_protocol *p);
void round_protocol_look(struct round_protocol *p, uint64_t round, bool idle);
bool round_protocol_waits(const struct round_protocol *p, uint64_t round);
const uint8_t *round_protocol_awaited(const struct round_protocol *p, uint64_t round);
uint64_t round_protocol_completed(const struct round_protocol *p);

/* Handles a message of a round protocol. In a run without round protocol, the message is a
 * violation and ends the session. */
void round_protocol_hear(struct round_protocol *p, struct sessions *s, const struct link *l,
                         const struct wire_round_protocol *m, uint64_t round, bool idle);

#endif
