/* gossip/exchange/edge.h -- one edge of the gossip graph, where a round is a transaction.
 *
 * The state is per edge: an epoch E, a round r (exchanges committed in E),
 * a = x_hat(i->j), b = x_hat(j->i), and our last two deltas, since the other
 * end may be one exchange behind:
 *
 *    ours:   [prev: round r-1]  [cur: round r]          kept until not needed
 *    theirs: [inbox: round r]   [inbox: round r+1]      checked, still encoded
 *
 * 1. cur = Q(x - a) goes out; nothing is applied.
 * 2. Once cur is out and the inbox holds their round r: the exchange is
 *    *ready*; committing it applies both deltas, mixes, and r += 1. All or
 *    nothing. (The numbers are choco.h's; here is the protocol.)
 * 3. When a link comes up, both ends send EDGE(E, r, nonce):
 *      same E, same r             go on, cur is sent again (a repeat is dropped)
 *      same E, we are one ahead   prev, then cur, are sent again
 *      same E, they are one ahead go on: they resend
 *      anything else              RESET: E' = hash of both boots and nonces,
 *                                 r = 0, a = b = the run's initial model
 *    so each exchange is applied exactly once, and models are not resent.
 *
 * An edge mixes once both ends have opened it; either closes it alone. Pure:
 * messages in, verdicts out; no vector is touched here.
 */
#ifndef GOSSIP_EXCHANGE_EDGE_H
#define GOSSIP_EXCHANGE_EDGE_H

#include "gossip/exchange/gamma.h"
#include "gossip/exchange/ladder.h"
#include "gossip/exchange/packet.h"
#include "gossip/exchange/sketch.h"
#include "gossip/wire/wire.h"

enum edge_state {
    EDGE_CLOSED, /* Not wanted. */
    EDGE_ASKING, /* EDGE sent (or to be sent), theirs not here yet. */
    EDGE_OPEN,   /* Both have opened it: it mixes. */
    EDGE_PAUSED, /* It was open or asking; the link is down or silent. */
    EDGE_DONE    /* Their model is final: nothing more is mixed. */
};

/* Which codec coded a delta: the sender's choice, delta by delta. Where the
 * mixer's deltas are updates of the model (mixer.h), those of DELTA_RUN are. */
enum delta_codec {
    DELTA_RUN,     /* The run's. */
    DELTA_FINAL,   /* --final-compress, in the last phase. */
    DELTA_CATCHUP, /* First of an epoch that began in the middle of a run. */
    DELTA_RUNG,    /* With --compress auto, in place of DELTA_RUN: the first of
                    * the ladder's (ladder.h). */
    DELTA_CODECS = DELTA_RUNG + LADDER_RUNGS
};

/* One of our deltas, kept until the other end must have it. */
struct edge_sent
{
    struct packet *payload; /* NULL: none. */
    struct wire_delta head; /* Its ranges are set when it is put on the wire. */
    struct sketch_message sketch;
};

/* One of theirs: validated, copied, not yet applied. */
struct edge_got
{
    bool full;
    struct wire_delta head;
    struct sketch_message sketch;
    uint8_t *bytes; /* Room for edge_init()'s cap; the payload is n_bytes. */
    size_t n_bytes;
};

struct replica; /* gossip/mixers/replica.h */

struct edge
{
    uint8_t id[WIRE_ID_BYTES]; /* The other end. */
    bool low;                  /* Our id is the smaller one. */
    enum edge_state state;

    uint64_t epoch, round;
    uint64_t nonce; /* Of our last EDGE. */
    bool asked;     /* Our EDGE is out on this link, unanswered. */
    bool heard;     /* Their EDGE is here on this link: */
    struct wire_edge theirs;
    bool opened; /* Has had an epoch. */
    bool reset;  /* a, b and gamma must begin anew. */
    bool resend_prev, resend_cur;
    struct edge_sent cur, prev;
    struct edge_got got[2]; /* Of round r at [r % 2]. */
    uint8_t *spare;         /* Changes places with the bytes a job works on. */
    size_t cap;

    struct replica *a; /* Of our model, shared by edges in step. */
    float *b;          /* Replica of theirs. */
    struct gamma gamma;
    struct sketch_pair sketch; /* The estimates of both ends. */

    uint32_t settled;   /* As announced in the last exchange committed: */
    uint64_t run_round; /* never from one that merely arrived early. */
    bool ending;        /* They are finished: DONE after what is ready. */
    uint64_t n_exchanges, n_resets, n_mismatches;
};

/* cap: longest payload, in bytes. 0 or -ENOMEM. */
int edge_init(struct edge *e, const uint8_t self[WIRE_ID_BYTES], const uint8_t other[WIRE_ID_BYTES],
              size_t cap);
void edge_close(struct edge *e); /* Releases packets and buffers; a and b are choco's. */

/* Our EDGE for a link that came up, or for a reset (`anew`): fills *m to be
 * sent. The state is ASKING until theirs is here. */
void edge_ask(struct edge *e, uint64_t nonce, uint64_t boot, bool anew, struct wire_edge *m);

/* Their EDGE arrived. True: we have to answer with our own (edge_ask) first
 * and then call edge_agree(); happens when they ask on their own account. An
 * answer has an odd nonce and is not answered again: else two ends whose EDGEs
 * have crossed twice would answer each other for ever. */
bool edge_hear(struct edge *e, const struct wire_edge *m);

/* Both EDGEs are here: apply rule 3. Returns true where the edge is open now;
 * `reset`, `resend_prev` and `resend_cur` say what is to be done. */
bool edge_agree(struct edge *e, uint64_t our_boot);

/* The link is gone, or silent for too long. */
void edge_pause(struct edge *e, bool link_lost);

enum edge_verdict {
    EDGE_ACCEPT,   /* Stored by edge_store(). */
    EDGE_REPEAT,   /* Had it: drop. */
    EDGE_STALE,    /* Of another epoch: drop, counted. */
    EDGE_VIOLATION /* Could never be sent by a correct peer. */
};
/* Where does this delta belong? Its contents are checked by the caller. */
enum edge_verdict edge_check(const struct edge *e, const struct wire_delta *d);
void edge_store(struct edge *e, const struct wire_delta *d, const struct sketch_message *sketch);

/* Both halves of the present round are here. */
bool edge_ready(const struct edge *e);
/* Our half has not been made yet. */
bool edge_wants_delta(const struct edge *e);
const struct edge_got *edge_theirs(const struct edge *e);

/* Hand the bytes of their present delta to a job: they stay untouched until
 * the next take, whatever arrives or is reset meanwhile. */
uint8_t *edge_take(struct edge *e);

/* Committed: on to the next round. */
void edge_advance(struct edge *e);

#endif
