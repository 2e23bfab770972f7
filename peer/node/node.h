/* peer/node/node.h -- the public interface of a node: one training peer as a pure state machine.
 *
 * A node is the protocol of one peer: membership, sessions, edges, phases of the run, checkpoints
 * and the verdict. The node performs no I/O, reads no clock, starts no thread and draws random
 * numbers from seeded streams only. A *driver* reports events to it and carries out the effects
 * that it returns. peer/uv drives one node over TCP sockets. peer/sim drives a thousand nodes over
 * a simulated network, in virtual time.
 *
 *             event: time, message, timer, result of an effect
 *   driver ------------------------------------------------------> node_step()
 *          <------------------------------------------------------
 *             effects: send, dial, hang up, resolve, note, write, run a job, wake-up time
 *
 * A driver calls node_open(), then node_step() with the event NODE_START, then node_step() for each
 * further event until fx->exit is set, and at the end node_close().
 *
 * Each row of this table shows an effect, what the driver must do, and the event that the driver
 * must report afterwards:
 *
 *   effect         the driver must                         and then report
 *   sends          send a message over a link              NODE_SENT, for a bulk message
 *   dials          call an address                         NODE_LINK_UP or NODE_DIAL_FAILED
 *   hangups        end a link                              NODE_LINK_DOWN
 *   resolves       look up a bootstrap name                NODE_RESOLVED
 *   work           call node_work() on any one thread      NODE_WORKED
 *   checkpoint     fetch node_checkpoint() and write it    NODE_WRITTEN
 *   write_model    write node_model() to disk              NODE_KEPT
 *   wake_us        wait until this time                    NODE_TIMER
 *   notes          print a message for the user
 *   measured       write a line of metrics
 *
 * During a job node_work() may call config.part and config.sign of the driver, which then reports
 * NODE_PART or NODE_SIGNED. Other events report what happens outside: NODE_RECV, NODE_HEARD,
 * NODE_CARRIED, NODE_ADMIT and NODE_STOP. A NODE_TIMER that comes too early or twice is harmless,
 * so drivers never cancel a timer.
 *
 * Terms:
 *
 *   link   one authenticated session with one other process. The driver numbers the links and owns
 *          their sockets, encryption and framing. A RECV event carries one whole message.
 *   job    the computation of one round: mixing, local steps and encoding. At most one job runs at
 *          a time. While it runs, the worker owns the trainer and the vectors of the model.
 *          node_step() may run at the same time on the driver's thread.
 *   step counter, `beat` in names: rounds of training plus rounds of the consensus phase so far
 *
 * All functions except node_work() must be called on one thread, the driver's. Times are in
 * microseconds of a monotonic clock, unless a comment says otherwise.
 */
#ifndef PEER_NODE_NODE_H
#define PEER_NODE_NODE_H

#include "gossip/exchange/packet.h"
#include "gossip/exchange/uplink.h"
#include "gossip/members/members.h"
#include "gossip/wire/wire.h"
#include "nn/train/trainer.h"
#include "peer/node/schedule.h"
#include "peer/node/step/divergence.h"
#include "peer/run/run.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mixer; /* Algorithm that combines models. Defined in gossip/mixers/mixer.h. */

enum {
    /* Maximum number of messages that one step sends. Further messages of the step are dropped. */
    NODE_SENDS_MAX = 4096,
    NODE_DIALS_MAX = 32, /* Maximum number of dials that one step starts. */
    /* Maximum number of notes (messages for the user) of one step. Further notes are dropped. The
     * last NODE_NOTES_KEPT places are reserved for notes that are not debug notes. */
    NODE_NOTES_MAX = 64,
    NODE_NOTES_KEPT = 16,
    NODE_NOTE_MAX = 480,  /* Size of a note's text in bytes, with the NUL. */
    NODE_MODULE_MAX = 32, /* Size of the name of a module in bytes, with the NUL. */
    NODE_SEEDS_MAX = 16,  /* Maximum number of names in the bootstrap list. */
    NODE_POOL_WHY = 400,  /* Size in bytes, with the NUL, of the text why[] in struct node_pool. */
    NODE_LINKS_MAX = 256  /* Maximum number of links at a time. */
};

/* Type of an event. "Fields" lists the members of struct node_event that are set, in addition to
 * now_us, type and io. */
enum node_event_type {
    NODE_START,       /* The first event of a node. Reported exactly once. */
    NODE_TIMER,       /* The time fx.wake_us has been reached. */
    NODE_LINK_UP,     /* A session was opened and authenticated. Fields: link, up. */
    NODE_LINK_DOWN,   /* A session has ended, for any reason. Fields: link, down. */
    NODE_DIAL_FAILED, /* A dial did not lead to a session. Fields: dial. */
    NODE_RESOLVED,    /* A lookup of a bootstrap name has ended. Fields: resolved. */
    NODE_RECV,        /* A whole message has arrived. Fields: link, recv. */
    /* Part of a long message has arrived. Reported a few times per second, so that the sender
     * counts neither as silent nor as stuck. Fields: link, heard. */
    NODE_HEARD,
    NODE_PART,    /* The running job has encoded more of its delta (config.part). Fields: part. */
    NODE_SIGNED,  /* The running job makes progress, although it takes long (config.sign). */
    NODE_WORKED,  /* The job has ended: node_work() has returned. */
    NODE_SENT,    /* A bulk message has left the send queue of a link. Fields: link. */
    NODE_KEPT,    /* The effect write_model was carried out, or failed. Fields: kept. */
    NODE_ADMIT,   /* An allow-list was loaded or has changed. Fields: admit. */
    NODE_WRITTEN, /* A checkpoint is on disk, or could not be written. Fields: written. */
    NODE_CARRIED, /* The driver has measured the throughput of a link. Fields: link, carried. */
    /* SIGTERM or Ctrl-C. The node finishes the running job. In lock step it then trains until all
     * peers have one more checkpoint (graceful_stop.h). At the end it writes its model and leaves.
     * A second NODE_STOP makes the node leave after the running job. */
    NODE_STOP
};

/* Why a dial did not lead to a session, as far as this peer knows. */
enum node_why {
    /* An unknown or another reason, for example that this peer itself gave up the dial. */
    NODE_WHY_UNKNOWN,
    NODE_WHY_UNRESOLVED,  /* The host name has no address. */
    NODE_WHY_REFUSED,     /* The host answers, but no process listens on the port. */
    NODE_WHY_UNREACHABLE, /* The network has no route to the host. */
    NODE_WHY_TIMEOUT,     /* The TCP connection was not answered in time. */
    NODE_WHY_CLOSED,      /* The callee closed the connection without sending a byte. */
    NODE_WHY_MUTE,        /* The callee accepted the connection and sent no byte in time. */
    NODE_WHY_SLOW,        /* The handshake began, but was not finished in time. */
    NODE_WHY_BROKEN,      /* The handshake began, and then the connection broke. */
    NODE_WHY_JUNK,        /* The answer does not come from a holder of the cluster key. */
    NODE_WHY_VERSION,     /* The callee supports no protocol version of this peer. */
    /* NODE_WHY_UNWELCOME and NODE_WHY_OTHER are set by the node, never by a driver. */
    NODE_WHY_UNWELCOME, /* The callee ended the session without sending a message. */
    NODE_WHY_OTHER,     /* A peer with another identity answered at the address. */
    NODE_WHYS           /* Number of reasons; not a reason itself. */
};

/* One event for node_step(). All pointers are borrowed for the call. */
struct node_event
{
    int64_t now_us; /* Current time of the driver's monotonic clock. Never decreases. */
    enum node_event_type type;
    /* Number of the link that the event is about. The driver chooses it at NODE_LINK_UP and never
     * uses it again for another link. */
    uint32_t link;
    struct
    {
        uint8_t id[WIRE_ID_BYTES]; /* Authenticated identity of the other end. */
        bool dialled;              /* True: this peer dialled. False: the other end dialled. */
        uint32_t tag;              /* Tag of the dial (struct node_dial), if this peer dialled. */
        const char *local_host;    /* Numeric address of this end of the connection. */
        const char *remote_host;   /* Numeric address of the other end. */
        uint32_t version;          /* Protocol version of the messages, agreed in the handshake. */
    } up;
    struct
    {
        bool clean; /* True: one end sent an authenticated CLOSE message. */
    } down;
    struct
    {
        uint32_t tag; /* Tag of the dial that failed (struct node_dial). */
        enum node_why why;
        /* Oldest and newest protocol version that the callee supports, with NODE_WHY_VERSION. */
        uint32_t least, most;
    } dial;
    struct
    {
        uint32_t seed; /* Index of the name in config.bootstrap. */
        /* Numeric addresses of the bootstrap name, n of them, as "host:port". */
        const char *const *address;
        uint32_t n; /* Number of addresses. 0: the bootstrap name did not resolve. */
    } resolved;
    struct
    {
        const uint8_t *bytes;
        size_t len;
    } recv;
    struct
    {
        /* True: at least one complete encryption record (64 KiB or less) was decrypted. */
        bool record;
    } heard;
    struct
    {
        /* Number of bytes, at the end of the running job's delta, that are ready to be sent. */
        size_t n;
    } part;
    struct
    {
        /* Reason why the model's files could not be stored, with the file's name. NULL: they were
         * stored. */
        const char *why;
    } kept;
    struct
    {
        uint64_t beat; /* Step counter of the checkpoint, as node_checkpoint() returned it. */
    } written;
    struct
    {
        /* Bursts of bytes that were sent over the link and acknowledged by the other end. */
        struct uplink_bursts bursts;
        double rtt_us; /* Shortest round-trip time of the link, in microseconds. 0: unknown. */
    } carried;
    struct
    {
        /* Identities on the allow-list: n of them, sorted, without duplicates. */
        const uint8_t (*id)[WIRE_ID_BYTES];
        size_t n;
        /* Current time since 1970 in milliseconds, by which certificates expire. */
        int64_t unix_ms;
    } admit;
    /* Set with each event. Totals since the start, which the node reads with NODE_TIMER and
     * NODE_WORKED only: bytes at the sockets, and connections refused before authentication.
     * clock_ms: current time since 1970 in milliseconds, for STATUS messages; 0: unknown. */
    struct
    {
        uint64_t bytes_sent, bytes_received, n_strangers;
        uint64_t clock_ms;
    } io;
};

/* One message that the driver must send. */
struct node_send
{
    uint32_t link; /* Number of the link over which to send. */
    bool bulk;     /* True: a bulk message, which control messages may overtake. */
    /* First n_head bytes of the message. The driver copies or encrypts them before the next
     * step. */
    const uint8_t *head;
    size_t n_head;
    /* Payload of the message, which follows the head. NULL: none. To use it after this step, the
     * driver must call packet_hold(). */
    struct packet *body;
};

/* One address that the driver must dial. */
struct node_dial
{
    uint32_t tag;        /* Identifies the dial in NODE_LINK_UP or NODE_DIAL_FAILED. */
    const char *address; /* "host:port". The host is a name or a numeric address. */
};

/* Level of a message, in rising order. The values from NOTE_INFO on are part of libhearsay. */
enum note_level { NOTE_DEBUG = -1, NOTE_INFO, NOTE_WARNING, NOTE_ERROR };

struct node_note
{
    enum note_level level;
    /* Name of the source file that sends the note, without its suffix. */
    char module[NODE_MODULE_MAX];
    char text[NODE_NOTE_MAX];
};

/* Effects of one step: what the driver must do now. Owned by the driver, written by node_step().
 * Pointers in it are valid until the next step of this node. The driver carries out the sends
 * first, then the hang-ups, then the rest. */
struct node_effects
{
    /* Number of entries in sends, dials, hangups, resolves and notes. */
    uint32_t n_sends, n_dials, n_hangups, n_resolves, n_notes;
    struct node_send sends[NODE_SENDS_MAX];
    struct node_dial dials[NODE_DIALS_MAX];
    /* Links that the driver must end. */
    struct
    {
        uint32_t link;
        /* True: the other end violated the protocol, so end the link at once. False: send a CLOSE
         * message first. */
        bool violation;
    } hangups[NODE_LINKS_MAX];
    /* Bootstrap names that the driver must look up. */
    struct
    {
        uint32_t seed;    /* Index of the name in config.bootstrap. */
        const char *name; /* "host:port". */
    } resolves[NODE_SEEDS_MAX];
    struct node_note notes[NODE_NOTES_MAX];
    bool work;     /* True: call node_work(), then report NODE_WORKED. */
    bool measured; /* True: node_progress() has new figures for a line of metrics. */
    /* True: fetch the checkpoint by node_checkpoint(), write it, then report NODE_WRITTEN. If
     * `exit` is also set, the driver must write the checkpoint before it exits. */
    bool checkpoint;
    /* 1 plus the index in config.resume of the checkpoint from which the node has resumed. 0: the
     * node has not resumed. */
    uint32_t resumed;
    bool write_model; /* True: write node_model() to disk, then report NODE_KEPT. */
    bool exit;        /* True: the node has ended. Stop the loop. */
    int exit_code;    /* Exit code of the process, enum cmd_exit. Valid once the node has ended. */
    /* Driver time at which the driver must report NODE_TIMER. INT64_MAX: never. */
    int64_t wake_us;
};

struct state; /* Reads or writes a checkpoint. Defined in nn/math/state.h. */

/* How the node knows the capacity of its links, for --compress auto (bandwidth_estimate.h). */
enum node_uplink {
    /* The capacity of the links is unknown, so the drift (distance between models) alone chooses
     * the codec level. */
    NODE_UPLINK_OFF,
    /* The node learns the capacity of its links from NODE_CARRIED events, which report measured
     * throughput. */
    NODE_UPLINK_AUTO,
    NODE_UPLINK_RATE /* The node takes the capacity of its links from config.uplink_rate. */
};

/* Value of config.evaluate_every: evaluations are spread over the run according to its length. */
#define NODE_EVALUATE_AUTO UINT64_MAX

/* A valid checkpoint that an earlier process of this peer wrote. */
struct node_resume
{
    const struct state *state; /* Content of the checkpoint. Borrowed until node_close(). */
    uint64_t beat;             /* Step counter of this peer in the checkpoint. */
    uint32_t slot; /* The driver's number for the place where the checkpoint is stored. */
};

/* Column statistics of one member's data. */
struct node_part
{
    const char *name;     /* Name of the member. */
    struct bytes moments; /* Encoded statistics. Only functions of struct node_pool read them. */
};

/* Data and functions by which members with different data files create one run. Before there is a
 * run, each member sends column statistics of its data, and one member creates the run from the
 * statistics of all members (statistics_aggregation.h). The node handles the statistics as opaque
 * bytes. The functions get `self` as their first argument. */
struct node_pool
{
    void *self;
    /* Column statistics of this peer's data, at most WIRE_MOMENTS_MAX bytes. Borrowed until
     * node_close(). Length 0: no statistics are sent. */
    struct bytes own;
    /* True: this peer may create the run, and pool() then makes it from the statistics. False: this
     * peer creates no run, or with config.found proposes config.run. */
    bool founds;
    /* Checks bytes that another peer sent as its statistics. Returns NULL if they are valid, else a
     * string literal that says what is wrong. */
    const char *(*check)(void *self, struct bytes theirs);
    /* Returns whether the checked statistics of another member do not match this peer's, for
     * example because the tables have different columns. theirs_lead true: the other member's
     * columns are the reference. False: this peer's columns are. why[]: set to the reason. In this
     * text, "found" refers to the columns that are not the reference. */
    bool (*differ)(void *self, struct bytes theirs, bool theirs_lead, char why[NODE_POOL_WHY]);
    /* Returns a number that identifies the set of label names in checked statistics. Equal sets
     * have equal numbers, and a larger set has a greater number. 0: the labels have no names. */
    uint64_t (*labels)(void *self, struct bytes statistics);
    /* Creates a run from the statistics of n >= 1 members, which match this peer's statistics.
     * Returns 0 and sets *run. On failure returns a negative errno and sets error[] to a
     * sentence. */
    int (*pool)(void *self, const struct node_part *part, size_t n, struct run *run,
                char error[RUN_ERROR_MAX]);
};

/* Files of the run that earlier processes of this peer left, apart from the checkpoints in
 * node_config.resume. */
enum node_past {
    NODE_PAST_NONE, /* Nothing, or checkpoints only. */
    /* A process took part in the run, and left neither a checkpoint nor a final model. */
    NODE_PAST_MEMBER,
    /* A process stored its final model (node_model_is_final()). Other members may have ended the
     * run with this model, so the peer does not begin the run again (run_ended.h). */
    NODE_PAST_FINAL
};

/* Configuration of a node. node_open() copies the struct. Data that the pointers refer to must
 * outlive the node, except for `certificate` and `known`. */
struct node_config
{
    const char *name;          /* Name of this member: [A-Za-z0-9._-]{1,32}. */
    uint8_t id[WIRE_ID_BYTES]; /* Identity of this peer: its Ed25519 public key. */
    uint64_t boot;             /* Boot id: a random number that is drawn at each process start. */
    /* First incarnation number of this peer's member record. Drivers use the wall clock in
     * milliseconds, so that a restarted process begins with a higher number than its
     * predecessor. */
    uint64_t incarnation;
    uint64_t own_seed; /* Random seed for timer jitter and nonces. */
    /* Port on which this peer listens, such as "7100". The node announces the port with the local
     * addresses of its links. NULL: the node announces no local address. */
    const char *listen_port;
    /* Addresses to announce, n_advertise of them, instead of the local addresses of links. */
    const char *const *advertise;
    uint32_t n_advertise;
    /* True: this peer dials the addresses that other members announce, as a test (callback.c). */
    bool calls_back;
    const char *const *bootstrap; /* Bootstrap list: n_bootstrap names of the form "host:port". */
    /* Number of names in the bootstrap list, at most NODE_SEEDS_MAX. */
    uint32_t n_bootstrap;
    /* Functions that make and check the signatures of members. */
    const struct members_crypto *crypto;
    /* Certificate from a join token. NULL: only an allow-list can admit this peer. */
    const struct certificate *certificate;
    const struct record *known; /* Members known from the start: n_known records. */
    uint32_t n_known;
    /* records: storage of member records. commons: scratch memory (env.h). Both can be
     * shared by the nodes of one thread. NULL: the node has its own. */
    struct records *records;
    struct shared_scratch *commons;
    /* Time in microseconds after which the member table drops a member that is dead, has left or is
     * not endorsed (--member-ttl). 0: never. */
    int64_t forget_us;

    /* Keys of the run description that the user set. A run that this peer adopts must agree with
     * them. flags.trainer decides which keys exist. */
    struct run_flags flags;
    /* True: this peer knows the run, by its options or from its output directory, and may create
     * the run if no other peer has one. */
    bool found;
    struct run run; /* The run that this peer knows. Undefined unless `found`. */
    /* Column statistics of this peer's data, and functions that create a run from the statistics of
     * all members. NULL: this peer neither sends nor accepts statistics. */
    const struct node_pool *pool;

    /* Mixer that a simulated Byzantine member uses. NULL: the mixer of the run. */
    const struct mixer *mixer;

    /* Builds the trainer for a run. Called within node_step() when the run is known, and again if
     * the cluster's run replaces the run that this peer proposed. Returns 0 and fills *t. On
     * failure returns a negative errno and sets error[] to a sentence. The node then ends with exit
     * code cmd_exit_of(errno). */
    int (*make_trainer)(void *self, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX]);
    void *make_trainer_self; /* First argument of make_trainer(). */

    /* Called by node_work(), on the worker's thread, when the last n bytes of a delta are encoded
     * (--overlap layer). n increases during a job. The driver must report NODE_PART with n. NULL:
     * deltas are sent whole, after the job. */
    void (*part)(void *self, size_t n);
    void *part_self;   /* First argument of part(). */
    size_t part_least; /* Least number of bytes of a fragment of a delta. 0: the default. */

    /* Called by node_work(), on a thread of the worker, at most once per second, while a job that
     * may take long makes progress. The driver must report NODE_SIGNED. NULL: the job watchdog
     * cannot distinguish such a job from one that hangs. */
    void (*sign)(void *self);
    void *sign_self; /* First argument of sign(). */

    /* Number of rounds from one evaluation to the next during training. 0: no evaluation before
     * the end. NODE_EVALUATE_AUTO: the length of the run decides (evaluation.h). */
    uint64_t evaluate_every;
    /* Number of samples of an evaluation during training. 0: all samples, or with
     * NODE_EVALUATE_AUTO a number that depends on the run. The last evaluation uses all samples. */
    uint64_t evaluate_samples;

    /* Time after the loss of the quorum for which this peer takes no local steps, in microseconds
     * (--quorum-timeout). After this time the peer trains again, with a warning. 0: it trains again
     * at once. */
    int64_t patience_us;
    /* Time in microseconds that one job of a neighbour may take before this peer no longer waits
     * for the neighbour (--straggler-timeout). If jobs usually take long, the limit is higher
     * (job_watchdog.c). 0: there is no limit. */
    int64_t worker_limit_us;

    enum node_uplink uplink; /* How this peer learns the capacity of its links. */
    /* With NODE_UPLINK_RATE: upload rate in bytes/s that all edges share. */
    double uplink_rate;

    bool log_debug; /* True: the node sends debug notes, which report changes of its state. */

    /* Time from one checkpoint to the next, in microseconds. 0: no checkpoints are written. */
    int64_t checkpoint_us;
    /* The n_resume checkpoints from which the node may resume (resume.h), the later one first. */
    struct node_resume resume[2];
    size_t n_resume;
    /* Files of the run that earlier processes of this peer left. With NODE_PAST_MEMBER and
     * NODE_PAST_FINAL, the other members may have finished the run. This peer then ends if too few
     * members are present to begin for patience_us (run_ended.h). */
    enum node_past past;
    /* Stores the promise of this peer in the finish protocol durably: n bytes. The promise also
     * binds the peer after a restart (finish/README.md). Called within node_step(), before the
     * message that contains the promise is sent. Returns false on failure. NULL: this peer has no
     * disk, so a later process has another identity. */
    bool (*keep_promise)(void *self, const uint8_t *bytes, size_t n);
    void *keep_promise_self; /* First argument of keep_promise(). */
    /* Reads into x the model that an earlier process of this peer stored last. `segments`: layout
     * of x. Called within node_step(), and only at a restart. Returns false if there is no such
     * model. NULL: this peer has no disk. */
    bool (*read_model)(void *self, const struct segment *segments, size_t n_segments, float *x);
    void *read_model_self; /* First argument of read_model(). */
    /* The promise that an earlier process of this peer stored last by keep_promise(). Borrowed
     * until node_close(). Length 0: there is none. */
    struct bytes promise;
};

/* Figures about a node, for users and scripts. NaN: the figure is not known, or not known yet.
 * Rounds of the consensus phase are included only where a comment says "step counter". */
struct node_progress
{
    enum node_phase phase;
    /* round: number of rounds of training that are over for this peer; always equal to joined_round
     * + rounds_done + rounds_skipped. n_rounds: number of rounds of the run. */
    uint64_t round, n_rounds;
    uint64_t settle_rounds; /* Number of rounds of the consensus phase so far. */
    /* joined_round: round at which this process joined the run. rounds_done: number of rounds in
     * which it did the local steps. rounds_skipped: number of rounds that it skipped to catch
     * up. */
    uint64_t joined_round, rounds_done, rounds_skipped;
    /* True: this peer is below the quorum, so it takes no local steps. */
    bool holds;
    uint32_t local_steps; /* Number of local steps in the last job. 0: the job had none. */
    uint64_t steps_done;  /* Total number of local steps of this peer. */
    double loss;          /* Mean training loss of the last local steps. */
    bool loss_untold;     /* True: the trainer does not report a loss, so the loss is NaN. */
    /* Share of correct predictions, from 0 to 1, and mean loss in the last evaluation. */
    double accuracy, test_loss;
    uint64_t accuracy_samples; /* Number of samples (of bytes, for text) in the last evaluation. */
    uint64_t accuracy_round;   /* Step counter of the model in the last evaluation. */
    /* Estimated consensus distance Xi, and Xi divided by the norm of the mean model. */
    double drift, relative_drift;
    /* Step counter of the round in which `drift` was measured, before the local steps. */
    uint64_t drift_round;
    uint64_t drift_age;  /* Age of the drift in rounds: current step counter minus drift_round. */
    double own_distance; /* Estimated distance of this peer's model from the mean, absolute. */
    double gamma;        /* Consensus step size gamma: mean over the edges of this peer. */
    const char *rung;    /* Codec of the last deltas, with --compress auto. Else NULL. */
    /* Last normalised drift (drift divided by the length of a round's update) and its target. Both
     * are used with --compress auto only (gossip/exchange/codec_levels.h). */
    double excess, drift_target;
    /* Rule that determines the codec level: "drift"; "link", because the link has room for this
     * level; or "price", because a denser level is too slow. NULL: the run is without --compress
     * auto. */
    const char *rung_by;
    /* Throughput of the slowest edge in bytes/s, with the latency subtracted. NaN: it is unknown,
     * or too high to be measured. */
    double goodput;
    /* Largest relative distance, over the edges, between the running statistics (such as those of
     * batch normalisation) of the two ends. NaN: there was no averaging yet, or the model has no
     * running statistics. */
    double statistics_apart;
    /* Total times in seconds. compute_s: of local steps. mix_s: of applying, mixing and encoding
     * deltas. wait_s: from the end of each job to the start of the next one. */
    double compute_s, mix_s, wait_s;
    /* Total bytes sent and received at the sockets, as the driver reported. */
    uint64_t bytes_sent, bytes_received;
    uint64_t bytes_ahead; /* Bytes of deltas sent during local steps (--overlap layer). */
    /* n_live: number of vertices of the topology, including this peer. n_edges: number of open
     * edges of this peer. */
    uint32_t n_live, n_edges;
    /* Totals: resets of edges, protocol violations of other peers, committed exchanges. */
    uint64_t resets, violations, exchanges;
    /* Number of deltas that were sent without values, because the model had moved too little
     * (--trigger). */
    uint64_t empty_deltas;
    /* Number of times that an edge was closed because the neighbour's data were implausible. */
    uint64_t distrusted;
    /* Number of connections refused before authentication, as the driver reported. */
    uint64_t strangers;
    bool evaluated;                 /* True: the last job evaluated the model. */
    char diverged[DIVERGENCE_TEXT]; /* Why the run diverged, as a clause. "": it did not. */
    char unlearnt[DIVERGENCE_TEXT]; /* Why the model learnt nothing, as a clause. "": it learnt. */
};

struct node;

/* ---- life ---- */

/* Creates a node in *n. Returns 0, -EINVAL or -ENOMEM. After an error *n is unchanged. */
int node_open(struct node **n, const struct node_config *config);
/* Frees the node. No job may be running. NULL is allowed. */
void node_close(struct node *n);

/* Handles one event and writes the effects to *fx. Never fails: invalid input from a link is
 * counted, ends the link, and changes nothing else. After the node has ended, only NODE_WORKED is
 * handled, because fx->exit is not set while a job runs. */
void node_step(struct node *n, const struct node_event *ev, struct node_effects *fx);

/* Runs the job that the last step asked for (fx->work). May run on another thread, at the same time
 * as node_step(). `clock_us` returns a monotonic time in microseconds, which is used for durations
 * only. */
void node_work(struct node *n, int64_t (*clock_us)(void));

/* Moves the checkpoint that the last step requested to be written (fx->checkpoint) to *s, and
 * returns its step counter. *s must be zeroed or an earlier checkpoint. The node takes over the
 * memory of the earlier checkpoint. */
uint64_t node_checkpoint(struct node *n, struct state *s);

/* ---- what the node reports ---- */

/* Fills *p with the node's figures. */
void node_progress(const struct node *n, struct node_progress *p);
/* Fills *s with the content of a STATUS message, which answers observers. Contains at most
 * WIRE_EDGES_MAX edges. */
void node_status(const struct node *n, struct wire_status *s);

/* Reasons for which a node waits. waits.h has the table that selects one. */
enum node_waits_for {
    /* The node does not wait: it computes, or pauses between two jobs to limit its speed. */
    NODE_WAITS_NOTHING,
    NODE_WAITS_RUN,     /* The run is not known: another peer must send its description. */
    NODE_WAITS_RESUME,  /* Other members must report from which checkpoints they can resume. */
    NODE_WAITS_MEMBERS, /* Fewer than --min-peers members are present: `have` of `need`. */
    NODE_WAITS_MODEL,   /* A model is being fetched from other peers. */
    NODE_WAITS_EDGES,   /* The edges must open before training begins. */
    NODE_WAITS_QUORUM,  /* Fewer members than the quorum are reachable: `have` of `need`. */
    /* A checkpoint or the final model of this peer must be on disk before the peer continues. */
    NODE_WAITS_DISK,
    NODE_WAITS_NEIGHBOUR, /* The peer `id` has not done the round that lock step requires. */
    NODE_WAITS_OTHERS,    /* This peer's model is final, but other members have not finished. */
    NODE_WAITS            /* Number of reasons; not a reason itself. */
};

/* The cause of a wait of the node, with the numbers that a message about the wait needs. */
struct node_wait
{
    enum node_waits_for what;
    /* With NODE_WAITS_NEIGHBOUR: identity of the peer. With NODE_WAITS_OTHERS: identity of the
     * member that has not finished, or zeros if the wait is not for one member. */
    uint8_t id[WIRE_ID_BYTES];
    /* With NODE_WAITS_NEIGHBOUR: step counter of the peer that is waited for. With a round
     * protocol: this peer's round, for which data of that peer are missing. */
    uint64_t beat;
    /* With NODE_WAITS_MEMBERS and NODE_WAITS_QUORUM: numbers of members present, and needed. */
    uint32_t have, need;
    /* Seconds since this peer's last job ended. With NODE_WAITS_QUORUM: since the quorum was
     * lost. */
    double since_s;
    double busy_s; /* Seconds since this peer's worker began its job. 0: no job runs. */
    /* With NODE_WAITS_OTHERS: limit of the wait in seconds, from the end of this peer's last job.
     * After it, the peer ends without the others. With other reasons: 0. */
    double limit_s;
};
/* Fills *w with what the node is waiting for now. */
void node_wait(const struct node *n, struct node_wait *w);

struct node_neighbour
{
    bool has_beat; /* True: the neighbour has reported its step counter. */
    uint64_t beat; /* Step counter of the neighbour, as it last reported. */
    /* Seconds since the neighbour's worker began its job. 0: no job runs. NaN: not known, because
     * no report about the worker has arrived since the neighbour's last delta. */
    double busy_s;
};
/* Fills *b with figures of the neighbour at the other end of edge number i, from 0. */
void node_neighbour(const struct node *n, size_t i, struct node_neighbour *b);

/* Lists the vertices of the topology in their order: sets at[k] to an index for node_member().
 * Returns the number of vertices. */
size_t node_vertices(const struct node *n, uint32_t at[WIRE_MEMBERS_MAX]);
/* Returns the specification of the topology in the current phase, such as "ring". The
 * specification, the run's seed and the vertices determine the edges. NULL: there is no run yet. */
const char *node_topology(const struct node *n);

/* A member as this node sees it. The pointers are valid until the next step. */
struct node_member
{
    const uint8_t *id; /* Identity: WIRE_ID_BYTES bytes. */
    const char *name;
    enum member_state state;
    bool own;       /* True: the member is this peer. */
    bool connected; /* True: there is a session with the member. */
    bool has_round; /* True: the member has reported its round over the current session. */
    uint64_t round; /* Number of rounds of the run that the member has done. */
};
/* Returns the number of members, including this peer. */
size_t node_members(const struct node *n);
/* Fills *m for the i-th member, in the order of members_at(). */
void node_member(const struct node *n, size_t i, struct node_member *m);

/* Returns the name, a string literal, of the i-th kind of protocol violation that was received, and
 * sets *count to the number of such violations. NULL: there are at most i kinds. */
const char *node_violation(const struct node *n, size_t i, uint64_t *count);

struct verdict_facts;

/* Fills *f with the facts from which verdict_judge() (verdict.h) derives how the run ended. If the
 * run has not ended, the facts describe an end at this moment. */
void node_facts(const struct node *n, struct verdict_facts *f);
/* Returns the parameters of the model, and sets *segments, *n_segments and *n_params. NULL: the run
 * or its initial model is not known yet. Not to be called while a job runs. */
const float *node_model(const struct node *n, const struct segment **segments, size_t *n_segments,
                        size_t *n_params);
/* Returns whether the model is this peer's final model: training and the consensus phase are over
 * for it. */
bool node_model_is_final(const struct node *n);

/* Returns the run. NULL: the run is not known yet. */
const struct run *node_run(const struct node *n);

/* Return the maximum length, in bytes, of a control message and of a bulk message that a link may
 * send to this peer now. The driver must end a link that announces a longer message, before it
 * buffers the message. The limit for bulk messages grows when the run becomes known. */
size_t node_control_max(const struct node *n);
size_t node_bulk_max(const struct node *n);

#endif
