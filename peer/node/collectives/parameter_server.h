/* peer/node/collectives/parameter_server.h -- the parameter server of --mixer ps: one peer serves, all push and pull.
 *
 * The server is the member with the first vertex among those whose model is not final; it trains as well, and
 * its own worker is one like the others, but for the wire. A machine of its own, in the place of the
 * collective (allreduce.h).
 *
 *    worker   HERE (once a session) ... a round's job done --PUSH--> waits <--PULL or RESULT-- --> next job
 *    server   ROLL --all have said where they are--> serves: centre.h says what is added up and who is told
 *
 * A HERE says which round is done, and after which one the last answer was. A worker whose model is
 * a neighbour's, or that has skipped rounds, has no update: it ASKs. What a session loses is said again
 * on the next one; a push is added once.
 *
 * A server that dies takes with it what answers had left out. The next vertex serves then: it asks where
 * all are, takes the model of who was told last (WANT, RESULT) where that was after itself, and all begin
 * with whole models again. So does one that comes back to the first place.
 *
 * A worker that cannot reach a server that lives for SCHEDULE_LOST_US keeps its own model for that round, which
 * is said; a server waits so long for a session with a member. Workers and servers are believed: what is
 * finite counts.
 */
#ifndef PEER_NODE_COLLECTIVES_PARAMETER_SERVER_H
#define PEER_NODE_COLLECTIVES_PARAMETER_SERVER_H

#include "gossip/collectives/centre.h"
#include "peer/node/collectives/outbox.h"
#include "peer/node/round_protocol.h"

#define PARAMETER_SERVER_NO_LINK UINT32_MAX

enum { PARAMETER_SERVER_OUT_MAX = 64 /* Messages of a step; the others wait for the next one. */ };

/* Written by parameter_server.c only. */
struct parameter_server
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    bool open; /* The vectors are there. */

    /* As a worker. */
    float *result;         /* What the server said last, n_floats, */
    uint64_t result_round; /* after this round; 0: nothing yet. */
    uint8_t server[WIRE_ID_BYTES];
    uint32_t told;      /* The link on which it has a HERE, or PARAMETER_SERVER_NO_LINK; */
    bool said;          /* it has what we wait for in this round, too. */
    uint64_t pushed;    /* `push` is of this round; 0: there is none. */
    uint8_t *push;      /* Its bytes. */
    size_t n_push;      /* 0: we ask. */
    int64_t missing_us; /* Since when there is no session with the server; 0: there is one. */
    bool rolled;        /* A server has asked where we are. */
    int64_t rolled_us;  /* When we last began anew for that. */
    uint64_t n_alone;   /* Rounds for which no server was to be had. */

    /* As the server. */
    bool serving, ready; /* It is us; all have said where they are. */
    int64_t begun_us;    /* When we began to serve. */
    struct centre centre;
    uint8_t *coded;    /* Room for an answer. */
    uint64_t taken;    /* The model of one that was told after this round was taken over. */
    int64_t wanted_us; /* When that was last asked for; 0: it was not, */
    uint32_t wanted_of;
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        int64_t since_us; /* Members without a session. */
    } missing[CENTRE_COUNTED_MAX];
    uint32_t n_missing;

    struct outbox outbox;
};

extern const struct round_protocol_kind parameter_server_protocol;

#endif
