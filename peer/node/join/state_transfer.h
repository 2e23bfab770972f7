/* peer/node/join/state_transfer.h -- fetches the model of a late joiner, in pieces from several
 * members in parallel.
 *
 * A source is a member of this run that has begun it. Each piece of the model goes through these
 * states:
 *
 *   missing --send MODEL_REQ(piece)--> requested --receive MODEL(piece)--> present
 *      ^                                  |                                   |
 *      +-- session of the source ends, ---+                                   |
 *      |   or nothing arrives for 5 s                                         |
 *      +-- source is excluded ------------------------------------------------+
 *
 * When all pieces are present, the model is judged:
 *
 *   MODEL_REQ(key) to all sources --> sketches of their models arrive --> judge
 *       no source is contradicted      the model is complete
 *       a source is contradicted       exclude it and fetch its pieces from other sources
 *
 * Up to STATE_TRANSFER_SOURCES sources are used in parallel. While there are fewer, this peer calls
 * more members. At most STATE_TRANSFER_WINDOW requests are open at each source, so that a faster
 * source sends more pieces. If no piece is left to request, pieces that are late are also requested
 * from a second source, and the copy that arrives first counts. When the session of a source ends,
 * the pieces that it has sent stay valid.
 *
 * The pieces are from different rounds, because the sources continue to train. A single message
 * with the whole model would be no newer: all of its values would be as old as the oldest piece.
 * gossip/exchange/piece.h explains why a mixture of pieces is a good model, and how it is judged.
 *
 * A source that most other sources contradict is excluded. If two sources contradict each other and
 * no third one has answered, the source whose model is farther from the run's initial model is
 * excluded. Nothing shows which of the two lies, and the nearer model does less harm. A single
 * source is not judged, because there is nothing to compare it with.
 *
 * With --outer the pieces of the outer momentum follow those of the model (run_context.h). They are
 * not judged, because each peer has another momentum.
 *
 * The fetched model is staged in memory of its own and is used only when it is complete. Memory:
 * one model, and the sketches of up to PIECE_SOURCES models.
 *
 * Only state_transfer.c writes struct state_transfer. Only join.c uses it.
 */
#ifndef PEER_NODE_JOIN_STATE_TRANSFER_H
#define PEER_NODE_JOIN_STATE_TRANSFER_H

#include "gossip/exchange/piece.h"
#include "peer/node/finish/proposal.h"
#include "peer/node/run_context.h"

enum {
    STATE_TRANSFER_SOURCES = 4, /* Number of sources that are used in parallel. */
    STATE_TRANSFER_WINDOW = 2,  /* Maximum number of open piece requests at one source. */
    /* Number of requests that are remembered. A MODEL message is accepted only as an answer to one
     * of them. */
    STATE_TRANSFER_QUESTIONS = 64
};

/* A member that was asked for pieces. The entry stays when the session with the member ends. */
struct state_transfer_source
{
    uint32_t link;             /* Driver's number of the newest session with the member. */
    uint8_t id[WIRE_ID_BYTES]; /* Identity of the member. */
    bool struck;               /* True: the source is excluded, and its pieces are discarded. */
    /* True: the source did not answer open requests for STATE_TRANSFER_STALL_US. It gets no further
     * request until it sends a MODEL, it has a new session, or all connected sources are silent. */
    bool silent;
    /* True: sketches of the source's model have arrived, or were requested and may still arrive. */
    bool asked_own;
    /* Sketches of the source's model, PIECE_SKETCH floats per piece. NULL: not received. */
    float *own;
    uint32_t n_asked; /* Number of piece requests that the source has not answered. */
    /* Last time when a MODEL arrived from the source, or when a piece was requested while no other
     * request was open. Node time in microseconds. 0: no piece was requested. */
    int64_t heard_us;
    /* Round in the last MODEL of the source. Before the first MODEL: the round that its session
     * reported. */
    uint64_t round;
};

/* Progress of one piece of the model. */
struct state_transfer_piece
{
    bool here;        /* True: the piece is present in state_transfer.staged. */
    uint8_t from;     /* Index of the source that sent the piece. Valid if `here` is true. */
    uint32_t asked;   /* Bit k is set if source k has an open request for the piece. */
    int64_t asked_us; /* Node time of the last request for the piece, in microseconds. */
};

/* The transfer of one model. It can be started again after it was closed. */
struct state_transfer
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    bool active; /* True from the start of a fetch until state_transfer_close(). */
    /* If not NULL, only members whose models this certificate covers are sources. Borrowed. Set by
     * state_transfer_update(). */
    const struct finish_proposal *certificate;
    /* Number of fetches that were started so far. Identifies the current fetch. */
    uint64_t n_fetches;
    /* Model and outer momentum under construction (run_context.h). Missing pieces contain the run's
     * initial model, or 0. NULL: no fetch. */
    float *staged;
    /* Progress of each piece: array of n_pieces entries. NULL: no fetch. */
    struct state_transfer_piece *piece;
    size_t n_pieces;
    /* Sources of the fetch. The first n_sources entries are used. */
    struct state_transfer_source source[PIECE_SOURCES];
    size_t n_sources;
    uint64_t key; /* Key of the requested sketches. 0: no sketches are requested now. */
    /* Largest distance of the judged model from the model of a source, relative to the norm of the
     * judged model. Estimated from sketches. INFINITY: no source has sent sketches. Valid after
     * state_transfer_update() has returned true. */
    double apart;
    /* begun_us: node time at which the fetch began. asked_us: node time at which sketches with
     * `key` were first requested. In microseconds. */
    int64_t begun_us, asked_us;
    struct
    {
        /* Driver's number of the session, and index of the requested piece. If link is UINT32_MAX,
         * the request has been answered. */
        uint32_t link, piece;
        /* key: 0 for a piece, else the key of the requested sketches. fetch: value of n_fetches
         * when the request was sent. */
        uint64_t key, fetch;
    } question[STATE_TRANSFER_QUESTIONS]; /* Ring of the last requests. */
    uint32_t n_questions;                 /* Number of requests that were ever sent. */
    /* Members with which this peer wants a session until state_transfer_close(). The first n_wanted
     * entries are used. */
    uint8_t wanted[STATE_TRANSFER_SOURCES][WIRE_ID_BYTES];
    size_t n_wanted;
};

/* Initialises the transfer without starting a fetch. The pointers are borrowed. */
void state_transfer_init(struct state_transfer *f, struct env *env, struct sessions *s,
                         struct run_context *w);
/* Discards the fetched pieces and frees their memory. A new fetch may be started afterwards. */
void state_transfer_close(struct state_transfer *f);

/* Calls up to STATE_TRANSFER_SOURCES - 1 live members that have no session with this peer. These
 * sessions are wanted until state_transfer_close(). */
void state_transfer_seek(struct state_transfer *f);

/* Returns whether the member of this session can be a source: it has begun this run, the certificate,
 * if not NULL, contains the member, and the member has not sent an uncertified model. O(members of the certificate). */
bool state_transfer_is_source(const struct link *l, const struct finish_proposal *certificate);

/* Starts or continues the fetch: chooses sources, sends requests, and judges the model once all
 * pieces are present. If `certificate` differs from that of the last call, the fetch starts again.
 * Called at every step. Returns true if the model is complete and was accepted; f->staged then holds
 * it until state_transfer_close(). If memory for the model is not available, the node ends. */
bool state_transfer_update(struct state_transfer *f, const struct finish_proposal *certificate);

/* Handles a MODEL message with a piece or with sketches. Returns NULL, or the protocol violation in
 * words. */
const char *state_transfer_take(struct state_transfer *f, const struct link *l,
                                const struct wire_model *m);

/* Returns the round of the fetched model: the lower median of the rounds that its sources reported
 * last. 0: no piece was requested from any source. */
uint64_t state_transfer_round(const struct state_transfer *f);

/* Returns the number of sources that sent at least one piece of the fetched model. */
size_t state_transfer_givers(const struct state_transfer *f);

#endif
