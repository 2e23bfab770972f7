/* peer/node/collectives/parameter_server.h -- the messages of --mixer ps: one peer is the server.
 *
 * The server is the member with the first vertex among the members without a final model. The
 * server also trains: its own worker follows the same rules without messages.
 * gossip/collectives/centre.h decides which updates are added and which workers are answered.
 *
 *   worker   HERE (once per session), then in each round: job done --PUSH or ASK--> waits for the
 *            answer --PULL or RESULT--> next job
 *   server   asks silent workers for their round (ROLL) --all counted workers have sent HERE-->
 *            takes over a newer model if a worker has one (WANT, RESULT) --> answers PUSH and ASK
 *
 * HERE says how many rounds the worker has done, and the round of the last answer that it has. PUSH
 * carries an update. A worker without an update, because it has fetched another model or skipped
 * rounds, sends ASK. After a lost session these messages are sent again. The server adds each PUSH
 * once.
 *
 * If the server dies, the part of the model that its compressed answers have not transmitted yet is
 * lost. The next member becomes the server. It asks all workers for their rounds. If some worker
 * has a later answer than the new server, the server fetches that worker's model. Then all workers
 * start from whole models. The server also changes in this way if a member returns and has the
 * first vertex.
 *
 * If a worker has no session to a live server for SCHEDULE_LOST_US, it prints a warning and
 * continues the round with its own model. The server also waits at most SCHEDULE_LOST_US for a
 * session to a member. Workers and servers are trusted: all finite values are used.
 */
#ifndef PEER_NODE_COLLECTIVES_PARAMETER_SERVER_H
#define PEER_NODE_COLLECTIVES_PARAMETER_SERVER_H

#include "gossip/collectives/centre.h"
#include "peer/node/collectives/outbox.h"
#include "peer/node/round_protocol.h"

/* Value of parameter_server.told: this worker has not reported its round on any session. */
#define PARAMETER_SERVER_NO_LINK UINT32_MAX

/* Maximum number of messages that this peer sends in one step. Further messages wait for the next
 * step. */
enum { PARAMETER_SERVER_OUT_MAX = 64 };

/* State of one peer as a worker and as the server. Written by parameter_server.c only. */
struct parameter_server
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    bool open; /* True: `result` and the other vectors are allocated. */

    /* ---- as a worker ---- */
    float *result; /* Model of the server's last answer: n_floats values. */
    /* Round of the server's last answer. 0: the server has not answered yet. */
    uint64_t result_round;
    /* Identity of the current server. */
    uint8_t server[WIRE_ID_BYTES];
    /* Number of the session on which this worker reported its round to the server (HERE).
     * PARAMETER_SERVER_NO_LINK: none. */
    uint32_t told;
    /* True: this worker has sent its update (PUSH) or its request (ASK) of this round. */
    bool said;
    uint64_t pushed; /* Round of this worker's last update. 0: none. */
    uint8_t *push;   /* This worker's last update: n_push bytes. */
    size_t n_push;   /* Length of the last update in bytes. 0: this worker has none. */
    /* Time since which there is no session to the server, in microseconds. 0: there is one. */
    int64_t missing_us;
    /* True: the server has asked for this worker's round (ROLL), and no report was sent since. */
    bool rolled;
    /* Last time at which this worker prepared to report its round after a ROLL, in microseconds. */
    int64_t rolled_us;
    /* Number of rounds in which this worker kept its own model, without a session to the server. */
    uint64_t n_alone;

    /* ---- as the server ---- */
    /* serving: this peer is the server. ready: all workers for which the server waits have reported
     * their round (HERE), and the server has the latest model, so it answers workers. */
    bool serving, ready;
    int64_t begun_us; /* Time at which this peer became the server, in microseconds. */
    struct centre centre;
    uint8_t *coded; /* Buffer into which the server encodes a compressed answer. */
    /* Round of the model that the server took over: at its start, or later from a worker. */
    uint64_t taken;
    /* Last time at which the server requested a worker's model (WANT), in microseconds. 0: no
     * request is pending. */
    int64_t wanted_us;
    /* Number of the session on which the worker's model was requested (WANT). */
    uint32_t wanted_of;
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        /* Time since which there is no session to this member, in microseconds. */
        int64_t since_us;
    } missing[CENTRE_COUNTED_MAX];
    uint32_t n_missing;

    struct outbox outbox;
};

extern const struct round_protocol_kind parameter_server_protocol;

#endif
