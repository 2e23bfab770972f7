/* gossip/wire/wire.h -- the messages that peers send, and their encoding.
 *
 * A message is one msgpack array whose first element is the message type. The channel below
 * delivers whole messages, and the driver does not interpret them.
 *
 *   [type, field, field, ..., bin]        a bulk payload is the last field
 *
 *   bytes --wire_read()--> struct wire_message --a handler--> ...
 *   struct wire_delta, ... --wire_put_delta(), ...--> bytes
 *
 * Received bytes are parsed in one place and in one pass. A cursor checks kind, range and length
 * of each field in turn, and never reads past the end of the message. Any value other than the
 * expected field is an error. Nested arrays, maps, ext types and counts larger than the message
 * therefore need no separate check. The parser allocates nothing: strings and bins point into the
 * message.
 *
 * msgpack-c is used for writing only. Reading with it would need a check of the message before it
 * (measured: a 5-byte array header makes it reserve 2 GiB), callbacks and an intermediate list of
 * values: 440 lines of code, against 100 for the cursor. A test checks that msgpack-c agrees with
 * each message that wire_read() accepts.
 */
#ifndef GOSSIP_WIRE_WIRE_H
#define GOSSIP_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Versions and limits of the message protocol. */
enum wire_limit {
    WIRE_VERSION = 12,       /* Newest protocol version that this program supports. */
    WIRE_VERSION_LEAST = 12, /* Oldest protocol version that this program supports. */
    WIRE_ID_BYTES = 32,
    WIRE_SIGNATURE_BYTES = 64,
    WIRE_CODEC_MAX = 63, /* Maximum characters of a codec specification in a STATUS. */
    WIRE_NAME_MAX = 32,  /* Maximum characters of a member's name. */
    /* Maximum characters of an announced "host:port". DNS allows 253 for a name, but 64 records
     * with four such names would not fit in a message. */
    WIRE_ADDRESS_MAX = 127,
    WIRE_ADDRESSES_MAX = 4,  /* Maximum number of addresses that a member announces. */
    WIRE_MEMBERS_MAX = 1024, /* Maximum number of members that a peer stores. */
    /* Maximum number of records, and of accusations, in one MEMBERS message. */
    WIRE_BATCH_MAX = 64,
    /* Maximum number of endorsements (vouches) in one MEMBERS message. */
    WIRE_VOUCHES_MAX = 24,
    WIRE_RUN_MAX = 2048,          /* Maximum bytes of a run description in canonical form. */
    WIRE_CONTROL_MAX = 80 * 1024, /* Maximum bytes of a message without a bulk payload. */
    /* Maximum bytes of a bulk message before its payload. A sketch is not counted. */
    WIRE_HEAD_MAX = 1024,
    WIRE_SKETCH_MAX = 4096, /* Maximum bytes of an encoded sketch in a DELTA. */
    WIRE_EDGES_MAX = 64,    /* Maximum number of edges in a STATUS. */
    WIRE_FIGURES_MAX = 32,  /* Maximum number of metrics that a STATUS identifies by name. */
    WIRE_FIGURE_NAME = 31,  /* Maximum characters of the name of a metric: [a-z0-9_]. */
    /* Momentum 1.0 as a fixed-point number. A momentum in a message is always less. */
    WIRE_MOMENTUM_ONE = 1 << 16,
    /* A DELTA encodes `degree` and `more` in one number; `more` begins at this bit. */
    WIRE_MORE_BITS = 16,
    WIRE_MOMENTS_MAX = 24 * 1024, /* Maximum bytes of a member's column statistics. */
    /* Sizes in FINISH messages (peer/node/finish/proposal.h). WIRE_FINISH_ENTRY: bytes of one entry
     * of the list of members. The next two: maximum bytes of the list and of a proposal. */
    WIRE_FINISH_ENTRY = 9,
    WIRE_FINISH_KEY = 8, /* Bytes of one voter in the list `voters`. */
    WIRE_FINISH_VOTERS_MAX = WIRE_FINISH_KEY * WIRE_MEMBERS_MAX,
    WIRE_FINISH_MEMBERS_MAX = WIRE_FINISH_ENTRY * WIRE_MEMBERS_MAX,
    WIRE_FINISH_PROPOSAL_MAX = 16 + WIRE_ID_BYTES + WIRE_FINISH_MEMBERS_MAX,
    /* Maximum value of a phase, edge state or codec. Their enums are defined in other headers. */
    WIRE_CODE_MAX = 15
};

enum wire_type {
    WIRE_NONE = 0,
    WIRE_HELLO,      /* First message in each direction: identity, protocol version and run. */
    WIRE_MEMBERS,    /* Records, accusations and endorsements that the receiver may not know. */
    WIRE_PING,       /* Heartbeat with the progress of the sender's worker. */
    WIRE_EDGE,       /* Opens or reopens an edge: the sender's epoch and round of the edge. */
    WIRE_EDGE_CLOSE, /* Closes an edge: the sender no longer exchanges with the receiver. */
    WIRE_DELTA,      /* The delta that one end of an edge sends in an exchange. A bulk message. */
    WIRE_MODEL_REQ,  /* Requests a model at a given round, or a piece of a model. */
    /* Message with a model, a piece of a model, or sketches of all its pieces. A bulk message. */
    WIRE_MODEL,
    WIRE_STATUS_REQ,
    WIRE_STATUS,
    /* Number of rounds that the sender has done. Sent in lock step only, when no delta reports the
     * number. */
    WIRE_BEAT,
    /* Asks when the receiver last heard from a member that the sender has not heard from. */
    WIRE_PROBE,
    /* Answer to a PROBE: time since the sender last heard from the member that the PROBE names. Not
     * sent if the sender has never heard from that member. */
    WIRE_HEARD,
    WIRE_REFUSED, /* The reason why the sender refuses the session. Last message of a session. */
    WIRE_FINISH,  /* Message of the finish protocol (peer/node/finish/README.md). */
    /* Fragment of a DELTA, sent before the DELTA itself. The first fragment holds the last bytes. A
     * bulk message. */
    WIRE_PART,
    WIRE_MOMENTS, /* Column statistics of a member's data files, exchanged before a run exists. */
    /* Message of an all-reduce or a parameter server (peer/node/round_protocol.h). A bulk
     * message. */
    WIRE_ROUND_PROTOCOL,
    WIRE_CALLBACK, /* Result of the sender's test dial to the receiver's announced addresses. */
    WIRE_TYPE_END
};

enum wire_role {
    WIRE_PEER = 0,
    WIRE_OBSERVER /* Process of `hearsay status` or `hearsay drift`, which is never a member. */
};

enum record_state {
    RECORD_RUNNING = 0,
    /* The worker has run one job for too long. The member is no vertex of the topology until the
     * job ends. */
    RECORD_STALLED,
    RECORD_TRAINED,  /* Training is done, and the member is in the consensus phase. */
    RECORD_FINISHED, /* The final model is stored. The member remains a vertex of the topology. */
    /* The model is final but could not be stored. The member remains a vertex of the topology. */
    RECORD_FAILED,
    /* The member has announced that it leaves the cluster, and is no vertex of the topology. */
    RECORD_LEFT
};

/* Returns whether a member in record state s has ended its run, with or without a stored model.
 * Such a member exchanges nothing, and no peer waits for it. */
static inline bool record_state_is_final(enum record_state s)
{
    return s == RECORD_FINISHED || s == RECORD_FAILED;
}

/* Certificate that a join token gives to an identity that is on no allow-list. It is made in two
 * steps:
 *
 *   1. `hearsay key invite` creates a key pair, and the issuer, which is on the allow-list, signs
 *      the public key `key` and expires_ms. The token is this signed part and the secret key.
 *   2. The joiner, which holds the token, signs its own id with the secret key.
 *
 * Any member can verify the certificate in a record, and cannot use it for another identity.
 */
struct certificate
{
    uint8_t issuer[WIRE_ID_BYTES];
    /* Milliseconds since 1970. From this time on the token admits no new member. */
    uint64_t expires_ms;
    uint8_t key[WIRE_ID_BYTES]; /* Ed25519 public key that belongs to this token only. */
    /* Signature by the issuer over the bytes of wire_token_signed(). */
    uint8_t issued[WIRE_SIGNATURE_BYTES];
    /* Signature by the token's key over the bytes of wire_presented_signed(). */
    uint8_t presented[WIRE_SIGNATURE_BYTES];
};

/* A member's description of itself. Signed by the member; the signature covers the canonical
 * bytes of all other fields (wire_record_signed()). */
struct record
{
    /* The fields that are read when two records are compared come first, within two cache lines. */
    uint8_t id[WIRE_ID_BYTES]; /* Identity of the member: its Ed25519 public key. */
    /* Version number of the record; a higher one is newer and refutes older accusations. */
    uint64_t incarnation;
    uint64_t boot; /* Boot id: random number drawn at each process start. */
    enum record_state state;
    uint32_t n_addresses;
    uint8_t signature[WIRE_SIGNATURE_BYTES];
    /* Step counters of the checkpoints, at most two, from which the process may resume, the newer
     * one first. 0: no checkpoint. */
    uint64_t beat[2];
    /* Evidence of a duplicate identity. over: boot id of another process with this identity; 0: no
     * other process is known. age_ms: age of the signing process, in milliseconds, when it learnt
     * of the other process. */
    uint64_t over, age_ms;
    char name[WIRE_NAME_MAX + 1];
    /* Addresses in the form "host:port". */
    char address[WIRE_ADDRESSES_MAX][WIRE_ADDRESS_MAX + 1];
    /* True: the member is an initial member of the run, which votes on the end of the run
     * (peer/node/membership/quorum.h). Remains true in all later records of the member. */
    bool initial;
    bool invited; /* True: the member joined with a token, and its certificate is present. */
    /* Certificate of a member that joined with a token, else all zero. */
    struct certificate certificate;
};

/* Signed statement of member `accuser` that member `accused` is silent, in the given
 * incarnation. */
struct accusation
{
    uint8_t accused[WIRE_ID_BYTES], accuser[WIRE_ID_BYTES];
    uint64_t incarnation;
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

/* Endorsement: signed statement of `voucher` that it had an authenticated session with `member`,
 * which proves that a process holds the member's key (gossip/members/endorsements.h). */
struct vouch
{
    uint8_t member[WIRE_ID_BYTES], voucher[WIRE_ID_BYTES];
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

/* A borrowed byte range inside a message. */
struct bytes
{
    const uint8_t *p;
    size_t n;
};

struct wire_hello
{
    uint32_t version; /* Protocol version of the session, agreed on in the handshake. */
    enum wire_role role;
    bool has_run; /* True: the sender has a run. False: the sender takes over the receiver's run. */
    /* True: the sender has started round 0, so it can no longer take over another run. */
    bool has_started;
    struct bytes run;     /* Run description in canonical form. Empty if has_run is false. */
    uint64_t round;       /* Rounds of the run that the sender has done. */
    struct record record; /* Record of the sender. All zero for an observer. */
};

struct wire_members
{
    uint32_t n_records, n_accusations, n_vouches;
    /* Records of a MEMBERS message. In a received message, wire_read() has filled the array in the
     * reader's batch. In an outgoing message, members_dirty() has filled it. */
    struct record *records;
    /* Accusations of a MEMBERS message. For a received message they lie in the reader's batch. */
    struct accusation *accusations;
    struct vouch *vouches;
    /* In outgoing MEMBERS messages: bit set of the indices of records that are left out. */
    uint64_t without;
};

/* Storage for the lists of one MEMBERS message, 68 KiB. Each reader has one. */
struct wire_batch
{
    struct record records[WIRE_BATCH_MAX];
    struct accusation accusations[WIRE_BATCH_MAX];
    struct vouch vouches[WIRE_VOUCHES_MAX];
};

struct wire_ping
{
    /* Step counter of the sender, counted as in run_round of a DELTA: training plus consensus
     * rounds. */
    uint64_t round;
    /* Milliseconds since the worker began its current job. 0: the worker is idle. */
    uint32_t busy_ms;
    bool finished;
};

/* BEAT message of a run in lock step: the number of rounds that the sender has done. A session
 * delivers messages in the order of sending, so all DELTAs sent before a BEAT arrive before it. */
struct wire_beat
{
    /* Step counter of the sender, counted as in run_round of a DELTA: training plus consensus
     * rounds. */
    uint64_t run_round;
    /* Step counter of the next checkpoint, at which all peers write one. 0: no checkpoint is
     * planned. */
    uint64_t checkpoint;
    uint32_t settled;
};

struct wire_probe
{
    uint8_t id[WIRE_ID_BYTES];
};

struct wire_heard
{
    uint8_t id[WIRE_ID_BYTES];
    /* Milliseconds since the sender last received a message from the member `id` itself. */
    uint32_t age_ms;
};

/* Reasons for refusing a session. */
enum wire_refusal {
    REFUSED_UNLISTED = 0, /* The identity is not on the allow-list and has no join certificate. */
    REFUSED_EXPIRED,      /* The join certificate has expired. */
    REFUSED_ISSUER,       /* The issuer of the join certificate is not on the allow-list. */
    REFUSED_FORGED,       /* A signature of the join certificate is invalid. */
    REFUSED_NAME          /* Duplicate name: a live member, `other`, has the same name. */
};

struct wire_refused
{
    enum wire_refusal why;
    char name[WIRE_NAME_MAX + 1]; /* Name of the sender of this message. */
    /* For REFUSED_NAME: id of the member with the same name. Else zero. */
    uint8_t other[WIRE_ID_BYTES];
};

/* Opens an edge. Both ends derive the same next action from two of these messages, one of each end:
 * continue, resend, or start a new epoch (gossip/exchange/edge.h). */
struct wire_edge
{
    /* Epoch of the edge at the sender. 0: there is none, or the sender requests a reset. */
    uint64_t epoch;
    uint64_t round; /* Number of exchanges committed in the edge's current epoch. */
    /* Random number, new in each message and not 0, from which both ends derive the edge's next
     * epoch. */
    uint64_t nonce;
    /* Nonce of the receiver's EDGE message that this message answers. 0: it is not an answer. */
    uint64_t answers;
    uint64_t boot; /* Boot id of the sender's process: a random number drawn at process start. */
    /* Step counter of the sender: number of rounds that it has done, including rounds of the
     * consensus phase. The receiver does not wait for the sender in a round that the sender has
     * already done. */
    uint64_t run_round;
    /* True: the sender restored the edge from a checkpoint, and has received no delta since. */
    bool restored;
    bool first; /* True: the sender has received no EDGE message of this edge on this session. */
};

struct wire_delta
{
    uint64_t epoch;
    uint64_t round; /* Round of the edge's epoch to which the delta belongs. */
    /* Number of rounds that the sender has done, including rounds of the consensus phase. */
    uint64_t run_round;
    /* The value `degree` in the sender's mixing weight for this edge, (1 + more) / (1 + degree):
     * the denominator of the weight, minus 1. On a topology that does not change by round: number
     * of edges over which the sender mixes in this round. The edge gets the lesser of the weights
     * of its two ends. */
    uint32_t degree;
    /* The value `more` in the sender's mixing weight for this edge, (1 + more) / (1 + degree): the
     * numerator of the weight, minus 1. 0 on a topology that does not change by round. */
    uint32_t more;
    uint32_t codec; /* Codec of the payload: enum delta_codec (gossip/exchange/edge.h). */
    /* Squared distance of the sender's model from its replica, |x - a|^2, before this delta is
     * applied to the replica (x2) and after that (e2). */
    float x2, e2;
    /* Momentum in units of 1 / WIRE_MOMENTUM_ONE. The lesser value of both ends is used. */
    uint32_t momentum;
    /* Hash of the edge's two replicas (a, b) before this round. 0: the two ends do not compare
     * their replicas in this round. */
    uint64_t hash;
    /* Step counter at which all peers write a checkpoint. 0: no checkpoint is planned. */
    uint64_t checkpoint;
    /* Number of hops around the sender within which all peers are known to be under
     * --final-drift. */
    uint32_t settled;
    /* For --local-steps auto: the sender's estimate of the mean pace of all peers, in local
     * steps per 1,000 s. 0: unknown. */
    uint64_t pace;
    /* Number of the current exact averaging pass (a sequence of rounds that gives all peers the
     * exact mean). Sent only if every exchange of the pass so far succeeded, at the sender and at
     * all peers with which the sender has mixed in the pass (peer/node/edge/averaging_pass.h). Else
     * 0. */
    uint64_t clean;
    /* Tag of the sketch in this delta, which identifies the set of members, the window and the
     * round (gossip/exchange/sketch.c). 0: the delta has no sketch. */
    uint64_t sketch_generation;
    /* The sender's estimates of the mean squared distance of all models from their mean, and of the
     * squared norm of the mean model (gossip/exchange/sketch.h). Estimation errors can make both
     * values negative. */
    float mean_dist2, mean_norm2;
    struct bytes sketch;
    /* Compressed delta. Empty: the whole delta was already sent in PART messages over this
     * session. */
    struct bytes payload;
};

/* Fragment of a DELTA that is not sent yet (--overlap layer). It holds the bytes directly before
 * the last `after` bytes of the DELTA. Earlier fragments contained these last bytes. */
struct wire_part
{
    uint64_t epoch, round; /* Epoch and round of the DELTA. */
    /* Number of bytes of the DELTA that follow this fragment. They were sent in earlier
     * fragments. */
    uint64_t after;
    struct bytes payload; /* Bytes of the fragment, at least one. */
};

/* Kinds of messages of the protocols that compute a model from the models of all peers: the
 * all-reduce and the parameter server (peer/node/collectives). */
enum wire_round_protocol_word {
    /* Message of an all-reduce. Its payload is the data of step `step` of the schedule. */
    WIRE_ROUND_PROTOCOL_STEP,
    /* Request to restart the all-reduce of `round`, of which the sender has no result. `attempt`:
     * number of the attempt that the sender has reached. */
    WIRE_ROUND_PROTOCOL_AGAIN,
    /* The sender has the result of the all-reduce of `round`. The members that `view` identifies
     * computed it in the attempt with number `attempt`. */
    WIRE_ROUND_PROTOCOL_HAVE,
    /* Requests the result of the all-reduce of `round` or of a later round. */
    WIRE_ROUND_PROTOCOL_WANT,
    /* The payload is the model that the all-reduce of round `round` computed. */
    WIRE_ROUND_PROTOCOL_RESULT,
    /* The next kinds are messages to and from the server of --mixer ps
     * (peer/node/collectives/parameter_server.c). */
    /* To the parameter server: the sender has done round `round`. `view` is the round of the last
     * answer that the sender has received from the server. */
    WIRE_ROUND_PROTOCOL_HERE,
    /* To the parameter server: the sender has done round `round` but has no update of it, and
     * requests the model. `view` is the round of the last answer that the sender has received from
     * the server. */
    WIRE_ROUND_PROTOCOL_ASK,
    /* To the parameter server: the payload is the sender's update of round `round`. */
    WIRE_ROUND_PROTOCOL_PUSH,
    /* From the parameter server: the payload is the change of the model after round `round`,
     * relative to the model that the server sent last. */
    WIRE_ROUND_PROTOCOL_PULL,
    /* From the parameter server: asks each member which round it has done. */
    WIRE_ROUND_PROTOCOL_ROLL,
    WIRE_ROUND_PROTOCOL_END
};

struct wire_round_protocol
{
    enum wire_round_protocol_word word;
    uint64_t round;   /* Round of the run to which the message belongs. */
    uint32_t attempt; /* Number of times that the all-reduce of this round was restarted. */
    /* Hash of the members that take part in the all-reduce, from members_view(). In a HERE or ASK
     * message: the round of the last answer that the sender has received from the parameter
     * server. */
    uint64_t view;
    uint32_t step; /* Step of the all-reduce schedule in a STEP message, else 0. */
    /* In a STEP message (where it may be empty) and in a RESULT: little-endian float32 values. In a
     * PUSH and a PULL: the payload of a delta (gossip/mixers/mixing.h). */
    struct bytes payload;
};

/* Result of the sender's test dials to the addresses in the receiver's record
 * (peer/node/session/callback.c). */
struct wire_callback
{
    /* Reason of the last failed dial: enum node_why. 0: one of the addresses works. */
    uint32_t why;
    char address[WIRE_ADDRESS_MAX + 1]; /* Address that the last test dial used. */
};

/* Ballot: one attempt of the finish protocol to agree on the end of the run. Ballots are ordered by
 * number, then by id. */
struct wire_ballot
{
    uint64_t number;           /* Number of the ballot of the finish protocol. 0: no ballot. */
    uint8_t id[WIRE_ID_BYTES]; /* Identity of the peer that coordinates the ballot. */
};

enum wire_finish_word {
    /* First step of a ballot (an attempt of the finish protocol): asks all peers to promise that
     * they accept no proposal of a lower ballot, and to send a REPORT. */
    WIRE_FINISH_ASK,
    WIRE_FINISH_PROPOSE, /* Second step of a ballot: asks all peers to accept `proposal`. */
    /* Answer to an ASK: describes the sender and the peers whose answers the sender has added to
     * its own. */
    WIRE_FINISH_REPORT,
    /* Answer to a PROPOSE: describes the sender and the peers whose answers it includes, like a
     * REPORT. */
    WIRE_FINISH_ACCEPTED,
    /* The message carries the finish certificate (evidence that the run has succeeded) as
     * `proposal`. */
    WIRE_FINISH_DECIDED,
    WIRE_FINISH_END
};

/* Message of the finish protocol. A REPORT and an ACCEPTED describe a group of peers: the sender,
 * and the peers whose answers the sender has added to its own. Fields that a kind of message
 * (`word`) does not use are 0 or empty. */
struct wire_finish
{
    enum wire_finish_word word;
    /* Ballot (attempt of the finish protocol) to which the message belongs. A DECIDED message
     * belongs to no ballot. */
    struct wire_ballot ballot;
    /* Highest ballot (attempt of the finish protocol) that the sender, or a peer whose answer the
     * sender has added to this message, has promised. A peer that has promised a ballot accepts no
     * proposal of a lower ballot. */
    struct wire_ballot promised;
    /* In a REPORT: highest ballot (attempt of the finish protocol) in which a proposal was accepted
     * by the sender or by a peer whose answer the sender has added to this message. */
    struct wire_ballot accepted;
    /* True: the sender lost a session while it collected the answers of other peers, so answers may
     * be missing. */
    bool partial;
    /* In a REPORT and an ACCEPTED, about the described peer that counts the most voters. n_voters:
     * number of these voters. voters: the voters in the member table of this peer, WIRE_FINISH_KEY
     * bytes each: the first 8 bytes of the identity, in ascending order. 0 and empty: no described
     * peer knows an initial member. */
    uint32_t n_voters;
    struct bytes voters;
    /* In a REPORT: number of peers that still mix, of those that the REPORT describes. */
    uint32_t n_mixing;
    /* In a REPORT: number of peers whose model is frozen (final and stored) and within the target
     * distance, of those that the REPORT describes. */
    uint32_t n_models;
    /* In a REPORT: sum of squared distances of the n_models sketches from their mean, and sum of
     * the squared norms of the models. */
    float dist2, norm2;
    uint64_t model_hash; /* In a REPORT: hash of the models if all are equal, else 0. */
    /* In a REPORT: mean of the sketches of the n_models models, little-endian float32. */
    struct bytes mean;
    /* Members, WIRE_FINISH_ENTRY bytes each: the first 8 bytes of the identity, and flags
     * (peer/node/finish/finish.h). */
    struct bytes members;
    struct bytes proposal; /* Encoded proposal (peer/node/finish/proposal.h). */
};

#define WIRE_ROUND_WINDOW  UINT64_MAX
#define WIRE_ROUND_INITIAL (UINT64_MAX - 1)
#define WIRE_PIECE_WHOLE   UINT32_MAX
#define WIRE_PIECE_LAYERS  (UINT32_MAX - 1)

struct wire_model_req
{
    /* Requested round: the answer is the model at this round, or at the first later round that the
     * receiver has. 0: the current model. WIRE_ROUND_WINDOW: the model at the start of the
     * receiver's next estimate of the consensus distance (gossip/exchange/sketch.h).
     * WIRE_ROUND_INITIAL, for a piece without a key: the initial model of the run. A request for
     * pieces or their sketches is answered at once, from a model of this round or, if the receiver
     * has not reached it, from the current one. */
    uint64_t round;
    /* Index of the piece (gossip/exchange/piece.h). With --outer, the pieces of the outer momentum
     * follow those of the model. WIRE_PIECE_WHOLE: the whole model. WIRE_PIECE_LAYERS: sketches of
     * its layers (gossip/exchange/layers.h). */
    uint32_t piece;
    /* Key for drawing the sketches of all pieces or of all layers, which the answer contains. 0:
     * the answer contains the floats of the model instead. */
    uint64_t key;
};

struct wire_model
{
    uint64_t round;
    /* Index of the piece; or WIRE_PIECE_WHOLE: the whole model; or WIRE_PIECE_LAYERS: sketches of
     * the layers. */
    uint32_t piece;
    /* Key with which the sketches were drawn. 0: the payload has no sketches. */
    uint64_t key;
    /* True: the floats belong to a model that the finish certificate covers (the evidence that the
     * run has succeeded). */
    bool certified;
    /* The model or piece as little-endian float32, or the sketches if key is not 0. */
    struct bytes payload;
};

struct wire_status_edge
{
    uint8_t id[WIRE_ID_BYTES];
    uint32_t state; /* State of the edge: enum edge_state (gossip/exchange/edge.h). */
    uint64_t round;
    float gamma;
    uint64_t resets;
};

/* A metric that is sent by name. Both ends find the name in the table of figures
 * (peer/node/figure.h), so a new metric needs no new protocol version. A receiver ignores names
 * that it does not know. */
struct wire_status_figure
{
    char name[WIRE_FIGURE_NAME + 1];
    bool is_real;   /* True: the value is a real number. False: a whole number. */
    uint64_t whole; /* Value of a metric that is a whole number, or a bool as 0 or 1. */
    /* Value of a metric that is a real number. Never NaN: an unknown metric is not sent. */
    double real;
};

/* A peer's metrics about itself. Unknown values are NaN. */
struct wire_status
{
    uint64_t round, n_rounds;
    uint32_t phase; /* Phase of the peer: enum node_phase (peer/node/node.h). */
    double loss, accuracy;
    /* Estimated consensus distance, absolute and relative to the norm of the mean model. */
    double drift, relative_drift;
    /* Step counter of the models that the drift describes, and the number of rounds since then. */
    uint64_t drift_round, drift_age;
    /* Bytes sent and received, counted at the sockets of all links. */
    uint64_t bytes_sent, bytes_received;
    uint64_t n_strangers, n_violations;
    uint32_t n_live;
    /* Rounds that the peer has done, rounds that it skipped, and the round in which it joined. */
    uint64_t rounds_done, rounds_skipped, joined_round;
    /* Seconds since the peer's last job ended. */
    double age_s;
    bool holds;        /* True: the peer is below the quorum and does no local steps. */
    uint64_t clock_ms; /* Wall-clock time of the peer in milliseconds since 1970. 0: unknown. */
    char codec[WIRE_CODEC_MAX
               + 1]; /* Codec of the peer's current deltas, truncated if too long. Empty: none. */
    uint32_t n_edges;
    struct wire_status_edge edges[WIRE_EDGES_MAX];
    /* Number of metrics that are sent with a name, because they have no field of their own. */
    uint32_t n_figures;
    struct wire_status_figure figures[WIRE_FIGURES_MAX];
};

/* Column statistics of a member's data, sent by that member and forwarded by peers without a run
 * (peer/node/join/statistics_aggregation.h). The member's signature covers id, boot id, `founds`
 * and the payload. */
struct wire_moments
{
    struct record record;
    /* True: the member offers to create the run from the column statistics of all members. */
    bool founds;
    /* The column statistics, at most WIRE_MOMENTS_MAX bytes. Only the trainer interprets them. */
    struct bytes payload;
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

/* A parsed message of any type. Data of variable length is borrowed: `struct bytes` point into
 * the message, and the lists of a MEMBERS point into `batch`. */
struct wire_message
{
    /* Type of the message, which selects the member of the union. EDGE_CLOSE and STATUS_REQ use no
     * member. */
    enum wire_type type;
    struct wire_batch *batch;
    union
    {
        struct wire_hello hello;
        struct wire_members members;
        struct wire_ping ping;
        struct wire_beat beat;
        struct wire_probe probe;
        struct wire_heard heard;
        struct wire_refused refused;
        struct wire_edge edge;
        struct wire_delta delta;
        struct wire_part part;
        struct wire_model_req model_req;
        struct wire_model model;
        struct wire_status status;
        struct wire_moments moments;
        struct wire_round_protocol round_protocol;
        struct wire_callback callback;
        struct wire_finish finish;
    };
};

/* Parses the message in p[0..n), at any alignment. Returns true and fills *m, which is valid as
 * long as p and *batch are. Returns false for an invalid message; then only m->type is
 * meaningful: the type that the message claims, or WIRE_NONE.
 *
 * The count, kind, range and finiteness of each field and the exact end are checked. The run
 * description must be printable ASCII and newlines. A DELTA or MODEL must be whole, with head and
 * payload contiguous. These messages are also rejected: a HELLO with has_started but no run; a
 * HELLO of a peer (not an observer) that has no record; an EDGE whose nonce is 0; negative squared
 * norms; sketch bytes whose tag, sketch_generation, is 0; a model that is not a whole number of
 * floats; a phase, edge state or codec above WIRE_CODE_MAX. NaN and Inf are allowed in a STATUS
 * only (Inf: a diverged loss).
 */
bool wire_read(const uint8_t *p, size_t n, struct wire_batch *batch, struct wire_message *m);

/* Return whether a name or address has valid syntax; also used for text from other sources.
 * Name: [A-Za-z0-9._-]{1,32}. Address: "host:port" of at most WIRE_ADDRESS_MAX characters. The
 * host is a name, an IPv4 address or an IPv6 address in brackets; the port is 1..65535 in
 * decimal without leading zeros. Which addresses may be dialled is the caller's decision. */
bool wire_name_ok(const char *name);
bool wire_address_ok(const char *address);

/* Encoders of messages. Each writes to out[0..cap) and returns the length in bytes, or 0 if cap is
 * too small. Encoders of bulk messages do not write the bytes of the payload. The caller sends the
 * payload directly after the head; both together are one message. The head of a DELTA has at most
 * WIRE_HEAD_MAX + WIRE_SKETCH_MAX bytes. Without a hash and a sketch, and with small round numbers,
 * it has about 50 bytes. Encoders do not repeat the parser's checks. */
size_t wire_put_hello(uint8_t *out, size_t cap, const struct wire_hello *m);
size_t wire_put_members(uint8_t *out, size_t cap, const struct wire_members *m);
size_t wire_put_ping(uint8_t *out, size_t cap, const struct wire_ping *m);
size_t wire_put_beat(uint8_t *out, size_t cap, const struct wire_beat *m);
size_t wire_put_probe(uint8_t *out, size_t cap, const struct wire_probe *m);
size_t wire_put_heard(uint8_t *out, size_t cap, const struct wire_heard *m);
size_t wire_put_refused(uint8_t *out, size_t cap, const struct wire_refused *m);
size_t wire_put_edge(uint8_t *out, size_t cap, const struct wire_edge *m);
size_t wire_put_edge_close(uint8_t *out, size_t cap);
size_t wire_put_delta(uint8_t *out, size_t cap, const struct wire_delta *m);
size_t wire_put_part(uint8_t *out, size_t cap, const struct wire_part *m);
size_t wire_put_model_req(uint8_t *out, size_t cap, const struct wire_model_req *m);
size_t wire_put_model(uint8_t *out, size_t cap, const struct wire_model *m);
size_t wire_put_moments(uint8_t *out, size_t cap, const struct wire_moments *m);
size_t wire_put_round_protocol(uint8_t *out, size_t cap, const struct wire_round_protocol *m);
size_t wire_put_callback(uint8_t *out, size_t cap, const struct wire_callback *m);
size_t wire_put_finish(uint8_t *out, size_t cap, const struct wire_finish *m);
size_t wire_put_status_req(uint8_t *out, size_t cap);
size_t wire_put_status(uint8_t *out, size_t cap, const struct wire_status *m);

/* Returns the version of the loaded msgpack-c library, such as "4.0.0". */
const char *wire_msgpack_version(void);

/* Write the bytes that a signature covers and return their length. Each kind of statement has
 * its own prefix, so a signature of one kind is never valid for another. cap >= 2048 is enough,
 * except for column statistics, which need WIRE_MOMENTS_MAX + 128. */
size_t wire_record_signed(uint8_t *out, size_t cap, const struct record *r);
size_t wire_accusation_signed(uint8_t *out, size_t cap, const struct accusation *a);
/* wire_token_signed(): bytes that a certificate's issuer signs. wire_presented_signed(): bytes that
 * the certificate's key signs for the joiner `id`. */
size_t wire_token_signed(uint8_t *out, size_t cap, const struct certificate *c);
size_t wire_presented_signed(uint8_t *out, size_t cap, const uint8_t id[WIRE_ID_BYTES]);
size_t wire_vouch_signed(uint8_t *out, size_t cap, const struct vouch *v);
size_t wire_moments_signed(uint8_t *out, size_t cap, const struct wire_moments *m);

#endif
