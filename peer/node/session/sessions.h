/* peer/node/session/sessions.h -- the session table of a node, heartbeats, membership gossip and
 * dialling.
 *
 * A session is an authenticated connection with another process. The session table holds one struct
 * link per session:
 *
 *    (dial) --LINK_UP--> [new] --HELLO--> [peer] --hang-up--> [hung up] --LINK_DOWN--> (free)
 *                          |                                      ^
 *                          +-- refused, a duplicate, silent ------+
 *
 * A session *talks* after the HELLO of a peer has been accepted (link_talks()). An observer, for
 * example `hearsay status`, also sends a HELLO, but its session never talks: it may only send
 * requests.
 *
 * Other folders include this header only (tests/lint_layers.sh). The state of the module is defined
 * in sessions_state.h. These files implement the module, and the first comment of each file has its
 * rules:
 *
 *    sessions.c                 session table, HELLO, choice of the run, heartbeats
 *    handshake.c                merging of members' records, duplicate identities
 *    dissemination.c            membership gossip
 *    dial.c                     bootstrap names, contacts, redials
 *    failure_detector.c         silent members, accusations, duplicate names
 *    admit.c                    allow-list, certificates, names
 *    quarantine.c               violators of the protocol
 *    callback.c                 test calls to announced addresses
 *    connection_diagnostics.c   warnings about failed dials
 *    round_quorum.c             rounds that other peers claim
 *    limits.c                   back-off, quota, list of recent cases
 *
 * Other modules hold `const struct link *` and use the functions below. This module does not depend
 * on edges, training or mixing. It calls the rest of the node through the functions in struct
 * sessions_owner, which node.c provides.
 */
#ifndef PEER_NODE_SESSION_SESSIONS_H
#define PEER_NODE_SESSION_SESSIONS_H

#include "peer/node/env.h"
#include "peer/node/session/limits.h"

/* Role of the other end of a session, by its HELLO. */
enum link_role {
    LINK_NEW = 0, /* No HELLO of the other end has been accepted yet. */
    LINK_PEER,
    LINK_OBSERVER
};

/* State of the transfer of the whole member table to the other end of a session. */
enum link_transfer {
    LINK_TRANSFER_NONE = 0,
    LINK_TRANSFER_RUNS,
    LINK_TRANSFER_STATUS /* The transfer runs. When it ends, this peer answers a STATUS_REQ. */
};

/* One session. Times are node times in microseconds. */
struct link
{
    bool used; /* True: the slot holds a session, and LINK_DOWN has not arrived yet. */
    enum link_role role;
    /* Reason why this peer has hung up, a string literal. NULL: it has not hung up. */
    const char *hung_up;
    /* True: this peer hung up because the other end violated the protocol. */
    bool violated;
    uint32_t number;           /* Driver's number of the session. */
    uint32_t version;          /* Protocol version of the session. */
    uint32_t tag;              /* Tag of this peer's dial. 0: the other end opened the session. */
    uint8_t id[WIRE_ID_BYTES]; /* Authenticated identity of the other end. */
    uint64_t boot;             /* Boot id of the other end's process, a random number. */
    int64_t up_us;             /* Time at which the session opened. */
    int64_t heard_us;          /* Last time that data arrived. */
    /* True: nothing has arrived for SILENT_US, so the session is no proof that its member is
     * alive. */
    bool mute;
    bool opened; /* True: an edge was opened on this session. */

    bool same_run; /* True: the last HELLO of the other end contained the run of this peer. */
    /* True: the other end has started training, by its last HELLO or by a later PING with a round
     * above 0. */
    bool started;
    bool finished; /* True: the other end has reported that its model is final. */
    /* True: the certificate of the run covers the member at the other end, but the member has sent
     * another model than the covered one. This happens if the member has restarted. */
    bool uncertified;
    /* round: round in the last report of the other end. said_us: time at which this report
     * arrived. */
    uint64_t round;
    int64_t said_us;
    /* before, before_us: round and time of an earlier report, from which the speed of the other end
     * is computed. before_us is 0 if there is no such report. */
    uint64_t before;
    int64_t before_us;
    /* Time at which the other end's worker began its current job or last reported progress in it,
     * by the last PING. 0: the worker is idle. */
    int64_t busy_since_us;
    int64_t told_busy_us; /* Time at which the last PING arrived. */

    enum link_transfer transfer;
    size_t told; /* Position of the next member to send in the transfer (members_tell()). */
    /* Number of unknown members that the other end has announced in the current minute. */
    struct quota new_members;
    bool told_new; /* True: the warning about too many new members was printed. */
    /* Last time that the other end sent a record that has this peer's identity and was signed by
     * another process. Records in the first SILENT_US of the session are ignored. 0: never. Written
     * by handshake.c. */
    int64_t other_us;
};

/* The facts that this peer reports about itself in HELLO and PING messages. node.c computes them on
 * request (sessions_owner.standing). */
struct standing
{
    struct bytes
        run; /* Run description as text. Empty: this peer has no run that others can take. */
    /* True: this peer has a model and has started training, so its run can no longer change. */
    bool has_started;
    /* True: this peer prepares a run, but other peers cannot take it yet. Either the members
     * exchange column statistics (statistics_aggregation.h), or the initial model of the run is
     * still missing (initial.h). */
    bool gathers;
    bool finished;  /* True: this peer's model is final, and is stored or could not be stored. */
    uint64_t round; /* Number of training rounds done. */
    uint64_t beat;  /* Number of rounds done, including rounds of the consensus phase. */
    /* Time without progress in the worker's current job, in microseconds. 0: the worker is idle. */
    int64_t busy_us;
};

/* Result of the comparison of the run in a HELLO with the run of this peer. */
enum sessions_run {
    SESSIONS_RUN_SAME, /* The sender of the HELLO has the same run as this peer. */
    /* This peer had no run or gave up its own run, and has taken the run of the HELLO's sender. */
    SESSIONS_RUN_TAKEN,
    /* The sender of the HELLO will give up its run and take this peer's run. */
    SESSIONS_RUN_YIELDS,
    /* The runs differ and this peer's run cannot change any more, so the session is refused. */
    SESSIONS_RUN_STRANGER,
    /* The run description is invalid, or it is for another kind of trainer. */
    SESSIONS_RUN_UNREADABLE,
    /* The run in the HELLO should replace this peer's run, but contradicts this peer's command-line
     * options. If the run in the HELLO has not started, and a connected peer has this peer's run,
     * this peer refuses the session. Otherwise this peer ends. */
    SESSIONS_RUN_CONTRADICTS
};

/* Whether this peer has lost all its sessions, and how the last of them ended. */
enum sessions_away {
    /* This peer has a session or has had none yet, or its last session ended without a sign that
     * this peer was cut off or paused. */
    SESSIONS_THERE,
    /* This peer's last session was silent when it ended, so this peer was cut off from the
     * network. */
    SESSIONS_CUT,
    /* This peer's last session ended within DEAD_LINK_US after a pause of this process, for example
     * by SIGSTOP. */
    SESSIONS_STOOD
};

/* Functions of node.c that the sessions call. Each gets `self` as its first argument. */
struct sessions_owner
{
    void *self;
    void (*standing)(void *self, struct standing *s);
    /* Compares the run in a HELLO with this peer's run, and takes it if the result is
     * SESSIONS_RUN_TAKEN. `dialled`: this peer opened the session. */
    enum sessions_run (*run)(void *self, const struct wire_hello *h, bool dialled);
    /* Called when the HELLO of a peer (not an observer) was accepted on a new session. */
    void (*met)(void *self, const struct link *l);
    /* Called when a session with a peer (not an observer) has ended or is replaced by another
     * session. */
    void (*lost)(void *self, const struct link *l);
    /* Called when the other end reports that its model is final. */
    void (*finished)(void *self, const struct link *l);
    /* Returns whether session `l` may be closed, because no edge needs it. */
    bool (*surplus)(void *self, const struct link *l);
    /* Sends a STATUS message over session `l`. */
    void (*status)(void *self, const struct link *l);
};

/* The session table, and the state of dials, admission and the failure detector. */
struct sessions;

/* Returns whether the other end of the session is a peer whose HELLO was accepted. */
static inline bool link_talks(const struct link *l)
{
    return l->used && l->role == LINK_PEER;
}

/* Returns whether a peer's HELLO was accepted on the session, and this peer has not hung up. */
static inline bool link_open(const struct link *l)
{
    return link_talks(l) && l->hung_up == NULL;
}

/* Returns for how long the other end's worker has made no progress in its current job, in
 * microseconds, according to the last PING. 0: the worker is idle. */
static inline int64_t link_busy_us(const struct link *l, int64_t now_us)
{
    return l->busy_since_us != 0 ? now_us - l->busy_since_us : 0;
}

/* Sets *out to a table without sessions, for a node whose member table is open (env_open()).
 * Returns 0, or -ENOMEM with *out unchanged. */
int sessions_open(struct sessions **out, struct env *env, const struct sessions_owner *owner);
/* Frees *s. NULL is allowed. */
void sessions_close(struct sessions *s);
/* Starts the timers and the resolution of the bootstrap names. */
void sessions_start(struct sessions *s);

/* ---- events ---- */

void sessions_up(struct sessions *s, const struct node_event *ev);
void sessions_down(struct sessions *s, const struct node_event *ev);
void sessions_dial_failed(struct sessions *s, const struct node_event *ev);
void sessions_resolved(struct sessions *s, const struct node_event *ev);
/* Records that data has arrived on the driver's link `number`. Returns the session. Returns NULL if
 * the session has ended or this peer has hung up; the data must then be ignored. */
const struct link *sessions_heard(struct sessions *s, uint32_t number);
void sessions_hello(struct sessions *s, const struct link *l, const struct wire_hello *h);
void sessions_members(struct sessions *s, const struct link *l, const struct wire_members *told);
/* Handles a STATUS_REQ message. If a transfer of the member table to the sender is under way, the
 * STATUS is sent after it, because the sender may want to query the members in the table next. */
void sessions_status_req(struct sessions *s, const struct link *l);
void sessions_ping(struct sessions *s, const struct link *l, const struct wire_ping *ping);
void sessions_probe(struct sessions *s, const struct link *l, const struct wire_probe *m);
/* Handles a HEARD message, the answer to a PROBE. */
void sessions_vouched(struct sessions *s, const struct wire_heard *m);
/* Handles a CALLBACK message: the member at the other end reports whether it can call this peer. */
void callback_came(struct sessions *s, const struct link *l, const struct wire_callback *m);
/* Handles the message REFUSED: the other end of session `l` refuses this peer. */
void admit_refused(struct sessions *s, const struct link *l, const struct wire_refused *m);
/* Replaces the allow-list by the one in the event NODE_ADMIT and applies it to all members and
 * sessions. If memory is exhausted, the previous list stays in use. */
void admit_list(struct sessions *s, const struct node_event *ev);
/* Handles a pause of this process (env_begin_step()) that lasted pause_us microseconds. Answers to
 * probes that were sent before the pause are no longer awaited. Members that are still silent are
 * probed again. */
void failure_detector_continue(struct sessions *s, int64_t pause_us);
/* Runs the timers of the sessions module. Called every TICK_US. */
void sessions_tick(struct sessions *s);

/* ---- requests of other modules ---- */

/* Sends a message on the session, unless this peer has hung up. `head` is copied, `body` may be
 * NULL and is borrowed until the next step. `bulk` selects the lane for large messages. */
void sessions_send(struct sessions *s, const struct link *l, bool bulk, const uint8_t *head,
                   size_t n_head, struct packet *body);
/* Counts a violation of the protocol, prints a warning, quarantines the other end and hangs up.
 * `what` describes the violation and must be a string literal, because the pointer is stored. */
void sessions_violation(struct sessions *s, const struct link *l, const char *what);
/* Forwards changes of the member table to all sessions, within the limit SESSIONS_NEWS. */
void sessions_news(struct sessions *s);
/* Forwards all changes of the member table without a limit. Called when this peer ends or has
 * failed, because other peers may wait for these changes. */
void sessions_last_news(struct sessions *s);
/* Sends this peer's signed record with the state LEFT to all sessions, so that no member waits for
 * this peer or declares it dead later. */
void sessions_leave(struct sessions *s);
/* Sends a new HELLO to all peers with a session. Called when the phase of this peer has changed. */
void sessions_hello_all(struct sessions *s);
/* Sends a new HELLO on all sessions except those of observers. Called when this peer has got,
 * changed or given up its run. */
void sessions_run_fixed(struct sessions *s);
/* Merges a member's record, which the other end of session `l` has forwarded, into the member
 * table. Drops the record if the allow-list does not admit the member, or if the other end has
 * announced too many new members. A forged record ends the session. If the record proves that
 * another process with this peer's identity runs and started earlier, the node ends. */
void handshake_record(struct sessions *s, const struct link *l, const struct record *r);
/* Tells the other end of `l` that this peer's model is final. The message is queued after the last
 * delta. Does nothing if the model is not final. */
void sessions_say_finished(struct sessions *s, const struct link *l);
void sessions_say_finished_all(struct sessions *s);
/* Clears `finished` of all sessions. Called when an attempt of the finish protocol was aborted,
 * because the models of the peers are then no longer final. */
void sessions_reopen(struct sessions *s);
/* Records that an edge has opened on session `l`. After a loss of this session, the member is
 * redialled quickly. */
void sessions_opened(struct sessions *s, const struct link *l);

/* Records that the member of this session has sent another model than the one that the certificate
 * of the run covers. */
void sessions_uncertified(struct sessions *s, const struct link *l);

/* ---- dialling (dial.c) ---- */

/* Marks the member as a wanted contact, so that sessions_call() can dial it. Returns 0 or
 * -ENOMEM. */
int sessions_want(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
bool sessions_wants(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Undoes sessions_want(): the member is no longer a wanted contact. The failure detector may still
 * dial the member. */
void sessions_unwant(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Dials contact `id`. Does nothing in these cases: (1) a session or a dial already exists; (2) the
 * back-off has not expired; (3) the contact must not be dialled now (quarantine, refusals); (4)
 * this peer has the greater id, and the time is before lost_us + DIAL_YIELD_US. lost_us: node time
 * at which the last session with the contact was lost, in microseconds. */
void sessions_call(struct sessions *s, const uint8_t id[WIRE_ID_BYTES], int64_t lost_us);
/* Allows the next dial to member `id` at once. Called after the loss of a session on which an edge
 * was open. */
void sessions_call_soon(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);

/* ---- queries ---- */

/* Returns the session with the driver's number `number`, or NULL. */
const struct link *sessions_link(const struct sessions *s, uint32_t number);
/* Returns the session with peer `id`. NULL: there is none whose HELLO was accepted, or this peer
 * has hung up. */
const struct link *sessions_to(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Returns the last time at which this peer, or a member that it asked, heard the member `id`, in
 * microseconds. 0: not known. */
int64_t sessions_heard_us(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Returns whether there is a session on which the HELLO of a peer was accepted. */
bool sessions_any(const struct sessions *s);
/* Returns for how long the hosts of all dead and finished members have refused the dials of this
 * peer, in microseconds. 0: at least one host has not refused, no member is dead or finished, or
 * there is a session. O(members). */
int64_t sessions_refused_us(const struct sessions *s);
/* Returns SESSIONS_CUT or SESSIONS_STOOD if this peer was cut off or paused, and the processes of
 * all dead and finished members have ended since then. Evidence of this: their hosts have refused
 * all dials of this peer for ENDED_AFTER_CUT_US or ENDED_AFTER_PAUSE_US. Otherwise returns
 * SESSIONS_THERE. O(members). */
enum sessions_away sessions_deserted(const struct sessions *s);
/* Returns whether a connected peer has this peer's run and has begun it: the peer has started to
 * train, or reports a round above 0. */
bool sessions_run_begun(const struct sessions *s);
/* Functions that enumerate the slots of the session table, from 0 to sessions_slots() - 1. A
 * session keeps its slot until it ends. An unused slot has link.used false, and a later session may
 * get it. */
size_t sessions_slots(const struct sessions *s);
const struct link *sessions_at(const struct sessions *s, size_t slot);
uint32_t sessions_slot(const struct sessions *s, const struct link *l);
/* Returns whether this peer counts as refused: a peer has refused it within REFUSAL_VALID_US, and
 * no session with another peer has lasted for ADMITTED_US. */
bool sessions_are_refused(const struct sessions *s);
/* Returns whether peer `id` is in the table of violators of the protocol, even if its quarantine is
 * over (quarantine.c). */
bool quarantine_knows(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Returns whether this process has had a session with another peer. */
bool sessions_met_any(const struct sessions *s);
/* Returns the number of protocol violations by other peers. */
uint64_t sessions_violations(const struct sessions *s);
/* Returns the i-th kind of violation, and sets *count to the number of its violations. NULL: there
 * is no i-th kind. */
const char *sessions_violation_kind(const struct sessions *s, size_t i, uint64_t *count);

/* ---- warnings about connections (connection_diagnostics.c) ---- */

/* Capacity of the text of connection_diagnostics_names(), in bytes. */
enum { CONNECTION_DIAGNOSTICS_NAMES = 100 };
/* Writes the bootstrap names at which other peers are expected, for example "one:7100, two:7100 and
 * 3 more". Names that lead only to this peer are left out. The text may be empty. */
void connection_diagnostics_names(const struct sessions *s, char out[CONNECTION_DIAGNOSTICS_NAMES]);
/* Returns whether the bootstrap list names other peers, and this process has never had a session
 * with any peer. */
bool connection_diagnostics_lonely(const struct sessions *s);
/* Returns the reason of a failed dial as a clause for a message, such as "no route to the host". */
const char *connection_diagnostics_why(enum node_why why);

/* ---- rounds that other peers claim (round_quorum.c) ---- */

/* Returns the session of the member that reports the highest round of this run. Ignores a round
 * that is more than LEAD rounds (round_quorum.c) ahead of the round that most members have reached.
 * NULL: no connected member has begun this run. */
const struct link *round_quorum_furthest(const struct sessions *s);

/* Returns the round at which this peer joins with a received model. `round`: the round that the
 * senders of the model claim. Returns `round`, or the round that most members have reached if
 * `round` is more than LEAD rounds (round_quorum.c) ahead of it. */
uint64_t round_quorum_joined(const struct sessions *s, uint64_t round);

/* State of the limit that a peer with only one neighbour sets to the step counter of this neighbour
 * (round_quorum.c). The peer does not believe a step counter above the limit. */
struct round_quorum
{
    /* Duration of this peer's shortest job with local steps, in microseconds. 0: there was none. */
    int64_t fastest_us;
    /* Last time at which an edge was open and no neighbour was ahead by more rounds than lock step
     * allows. 0: never. Driver time, because the neighbour trains while this process is paused. */
    int64_t near_us;
    bool far; /* True: the neighbour claims to be ahead by more rounds than lock step allows. */
    /* While `far` is true: largest step counter that the neighbour can have reached. The neighbour
     * can have got ahead only after near_us. */
    uint64_t most;
};

/* Records the duration of a job with local steps, in microseconds. */
void round_quorum_worked(struct round_quorum *b, int64_t took_us);
/* In lock step: corrects the step counters in edge[0..v->n_edges) before the schedule reads them
 * (round_quorum.c). Lowers the step counter of each neighbour that claims more than this peer
 * believes. If this peer is ahead of most peers, raises the step counters of neighbours that are
 * too far behind for lock step to wait for them, so that this peer waits. */
void round_quorum_look(struct round_quorum *b, const struct sessions *s,
                       const struct schedule_view *v, struct schedule_edge *edge);

#endif
