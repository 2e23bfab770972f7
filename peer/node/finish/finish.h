/* peer/node/finish/finish.h -- the finish protocol of one peer: promises, proposals, certificate.
 *
 * README.md in this folder explains the protocol. The module performs no I/O: it gets messages and
 * the time, and sends messages through a callback. It identifies sessions only by the driver's link
 * numbers.
 *
 *   finish_freeze()     the model of this peer is final and stored
 *   finish_link_up()    a session with a peer began
 *   finish_link_down()  a session ended
 *   finish_receive()    a FINISH message arrived
 *   finish_update()     time passed: coordinates a ballot if this is due
 */
#ifndef PEER_NODE_FINISH_FINISH_H
#define PEER_NODE_FINISH_FINISH_H

#include "gossip/exchange/tree_aggregation.h"
#include "gossip/wire/wire.h"

/* Status of a member at the end of a run. */
enum finish_status {
    /* The certificate covers the member. Its model is frozen, and was within --final-drift of the
     * mean model by the member's own measurement. */
    FINISH_WITHIN,
    /* The member's model is frozen, but not known to be within the target distance. */
    FINISH_OUTSIDE,
    FINISH_MIXING,  /* The member is alive and has not ended its run. */
    FINISH_STALLED, /* The member is alive and its worker hangs. */
    FINISH_FAILED,  /* The member ended its run, but could not store its model. */
    FINISH_DEAD,    /* The member is dead or cut off. The distance of its model is not known. */
    FINISH_STATUSES
};

struct finish_member
{
    uint64_t key; /* First 8 bytes of the identity (finish_key()). */
    enum finish_status status;
};

/* The voters that one peer counts. */
struct finish_voters
{
    /* False: no initial member is left, so all members that have not left are voters. */
    bool initial;
    uint32_t
        n_all;  /* Number of voters, including those that the peer's member table has dropped. */
    uint32_t n; /* Number of voters in `key`. */
    uint64_t key[WIRE_MEMBERS_MAX]; /* The voters in the member table (finish_key()), sorted. */
    uint64_t first; /* The initial member with the smallest identity. 0: it is not known. */
};

/* A decided proposal with members is the certificate of the run. A proposal without members aborts
 * its attempt. */
struct finish_proposal
{
    /* Consensus distance relative to the norm of the mean model. Infinite: unknown. */
    double distance;
    double mean_norm; /* Norm of the mean model. */
    /* Ballot in which the proposal was first made. The proposal is about the models that were
     * reported in this ballot. A later ballot that adopts the proposal keeps this value. */
    struct wire_ballot origin;
    uint32_t n; /* Number of members, at most WIRE_MEMBERS_MAX. 0: abort the attempt. */
    struct finish_member member[WIRE_MEMBERS_MAX]; /* The members, sorted by key. */
};

/* Sums over the frozen models of n peers, from which their consensus distance follows. Each peer
 * contributes a count sketch s = S x of its model (gossip/exchange/sketch.h), |x|^2 and a hash of
 * x. */
struct finish_evidence
{
    uint32_t n;           /* Number of models. 0: the other fields are 0. */
    float mean[SKETCH_K]; /* Mean of the sketches of the n models. */
    double dist2;         /* Sum of |s - mean|^2 over the sketches s of the n models. */
    double norm2;         /* Sum of |x|^2 over the n models. */
    uint64_t hash;        /* Hash of the models if all are equal. 0: they differ. */
};

/* Sets *e to the evidence of one model. hash: hash of the model, not 0. */
void finish_evidence_of(struct finish_evidence *e, const float sketch[SKETCH_K], double norm2,
                        uint64_t hash);
/* Returns whether the sums are possible for n models with |x|^2 <= 1e32 whose sketches have
 * components of at most 1e15. Larger models are not accepted, so that the sums over all members of
 * a run fit into the floats of a message. O(SKETCH_K). */
bool finish_evidence_is_valid(const struct finish_evidence *e);
/* Returns the first 8 bytes of an identity as a number. The first byte is the most significant
 * one. */
uint64_t finish_key(const uint8_t id[WIRE_ID_BYTES]);

/* Returns the status of the member with this identity, or FINISH_STATUSES if the proposal does not
 * contain it. O(log n). */
enum finish_status finish_status_of(const struct finish_proposal *p,
                                    const uint8_t id[WIRE_ID_BYTES]);

struct finish;

/* Functions of the owner of the protocol. `self` is passed to each of them. */
struct finish_owner
{
    void *self;
    uint8_t id[WIRE_ID_BYTES]; /* Identity of this peer. */
    /* Lists the links of all sessions with peers. Returns their number, at most `cap`. */
    size_t (*links)(void *self, uint32_t *out, size_t cap);
    void (*send)(void *self, uint32_t link, const struct wire_finish *m);
    /* Lists all members of the run that this peer knows, including this peer, in any order. Their
     * status is taken from the member table. The table does not say how far a model is from the
     * mean, so the status of a member that has ended is FINISH_OUTSIDE. */
    void (*members)(void *self, struct finish_proposal *out);
    /* Lists the voters that this peer counts now, in any order. */
    void (*voters)(void *self, struct finish_voters *out);
    /* Returns whether n of the n_voters voters are a quorum. `has_first`: the initial member with
     * the smallest identity is one of the n. */
    bool (*quorum)(void *self, uint32_t n, uint32_t n_voters, bool has_first);
    /* Stores the promise of this peer durably, n bytes. The next process of this peer passes the
     * bytes to finish_open(). Returns false if the promise could not be stored. The previous
     * promise must then still be stored. The peer does not vote in the current ballot in this case,
     * and tries again in the next one. */
    bool (*keep)(void *self, const uint8_t *bytes, size_t n);
};

/* State of the node at the time of a call: the input of the protocol. */
struct finish_view
{
    int64_t now_us; /* Node time. */
    /* Number of other members that are alive, have ended their run, and have a smaller identity
     * than this peer. The coordinator is the peer with rank 0. */
    uint32_t rank;
    /* Number of other members that are alive or suspect, have not ended their run and are not
     * stalled. The coordinator waits for them. */
    uint32_t n_unfinished;
    /* True: the consensus phase of this peer is not over, and its worker does not hang. False if
     * the peer only evaluates or stores its final model. */
    bool mixes;
    bool stranded;     /* True: this peer mixes, but all its neighbours have ended. */
    uint64_t n_rounds; /* Number of rounds of the consensus phase that this peer has done. */
    /* In a run without faults: largest number of rounds that this peer mixes after another peer has
     * frozen its model (made it final and stored it). */
    uint64_t max_rounds;
    /* Longest time for which the coordinator waits for the n_unfinished members, in microseconds.
     * The time begins when the coordinator's own model is frozen. */
    int64_t patience_us;
    /* Largest consensus distance of a certificate, relative to the norm of the mean model. If the
     * distance of the frozen models is larger, the coordinator proposes to abort the attempt. */
    double target;
};

/* Layout of a stored promise: ballot promised; ballot accepted; hash of the reported model; highest
 * ballot in which earlier processes may have reported other models; 1 if the certificate is
 * decided, else 0; the accepted proposal or the certificate. */
enum {
    FINISH_BALLOT = 8 + WIRE_ID_BYTES, /* Number of bytes of an encoded ballot. */
    /* Number of bytes of a stored promise (vote of the finish protocol) that precede its
     * proposal. */
    FINISH_PROMISE_HEAD = 3 * FINISH_BALLOT + 9,
    /* Largest size of a promise (vote of the finish protocol) that is passed to owner.keep(), in
     * bytes. */
    FINISH_PROMISE_MAX = FINISH_PROMISE_HEAD + WIRE_FINISH_PROPOSAL_MAX,
    /* Maximum number of attempts to end the run. The last attempt cannot be aborted. */
    FINISH_ATTEMPTS = 4
};

/* Creates the protocol's state for a peer that has not ended its run. promise: the bytes that an
 * earlier process of this peer stored last, or empty. If the bytes are unreadable, this peer
 * neither votes nor coordinates. Returns NULL if memory is exhausted. */
struct finish *finish_open(const struct finish_owner *owner, struct bytes promise);
/* Frees the state of the protocol. NULL is allowed. */
void finish_close(struct finish *f);

/* Records that this peer's model is frozen, that is, final and stored. `evidence`: evidence of the
 * model if its distance is within the target (FINISH_WITHIN), else NULL (FINISH_OUTSIDE). Called at
 * most once in each attempt. Once the certificate is decided, called again for each new model that
 * replaces a model that the certificate does not cover. */
void finish_freeze(struct finish *f, const struct finish_evidence *evidence, int64_t now_us);
/* Stores a copy of *v, the state of the node, for all later calls. Coordinates a ballot if this is
 * due. Returns the node time at which finish_update() must be called again. INT64_MAX: not before
 * the next event. */
int64_t finish_update(struct finish *f, const struct finish_view *v);
/* Handles a message from the peer at the other end of `link`. Invalid contents are ignored. Returns
 * false if the contents violate the protocol. */
bool finish_receive(struct finish *f, uint32_t link, const struct wire_finish *m);
/* Handles a new session: sends the last decision, which is the certificate or an abort, if there is
 * one. */
void finish_link_up(struct finish *f, uint32_t link);
/* Handles the end of a session, over which no answer will arrive any more. */
void finish_link_down(struct finish *f, uint32_t link);

/* Returns the certificate, or NULL if it is not known. Valid until finish_close(). */
const struct finish_proposal *finish_certificate(const struct finish *f);
/* Returns whether the certificate covers the model that this process has frozen. FINISH_WITHIN for
 * this peer is not enough, because the certificate may be about the model of an earlier process. If
 * the stored promise could not be read, the result is false. O(log n). */
bool finish_covers(const struct finish *f);
/* Returns the hash of the model that this peer has reported as within the target distance, read
 * from a stored promise. 0: no process of this peer has reported a model, or the bytes are
 * unreadable. */
uint64_t finish_reported_hash(struct bytes promise);
/* Returns whether a stored promise contains the certificate of the run. False if the bytes are
 * unreadable. */
bool finish_promise_is_decided(struct bytes promise);
/* Returns whether an earlier process of this peer has already reported the model that *e describes
 * as within the target distance. */
bool finish_has_reported(const struct finish *f, const struct finish_evidence *e);
/* Returns the number of the current attempt to end the run, from 0. All earlier attempts were
 * aborted. If the number has increased, the model of this peer is not frozen any more. */
uint32_t finish_attempt(const struct finish *f);
/* Returns whether this peer, or an earlier process of it, may have promised a ballot, that is,
 * voted on the end of the run. Such a peer must stay a voter, so it must not announce that it
 * leaves. */
bool finish_has_promised(const struct finish *f);
/* Returns whether this peer neither votes nor coordinates, because its stored promise (vote) could
 * not be read. */
bool finish_is_mute(const struct finish *f);
/* Returns the later of two node times: the last time at which a wave (message of a ballot) reached
 * this peer, and the time at which this peer's model was frozen. */
int64_t finish_heard_us(const struct finish *f);
/* Returns the number of ballots that this peer has coordinated. */
uint64_t finish_ballots(const struct finish *f);

#endif
