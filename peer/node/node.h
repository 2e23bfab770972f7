/* peer/node/node.h -- one training peer as a pure state machine.
 *
 * The node performs no I/O, reads no clock and draws no randomness of its own:
 * a driver (peer/uv over sockets, peer/sim over a heap of events) feeds it
 * events and carries out the effects it asks for.
 *
 *   START, TIMER, LINK_UP, LINK_DOWN, RECV, RESOLVED, PART, WORKED, KEPT, ADMIT, STOP
 *        |                                                            ^
 *        v                                                            |
 *   node_step() --effects--> sends, dials, hang-ups, resolves, notes, job
 *
 * A *link* is one authenticated session with one other process; the driver
 * numbers links and owns their sockets, channels and framing. RECV carries one
 * whole message. A stale TIMER is harmless, so drivers never cancel one.
 *
 * Work is an effect: at most one job runs at a time. The driver calls
 * node_work() on any one thread, then posts WORKED. While it runs the worker
 * owns the vectors and the trainer; node_step() may run beside it.
 */
#ifndef PEER_NODE_NODE_H
#define PEER_NODE_NODE_H

#include "gossip/exchange/packet.h"
#include "gossip/exchange/uplink.h"
#include "gossip/members/members.h"
#include "gossip/wire/wire.h"
#include "nn/train/trainer.h"
#include "peer/node/divergence.h"
#include "peer/node/schedule.h"
#include "peer/run/run.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mixer; /* gossip/mixers/mixer.h */

enum {
    NODE_SENDS_MAX = 4096, /* One step asks for at most so many. */
    NODE_DIALS_MAX = 32,
    NODE_NOTES_MAX = 16,
    NODE_NOTE_MAX = 480, /* Bytes of one note. */
    NODE_SEEDS_MAX = 16, /* Bootstrap names. */
    /* Bytes of a message that says why the data of two members do not match. */
    NODE_POOL_WHY = 400,
    NODE_LINKS_MAX = 256
};

enum node_event_type {
    NODE_START,       /* First event, exactly once. */
    NODE_TIMER,       /* fx.wake_us has been reached. */
    NODE_LINK_UP,     /* A session is open: link, up.* */
    NODE_LINK_DOWN,   /* It ended, whoever ended it: link, down.clean. Also after our hang-up. */
    NODE_DIAL_FAILED, /* dial.tag */
    NODE_RESOLVED,    /* resolved.* */
    NODE_RECV,        /* A whole message: link, recv.* */
    NODE_HEARD, /* Bytes of a message that is not whole yet: link, heard.*. A few times a second
                       * while a long one comes in: who sends it is neither silent nor stuck. */
    NODE_PART, /* The job goes on, and config.part was called: part.n bytes of a delta can be sent. */
    NODE_SIGNED,  /* The job goes on, and config.sign was called: it gets on. */
    NODE_WORKED,  /* The job is done. */
    NODE_SENT,    /* The bulk message being sent on `link` has left our queue. */
    NODE_KEPT,    /* What write_model asked for is stored, or could not be: kept.* */
    NODE_ADMIT,   /* Who may be a member: admit.*; from the first one on there is a list. */
    NODE_HANDED,  /* What write_handed asked for is stored, or could not be: kept.* */
    NODE_WRITTEN, /* The checkpoint of written.beat is on disk, or could not be put there. */
    NODE_CARRIED, /* So much has the link carried since this was last said: link, carried.* */
    NODE_STOP     /* SIGTERM: finish the job, write the model, leave (halt.h); again: at once. */
};

/* Why a dial came to nothing, as far as it can be told from outside. */
enum node_why {
    NODE_WHY_UNKNOWN,     /* None of what follows: we ended it, or had no room for it. */
    NODE_WHY_UNRESOLVED,  /* The name has no address. */
    NODE_WHY_REFUSED,     /* The host answers, and nothing listens at that port. */
    NODE_WHY_UNREACHABLE, /* There is no way to the host. */
    NODE_WHY_TIMEOUT,     /* No answer to the connection. */
    NODE_WHY_CLOSED,      /* Connected; it closed at our first message without a byte. */
    NODE_WHY_MUTE,        /* Connected; it said nothing to our first message. */
    NODE_WHY_SLOW,        /* It began to answer, and the handshake was not done in time. */
    NODE_WHY_BROKEN,      /* It began to answer, and the connection ended. */
    NODE_WHY_JUNK,        /* It answered what no holder of our cluster key answers. */
    NODE_WHY_VERSION,     /* It has our key, and we have no version of the messages in common. */
    NODE_WHY_UNWELCOME,   /* The session stood, and was ended before a word. */
    NODE_WHY_OTHER,       /* A different peer answered. */
    NODE_WHYS
};

/* Something that happened outside. Every pointer is borrowed for the call. */
struct node_event
{
    int64_t now_us; /* Caller's monotonic clock; never decreases. */
    enum node_event_type type;
    uint32_t link; /* LINK_*, RECV, SENT: the driver's number, never reused within a run. */
    struct
    {
        uint8_t id[WIRE_ID_BYTES]; /* Authenticated. */
        bool dialled;              /* We dialled, not they. */
        uint32_t tag;              /* The dial had this tag, if we dialled. */
        const char *local_host;    /* Our address on this connection, numeric. */
        const char *remote_host;
        uint32_t version; /* The messages have this one, as the handshake agreed. */
    } up;
    struct
    {
        bool clean;
    } down;
    struct
    {
        uint32_t tag;
        enum node_why why;
        uint32_t least, most; /* With NODE_WHY_VERSION: the versions that they speak. */
    } dial;
    struct
    {
        uint32_t seed;              /* Place in the bootstrap list. */
        const char *const *address; /* Numeric "host:port"s; none = did not resolve. */
        uint32_t n;
    } resolved;
    struct
    {
        const uint8_t *bytes;
        size_t len;
    } recv;
    struct
    {
        bool
            record; /* A whole record of it, opened and found good: 64 KiB, but for the last one. */
    } heard;
    struct
    {
        size_t n;
    } part;
    struct
    {
        bool stored; /* The model and all that belongs to it. */
    } kept;
    struct
    {
        uint64_t beat;
    } written;
    struct
    {
        struct uplink_bursts bursts;
        double rtt_us; /* The least round trip of the link; 0: not known. */
    } carried;
    struct
    {
        const uint8_t (*id)[WIRE_ID_BYTES]; /* n of them, sorted, each once. */
        size_t n;
        int64_t unix_ms; /* The wall clock now: it ends the time of certificates. */
    } admit;
    struct
    {
        uint64_t bytes_sent, bytes_received, n_strangers;
        uint64_t clock_ms; /* The wall clock since 1970, to be told and for nothing else. */
    } io;                  /* Totals so far: at the sockets; refused connections. */
};

struct node_send
{
    uint32_t link;
    bool bulk;           /* Own lane; control overtakes it between records. */
    const uint8_t *head; /* Copied or sealed by the driver before the next step. */
    size_t n_head;
    struct packet *body; /* NULL, or the payload behind the head: packet_hold() it while it is
                          * needed. */
};

struct node_dial
{
    uint32_t tag;        /* Comes back in LINK_UP or DIAL_FAILED. */
    const char *address; /* "host:port", a name or numeric. */
};

enum note_level { NOTE_INFO, NOTE_WARNING, NOTE_ERROR };
struct node_note
{
    enum note_level level;
    char text[NODE_NOTE_MAX];
};

/* What the driver must do next. Owned by the node, valid until the next
 * node_step() on the same node. In this order: sends, hang-ups, the rest. */
struct node_effects
{
    uint32_t n_sends, n_dials, n_hangups, n_resolves, n_notes;
    struct node_send sends[NODE_SENDS_MAX];
    struct node_dial dials[NODE_DIALS_MAX];
    struct
    {
        uint32_t link;
        bool violation;
    } hangups[NODE_LINKS_MAX]; /* Clean: a CLOSE goes first. */
    struct
    {
        uint32_t seed;
        const char *name;
    } resolves[NODE_SEEDS_MAX]; /* "host:port" */
    struct node_note notes[NODE_NOTES_MAX];
    bool work;        /* Call node_work(), then post WORKED. */
    bool measured;    /* node_progress() has new figures: write a metrics line. */
    bool checkpoint;  /* node_checkpoint() has one: write it, then post WRITTEN. Before the exit, if
                       * that comes with it. */
    uint32_t resumed; /* It went on from config.resume[resumed - 1]; 0: it did not, now. */
    bool write_model; /* Write the model (node_model()), then post KEPT. */
    bool write_handed; /* Write another's model (node_handed()), then post HANDED. */
    bool exit;         /* All is done; stop the loop. */
    int exit_code;
    int64_t wake_us; /* Post TIMER at this time; INT64_MAX for never. */
};

struct state; /* nn/math/state.h */

/* With --compress auto, what tells how much the link can take (goodput.h). */
enum node_uplink {
    NODE_UPLINK_OFF,  /* Nothing: the drift alone chooses the rung. */
    NODE_UPLINK_AUTO, /* CARRIED does. */
    NODE_UPLINK_RATE  /* The configuration does. */
};

#define NODE_EVALUATE_AUTO UINT64_MAX

/* A checkpoint of this peer's former life: good to be read, and of which beat. */
struct node_resume
{
    const struct state *state; /* Borrowed until the node is closed. */
    uint64_t beat;
    uint32_t slot; /* The driver's number for where it lies. */
};

/* What one member says of its data. */
struct node_part
{
    const char *name;
    struct bytes moments;
};

/* What members say of their data before there is a run, so that one can be fixed for all of them (pooling.h):
 * bytes that the trainer alone reads. Each function gets `self`. */
struct node_pool
{
    void *self;
    struct bytes
        own; /* At most WIRE_MOMENTS_MAX, borrowed until the node is closed; none: nothing is said. */
    bool founds; /* With `found`: the run is not fixed at once, but by what all have said. */
    /* Bytes of anybody: what is wrong with them, a literal, or NULL. */
    const char *(*check)(void *self, struct bytes theirs);
    /* True if checked data of another member do not match ours; why[] then says how. `theirs_lead`:
     * our columns are to be matched to theirs, and the message calls ours "found". Else their
     * columns are to be matched to ours. */
    bool (*differ)(void *self, struct bytes theirs, bool theirs_lead, char why[NODE_POOL_WHY]);
    /* The run by n >= 1 parts that go with ours. 0, or a negative errno with a sentence. */
    int (*pool)(void *self, const struct node_part *part, size_t n, struct run *run,
                char error[RUN_ERROR_MAX]);
};

struct node_config
{
    const char *name;          /* This member's name has the form [A-Za-z0-9._-]{1,32}. */
    uint8_t id[WIRE_ID_BYTES]; /* Our Ed25519 public key. */
    uint64_t boot;             /* Random, one a process. */
    uint64_t incarnation;      /* Start value: the wall clock in ms, so that a restart is newer. */
    uint64_t own_seed;         /* Random: for jitter only. */
    const char *listen_port;   /* "7100": joined to learnt local addresses. */
    const char *const *advertise; /* Addresses to announce, or none: learn them. */
    uint32_t n_advertise;
    bool calls_back; /* This peer calls members at the addresses that they announce (callback.h). */
    const char *const *bootstrap; /* "host:port" */
    uint32_t n_bootstrap;
    const struct members_crypto *crypto;
    const struct certificate
        *certificate;           /* By which we are admitted; NULL: by a list, if at all. */
    const struct record *known; /* Members known from the start (simulator). */
    uint32_t n_known;
    struct records *records; /* Shared with other nodes of this thread, and outlives them; NULL:
                              * the node's own (simulator). */
    struct shared_scratch *commons; /* The same of scratch and the like (commons.h). */
    int64_t forget_us; /* Members that are dead or gone for so long are dropped; 0: never. */

    struct run_flags flags; /* What was given explicitly, and whose keys its runs have. */
    /* It may fix the run itself if nobody has one: a peer with run flags or without
     * bootstrap. */
    bool found;
    struct run run; /* With `found`: the run it would fix. */
    const struct node_pool
        *pool; /* NULL: nobody is told anything of our data. Outlives the node. */

    /* In place of the run's mixer: the simulator's attackers. NULL: the run's. */
    const struct mixer *mixer;

    /* Called when the run is known, perhaps at once, and again if a proposed
     * run gives way to the cluster's: build the trainer for it. On failure returns
     * a negative errno with a sentence; the node ends with cmd_exit_of() of it. */
    int (*make_trainer)(void *self, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX]);
    void *make_trainer_self;

    /* Called on the worker's thread within node_work(), with n growing: post NODE_PART with it. NULL:
     * deltas go out whole, after the job. */
    void (*part)(void *self, size_t n);
    void *part_self;
    size_t
        part_least; /* Bytes of a part; 0: what is worth a message. For tests, whose models are small. */

    /* Called on a thread of the worker's within node_work(), about once a second at most, by jobs that are
     * long for a reason: post NODE_SIGNED. NULL: such a job is as one that hangs. */
    void (*sign)(void *self);
    void *sign_self;

    /* Rounds between evaluations in training; 0: only at the end; NODE_EVALUATE_AUTO: what the run's
     * length has room for (evaluation.h). */
    uint64_t evaluate_every;
    /* An evaluation in training takes so many; the last takes all. 0: all, or with NODE_EVALUATE_AUTO
     * its own number. */
    uint64_t evaluate_samples;

    /* Below the run's quorum this peer holds its local rounds so long, and then goes on
     * with a word of warning; 0: it goes on at once. */
    int64_t patience_us;
    /* A neighbour whose job runs longer than this is no longer waited for; 0: no limit. */
    int64_t worker_limit_us;

    enum node_uplink uplink;
    double uplink_rate; /* With NODE_UPLINK_RATE: bytes/s, shared by all edges. */

    /* A checkpoint is due once the last one is so old; 0: there are none. */
    int64_t checkpoint_us;
    struct node_resume resume[2]; /* Go on from these, the later beat first (resume.h). */
    size_t n_resume;
    /* This peer was in the run before, and nothing of that is left to go on from: where too few members
     * are there to begin, the others may have gone on and finished. It waits for patience_us. */
    bool was_there;
};

/* Figures for people and scripts. NaN where not known (yet). */
struct node_progress
{
    enum node_phase phase;
    uint64_t round, n_rounds; /* How far it is in the run's rounds, of how many. */
    uint64_t settle_rounds;   /* Rounds of the consensus phase done. */
    /* round = joined_round + rounds_done + rounds_skipped: this process began at the first,
     * did its local steps in so many, and passed over the rest to catch up. */
    uint64_t joined_round, rounds_done, rounds_skipped;
    bool holds;                 /* Below the quorum: no local rounds now. */
    uint32_t local_steps;       /* So many in the last round, */
    uint64_t steps_done;        /* and in all that this peer did. */
    double loss;                /* The last local steps had this mean loss. */
    bool loss_untold;           /* Whoever trains did not say it: it is NaN, and says nothing. */
    double accuracy, test_loss; /* The last evaluation found these, */
    uint64_t accuracy_samples;  /* on so many samples (of a text: bytes), */
    uint64_t
        accuracy_round; /* of the model after so many rounds, the consensus phase's counted on. */
    double drift, relative_drift; /* Estimated Xi and Xi/|mean|... */
    uint64_t drift_round;         /* ... of the state before this round's local steps, where
                                   * rounds of the consensus phase count on; */
    uint64_t drift_age;           /* so many rounds have been done since. */
    double own_distance;          /* Estimated |x_i - mean|. */
    double gamma;                 /* Mean over the edges. */
    /* --compress auto (gossip/exchange/codec_levels.h) fills these in: the codec of the last deltas,
     * and its measure of the drift, as last seen and as wanted. Else they are NULL and NaN. */
    const char *rung;
    double excess, drift_target;
    const char *
        rung_by; /* Who chose that rung: "drift", "link" or "price" (gossip/exchange/codec_levels.h). */
    double goodput; /* Bytes/s over the slowest edge beside what is latency, as last seen. */
    /* The running statistics' relative distance over the worst edge; NaN: there are none. */
    double statistics_apart;
    /* Totals: local steps; apply, mix and encode; waiting for others. */
    double compute_s, mix_s, wait_s;
    uint64_t bytes_sent, bytes_received; /* At the socket, as the driver last told. */
    uint64_t bytes_ahead; /* Bytes of deltas, sent before their round's local steps were
                                          * over (--overlap layer). */
    uint32_t n_live, n_edges;
    uint64_t resets, violations, exchanges; /* Totals over all edges. */
    uint64_t distrusted;            /* Times that an edge was closed for what came over it. */
    uint64_t strangers;             /* Refused before authentication, as the driver told. */
    bool evaluated;                 /* accuracy is of this very round. */
    char diverged[DIVERGENCE_TEXT]; /* How training ran away, told when it is over; or "". */
    char unlearnt[DIVERGENCE_TEXT]; /* That it ended no better than guessing, likewise. */
};

struct node; /* Opaque. */

/* Returns 0, -EINVAL or -ENOMEM. The config is copied but for `crypto`, the
 * callbacks' self and the arrays of strings, which must outlive the node (as `certificate` need not). */
int node_open(struct node **n, const struct node_config *config);
void node_close(struct node *n);

/* Advance by one event. Never fails: bad input from a link is counted, hung
 * up on and changes nothing else. */
void node_step(struct node *n, const struct node_event *ev, struct node_effects *fx);

/* Run the job that the last step asked for. `clock_us` is read for the
 * compute and mix times only. */
void node_work(struct node *n, int64_t (*clock_us)(void));

/* The checkpoint that the last step asked to be written, and its beat, by which slots are
 * told apart. Its memory and that of *s, written earlier or zeroed, change places. */
uint64_t node_checkpoint(struct node *n, struct state *s);

void node_progress(const struct node *n, struct node_progress *p);
/* What we say of ourselves to whoever asks; of our edges, the first WIRE_EDGES_MAX. */
void node_status(const struct node *n, struct wire_status *s);

/* What a node waits for; the table of what comes before what is in waits.h. */
enum node_waits_for {
    NODE_WAITS_NOTHING,   /* It computes, or keeps a pace. */
    NODE_WAITS_RUN,       /* Somebody has to tell it the run. */
    NODE_WAITS_RESUME,    /* Others have to say from which checkpoints they go on. */
    NODE_WAITS_MEMBERS,   /* --min-peers: have of need are here. */
    NODE_WAITS_MODEL,     /* A model comes from others. */
    NODE_WAITS_EDGES,     /* Its edges have to open. */
    NODE_WAITS_QUORUM,    /* have of need members are heard. */
    NODE_WAITS_DISK,      /* A checkpoint is being written. */
    NODE_WAITS_NEIGHBOUR, /* id has not done the round that lock step asks for. */
    NODE_WAITS_OTHERS,    /* Its own model is final; others have not finished. */
    NODE_WAITS            /* How many there are. */
};
struct node_wait
{
    enum node_waits_for what;
    uint8_t id[WIRE_ID_BYTES]; /* NODE_WAITS_NEIGHBOUR: who, */
    uint64_t beat; /* and the round that it has done; those of the consensus phase count on. */
    uint32_t have, need; /* NODE_WAITS_MEMBERS, NODE_WAITS_QUORUM. */
    double since_s;      /* For so long: since the last job ended, or the quorum was lost. */
    double busy_s;       /* Its worker has been at its job for so long; 0: there is none. */
};
void node_wait(const struct node *n, struct node_wait *w);

/* How far the neighbour of the i-th edge of node_status() is. */
struct node_neighbour
{
    bool has_beat; /* It has said */
    uint64_t beat; /* that it has done so many rounds, those of the consensus phase included. */
    double busy_s; /* Its worker has been at its job for so long; 0: it has none; NaN: it has said
                    * nothing of that since its last delta. */
};
void node_neighbour(const struct node *n, size_t i, struct node_neighbour *b);

/* The vertices of the graph in its order, as places for node_member(); how many. */
size_t node_vertices(const struct node *n, uint32_t at[WIRE_MEMBERS_MAX]);
/* The graph's spec in this phase; with the run's seed it says who is whose neighbour. NULL: no run
 * yet. */
const char *node_topology(const struct node *n);

/* A member as this node sees it. */
struct node_member
{
    const uint8_t *id; /* WIRE_ID_BYTES; this and the name are valid until the next step. */
    const char *name;
    enum member_state state;
    bool own;       /* It is this peer. */
    bool connected; /* A session with it lives. */
    bool has_round; /* It is known how far it is: it said so on the session that we have, */
    uint64_t round; /* namely that it has done so many rounds of the run. */
};
/* How many there are, ourselves included, and the i-th of them. */
size_t node_members(const struct node *n);
void node_member(const struct node *n, size_t i, struct node_member *m);

/* The i-th kind of message that no correct peer sends, of those that came, and how many; NULL behind
 * the last. The text lives as long as the program. */
const char *node_violation(const struct node *n, size_t i, uint64_t *count);

struct verdict_facts;

/* How the run ended, or would if it ended now: for verdict_judge() of peer/node/verdict.h. */
void node_facts(const struct node *n, struct verdict_facts *f);
/* The parameters and their segments; NULL before the run is known. Not while a
 * job runs. */
const float *node_model(const struct node *n, const struct segment **segments, size_t *n_segments,
                        size_t *n_params);
/* Another peer's model, of the same segments, that is to be stored for it. */
struct node_handed
{
    const float *x;
    const char *name; /* That member's. */
    uint64_t round;
};
/* False: there is none. */
bool node_handed(const struct node *n, struct node_handed *h);
/* Who has stored our final model, where we could not; NULL: nobody has. */
const char *node_handed_to(const struct node *n);
const struct run *node_run(const struct node *n); /* NULL before it is known. */

/* The longest message a link may send us now, by lane: the driver's limit
 * before it buffers. Grows once the run is known. */
size_t node_control_max(const struct node *n);
size_t node_bulk_max(const struct node *n);

#endif
