/* gossip/exchange/edge.h -- the protocol of one edge: each exchange of deltas is a transaction.
 *
 * The two ends of an edge are this peer i and the neighbour j. Each end stores an epoch E, a round
 * r (the number of exchanges committed in E), and two replicas: a = x_hat(i->j) of its own model
 * and b = x_hat(j->i) of the other end's model. Each end also keeps its own last two deltas,
 * because the other end may be one exchange behind:
 *
 *    own deltas:          [prev: round r-1]   [cur: round r]     kept until the neighbour has them
 *    neighbour's deltas:  [got: round r]      [got: round r+1]   validated, still encoded
 *
 * Rules of the protocol:
 *
 * 1. This peer sends cur = Q(x - a) and applies nothing yet.
 * 2. The exchange is *ready* when cur exists and the neighbour's delta of round r has arrived. The
 *    next job then commits it: it applies both deltas, mixes, and r increases by 1. The mixer
 *    (gossip/mixers/mixer.h) decides what a delta contains and how the model moves.
 * 3. When a session is established, the two ends exchange EDGE(E, r, nonce) as a request and its
 *    answer. Each end compares the received E and r with its own:
 *
 *      same E, same r: continue; send cur again (the receiver drops a repeat).
 *      same E, r of this peer is one higher: send prev and cur again; RESET if prev is not stored.
 *      same E, r of the neighbour is one higher: continue; send cur again; the neighbour sends its
 *      deltas again. RESET if cur is not stored.
 *      anything else: RESET. The new E is a hash of both boot ids and nonces, r = 0, and
 *      a = b = the initial model of the run.
 *
 *    Each exchange is therefore applied exactly once, and no model has to be sent again.
 *
 * An end may request again later: it has received a delta of an unknown epoch, or the consensus
 * phase continues after an aborted attempt to end the run. Both ends must use the nonces of the
 * same two messages, because they derive the new epoch from them. Therefore an answer names the
 * nonce of its request, and counts only for the last request of its receiver.
 *
 * The requests of both ends can cross. The first two requests of a session usually cross, and are
 * used as if each were the answer to the other. If one of the two messages does not say that it is
 * the *first*, that is, that its sender has received no EDGE on this session, the requests are not
 * used as a pair: the end with the lower identity ignores the request that it receives, and the
 * other end answers. Without this rule, the ends would use different nonces if each had sent
 * another request before the request of the other end arrived. Each delta would then cause a
 * further request, and both ends would reset the edge without end.
 *
 *      lower identity    request(nonce 7)                           uses 7 and 9
 *      higher identity   request(nonce 5)   answer(nonce 9, to 7)   uses 7 and 9
 *
 * An EDGE message also says whether its sender is *restored*: it restored the edge from a
 * checkpoint, and has received no delta since. If only one end is restored, the edge is RESET, for
 * two reasons. The other end may have applied an exchange that the checkpoint does not contain. It
 * may also hold a delta of the restored end's earlier process, which the new process would not make
 * again bit for bit. There is one exception: if the same two processes have already continued this
 * epoch over an earlier session, all exchanges since then were between these two processes, and
 * rule 3 applies.
 *
 * States of an edge (enum edge_state). "Node" means peer/node/edge/edges.c:
 *
 *   from             event                                              to
 *   any              edge_ask(): this peer sends its EDGE               ASKING
 *   any              edge_agree(): both ends have sent EDGE             OPEN
 *   OPEN             edge_pause(): session lost, or neighbour silent    PAUSED
 *   ASKING           edge_pause() with link_lost                        PAUSED
 *   PAUSED           node: a silent neighbour is heard again            OPEN
 *   any              node: the neighbour's model is final               DONE
 *   DONE             node: the peers mix again (edges_reopen())         PAUSED
 *   any              edge_close()                                       CLOSED
 *
 * The code performs no I/O: it gets received messages and returns verdicts. It does not access the
 * vectors a and b.
 */
#ifndef GOSSIP_EXCHANGE_EDGE_H
#define GOSSIP_EXCHANGE_EDGE_H

#include "gossip/exchange/codec_levels.h"
#include "gossip/exchange/gamma.h"
#include "gossip/exchange/outlier_filter.h"
#include "gossip/exchange/packet.h"
#include "gossip/exchange/sketch.h"
#include "gossip/wire/wire.h"

/* State of an edge. The table at the top of this file lists the transitions. */
enum edge_state {
    EDGE_CLOSED, /* The edge was never opened, or edge_close() has closed it. */
    /* This peer has made its EDGE message (its epoch and round), and the two ends have not agreed
     * yet. */
    EDGE_ASKING,
    EDGE_OPEN,   /* Both ends have sent an EDGE message, and exchanges take place. */
    EDGE_PAUSED, /* Exchanges wait, because the session is lost or the neighbour is silent. */
    EDGE_DONE    /* The neighbour's model is final, and no further exchange takes place. */
};

/* Codec of one delta. The sender chooses a codec for each delta and names it in the header. The
 * codec also tells the mixer of the run what the delta contains (gossip/mixers/mixer.h). */
enum delta_codec {
    DELTA_RUN,   /* Codec of the run, given by --compress. */
    DELTA_FINAL, /* Codec of the consensus phase, given by --final-compress. */
    /* Codec of the first delta of an epoch that began while the run was under way. */
    DELTA_CATCHUP,
    /* First of CODEC_LEVELS_RUNGS codecs, one for each codec level of --compress auto
     * (codec_levels.h). With --compress auto these codecs replace DELTA_RUN. */
    DELTA_RUNG,
    DELTA_CODECS = DELTA_RUNG + CODEC_LEVELS_RUNGS
};

/* One delta of this peer, kept until the neighbour is known to have applied it. */
struct edge_sent
{
    struct packet *payload; /* Encoded delta. NULL: there is no delta. */
    /* Header of the delta. Its byte ranges are set when the message is written. */
    struct wire_delta head;
    struct sketch_message sketch;
    /* Number of payload bytes that were encoded as fragments, earlier than the other bytes. They
     * are the last bytes of the payload, and may already have been sent in PART messages. 0: the
     * delta has no fragments. */
    size_t n_parts;
};

/* One delta of the neighbour, validated and copied, but not applied yet. */
struct edge_got
{
    bool full; /* True: this slot holds a complete delta of the neighbour. */
    struct wire_delta head;
    struct sketch_message sketch;
    /* Payload of the delta: a buffer with room for the longest payload (`cap` of struct edge). */
    uint8_t *bytes;
    size_t n_bytes; /* Length of the payload of a complete delta, in bytes. */
    /* Number of payload bytes of an incomplete delta that have arrived in fragments. They lie at
     * the end of the buffer. */
    size_t n_parts;
};

struct state; /* Reader or writer of a checkpoint, defined in nn/math/state.h. */
/* One replica of a model, defined in gossip/mixers/replica.h. */
struct replica;

/* One edge. Written by edge.c, with two exceptions. gossip/mixers writes what a job changes: `cur`,
 * `reset`, replicas, gamma, sketches and counters. The node (peer/node/edge/edges*.c) clears the
 * resend flags and the counters. It also sets `ending` and EDGE_DONE, changes EDGE_PAUSED to
 * EDGE_OPEN and EDGE_DONE to EDGE_PAUSED, and sets `epoch` to 0 to request a reset. While a job
 * runs, the worker owns the fields that the job uses. */
struct edge
{
    uint8_t id[WIRE_ID_BYTES]; /* Identity of the neighbour. */
    /* True: this peer's identity is less than the neighbour's, byte by byte. */
    bool low;
    enum edge_state state;

    uint64_t epoch; /* Current epoch. 0: none yet, or a reset is requested. */
    uint64_t round; /* Number of exchanges committed on this edge in the current epoch. */

    /* Progress of the exchange of EDGE messages, which opens the edge on a session. */
    uint64_t nonce; /* Nonce of the last EDGE message that this peer sent. */
    /* True: the last EDGE message of this peer said that the edge was restored from a checkpoint.
     * The value is stored, because `restored` may have changed since. */
    bool said;
    /* True: this peer has sent an EDGE message on this session and waits for the neighbour's. */
    bool asked;
    bool heard;     /* True: an EDGE message of the neighbour has arrived, and was not used yet. */
    bool has_heard; /* True: an EDGE message of the neighbour has arrived on this session. */
    /* True: when this peer sent its last EDGE message, it had received none on this session. */
    bool said_first;
    struct wire_edge theirs;
    /* True: the edge was restored from a checkpoint, and has received no delta since. */
    bool restored;
    /* Boot id of the neighbour's process with which this process last continued the epoch over a
     * new session. 0: never in this epoch. */
    uint64_t met_boot;
    bool opened; /* True: this edge was open at least once, so it has had an epoch. */

    /* True: the next job must restart the replicas a and b and gamma from their initial values. */
    bool reset;
    /* resend_prev: the node must send the delta of the previous round again. resend_cur: it must
     * send the delta of the current round, for the first time or again. */
    bool resend_prev, resend_cur;
    /* This peer's delta of the current round, and its delta of the round before. */
    struct edge_sent cur, prev;
    /* Deltas received from the neighbour. Its delta of round r is in got[r % 2]. */
    struct edge_got got[2];
    /* Spare buffer of deltas: edge_take() puts it into got[] in place of the buffer that a job
     * takes. */
    uint8_t *spare;
    size_t cap; /* Length of the longest payload of a delta, in bytes. */

    /* The fields from `a` to `trust` are data that a job works on. gossip/mixers allocates and
     * frees the vectors. */
    /* Replica of this peer's model on this edge. Edges with equal replicas share one. */
    struct replica *a;
    float *b; /* Replica of the neighbour's model. */
    /* Change of the model x by the last exchange over this edge, for momentum. All zeros after a
     * reset. NULL: no exchange of this edge has had momentum. */
    float *velocity;
    /* Sum of the changes that the exchanges of this edge have made to the companion vector
     * (gossip/mixers/mixing.h) and that have not been subtracted again. NULL: the run has no
     * companion whose sum over the peers must be conserved. */
    float *flow;
    struct gamma gamma;        /* Consensus step size of the edge. */
    struct sketch_pair sketch; /* State of the estimate of the consensus distance on this edge. */
    /* State of the outlier filter: distances between the two models of this edge so far. */
    struct outlier_filter trust;

    /* `settled` and `run_round`, the next two fields, are values that the neighbour announced in
     * its delta of the last committed exchange. A delta that has arrived but is not committed does
     * not change them. Both are 0 after a reset. */
    /* Number of hops around the neighbour within which all peers are known to be under
     * --final-drift. */
    uint32_t settled;
    /* Step counter of the neighbour, including rounds of the consensus phase. */
    uint64_t run_round;
    /* True: the neighbour has announced that its model is final. The node sets EDGE_DONE as soon as
     * no complete exchange on this edge waits to be mixed. */
    bool ending;
    /* Number of exchanges and number of resets of the edge so far. The start of the first epoch
     * does not count as a reset. */
    uint64_t n_exchanges, n_resets;
    /* Number of times that the replicas at the two ends of this edge were found to differ. Cleared
     * by the node. */
    uint64_t n_mismatches;
    /* Number of exchanges that the outlier filter refused or found suspect. Cleared by the node. */
    uint64_t n_distrusted;
    /* True: an exchange was found suspect by the outlier filter, not only refused. Cleared by the
     * node. */
    bool suspect;
};

/* Initialises *e as a closed edge without an epoch. self, other: identities of this peer and of the
 * neighbour. cap: length of the longest payload, in bytes. Returns 0 or -ENOMEM. */
int edge_init(struct edge *e, const uint8_t self[WIRE_ID_BYTES], const uint8_t other[WIRE_ID_BYTES],
              size_t cap);
/* Releases the edge's packets and buffers. mixing_edge_close() frees the replicas a and b. */
void edge_close(struct edge *e);

/* Fills *m with this peer's EDGE message: the answer to a request that edge_hear() has just
 * recorded, otherwise a request. The state becomes EDGE_ASKING. nonce: random number (0 is replaced
 * by 1). boot: boot id of this process. anew: true requests a reset. The caller sets
 * m->run_round. */
void edge_ask(struct edge *e, uint64_t nonce, uint64_t boot, bool anew, struct wire_edge *m);

/* Records the neighbour's EDGE message, unless it is an answer to an earlier request, or a request
 * that this peer ignores because it waits for the answer to its own. Returns true if this peer has
 * to answer: the caller sends the message of edge_ask() before it calls edge_agree(). */
bool edge_hear(struct edge *e, const struct wire_edge *m);

/* Applies rule 3 at the top of this file if both EDGE messages have been exchanged. Sets `reset`,
 * `resend_prev` and `resend_cur`. our_boot: boot id of this process. Returns true if the edge has
 * become open, and false while one of the two messages is missing. */
bool edge_agree(struct edge *e, uint64_t our_boot);

/* Pauses the exchanges. link_lost true: the session is lost or the neighbour has closed the edge,
 * so both ends must send an EDGE message again, and the caller also calls edge_forget_parts().
 * False: the neighbour is only silent. The node sets EDGE_OPEN when the neighbour is heard again.
 * Received fragments of a delta are kept, because the session may still deliver the other
 * fragments. */
void edge_pause(struct edge *e, bool link_lost);
/* Discards the received fragments of deltas. Called when the session is lost or the neighbour
 * closes the edge, because the neighbour does not continue an unfinished delta after that. */
void edge_forget_parts(struct edge *e);

/* Result of checking a received delta or fragment. */
enum edge_verdict {
    /* Result: the delta is the expected one. The caller stores it with edge_store(). */
    EDGE_ACCEPT,
    EDGE_REPEAT,   /* Result: the delta is already stored or applied, and is dropped. */
    EDGE_STALE,    /* Result: the delta belongs to another epoch, and is dropped. */
    EDGE_VIOLATION /* Result: a correct peer cannot have sent this delta. */
};
/* Checks epoch, round and header of a received delta. The caller checks the payload. */
enum edge_verdict edge_check(const struct edge *e, const struct wire_delta *d);
/* Checks a fragment of a delta, and stores it if it is accepted. Fragments arrive from the end of
 * the delta to its start: m->after is the number of bytes of the delta that follow the fragment.
 * m->after = 0 begins a delta and discards all earlier fragments. */
enum edge_verdict edge_part(struct edge *e, const struct wire_part *m);
/* Completes a delta that edge_check() accepted. If the delta has no payload, the received fragments
 * become its payload, which is valid until the next delta or fragment of this edge. Otherwise the
 * fragments of this round are discarded. */
void edge_gather(struct edge *e, struct wire_delta *d);
/* Copies a delta that edge_check() accepted, and its sketch, into the edge. */
void edge_store(struct edge *e, const struct wire_delta *d, const struct sketch_message *sketch);

/* Returns whether both deltas of the current round are present and no reset is pending. */
bool edge_ready(const struct edge *e);
/* Returns whether this peer's delta of the current round does not exist yet. */
bool edge_wants_delta(const struct edge *e);
/* Returns the slot for the neighbour's delta of the current round. The slot holds a delta only if
 * its `full` is set. */
const struct edge_got *edge_theirs(const struct edge *e);

/* Takes the payload of the neighbour's delta of the current round for a job, and returns it. The
 * bytes stay unchanged until the next call, even if messages arrive or the edge is reset. */
uint8_t *edge_take(struct edge *e);

/* Saves or restores the edge in the open section of `s`, without the replicas a and b. The payload
 * of a delta of this peer is saved as its index in payload[0..n). Restores only into a closed edge
 * to the same neighbour. */
void edge_fields(struct edge *e, struct packet *const *payload, size_t n, struct state *s);

/* Moves the edge to the next round, after a job has committed the exchange. */
void edge_advance(struct edge *e);

#endif
