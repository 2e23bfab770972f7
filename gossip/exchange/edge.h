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
 *    nothing. (The numbers are a mixer's; here is the protocol.)
 * 3. When a link comes up, both ends send EDGE(E, r, nonce):
 *      same E, same r             go on, cur is sent again (a repeat is dropped)
 *      same E, we are one ahead   prev, then cur, are sent again, if we have prev
 *      same E, they are one ahead go on: they resend
 *      anything else              RESET: E' = hash of both boots and nonces,
 *                                 r = 0, a = b = the run's initial model
 *    so each exchange is applied exactly once, and models are not resent.
 *
 * EDGE says, too, whether the edge is `restored`, as a checkpoint has it. Of two ends of which
 * one is, the other may have applied what that one does not know any more: RESET. But where the
 * same two processes have gone on with the edge before, over a session that is lost, the other has
 * applied nothing since its own restart that this one did not send: rule 3 holds.
 *
 * An edge mixes once both ends have opened it; either closes it alone. Pure:
 * messages in, verdicts out; no vector is touched here.
 */
#ifndef GOSSIP_EXCHANGE_EDGE_H
#define GOSSIP_EXCHANGE_EDGE_H

#include "gossip/exchange/codec_levels.h"
#include "gossip/exchange/gamma.h"
#include "gossip/exchange/outlier_filter.h"
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

/* Which codec coded a delta: the sender's choice, delta by delta. By it both ends know,
 * too, what the delta means to the run's mixer (mixer.h). */
enum delta_codec {
    DELTA_RUN,     /* The run's. */
    DELTA_FINAL,   /* --final-compress, in the consensus phase. */
    DELTA_CATCHUP, /* First of an epoch that began in the middle of a run. */
    DELTA_RUNG,    /* With --compress auto, in place of DELTA_RUN: the first of
                    * the ladder's (ladder.h). */
    DELTA_CODECS = DELTA_RUNG + CODEC_LEVELS_RUNGS
};

/* One of our deltas, kept until the other end must have it. */
struct edge_sent
{
    struct packet *payload; /* NULL: none. */
    struct wire_delta head; /* Its ranges are set when it is put on the wire. */
    struct sketch_message sketch;
    size_t n_parts; /* The last bytes of the payload, made before the rest and as good as this:
                     * they may have gone out in PARTs. 0: none. */
};

/* One of theirs: validated, copied, not yet applied. */
struct edge_got
{
    bool full;
    struct wire_delta head;
    struct sketch_message sketch;
    uint8_t *bytes; /* Room for edge_init()'s cap; the payload is n_bytes. */
    size_t n_bytes;
    size_t
        n_parts; /* Not full yet: so many of the room's last bytes are what came of the payload. */
};

struct state;   /* nn/math/state.h */
struct replica; /* gossip/mixers/replica.h */

/* Written by edge.c, by gossip/mixers/plan.c (cur, reset), and by peer/node/edges.c: what has
 * been sent again, `ending`, DONE, PAUSED back to OPEN, and an epoch of 0 where replicas
 * differ. What a job works on is the worker's while one runs. */
struct edge
{
    uint8_t id[WIRE_ID_BYTES]; /* The other end. */
    bool low;                  /* Our id is the smaller one. */
    enum edge_state state;

    uint64_t epoch; /* 0: none yet. */
    uint64_t round; /* Exchanges committed in this epoch. */

    /* The talk that opens the edge on a link. */
    uint64_t nonce; /* In the EDGE that we sent last; */
    bool said;      /* so is this, our `restored` of then: a job may commit meanwhile. */
    bool asked;     /* Our EDGE is out on this link, unanswered. */
    bool heard;     /* Their EDGE is here on this link; it is `theirs`. */
    struct wire_edge theirs;
    bool restored;     /* It is as a checkpoint has it: nothing was committed since. */
    uint64_t met_boot; /* Their process with which it last went on in its epoch; 0: none. */
    bool opened;       /* It has had an epoch. */

    bool reset;                   /* a, b and gamma must begin anew. */
    bool resend_prev, resend_cur; /* To be sent when the link is there. */
    struct edge_sent cur, prev;   /* Our deltas of this round and the one before. */
    struct edge_got got[2];       /* Their delta of round r is at [r % 2]. */
    uint8_t *spare;               /* Changes places with the bytes a job works on. */
    size_t cap;                   /* Longest payload, in bytes. */

    /* What a job works on; opened and closed by gossip/mixers/mixing.h. */
    struct replica *a;           /* Our model as the other end has it; shared by edges in step. */
    float *b;                    /* Our replica of their model. */
    float *velocity;             /* What the last exchange did to x; NULL where all was without
                                * momentum in this epoch. */
    struct gamma gamma;          /* The edge's consensus step size. */
    struct sketch_pair sketch;   /* Both ends' averages of the sketch. */
    struct outlier_filter trust; /* How far their model has been from ours. */

    /* As announced in the last exchange that was committed, never in one that merely
     * arrived early. */
    uint32_t settled;
    uint64_t run_round;
    bool ending; /* They are finished: DONE after what is ready. */
    uint64_t n_exchanges, n_resets;
    uint64_t n_mismatches; /* Replicas compared and found different; the node clears it. */
    uint64_t n_distrusted; /* Exchanges refused, or suspect (trust.h); the node clears it, */
    bool suspect;          /* and this: one of them was suspect. */
};

/* A closed edge without an epoch. cap: longest payload, in bytes. 0 or -ENOMEM. */
int edge_init(struct edge *e, const uint8_t self[WIRE_ID_BYTES], const uint8_t other[WIRE_ID_BYTES],
              size_t cap);
void edge_close(struct edge *e); /* Releases packets and buffers; a and b are mixing's. */

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

/* Pauses the exchange until the peer is heard again. With link_lost it also waits until both ends
 * have sent an EDGE again. Received fragments of a delta are kept, because the peer may still send
 * the other fragments over the same link. */
void edge_pause(struct edge *e, bool link_lost);
/* Discards the received fragments of deltas. To be called when the link is lost or the peer closes
 * the edge: the peer does not continue an unfinished delta after that. */
void edge_forget_parts(struct edge *e);

enum edge_verdict {
    EDGE_ACCEPT,   /* Stored by edge_store(). */
    EDGE_REPEAT,   /* Had it: drop. */
    EDGE_STALE,    /* It belongs to another epoch: drop. */
    EDGE_VIOLATION /* Could never be sent by a correct peer. */
};
/* Where does this delta belong? Its contents are checked by the caller. */
enum edge_verdict edge_check(const struct edge *e, const struct wire_delta *d);
/* The same for a part of one; what is accepted is kept. Its end comes first; after: 0 begins anew. */
enum edge_verdict edge_part(struct edge *e, const struct wire_part *m);
/* A delta that edge_check() accepted: where it has no payload it gets the one that came in parts, which
 * is valid until the edge's next delta or part. */
void edge_gather(struct edge *e, struct wire_delta *d);
/* Copies what edge_check() accepted. */
void edge_store(struct edge *e, const struct wire_delta *d, const struct sketch_message *sketch);

/* Both deltas of the present round are here, and the edge has not to begin anew. */
bool edge_ready(const struct edge *e);
/* Our delta of the present round has not been made yet. */
bool edge_wants_delta(const struct edge *e);
/* Their delta of the present round, where it is here. */
const struct edge_got *edge_theirs(const struct edge *e);

/* Hand the bytes of their present delta to a job: they stay untouched until
 * the next take, whatever arrives or is reset meanwhile. */
uint8_t *edge_take(struct edge *e);

/* Its part of a section of `s`, but for what mixing owns (a, b). Its deltas are told by their
 * places among payload[0..n). Read into a closed edge to the same other end. */
void edge_fields(struct edge *e, struct packet *const *payload, size_t n, struct state *s);

/* The job has committed the exchange: on to the next round. */
void edge_advance(struct edge *e);

#endif
