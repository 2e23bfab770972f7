/* peer/node/model_server.h -- models that others have asked us for, whole or in pieces.
 *
 * Owned here, and written by orders.c only: who wants our model and of which round, and the
 * copies that are in this step's sends. An order belongs to a link and ends with it.
 *
 *    none --MODEL_REQ--> wanted --a copy of that round, or of a drift window--> none
 *
 * An observer has one model on its way at a time: who asks and does not read would else make
 * us hold as many as a session's queue takes. What is said here of a model holds for the sketches
 * of its layers, too: they are made of the copy that a model would be.
 *
 * Pieces (gossip/exchange/piece.h) are for a member that joins. It may have asked for
 * MODEL_SERVER_PIECES, those that are sketches among them; what it asks for beyond that takes the place
 * of its oldest question. While a job runs the model is the worker's, and rounds may be long: a
 * copy is made for the first piece, and serves all that are asked for within COPY_US.
 */
#ifndef PEER_NODE_MODEL_SERVER_H
#define PEER_NODE_MODEL_SERVER_H

#include "peer/node/run_context.h"

enum {
    COPY_US = 10 * 1000 * 1000,
    MODEL_SERVER_PIECES = 4,
    MODEL_SERVER_HELD =
        64 /* Copies of pieces in one step's sends; the others go out with the next. */
};

/* One question for a piece, or for the sketches of all. */
struct model_server_piece
{
    uint32_t piece;
    uint64_t key; /* Not 0: sketches. */
};

struct model_server
{
    struct sessions *sessions;
    struct run_context *workshop;
    struct
    {
        bool wanted;
        bool on_way;    /* To an observer, which is sent nothing else in bulk. */
        uint32_t link;  /* Its number: another session in its place has ordered nothing. */
        uint64_t round; /* They want our model at or after this round: */
        uint64_t key;   /* not 0: sketches of its layers, by this key. */
        uint32_t n_pieces;
        struct model_server_piece piece[MODEL_SERVER_PIECES]; /* The oldest first. */
    } at[NODE_LINKS_MAX];
    bool any;            /* Some may stand; false: none does, and nobody looks for them. */
    struct packet *held; /* In this step's sends; released in the next. So are these: */
    struct packet *held_piece[MODEL_SERVER_HELD];
    uint32_t n_held_pieces;
    struct packet_pool
        initial;         /* For pieces of the initial model: some may be on their way when the
                                 * run is given up. */
    struct packet *copy; /* What pieces are of, */
    uint64_t copy_round; /* and of which round it is, */
    int64_t copy_us;     /* made then. */
};

void model_server_init(struct model_server *o, struct sessions *s, struct run_context *w);
void model_server_close(struct model_server *o);

/* The sends of the last step are out. */
void model_server_release(struct model_server *o);

/* The run is given up, and with it what was asked for of its model. */
void model_server_forget(struct model_server *o);

/* For our model, or sketches of its layers (gossip/exchange/layers.h). */
void model_server_take(struct model_server *o, const struct link *l,
                       const struct wire_model_req *m);

/* The same for a piece. False: there is no such piece, or this link may not ask for any. */
bool model_server_take_piece(struct model_server *o, const struct link *l,
                             const struct wire_model_req *m);

/* Send a piece of the run's initial model, which never changes: at once, and at any time. Where there is
 * none to be had of us now nothing comes. False: this link may not ask for any. */
bool model_server_send_initial(struct model_server *o, const struct link *l,
                               const struct wire_model_req *m);

/* Send the pieces that were asked for, if there is a copy. */
void model_server_serve_pieces(struct model_server *o);

/* Make one if there is none and somebody waits, and send them. No job may be running. */
void model_server_copy_pieces(struct model_server *o, uint64_t round);

/* Bulk has left us for the link of this number: the link, if its next order stands. */
const struct link *model_server_sent(struct model_server *o, uint32_t number);

/* Does somebody want the model of this round? *at_window: only if a drift window begins. */
bool model_server_due(const struct model_server *o, uint64_t round, bool *at_window);

/* Send this copy of the model to all who want one of its round or before. Takes it. */
void model_server_serve(struct model_server *o, struct packet *model, uint64_t round);

/* The same while no job runs: make a copy and send it to all who want the present round's. Where that
 * has not `mixed` yet, observers wait for the job that does: models that are compared are of one state
 * of the round. */
void model_server_serve_idle(struct model_server *o, uint64_t round, bool mixed);

/* Send the model as it is to one who has ordered it, unless one is on its way there. No job
 * may be running. */
void model_server_serve_now(struct model_server *o, const struct link *l, uint64_t round);

#endif
