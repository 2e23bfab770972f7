/* peer/node/fetch.h -- a late joiner's model, in pieces from several peers at once.
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
 * Sources are members of our run that have begun it, FETCH_SOURCES at a time, and sessions with
 * some more are called for meanwhile. Each is asked for FETCH_WINDOW pieces at a time, so that
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
 * Memory: one model, and sketches of FETCH_SOURCES more. Nothing of it is used before all of it is.
 */
#ifndef PEER_NODE_FETCH_H
#define PEER_NODE_FETCH_H

#include "gossip/exchange/piece.h"
#include "peer/node/workshop.h"

enum {
    FETCH_SOURCES = 4,
    FETCH_WINDOW = 2,
    FETCH_QUESTIONS = 64 /* The last ones, which may still be answered. */
};

/* One whom we have asked, also after its session has ended. */
struct fetch_source
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

struct fetch_piece
{
    bool here;
    uint8_t from;     /* Whose it is, once it is here; */
    uint32_t asked;   /* before that a bit for each source that may be sending it, */
    int64_t asked_us; /* and when the last of them was asked. */
};

struct fetch
{
    struct env *env;
    struct sessions *sessions;
    struct workshop *workshop;
    bool active;
    uint64_t n_fetches; /* So many have begun. */
    float *staged;      /* The pieces that are here; the others are the initial model's. */
    struct fetch_piece *piece;
    size_t n_pieces;
    struct fetch_source source[PIECE_SOURCES];
    size_t n_sources;
    uint64_t key; /* That of the sketches that were asked for; 0: none are now. */
    double apart; /* The model that was judged is so far from the farthest source's, over its
                   * norm, by their sketches; INFINITY: none was to be had. */
    int64_t begun_us, asked_us;
    struct
    {
        uint32_t link, piece; /* link UINT32_MAX: it was answered. */
        uint64_t key, fetch;
    } question[FETCH_QUESTIONS]; /* In a ring. */
    uint32_t n_questions;
    uint8_t wanted[FETCH_SOURCES][WIRE_ID_BYTES]; /* Members that we want a session with. */
    size_t n_wanted;
};

void fetch_init(struct fetch *f, struct env *env, struct sessions *s, struct workshop *w);
void fetch_close(struct fetch *f); /* What was fetched is given up. */

/* Want sessions with a few more members, until fetch_close(). */
void fetch_seek(struct fetch *f);

/* Ask on. True: it is all here and was judged; it is ours in f->staged until fetch_close(). */
bool fetch_update(struct fetch *f);

/* A MODEL came. NULL, or what is wrong with it. */
const char *fetch_take(struct fetch *f, const struct link *l, const struct wire_model *m);

/* The round that the model counts as: of what the sources said last, the lower median. */
uint64_t fetch_round(const struct fetch *f);

/* How many sources have a piece in it. */
size_t fetch_givers(const struct fetch *f);

#endif
