/* peer/node/collectives/round_protocol_state.h -- state and functions that all kinds of round
 * protocols share: packets to send, the result, and requests for the result of another member.
 *
 *   begin() --> look(), hear(), ... --> round_protocol_finish(): the next job uses the result --+
 *                  ^                                                                            |
 *                  +----------------------------------------------------------------------------+
 */
#ifndef PEER_NODE_COLLECTIVES_ROUND_PROTOCOL_STATE_H
#define PEER_NODE_COLLECTIVES_ROUND_PROTOCOL_STATE_H

#include "gossip/collectives/centre.h"
#include "gossip/collectives/collective.h"
#include "peer/node/round_protocol.h"

/* One kind of protocol. While a job runs, its functions must not access the model. */
struct round_protocol_kind
{
    /* Name of the protocol in messages to the user, with its article. */
    const char *name;
    /* Maximum number of packets that are sent in one step, at most COLLECTIVE_OPS_MAX. */
    size_t max_packets;
    /* Allocates and returns the state of a protocol of this kind. NULL: memory is exhausted. */
    void *(*begin)(struct round_protocol *p);
    /* Allocates the vectors of the protocol. Returns the size of the largest packet in bytes. 0:
     * memory is exhausted. Called after p->result was allocated, before the first look() of the
     * run. */
    size_t (*open)(void *self);
    /* Frees the state of the protocol, even if open() was never called or has failed. */
    void (*end)(void *self);
    /* Implements round_protocol_look(). */
    void (*look)(void *self, uint64_t round, bool idle);
    /* Implements round_protocol_hear(). Returns NULL, or the protocol violation in words. */
    const char *(*hear)(void *self, const struct link *l, const struct wire_round_protocol *m,
                        uint64_t round, bool idle);
    /* Implements round_protocol_awaited(). Called only while the result of `round` is missing. */
    const uint8_t *(*awaited)(void *self, uint64_t round);
};

extern const struct round_protocol_kind allreduce_protocol, parameter_server_protocol;

struct round_protocol
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    /* The following fields are zero while the protocol is not active (kind NULL). */
    const struct round_protocol_kind *kind;
    void *self; /* State of the protocol, from kind->begin(). */

    /* Model of the last result: n_floats values. NULL: look() has not been called in this run. */
    float *result;
    uint64_t result_round; /* Round of the last result. 0: there is no result. */
    uint64_t n_alone;      /* Number of rounds in which this peer kept its own model. */
    /* Time since which a needed session is missing, in microseconds. 0: none is missing. */
    int64_t missing_us;
    /* Last time at which another member's result was requested (WANT), in microseconds. 0: no
     * request is pending. */
    int64_t wanted_us;
    uint32_t n_wanted; /* Number of requests (WANT) since wanted_us was last 0. */

    /* The first n_taken packets are sent in this step, and released in the next one. */
    struct packet *taken[COLLECTIVE_OPS_MAX];
    size_t n_taken;
    struct packet_pool pool;
};

/* Returns the size of a model with its running statistics, in bytes. */
size_t round_protocol_model_bytes(const struct round_protocol *p);
/* Returns whether the n_floats values are a valid model. */
bool round_protocol_is_model(const struct round_protocol *p, const float *v);
/* Ends the node with an error that says that memory is exhausted. */
void round_protocol_no_memory(struct round_protocol *p);

/* ---- results ---- */

/* Passes `result`, the model of `round`, to the next job. `view`: hash of the members whose models
 * it combines. */
void round_protocol_finish(struct round_protocol *p, uint64_t round, uint64_t view);
/* Sets `result` to this peer's own model, in a round in which the models of the members cannot be
 * combined. The caller prints a warning and calls round_protocol_finish(). */
void round_protocol_keep_own(struct round_protocol *p);
/* Records whether a needed session is missing now. Returns whether it has been missing for more
 * than SCHEDULE_LOST_US. */
bool round_protocol_is_lost(struct round_protocol *p, bool missing);

/* ---- messages ---- */

/* Returns the session on which messages of the run can be sent to member `id`, or NULL. */
const struct link *round_protocol_link(const struct round_protocol *p, const uint8_t *id);
/* Returns whether another packet can be taken in this step. */
bool round_protocol_has_room(const struct round_protocol *p);
/* Returns an empty packet. NULL: there is no memory, or the limit of the step is reached. */
struct packet *round_protocol_packet(struct round_protocol *p);
/* Returns a packet with a copy of the n bytes. Returns NULL in the cases in which
 * round_protocol_packet() does. */
struct packet *round_protocol_copy(struct round_protocol *p, const void *bytes, size_t n);
/* Sends message m with the packet as its payload. NULL: the message has no payload. */
void round_protocol_send(struct round_protocol *p, const struct link *l,
                         struct wire_round_protocol m, struct packet *payload);

/* Sends `result` with the message m, if there is room for a packet. */
void round_protocol_send_result(struct round_protocol *p, const struct link *l,
                                const struct wire_round_protocol *m);
/* Requests the result of `round` or a later one (WANT). Does nothing if the last request is too
 * recent. The least interval is ROUND_PROTOCOL_REQUEST_US after the first request, and doubles with
 * each further request, up to 32 times this value. Over a slow link a model may take longer than
 * ROUND_PROTOCOL_REQUEST_US, so requests at a fixed interval would fill the send queues with models
 * that come too late. */
void round_protocol_want(struct round_protocol *p, const struct link *l, uint64_t round);
/* Returns whether a request (WANT) is pending. If so, a RESULT is used whichever member sends it: a
 * member may answer only after this peer has asked another one. */
bool round_protocol_wanted(const struct round_protocol *p);

/* Returns the server that this peer runs, for tests. NULL: this peer is not the server. */
const struct centre *parameter_server_centre(const struct round_protocol *p);

#endif
