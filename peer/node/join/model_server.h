/* peer/node/join/model_server.h -- sends this peer's model to members and observers that request it, as
 * a whole, in pieces, or as sketches.
 *
 *   request                     from        answered with
 *   --------------------------  ----------  -------------------------------------------------------
 *   whole model at a round      any         a copy of the model at that round or later, or at the
 *                                           start of the next drift window
 *   sketches of the layers      observer    the same, as sketches (gossip/exchange/layers.h)
 *   a piece, or the sketches    member      a shared copy of the model, at most
 *                                           MODEL_SERVER_COPY_US old
 *   of all pieces                           (gossip/exchange/piece.h)
 *   a piece of the run's        member      mixing.x0, at once
 *   initial model
 *
 * Each session has at most one pending request for a whole model or for layer sketches, and at most
 * MODEL_SERVER_PIECES pending requests for pieces. A new request beyond that replaces the oldest
 * one. Requests end with their session.
 *
 * An observer has at most one answer in its send queue. Otherwise an observer that requests models
 * and does not read them would fill the queue of its session.
 *
 * While a job runs, the worker owns the model, and a job may take long. Therefore one copy of the
 * whole model is made for the first request for a piece, between two jobs or by the job itself. All
 * requests for pieces within the next MODEL_SERVER_COPY_US are answered from this copy.
 *
 * Only model_server.c writes struct model_server.
 */
#ifndef PEER_NODE_JOIN_MODEL_SERVER_H
#define PEER_NODE_JOIN_MODEL_SERVER_H

#include "peer/node/run_context.h"

enum {
    MODEL_SERVER_PIECES = 4, /* Maximum number of pending requests for pieces per session. */
    /* Maximum number of pieces and sketches that are sent in one step. Further requests stay
     * pending until the next step. */
    MODEL_SERVER_HELD = 64
};

/* One request for a piece of the model, or for the sketches of all its pieces. */
struct model_server_piece
{
    uint32_t piece; /* Index of the piece. WIRE_PIECE_WHOLE if key is not 0. */
    uint64_t key;   /* Key of the requested sketches. 0: the piece itself is requested. */
};

/* Pending requests of other peers for this peer's model, and the buffers that the current step of
 * the node sends. */
struct model_server
{
    struct sessions *sessions;
    struct run_context *workshop;
    struct
    {
        bool wanted; /* True: a request for a whole model or for layer sketches is pending. */
        /* True: the session is an observer's, and an answer is in its send queue. The next answer
         * must wait until this one is sent. */
        bool on_way;
        /* Driver's number of the session that sent these requests. A later session with the same
         * index in sessions.links has another number, which shows that the requests are not from
         * it. */
        uint32_t link;
        uint64_t round; /* Requested round of the whole model, as in struct wire_model_req. */
        uint64_t key;   /* Key of the requested layer sketches. 0: the model itself is requested. */
        uint32_t n_pieces; /* Number of pending requests in `piece`. */
        /* Pending requests for pieces, oldest first. */
        struct model_server_piece piece[MODEL_SERVER_PIECES];
    } at[NODE_LINKS_MAX]; /* Requests by index in sessions.links. */
    /* False: no request of any session is pending, so the loops over all sessions are skipped. */
    bool any;
    /* True: the certificate of the run covers this peer's current model, and therefore also
     * `copy`. */
    bool certified;
    struct packet *held; /* Copy of the model that this step sends, released in the next step. */
    /* Pieces and sketches that this step sends, released in the next step. */
    struct packet *held_piece[MODEL_SERVER_HELD];
    uint32_t n_held_pieces;
    /* Buffers for pieces of the initial model. They outlive the run, because some may still be in a
     * send queue when the run is given up. */
    struct packet_pool initial;
    struct packet *copy; /* Copy of the model from which pieces are cut. NULL: none. */
    uint64_t copy_round; /* Round of the model in `copy`. */
    int64_t copy_us;     /* Node time at which `copy` was made, in microseconds. */
};

void model_server_init(struct model_server *o, struct sessions *s, struct run_context *w);
/* Frees the buffers of the initial model. All other buffers must have been released. */
void model_server_close(struct model_server *o);

/* Releases the buffers that the previous step has sent, and the copy for pieces if it is older than
 * MODEL_SERVER_COPY_US. Called at the start of each step. */
void model_server_release(struct model_server *o);

/* Releases all buffers of the run and drops all requests for pieces. Called when the run is given
 * up. Requests for a whole model stay pending and are answered from the next run. */
void model_server_forget(struct model_server *o);

/* Records whether the certificate of the run covers this peer's current model. Called in each step.
 * MODEL messages contain this flag. */
void model_server_certify(struct model_server *o, bool certified);

/* Stores a request for a whole model or for layer sketches. It replaces the pending request of this
 * session. */
void model_server_take(struct model_server *o, const struct link *l,
                       const struct wire_model_req *m);

/* Stores a request for a piece, or for the sketches of all pieces. Returns false if the piece does
 * not exist, if no run is ready, or if the session is an observer's. */
bool model_server_take_piece(struct model_server *o, const struct link *l,
                             const struct wire_model_req *m);

/* Sends a piece of the run's initial model at once. The initial model never changes, so this is
 * allowed while a job runs. Sends nothing if this peer lacks the initial model, if the piece does
 * not exist, or if no buffer is free. Returns false if the request is a protocol violation. */
bool model_server_send_initial(struct model_server *o, const struct link *l,
                               const struct wire_model_req *m);

/* Answers the pending requests for pieces from the copy. Without a copy they stay pending. */
void model_server_serve_pieces(struct model_server *o);

/* If requests for pieces are pending and no copy exists, copies the current model, which is of
 * round `round`, and answers these requests. No job may be running. */
void model_server_copy_pieces(struct model_server *o, uint64_t round);

/* Called when the send queue of session `number` has sent its bulk data. Returns the session if its
 * next request can be answered now, else NULL. */
const struct link *model_server_sent(struct model_server *o, uint32_t number);

/* Returns whether a copy of the model at round `round` would answer a pending request. Sets
 * *at_window to true if all such requests are for the start of a drift window. */
bool model_server_due(const struct model_server *o, uint64_t round, bool *at_window);

/* Sends `model`, a copy of the model at round `round`, to all sessions that requested this round or
 * an earlier one. If a drift window has just begun, also answers the requests for its start. Takes
 * ownership of the caller's reference to `model`. */
void model_server_serve(struct model_server *o, struct packet *model, uint64_t round);

/* Copies the current model, which is of round `round`, and answers all requests that this copy can
 * answer. No job may be running. If the round's mixing is not done yet (`mixed` is false),
 * observers get no answer. They compare models of several peers, and all of these must be taken
 * after the mixing. */
void model_server_serve_idle(struct model_server *o, uint64_t round, bool mixed);

/* Sends a copy of the current model, which is of round `round`, to session l. Does nothing if the
 * session has no pending request, or has an answer in its send queue. The requested round is not
 * checked. No job may be running. */
void model_server_serve_now(struct model_server *o, const struct link *l, uint64_t round);

#endif
