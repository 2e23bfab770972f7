/* peer/node/state_transfer.h -- a late joiner's model, in pieces from several peers at once.
 *
 * Owned here, and written by fetch.c only: the pieces that have come, whom the others were asked
 * of, and who counts as a source. Used by join.c alone.
 *
 *    free --MODEL_REQ(piece)--> asked --MODEL(piece)--> here       piece by piece
 *      ^                          |                      |
 *      +- its source is gone, or -+                      | all are here: MODEL_REQ(key) to all
 *      |  silent for STALL_US                            v sources, for sketches of their models
 *      +---- its source is refused ------------------- judged --none refused--> taken, whole
 *
 * Sources are members of our run that have begun it, STATE_TRANSFER_SOURCES at a time, and sessions with
 * some more are called for meanwhile. Each is asked for STATE_TRANSFER_WINDOW pieces at a time, so that
 * a faster one sends more; when none is left to ask for, what another is slow to send is asked
 * for twice, and the first that comes counts. What a source has sent stays when its session
 * ends.
 *
 * Each piece is a copy of what its source had at that time, and rounds go by meanwhile. That is
 * no loss: the pieces of one message would all be as old as the oldest of these. Which model that
 * makes, and how it is judged, is in gossip/exchange/piece.h. A source that most others contradict
 * is struck: all that it sent is fetched anew elsewhere. Where two contradict each other and there
 * is no third, the one whose model is further from the run's initial one is struck: nobody can
 * tell who lies, and the other does less harm. With a single source there is nothing to compare.
 *
 * Memory: one model, and sketches of STATE_TRANSFER_SOURCES more. Nothing of it is used before all of it is.
 */
#ifndef PEER_NODE_STATE_TRANSFER_H
#define PEER_NODE_STATE_TRANSFER_H

#include "gossip/exchange/piece.h"
#include "peer/node/run_context.h"

enum {
    STATE_TRANSFER_SOURCES = 4,
    STATE_TRANSFER_WINDOW = 2,
    STATE_TRANSFER_QUESTIONS = 64 /* The last ones, which may still be answered. */
};

/* One whom we have asked, also after its session has ended. */
struct state_transfer_source
{
    uint32_t link;
    uint8_t id[WIRE_ID_BYTES];
    bool struck;
    bool silent;      /* It was asked, and nothing comes: it is passed over until something does. */
    bool asked_own;   /* For sketches of its model; */
    float *own;       /* here they are, or NULL. */
    uint32_t n_asked; /* Questions for pieces that it has not answered. */
    int64_t heard_us; /* When one came, or was asked for after a while of none. */
    uint64_t round;   /* That of what it said last. */
};

struct state_transfer_piece
{
    bool here;
    uint8_t from;     /* Whose it is, once it is here; */
    uint32_t asked;   /* before that a bit for each source that may be sending it, */
    int64_t asked_us; /* and when the last of them was asked. */
};

struct state_transfer
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    bool active;
    uint64_t n_fetches; /* So many have begun. */
    float *staged;      /* The pieces that are here; the others are the initial model's. */
    struct state_transfer_piece *piece;
    size_t n_pieces;
    struct state_transfer_source source[PIECE_SOURCES];
    size_t n_sources;
    uint64_t key; /* That of the sketches that were asked for; 0: none are now. */
    double apart; /* The model that was judged is so far from the farthest source's, over its
                   * norm, by their sketches; INFINITY: none was to be had. */
    int64_t begun_us, asked_us;
    struct
    {
        uint32_t link, piece; /* link UINT32_MAX: it was answered. */
        uint64_t key, fetch;
    } question[STATE_TRANSFER_QUESTIONS]; /* In a ring. */
    uint32_t n_questions;
    uint8_t wanted[STATE_TRANSFER_SOURCES]
                  [WIRE_ID_BYTES]; /* Members that we want a session with. */
    size_t n_wanted;
};

void state_transfer_init(struct state_transfer *f, struct env *env, struct sessions *s,
                         struct run_context *w);
void state_transfer_close(struct state_transfer *f); /* What was fetched is given up. */

/* Want sessions with a few more members, until state_transfer_close(). */
void state_transfer_seek(struct state_transfer *f);

/* Ask on. True: it is all here and was judged; it is ours in f->staged until state_transfer_close(). */
bool state_transfer_update(struct state_transfer *f);

/* A MODEL came. NULL, or what is wrong with it. */
const char *state_transfer_take(struct state_transfer *f, const struct link *l,
                                const struct wire_model *m);

/* The round that the model counts as: of what the sources said last, the lower median. */
uint64_t state_transfer_round(const struct state_transfer *f);

/* How many sources have a piece in it. */
size_t state_transfer_givers(const struct state_transfer *f);

#endif
