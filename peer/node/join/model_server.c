/* peer/node/join/model_server.c -- stores requests for this peer's model and answers them. */
#include "peer/node/join/model_server.h"

#include "peer/node/mark.h"

#include "gossip/exchange/piece.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    struct
    {
        bool wanted; /* True: a request for a whole model or for layer sketches is pending. */
        /* True: the session is an observer's, and an answer is in its send queue. The next answer
         * must wait until this one is sent. */
        bool on_way;
        /* Driver's number of the session that sent the requests of this slot. A later session in
         * the same slot has another number, so the requests are not mistaken for its own. */
        uint32_t link;
        uint64_t round; /* Requested round of the whole model, as in struct wire_model_req. */
        uint64_t key;   /* Key of the requested layer sketches. 0: the model itself is requested. */
        uint32_t n_pieces; /* Number of pending requests for pieces. */
        /* Pending requests for pieces, oldest first. */
        struct model_server_piece piece[MODEL_SERVER_PIECES];
    } at[NODE_LINKS_MAX]; /* Pending requests of each session, indexed by the session's slot. */
    /* False: no request of any session is pending, so the loops over all sessions are skipped. */
    bool any;
    /* True: the certificate of the run covers this peer's current model, and the model in
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
    uint64_t copy_round; /* Round of the copy from which pieces are cut. */
    int64_t copy_us;     /* Node time at which the copy for pieces was made, in microseconds. */
};

struct model_server *model_server_open(struct env *env, struct sessions *s, struct run_context *w)
{
    struct model_server *o = calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    *o = (struct model_server){.env = env, .sessions = s, .workshop = w};
    packet_pool_init(&o->initial, PIECE_FLOATS_MAX * sizeof(float));
    return o;
}

void model_server_close(struct model_server *o)
{
    if (o == NULL)
        return;
    assert(o->held == NULL && o->copy == NULL && o->n_held_pieces == 0);
    packet_pool_close(&o->initial);
    free(o);
}

static void drop_copy(struct model_server *o)
{
    packet_release(o->copy);
    o->copy = NULL;
}

/* Clears the flag o->any (some request is pending) if no session has a pending request any more. */
static void look_for_any(struct model_server *o)
{
    bool any = false;
    for (size_t i = 0; i < sessions_slots(o->sessions) && o->any && !any; i++)
        any = o->at[i].wanted || o->at[i].n_pieces > 0;
    o->any = any;
}

void model_server_release(struct model_server *o)
{
    packet_release(o->held);
    o->held = NULL;
    while (o->n_held_pieces > 0)
        packet_release(o->held_piece[--o->n_held_pieces]);
    look_for_any(o);
    if (o->initial.free != NULL && o->initial.live == 0)
        packet_pool_close(
            /* Requests for the initial model are rare, so free buffers are returned to the
             * system. */
            &o->initial);
    if (o->copy != NULL && o->env->now_us - o->copy_us > MODEL_SERVER_COPY_US)
        drop_copy(o);
}

/* When the flag changes, the copy for pieces may still contain the model before the final
 * averaging, so the copy is dropped. */
void model_server_certify(struct model_server *o, bool certified)
{
    if (o->certified != certified)
        drop_copy(o);
    o->certified = certified;
}

void model_server_forget(struct model_server *o)
{
    model_server_release(o);
    drop_copy(o);
    for (size_t i = 0; i < sessions_slots(o->sessions); i++)
        o->at[i].n_pieces = 0;
}

/* Drops the requests of an earlier session that had the same index. */
static void begin_orders(struct model_server *o, size_t i)
{
    const struct link *l = sessions_at(o->sessions, i);
    if (o->at[i].link == l->number)
        return;
    o->at[i].on_way = o->at[i].wanted = false;
    o->at[i].n_pieces = 0;
    o->at[i].link = l->number;
}

void model_server_take(struct model_server *o, const struct link *l, const struct wire_model_req *m)
{
    size_t i = sessions_slot(o->sessions, l);
    assert(l->role != LINK_NEW && l->hung_up == NULL);
    begin_orders(o, i);
    o->at[i].wanted = o->any = true;
    o->at[i].round = m->round;
    o->at[i].key = m->key;
}

static void drop_oldest_piece(struct model_server *o, size_t i)
{
    memmove(o->at[i].piece, o->at[i].piece + 1, --o->at[i].n_pieces * sizeof o->at[i].piece[0]);
}

bool model_server_take_piece(struct model_server *o, const struct link *l,
                             const struct wire_model_req *m, uint64_t round)
{
    size_t i = sessions_slot(o->sessions, l);
    bool ready = o->workshop->ready && l->role != LINK_OBSERVER;
    if (!ready || (m->key == 0 && m->piece >= run_context_pieces(o->workshop)))
        return false;
    bool early = o->copy != NULL && o->copy_round < m->round && o->copy_round < round;
    MARK_IF(early, "model_server: drops a copy of an early round");
    if (early)
        drop_copy(o);
    begin_orders(o, i);
    if (o->at[i].n_pieces == MODEL_SERVER_PIECES)
        drop_oldest_piece(o, i);
    o->at[i].piece[o->at[i].n_pieces++] = (struct model_server_piece){m->piece, m->key};
    o->any = true;
    return true;
}

/* Returns whether the session that sent the requests at index i still exists. */
static bool is_there(const struct model_server *o, size_t i)
{
    const struct link *l = sessions_at(o->sessions, i);
    return l->used && l->number == o->at[i].link;
}

/* Returns whether a request for a whole model or layer sketches at index i can be answered now: no
 * answer is in the send queue of its session. An observer's request must also wait until the model
 * is mixed in this round (`mixed`): observers compare models of several peers, which must all be
 * taken after the mixing. */
static bool counts(const struct model_server *o, size_t i, bool mixed)
{
    return o->at[i].wanted && !o->at[i].on_way && is_there(o, i)
           && (mixed || sessions_at(o->sessions, i)->role != LINK_OBSERVER);
}

/* Returns whether the i-th session has pending requests for pieces. */
static bool wants_pieces(const struct model_server *o, size_t i)
{
    return o->at[i].n_pieces > 0 && is_there(o, i);
}

const struct link *model_server_sent(struct model_server *o, uint32_t number)
{
    for (size_t i = 0; i < sessions_slots(o->sessions); i++) {
        if (o->at[i].link != number)
            continue;
        o->at[i].on_way = false;
        if (counts(o, i, true))
            return sessions_at(o->sessions, i);
    }
    return NULL;
}

bool model_server_due(const struct model_server *o, uint64_t round, bool mixed, bool *at_window)
{
    bool any = false;
    *at_window = true; /* Becomes false if a request of another kind is found. */
    for (size_t i = 0; i < sessions_slots(o->sessions) && o->any; i++) {
        bool now = o->at[i].round <= round;
        if (wants_pieces(o, i) && o->copy == NULL) {
            any = true;
            *at_window = false;
        }
        if (!counts(o, i, mixed) || !(now || o->at[i].round == WIRE_ROUND_WINDOW))
            continue;
        any = true;
        *at_window &= !now;
    }
    return any;
}

/* ---- answers ---- */

/* Returns an empty buffer, which is released in the next step. NULL: MODEL_SERVER_HELD buffers are
 * in use, or memory is not available. */
static struct packet *take_buffer(struct model_server *o, struct packet_pool *pool)
{
    struct packet *out = o->n_held_pieces < MODEL_SERVER_HELD ? packet_get(pool) : NULL;
    if (out != NULL)
        o->held_piece[o->n_held_pieces++] = out;
    return out;
}

static void send_payload(struct model_server *o, const struct link *l, struct wire_model m,
                         struct packet *payload)
{
    uint8_t head[WIRE_HEAD_MAX];
    m.payload.p = packet_bytes(payload, &m.payload.n);
    sessions_send(o->sessions, l, true, head, wire_put_model(head, sizeof head, &m), payload);
}

/* Returns a buffer with sketches of the model's layers. NULL: no buffer is available. */
static struct packet *sketch_layers(struct model_server *o, uint64_t key,
                                    const struct packet *model)
{
    const struct layers *l = &o->workshop->layers;
    struct packet *out = take_buffer(o, &o->workshop->pieces);
    if (out == NULL)
        return NULL;
    /* The casts to float are valid, because packet.bytes is aligned to the size of a float. */
    layers_sketch(l, key, (const float *)(const void *)model->bytes, (float *)(void *)out->bytes);
    out->len = l->n_floats * sizeof(float);
    assert(out->len <= out->cap);
    return out;
}

/* Sends the model or its layer sketches to the i-th session. If no buffer is available, the request
 * stays pending. */
static void send_model(struct model_server *o, size_t i, struct packet *model, uint64_t round)
{
    uint64_t key = o->at[i].key;
    const struct link *l = sessions_at(o->sessions, i);
    assert(o->workshop->ready && counts(o, i, true));
    struct wire_model m = {.round = round,
                           .piece = key != 0 ? WIRE_PIECE_LAYERS : WIRE_PIECE_WHOLE,
                           .key = key,
                           .certified = o->certified};
    if (key != 0)
        model = sketch_layers(o, key, model);
    if (model == NULL)
        return;
    o->at[i].wanted = false;
    o->at[i].on_way = l->role == LINK_OBSERVER;
    send_payload(o, l, m, model);
}

/* Writes to `out` what a joining peer has requested from model x: one piece of it, or one short
 * random projection (sketch) of each piece, by which the peer compares the models of several
 * sources. */
static void fill_piece(const struct run_context *w, const struct model_server_piece *q,
                       const float *x, struct packet *out)
{
    size_t n = w->mixing.n_floats;
    /* The caller has checked that the run is ready and has the piece. */
    assert(w->ready && (q->key != 0 || q->piece < run_context_pieces(w)));
    if (q->key != 0) {
        out->len = piece_count(n) * PIECE_SKETCH * sizeof(float);
        assert(out->len <= out->cap);
        piece_sketch(q->key, x, n, out->bytes);
        return;
    }
    size_t n_floats, at = run_context_piece_at(w, q->piece, &n_floats);
    out->len = n_floats * sizeof(float);
    assert(out->len <= out->cap);
    memcpy(out->bytes, x + at, out->len);
}

/* Answers the i-th session's oldest request for a piece or for sketches of all pieces. Returns
 * false if no buffer is available; the request then stays pending. */
static bool send_piece(struct model_server *o, size_t i)
{
    /* The cast to float is valid, because packet.bytes is aligned to the size of a float. */
    const float *x = (const float *)(const void *)o->copy->bytes;
    const struct model_server_piece *q = &o->at[i].piece[0];
    struct packet *copy = take_buffer(o, &o->workshop->pieces);
    if (copy == NULL)
        return false;
    fill_piece(o->workshop, q, x, copy);
    struct wire_model m = {
        .round = o->copy_round, .piece = q->piece, .key = q->key, .certified = o->certified};
    send_payload(o, sessions_at(o->sessions, i), m, copy);
    drop_oldest_piece(o, i);
    return true;
}

bool model_server_send_initial(struct model_server *o, const struct link *l,
                               const struct wire_model_req *m)
{
    const struct run_context *w = o->workshop;
    if (l->role == LINK_OBSERVER || m->key != 0)
        return false;
    bool has = w->ready && !w->lacks && m->piece < piece_count(w->mixing.n_floats);
    struct packet *copy = has ? take_buffer(o, &o->initial) : NULL;
    if (copy == NULL)
        return true;
    struct model_server_piece q = {.piece = m->piece};
    fill_piece(w, &q, w->mixing.x0, copy);
    send_payload(o, l, (struct wire_model){.round = WIRE_ROUND_INITIAL, .piece = m->piece}, copy);
    return true;
}

void model_server_serve_pieces(struct model_server *o)
{
    for (size_t i = 0; i < sessions_slots(o->sessions) && o->copy != NULL && o->any; i++)
        while (wants_pieces(o, i))
            if (!send_piece(o, i))
                return;
}

/* Returns whether requests for pieces are pending and there is no copy to answer them from. */
static bool waits_for_copy(const struct model_server *o)
{
    bool any = false;
    for (size_t i = 0; i < sessions_slots(o->sessions) && o->any && !any; i++)
        any = wants_pieces(o, i);
    return any && o->copy == NULL;
}

static void set_copy(struct model_server *o, struct packet *model, uint64_t round)
{
    assert(o->copy == NULL && model->refs > 0);
    o->copy = model;
    o->copy_round = round;
    o->copy_us = o->env->now_us;
}

/* Returns a copy of the current model if `needed` is true. NULL: `needed` is false, or memory is
 * exhausted. */
static struct packet *copy_model(struct model_server *o, bool needed)
{
    struct packet *now = needed ? packet_get(&o->workshop->models) : NULL;
    if (now != NULL)
        run_context_copy_model(o->workshop, now);
    return now;
}

/* If requests for pieces are pending and no copy exists, copies the current model, which is of
 * round `round`. Then answers the pending requests for pieces. */
static void copy_pieces(struct model_server *o, uint64_t round)
{
    struct packet *now = copy_model(o, waits_for_copy(o));
    if (now != NULL)
        set_copy(o, now, round);
    model_server_serve_pieces(o);
}

void model_server_serve(struct model_server *o, struct packet *model, uint64_t round, bool mixed)
{
    bool window = mixing_window_began(&o->workshop->mixing);
    /* A second copy in one step would replace o->held without a release. */
    assert(o->held == NULL && model->refs > 0);
    for (size_t i = 0; i < sessions_slots(o->sessions); i++)
        if (counts(o, i, mixed)
            && (o->at[i].round <= round || (o->at[i].round == WIRE_ROUND_WINDOW && window)))
            send_model(o, i, model, round);
    if (waits_for_copy(o)) {
        packet_hold(model);
        set_copy(o, model, round);
    }
    model_server_serve_pieces(o);
    o->held = model;
}

void model_server_serve_idle(struct model_server *o, uint64_t round, bool mixed)
{
    bool at_window;
    copy_pieces(o, round);
    /* If `held` is not NULL, this step has already sent a whole model, and no step sends two. */
    bool due = o->held == NULL && model_server_due(o, round, mixed, &at_window) && !at_window;
    struct packet *now = copy_model(o, due);
    if (now != NULL)
        model_server_serve(o, now, round, mixed);
}

void model_server_serve_now(struct model_server *o, const struct link *l, uint64_t round,
                            bool mixed, bool any_round)
{
    size_t i = sessions_slot(o->sessions, l);
    copy_pieces(o, round);
    /* One call of node_step() sends at most one copy of the whole model, and this call has sent
     * none yet. */
    assert(o->held == NULL);
    struct packet *copy =
        copy_model(o, counts(o, i, mixed) && (any_round || o->at[i].round <= round));
    if (copy == NULL)
        return;
    send_model(o, i, copy, round);
    o->held = copy;
}
