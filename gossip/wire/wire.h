/* gossip/wire/wire.h -- the messages peers send, and their bytes.
 *
 * A message is one msgpack array, its first element the type. The channel
 * below delivers whole messages; the driver carries them without looking in.
 *
 *   [type, field, field, ..., bin]        a bulk payload is the last field
 *
 *   bytes --wire_read()--> struct wire_message --a handler--> ...
 *   struct wire_delta, ... --wire_put_delta(), ...--> bytes
 *
 * Bytes from outside become a message in one place and one pass: a cursor that
 * knows where the bytes end asks for each field's kind, range and length in
 * turn. What is not the next field is refused there, so nested arrays, maps,
 * ext types and counts larger than the message need no check of their own, and
 * nothing is allocated: strings and bins point into the message.
 *
 * msgpack-c writes only. To read with it takes a scan before it (measured: a
 * 5-byte array header makes it reserve 2 GiB), its callbacks, and a list of
 * values between the two: 440 lines, against 100 for a cursor. A test has
 * msgpack-c agree on every message that wire_read() takes.
 */
#ifndef GOSSIP_WIRE_WIRE_H
#define GOSSIP_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every limit of the protocol. */
enum wire_limit {
    WIRE_VERSION = 8,          /* Newest version of the messages that this program speaks. */
    WIRE_VERSION_LEAST = 7,    /* Oldest version of the messages that this program speaks. */
    WIRE_VERSION_CALLBACK = 8, /* First version that has CALLBACK. */
    WIRE_ID_BYTES = 32,
    WIRE_SIGNATURE_BYTES = 64,
    WIRE_CODEC_MAX = 63,          /* Characters of a codec's spec in a STATUS. */
    WIRE_NAME_MAX = 32,           /* Characters of a member's name. */
    WIRE_ADDRESS_MAX = 127,       /* Characters of an announced "host:port". DNS allows names of
                                  * 253; 64 records of four such would not fit a message. */
    WIRE_ADDRESSES_MAX = 4,       /* A member announces at most so many. */
    WIRE_MEMBERS_MAX = 1024,      /* Members a peer keeps. */
    WIRE_BATCH_MAX = 64,          /* Records, or accusations, in one MEMBERS message. */
    WIRE_VOUCHES_MAX = 24,        /* Vouches in one. */
    WIRE_RUN_MAX = 2048,          /* Bytes of a run's canonical text. */
    WIRE_CONTROL_MAX = 80 * 1024, /* Bytes of any message without a bulk payload. */
    WIRE_HEAD_MAX = 1024,   /* Bytes of a bulk message before its payload, without the sketch. */
    WIRE_SKETCH_MAX = 4096, /* Bytes of the encoded sketch in a DELTA. */
    WIRE_EDGES_MAX = 64,    /* Edges listed in a STATUS. */
    WIRE_MOMENTUM_ONE = 1 << 16,  /* A momentum of 1, which none has. */
    WIRE_MORE_BITS = 16,          /* A delta's `more` stands above so many bits of its degree. */
    WIRE_MOMENTS_MAX = 24 * 1024, /* Bytes of what a member says of its data. */
    WIRE_CODE_MAX = 15 /* A phase, edge state or codec, whose enums are kept elsewhere, is
                             * at most this. */
};

enum wire_type {
    WIRE_NONE = 0,
    WIRE_HELLO,      /* First in each direction: who I am, which run. */
    WIRE_MEMBERS,    /* Records, accusations and vouches the receiver may not know. */
    WIRE_PING,       /* Heartbeat, with the worker's progress. */
    WIRE_EDGE,       /* I (re)open our edge: my epoch and round. */
    WIRE_EDGE_CLOSE, /* I no longer mix with you. */
    WIRE_DELTA,      /* One half of an edge round. Bulk. */
    WIRE_MODEL_REQ,  /* Send me your model at a round, or a piece of it. */
    WIRE_MODEL,      /* A model, a piece of one, or sketches of all its pieces. Bulk. */
    WIRE_STATUS_REQ,
    WIRE_STATUS,
    /* In lock step: the rounds that the sender has done, if no delta reports them. */
    WIRE_BEAT,
    /* Asks whether the receiver has recently heard a member that the sender has not. */
    WIRE_PROBE,
    WIRE_HEARD,   /* Answer to PROBE: time since the member was heard. Not sent otherwise. */
    WIRE_REFUSED, /* The reason why the sender refuses the session. Last message of a session. */
    /* At the end: asks the receiver to store a model that the sender's disk cannot. */
    WIRE_HAND,
    WIRE_PART,    /* Fragment of a DELTA that is not sent yet: the last bytes come first. Bulk. */
    WIRE_MOMENTS, /* Before a run exists: column statistics of a member's data files. */
    WIRE_ROUND_PROTOCOL, /* Message of the round protocol of the run (peer/node/round_protocol.h). Bulk. */
    WIRE_CALLBACK, /* Whether the sender can call the receiver at its announced addresses. */
    WIRE_TYPE_END
};

enum wire_role {
    WIRE_PEER = 0,
    WIRE_OBSERVER /* `hearsay status`, `hearsay drift`: never a member. */
};

enum record_state {
    RECORD_RUNNING = 0,
    RECORD_STALLED,  /* Its worker has been at one job for too long: no vertex until it is done. */
    RECORD_TRAINED,  /* Its training is done; it mixes in the last phase. */
    RECORD_FINISHED, /* Its model is final, and stored; still counts as a vertex. */
    RECORD_FAILED,   /* Its model is final, but could not be stored; a vertex likewise. */
    RECORD_LEFT      /* Left by its own word; no vertex. */
};

/* It mixes no more, and nobody waits for it, whatever became of its model. */
static inline bool record_state_is_final(enum record_state s)
{
    return s == RECORD_FINISHED || s == RECORD_FAILED;
}

/* What a join token makes of an identity that is on nobody's list. Three keys have a part:
 *
 *     issuer (listed) --signs--> key, expires_ms     (`hearsay key invite`: with key's secret, the token)
 *     key             --signs--> the newcomer's id  (the newcomer, who has the token)
 *
 * Whoever reads it in a record can check it, and can make nothing of it for another identity. */
struct certificate
{
    uint8_t issuer[WIRE_ID_BYTES];
    uint64_t
        expires_ms; /* Milliseconds since 1970: from then on it admits nobody for the first time. */
    uint8_t key[WIRE_ID_BYTES];              /* Ed25519 public key, of this token only. */
    uint8_t issued[WIRE_SIGNATURE_BYTES];    /* By issuer: wire_token_signed(). */
    uint8_t presented[WIRE_SIGNATURE_BYTES]; /* By key: wire_presented_signed(). */
};

/* A member as it describes itself. Signed by itself; the signature covers the
 * canonical bytes of every other field (wire_record_signed). */
struct record
{
    /* What is compared with another record stands first: two lines of the cache. */
    uint8_t id[WIRE_ID_BYTES]; /* Ed25519 public key. */
    uint64_t incarnation;      /* Higher is newer. */
    uint64_t boot;             /* Random, one a process. */
    enum record_state state;
    uint32_t n_addresses;
    uint8_t signature[WIRE_SIGNATURE_BYTES];
    uint64_t beat[2]; /* Its process began with checkpoints of these beats, the newer one first;
                       * 0: there is none. */
    /* Another process spoke for this identity: its boot, and how old the signer was when
     * it raised its record above that one's. 0: there was none. */
    uint64_t over, age_ms;
    char name[WIRE_NAME_MAX + 1];
    char address[WIRE_ADDRESSES_MAX][WIRE_ADDRESS_MAX + 1]; /* "host:port" */
    bool invited;                                           /* It has a certificate: */
    struct certificate certificate;                         /* else all zero. */
};

/* "I have not heard `accused` since its `incarnation`", signed by `accuser`. */
struct accusation
{
    uint8_t accused[WIRE_ID_BYTES], accuser[WIRE_ID_BYTES];
    uint64_t incarnation;
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

/* "I have had a session with `member`", signed by `voucher`: its key, and not only its record,
 * was there. See gossip/members/vouches.h. */
struct vouch
{
    uint8_t member[WIRE_ID_BYTES], voucher[WIRE_ID_BYTES];
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

/* A borrowed range inside the message. */
struct bytes
{
    const uint8_t *p;
    size_t n;
};

struct wire_hello
{
    uint32_t version; /* That of the session, which the handshake has agreed on. */
    enum wire_role role;
    bool has_run;         /* False: I take the run from you. */
    bool has_started;     /* My round 0 has begun: my run is a fact. */
    struct bytes run;     /* Canonical text; empty without a run. */
    uint64_t round;       /* I have done so many rounds of the run. */
    struct record record; /* Peers only; an observer's is zero. */
};

struct wire_members
{
    uint32_t n_records, n_accusations, n_vouches;
    struct record *records;         /* All in a wire_batch: wire_read() fills the */
    struct accusation *accusations; /* reader's, members_dirty() the sender's. */
    struct vouch *vouches;
    uint64_t without; /* For a writer: the records of these places are left out. */
};

/* Room for what a MEMBERS message tells: 56 KB, so one for each reader. */
struct wire_batch
{
    struct record records[WIRE_BATCH_MAX];
    struct accusation accusations[WIRE_BATCH_MAX];
    struct vouch vouches[WIRE_VOUCHES_MAX];
};

struct wire_ping
{
    uint64_t round;   /* As run_round of a delta. */
    uint32_t busy_ms; /* My worker has been at its present job for so long; 0: it waits. */
    bool finished;
};

/* It travels in the lane of deltas, behind those that were sent before it: who has read it
 * knows that none is on its way. */
struct wire_beat
{
    uint64_t run_round;  /* As that of a delta, */
    uint64_t checkpoint; /* and so are these. */
    uint32_t settled;
};

struct wire_probe
{
    uint8_t id[WIRE_ID_BYTES];
};

struct wire_heard
{
    uint8_t id[WIRE_ID_BYTES];
    uint32_t age_ms; /* Since I heard it myself. */
};

/* Why somebody gets no session. */
enum wire_refusal {
    REFUSED_UNLISTED = 0, /* It is not on my list, and has no certificate. */
    REFUSED_EXPIRED,      /* Its certificate came too late. */
    REFUSED_ISSUER,       /* Who issued its certificate is not on my list. */
    REFUSED_FORGED,       /* Its certificate's signatures do not fit. */
    REFUSED_NAME          /* A member of its name lives: `other`. */
};

struct wire_refused
{
    enum wire_refusal why;
    char name[WIRE_NAME_MAX + 1]; /* The sender's. */
    uint8_t other[WIRE_ID_BYTES]; /* NAME: the member that has it; else zero. */
};

/* See peer/node/hand.h. */
enum wire_hand_word {
    WIRE_HAND_OFFERED, /* Will you store my model? */
    WIRE_HAND_WANTED,  /* Send it: a MODEL, whole. */
    WIRE_HAND_REFUSED, /* I cannot, or could not. */
    WIRE_HAND_STORED,
    WIRE_HAND_END
};

struct wire_hand
{
    enum wire_hand_word word;
};

/* Both ends send one when they want the edge; from the pair both compute what
 * is next: go on, resend, or a new epoch. See gossip/exchange/edge.h. */
struct wire_edge
{
    uint64_t epoch;     /* 0: none, or "reset". */
    uint64_t round;     /* Exchanges committed in that epoch. */
    uint64_t nonce;     /* Fresh each time: goes into the next epoch. */
    uint64_t boot;      /* The sender's process. */
    uint64_t run_round; /* As that of a delta: neither waits for what is long done. */
    bool restored;      /* The edge is as the sender's checkpoint has it. */
};

struct wire_delta
{
    uint64_t epoch;
    uint64_t round;      /* The delta belongs to this round of the epoch. */
    uint64_t run_round;  /* Rounds the sender has done, the last phase's included. */
    uint32_t degree;     /* Edges the sender mixes over in this very round. Its weight for */
    uint32_t more;       /* this one is (1 + more) / (1 + degree); the lesser one of both ends
                                 * counts. 0 but where the graph changes by round. */
    uint32_t codec;      /* enum delta_codec of gossip/exchange/edge.h. */
    float x2, e2;        /* |x - a|^2 before, and after this delta. */
    uint32_t momentum;   /* In 1 / WIRE_MOMENTUM_ONE; of both ends' the lesser one counts. */
    uint64_t hash;       /* It covers (a, b) as they were before this round; 0 = not now. */
    uint64_t checkpoint; /* All write a checkpoint at this beat; 0: none is due. */
    uint32_t settled;    /* Hops around me known to be under --final-drift. */
    uint64_t pace;       /* By --local-steps auto: what the sender takes for the mean of all
                                 * peers' local steps in 1,000 s; 0: nothing. */
    uint64_t clean;      /* The pass that the sender is in, and all that it has mixed with in it
                                 * (peer/node/pass.h); 0: it is in none, or something was amiss. */
    uint64_t sketch_generation; /* 0: no sketch in this delta. */
    float mean_dist2,
        mean_norm2; /* The sender's averages, any sign; see gossip/exchange/sketch.h. */
    struct bytes sketch;
    struct bytes payload; /* None: all of it came in PARTs over this session. */
};

/* Part of the payload of a DELTA that is not sent yet (--overlap layer): the bytes before the
 * last `after` bytes, which were sent earlier. */
struct wire_part
{
    uint64_t epoch, round; /* The DELTA's. */
    uint64_t after;
    struct bytes payload; /* One byte or more. */
};

/* See peer/node/collectives/allreduce.h. */
enum wire_round_protocol_word {
    WIRE_ROUND_PROTOCOL_STEP,  /* The payload is what the schedule sends you in `step`. */
    WIRE_ROUND_PROTOCOL_AGAIN, /* I do not have what comes of `round` yet, and am at this attempt. */
    WIRE_ROUND_PROTOCOL_HAVE,  /* I have what came of `round`, by this attempt of this view. */
    WIRE_ROUND_PROTOCOL_WANT,  /* Send me what came of `round`, or of a later one. */
    WIRE_ROUND_PROTOCOL_RESULT, /* The payload is the model that came of `round`. */
    /* See peer/node/collectives/parameter_server.h. To the server of --mixer ps, and its answers: */
    WIRE_ROUND_PROTOCOL_HERE, /* I have done `round`, and what you, or the server before you, said of `view`. */
    WIRE_ROUND_PROTOCOL_ASK,  /* The same, and I have no update of it: tell me the model. */
    WIRE_ROUND_PROTOCOL_PUSH, /* The payload is my update of `round`. */
    WIRE_ROUND_PROTOCOL_PULL, /* The payload is what moves the model that you were told last, after `round`. */
    WIRE_ROUND_PROTOCOL_ROLL, /* I am the server: where are you? */
    WIRE_ROUND_PROTOCOL_END
};

struct wire_round_protocol
{
    enum wire_round_protocol_word word;
    uint64_t round;   /* The run's; */
    uint32_t attempt; /* its collective has been begun anew so many times. */
    uint64_t view; /* The members that take part: members_view(). In a HERE and an ASK a round. */
    uint32_t step; /* 0 but in a STEP. */
    struct bytes
        payload; /* A STEP may have one, of little-endian float32, a RESULT has one, and a PUSH
                           * and a PULL have what a delta has (gossip/mixers/mixing.h). */
};

/* Result of the sender's calls to the addresses in the receiver's record (peer/node/callback.h). */
struct wire_callback
{
    uint32_t why; /* 0: one of the addresses works. Else enum node_why of the last call. */
    char address[WIRE_ADDRESS_MAX + 1]; /* Address of the last call. */
};

#define WIRE_ROUND_WINDOW  UINT64_MAX
#define WIRE_ROUND_INITIAL (UINT64_MAX - 1)
#define WIRE_PIECE_WHOLE   UINT32_MAX
#define WIRE_PIECE_LAYERS  (UINT32_MAX - 1)

struct wire_model_req
{
    uint64_t round; /* First state at or after this round; 0 = now;
                     * WIRE_ROUND_WINDOW = that which the next drift window
                     * (gossip/exchange/sketch.h) measures;
                     * WIRE_ROUND_INITIAL, for a piece without a key = the
                     * model that the run begins with. */
    uint32_t piece; /* As gossip/exchange/piece.h cuts it; WIRE_PIECE_WHOLE: all in one message;
                     * WIRE_PIECE_LAYERS: sketches of its layers (gossip/exchange/layers.h). */
    uint64_t key;   /* Not 0: no floats but the sketches of all pieces, or layers, drawn with this
                     * key; then `piece` is WIRE_PIECE_WHOLE, or WIRE_PIECE_LAYERS. */
};

struct wire_model
{
    uint64_t round;
    uint32_t piece;       /* As in the question, */
    uint64_t key;         /* and so is this. */
    struct bytes payload; /* Little-endian float32. */
};

struct wire_status_edge
{
    uint8_t id[WIRE_ID_BYTES];
    uint32_t state; /* enum edge_state of gossip/exchange/edge.h. */
    uint64_t round;
    float gamma;
    uint64_t resets;
};

/* Numbers about one peer, by itself. NaN where not known yet. */
struct wire_status
{
    uint64_t round, n_rounds;
    uint32_t phase; /* enum node_phase of peer/node/node.h. */
    double loss, accuracy;
    double drift, relative_drift;        /* Xi and Xi/|mean|, estimated, */
    uint64_t drift_round, drift_age;     /* as in struct node_progress. */
    uint64_t bytes_sent, bytes_received; /* At the sockets, all links. */
    uint64_t n_strangers, n_violations;
    uint32_t n_live;
    uint64_t rounds_done, rounds_skipped, joined_round; /* As in struct node_progress. */
    double age_s;                                       /* Since its last job ended. */
    bool holds;        /* It is below the quorum, and does no local rounds. */
    uint64_t clock_ms; /* Its wall clock, since 1970, when it said this; 0: it has none. */
    char codec[WIRE_CODEC_MAX
               + 1]; /* What its deltas come in now; what is longer is cut. "": none. */
    uint32_t n_edges;
    struct wire_status_edge edges[WIRE_EDGES_MAX];
};

/* Said by the member of the record, and passed on by whoever has no run yet (peer/node/pooling.h). The
 * signature is its, over id, boot, `founds` and the payload. */
struct wire_moments
{
    struct record record;
    bool founds;          /* It would fix a run of all members' moments. */
    struct bytes payload; /* At most WIRE_MOMENTS_MAX; the trainer's to read. */
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

/* Any message, as it came. What is of variable length is borrowed: `struct
 * bytes` point into the message's bytes, the lists of a MEMBERS into `batch`. */
struct wire_message
{
    enum wire_type type; /* Tells which of the union holds; none for EDGE_CLOSE and STATUS_REQ. */
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
        struct wire_hand hand;
        struct wire_edge edge;
        struct wire_delta delta;
        struct wire_part part;
        struct wire_model_req model_req;
        struct wire_model model;
        struct wire_status status;
        struct wire_moments moments;
        struct wire_round_protocol round_protocol;
        struct wire_callback callback;
    };
};

/* Read the message in p[0..n), which may stand at any address. True: *m is it,
 * and holds as long as p and *batch do. False: *m and *batch are meaningless
 * but for m->type, which names what the message says to be, or is WIRE_NONE
 * where it does not begin like one.
 *
 * The count, kind, range and finiteness of every field are checked (a run's
 * text: printable ASCII and newlines), and the exact end. A DELTA or MODEL is
 * whole here: head and payload contiguous. Refused beyond a wrong shape: a
 * HELLO that has started without a run, or has no record though a peer's;
 * squared norms that are negative; sketch bytes without a generation; a model
 * that is no whole number of floats; enums kept elsewhere (phase, edge state,
 * codec) above WIRE_CODE_MAX. NaN is allowed in a STATUS only, where Inf is,
 * too: a diverged loss. */
bool wire_read(const uint8_t *p, size_t n, struct wire_batch *batch, struct wire_message *m);

/* The rules of the two texts, for whoever reads them from elsewhere. A name:
 * [A-Za-z0-9._-]{1,32}. An address: "host:port", the host a name, an IPv4
 * address or an IPv6 address in brackets, the port 1..65535 in plain decimal;
 * WIRE_ADDRESS_MAX characters at most. Syntax only: who may be dialled is the
 * dialler's question. */
bool wire_name_ok(const char *name);
bool wire_address_ok(const char *address);

/* Encoders write to out[0..cap) and return the length, or 0 where cap is too
 * small (a bug of ours, except that callers may ask with any cap). The two
 * bulk encoders write all but the payload's bytes, which the caller sends
 * right behind: head + payload is one message. A DELTA's head is 50 bytes in
 * the usual case (small rounds, no hash, no sketch); WIRE_HEAD_MAX +
 * WIRE_SKETCH_MAX hold any. They do not repeat the reader's checks. */
size_t wire_put_hello(uint8_t *out, size_t cap, const struct wire_hello *m);
size_t wire_put_members(uint8_t *out, size_t cap, const struct wire_members *m);
size_t wire_put_ping(uint8_t *out, size_t cap, const struct wire_ping *m);
size_t wire_put_beat(uint8_t *out, size_t cap, const struct wire_beat *m);
size_t wire_put_probe(uint8_t *out, size_t cap, const struct wire_probe *m);
size_t wire_put_heard(uint8_t *out, size_t cap, const struct wire_heard *m);
size_t wire_put_refused(uint8_t *out, size_t cap, const struct wire_refused *m);
size_t wire_put_hand(uint8_t *out, size_t cap, const struct wire_hand *m);
size_t wire_put_edge(uint8_t *out, size_t cap, const struct wire_edge *m);
size_t wire_put_edge_close(uint8_t *out, size_t cap);
size_t wire_put_delta(uint8_t *out, size_t cap, const struct wire_delta *m);
size_t wire_put_part(uint8_t *out, size_t cap, const struct wire_part *m);
size_t wire_put_model_req(uint8_t *out, size_t cap, const struct wire_model_req *m);
size_t wire_put_model(uint8_t *out, size_t cap, const struct wire_model *m);
size_t wire_put_moments(uint8_t *out, size_t cap, const struct wire_moments *m);
size_t wire_put_round_protocol(uint8_t *out, size_t cap, const struct wire_round_protocol *m);
size_t wire_put_callback(uint8_t *out, size_t cap, const struct wire_callback *m);
size_t wire_put_status_req(uint8_t *out, size_t cap);
size_t wire_put_status(uint8_t *out, size_t cap, const struct wire_status *m);

/* The version of the msgpack-c that is loaded, "4.0.0". */
const char *wire_msgpack_version(void);

/* The bytes a signature covers, with a domain prefix so that one kind can
 * never be taken for the other. Returns the length; cap >= 2048 is enough, of moments
 * WIRE_MOMENTS_MAX + 128. */
size_t wire_record_signed(uint8_t *out, size_t cap, const struct record *r);
size_t wire_accusation_signed(uint8_t *out, size_t cap, const struct accusation *a);
/* What the issuer of a certificate signs, and what its key does for the newcomer `id`. */
size_t wire_token_signed(uint8_t *out, size_t cap, const struct certificate *c);
size_t wire_presented_signed(uint8_t *out, size_t cap, const uint8_t id[WIRE_ID_BYTES]);
size_t wire_vouch_signed(uint8_t *out, size_t cap, const struct vouch *v);
size_t wire_moments_signed(uint8_t *out, size_t cap, const struct wire_moments *m);

#endif
