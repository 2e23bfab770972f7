/* peer/node/session/sessions.h -- the session table of a node, heartbeats, membership gossip and
 * dialling.
 *
 * A session is an authenticated connection with another process. The table below holds one struct
 * link per session:
 *
 *    (dial) --LINK_UP--> [used] --HELLO--> [hello] --hang-up--> [doomed] --LINK_DOWN--> (free)
 *                           |                                      ^
 *                           +-- refused, a duplicate, silent ------+
 *
 * A session *talks* after the HELLO of a peer has been accepted (link_talks()). An observer, for
 * example `hearsay status`, also sends a HELLO, but its session never talks: it may only send
 * requests.
 *
 * The state of this module is written by these files:
 *
 *    sessions.c                 session table, HELLO, choice of the run, heartbeats
 *    handshake.c                merging of members' records, duplicate identities
 *    dissemination.c            membership gossip
 *    dial.c                     bootstrap names, contacts, redials
 *    failure_detector.c         silent members, accusations, duplicate names
 *    admit.c                    allow-list, certificates, names
 *    callback.c                 test calls to announced addresses
 *    connection_diagnostics.c   warnings about failed calls
 *
 * Other modules hold `const struct link *` and use the functions below. This module does not depend
 * on edges, training or mixing. It calls the rest of the node through the functions in struct
 * sessions_owner, which node.c provides.
 */
#ifndef PEER_NODE_SESSION_SESSIONS_H
#define PEER_NODE_SESSION_SESSIONS_H

#include "peer/node/env.h"
#include "peer/node/session/admit.h"
#include "peer/node/session/callback.h"
#include "peer/node/session/connection_diagnostics.h"
#include "peer/node/session/quarantine.h"

enum {
    /* Maximum number of records per tick and session in a transfer of the whole member table. The
     * first batch may be larger. The limit exists because a link may be slow and its send queue is
     * bounded. */
    SESSIONS_PIECE = 16,
    /* Maximum number of membership changes that this peer forwards per tick. A neighbour usually
     * has about half of them already. */
    SESSIONS_NEWS = 32,
    SESSIONS_KINDS = 48, /* Maximum number of kinds of violations that are counted separately. */
    /* Maximum number of addresses of one bootstrap name. Further addresses are dropped. */
    NODE_SEED_ADDRESSES = 64
};

/* One session. Times are node times in microseconds. */
struct link
{
    /* State of the session:
     *   used       the slot holds a session
     *   dialled    this peer opened the session, not the other end
     *   hello      a HELLO of the other end has been accepted
     *   observer   the HELLO came from an observer
     *   same_run   the other end's last HELLO contained the run of this peer
     *   started    the other end has started training (HELLO), or has reported a round above 0
     *   finished   the other end has reported that its model is final
     *   doomed     this peer has hung up; the slot stays in use until LINK_DOWN */
    bool used, dialled, hello, observer, same_run, started, finished, doomed;
    /* opened: an edge was opened on this session. violated: this peer hung up because the other
     * end violated the protocol. */
    bool opened, violated;
    /* True: the other end has answered a request with a model that the certificate of the run does
     * not cover, although its identity is in the certificate: it is a new process of that member. */
    bool uncertified;
    /* True: nothing has arrived for SILENT_US, so the session is no proof that its member is
     * alive. */
    bool mute;
    const char *why;  /* Why this peer hung up. NULL: it did not. */
    uint32_t number;  /* Driver's number of the session. */
    uint32_t version; /* Protocol version of the session. */
    uint32_t tag;     /* Tag of this peer's dial. 0: the other end opened the session. */
    /* telling: this peer is sending the whole member table to the other end. asked: the other end
     * requested a STATUS during this transfer. */
    bool telling, asked;
    /* Position of the next member to send in a transfer of the member table (members_tell()). */
    size_t told;
    uint32_t n_new; /* Number of unknown members that the other end announced since new_us. */
    int64_t new_us; /* Start of the minute in which n_new counts, in microseconds. */
    bool told_new;  /* True: the warning about too many new members was printed. */
    /* Last time that the other end sent a record with this peer's identity that another process had
     * signed. 0: never. Written by handshake.c. */
    int64_t other_us;
    uint8_t id[WIRE_ID_BYTES]; /* Authenticated identity of the other end. */
    /* heard_us: last time that data arrived. up_us: time at which the session opened. */
    int64_t heard_us, up_us;
    uint64_t boot;     /* Boot id of the other end's process, a random number. */
    uint64_t round;    /* Round of the run that the other end reported last. */
    int64_t said_us;   /* Time at which `round` was reported. */
    uint64_t before;   /* Round that the other end reported before `round`. */
    int64_t before_us; /* Time at which `before` was reported. 0: there was no such report. */
    /* Time at which the other end's worker began its current job. 0: the worker is idle. */
    int64_t busy_since_us;
    /* Time at which the last PING arrived. busy_since_us was computed from this PING. */
    int64_t told_busy_us;
    /* Results of the test calls between this peer and the member. Written by callback.c only. */
    struct callback_link callback;
};

/* Repeated dials to one destination, with exponential back-off. Times are node times in
 * microseconds. */
struct redial
{
    bool busy;    /* True: a dial is in progress. */
    uint32_t tag; /* Tag of the dial in progress. */
    /* next_us: earliest time of the next dial. backoff_us: current interval between two dials; 0:
     * no dial has failed yet. dialled_us: time at which the last dial began. */
    int64_t next_us, backoff_us, dialled_us;
};

/* A member with which this peer wants a session. */
struct contact
{
    uint8_t id[WIRE_ID_BYTES];
    /* wanted: an edge, a state transfer or a resume needs the session. watched: the failure
     * detector monitors the member. A contact with neither is removed. */
    bool wanted, watched;
    struct redial redial;
    /* Number of dials made so far. The next dial goes to the address with the index next_address
     * modulo the number of addresses in the member's record. */
    uint32_t next_address;
    uint32_t refusals; /* Number of consecutive dials that failed within DIAL_REFUSED_US. */
    /* Time of the first failed dial since the member became a contact, in microseconds. 0: no dial
     * failed. Written by callback.c only. */
    int64_t unmet_us;

    /* The fields from here on are written by failure_detector.c. Times are in microseconds. */

    bool met;        /* True: this peer had a session with the member since it became a contact. */
    int64_t call_us; /* Earliest time at which the failure detector dials the member. */
    /* Last time that this peer, or a member that it asked, heard the member. If neither has heard
     * it yet: about the time at which the member became a contact. */
    int64_t heard_us;
    /* Time at which other members were asked whether they have heard the member. 0: not asked. */
    int64_t asked_us;
    /* True: this peer has accused the member, and the member has not refuted the accusation yet. */
    bool accused;
    uint64_t accused_incarnation; /* Incarnation of the member in this peer's last accusation. */
    int64_t spared_us;            /* Time before which this peer does not accuse the member. */
    /* Time for which the member is not accused again after its next refutation, in microseconds.
     * Doubles with each refutation, from REFUTED_US to REFUTED_MAX_US. */
    int64_t spare_us;
};

/* A name of the bootstrap list, its addresses and the dials to them. */
struct seed
{
    const char *name; /* "host:port". */
    /* busy: the name is being resolved. warned: a warning that it does not resolve was printed. */
    bool busy, warned;
    int64_t next_us; /* Time at which the name is resolved next, in microseconds. */
    uint32_t n;      /* Number of addresses of the name, in at[]. */
    struct
    {
        char address[WIRE_ADDRESS_MAX + 1];
        /* busy: a dial is in progress. self: the address belongs to this peer, so it is not
         * dialled. */
        bool busy, self;
        uint32_t tag; /* Tag of the last dial to this address. */
    } at[NODE_SEED_ADDRESSES];
};

/* The facts that this peer reports about itself in HELLO and PING messages. node.c computes them on
 * request (sessions_owner.standing). */
struct standing
{
    /* has_run: this peer has a run that others can take. has_started: it has a model and has
     * started training, so its run can no longer change. */
    bool has_run, has_started;
    /* True: this peer prepares a run, but other peers cannot take it yet. Either the members
     * exchange column statistics (statistics_aggregation.h), or the initial model of the run is
     * still missing (initial.h). */
    bool gathers;
    bool finished;    /* True: this peer's model is final, and the attempt to store it is over. */
    struct bytes run; /* Run description as text. Empty if `has_run` is false. */
    uint64_t round;   /* Number of training rounds done. */
    uint64_t beat;    /* Number of rounds done, including rounds of the consensus phase. */
    int64_t busy_us;  /* Age of the worker's current job in microseconds. 0: the worker is idle. */
};

/* Result of the comparison of the run in a HELLO with the run of this peer. */
enum sessions_run {
    SESSIONS_RUN_SAME,   /* The sender has this peer's run. */
    SESSIONS_RUN_TAKEN,  /* This peer had no run or gave up its own, and has taken the sender's. */
    SESSIONS_RUN_YIELDS, /* The sender will give up its run and take this peer's. */
    /* The runs differ and this peer's run cannot change any more, so the session is refused. */
    SESSIONS_RUN_STRANGER,
    /* The run description is invalid, or it is for another kind of trainer. */
    SESSIONS_RUN_UNREADABLE,
    /* This peer should take the run, but its command-line options contradict the run. The peer
     * ends. */
    SESSIONS_RUN_CONTRADICTS
};

/* How this peer lost its last session with any other peer. */
enum sessions_away {
    /* A session exists, or the last one ended without a sign that this peer was cut off. */
    SESSIONS_THERE,
    /* The last session was silent when it ended, so this peer was cut off from the network. */
    SESSIONS_CUT,
    /* The last session ended just after a pause of this process, for example by SIGSTOP. */
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
    /* Called when the other end's model is final. */
    void (*finished)(void *self, const struct link *l);
    bool (*surplus)(void *self, const struct link *l); /* Returns whether no edge needs `l`. */
    void (*status)(void *self, const struct link *l);  /* Sends a STATUS message over `l`. */
};

struct sessions
{
    struct env *env;
    struct sessions_owner owner;
    struct link links[NODE_LINKS_MAX];
    /* Number of slots in links[] that were ever used. A new session takes the first free slot, so
     * all slots from this index on are unused. */
    size_t n_links;
    uint64_t n_violations; /* Number of protocol violations by other peers. */
    struct
    {
        const char *what; /* Kind of violation, a string literal. */
        uint64_t n;
        /* Protocol violations by other peers, counted by kind. The last entry counts all kinds for
         * which there is no entry. */
    } kind[SESSIONS_KINDS];
    uint32_t n_kinds; /* Number of used entries of kind[]. */
    struct quarantine quarantine;
    /* Times of the next heartbeat, and of the next transfer of the whole member table to a random
     * session (anti-entropy), in microseconds. */
    int64_t heartbeat_us, entropy_us;
    /* Number of membership changes that may still be forwarded before the next tick. */
    uint32_t n_news;
    /* Earliest time at which the error about a duplicate of this peer's identity is printed
     * again. */
    int64_t cloned_us;

    struct admit admit; /* Allow-list and refusals. Written by admit.c only. */

    /* The fields from here to refused_us are written by dial.c. */

    struct seed *seeds;              /* One entry per bootstrap name. Owned. */
    struct contact *contacts;        /* Contacts in no order. Owned. */
    size_t n_contacts, cap_contacts; /* Number of contacts, and for how many there is memory. */
    /* Dial to one of the dead members. Only busy, tag and dialled_us are used. */
    struct redial dead;
    int64_t dead_redial_us; /* Time at which the next dead member is dialled, in microseconds. */
    /* Index in the member table at which the search for the next dead member begins, when dead
     * members are dialled in turn. */
    size_t next_dead;
    /* Start of the current interval of DIAL_DROPPED_US, and number of dropped members dialled in
     * it. */
    int64_t dropped_us;
    uint32_t n_dropped;
    uint32_t next_tag; /* Tag of the last dial. Tags are counted up from 1. */

    /* Number of consecutive dials to members that failed within DIAL_REFUSED_US. A dial that
     * succeeds or fails later resets it, and so does a new session (failure_detector.c). */
    uint32_t n_refused;
    /* Time of the first of the refused dials that n_refused counts, in microseconds. */
    int64_t refused_us;

    /* Failed dials to bootstrap names. Written by connection_diagnostics.c only. */
    struct connection_diagnostics seek;
    struct callback callback; /* Test calls to members' addresses. Written by callback.c only. */

    /* The fields from here on are written by failure_detector.c. */

    /* Node time at which this process last continued after a pause longer than SILENT_US. 0: there was
     * no such pause. */
    int64_t stood_us;
    enum sessions_away away; /* How this peer lost its last session. */
    struct
    {
        /* Hash of the ids of the two members with the same name. 0: there are no such members. */
        uint64_t pair;
        /* Last time at which the two members of `pair` were found, in microseconds. */
        int64_t seen_us;
        int64_t since_us; /* Time at which the current `pair` was found first, in microseconds. */
        bool told;        /* True: one of the two members has been refused for its name. */
        bool ours;        /* True: this peer is one of the two members. */
        uint8_t other[WIRE_ID_BYTES]; /* Id of the other member if `ours` is true. */
    } twins;                          /* Two live members with the same name. */
    /* Value of members_changes() when the members to monitor were last chosen. */
    uint64_t failure_detector_changes;
};

/* Returns whether the other end of the session is a peer, not an observer, and its HELLO was
 * accepted. */
static inline bool link_talks(const struct link *l)
{
    return l->used && l->hello && !l->observer;
}

/* Returns the age of the current job of the other end's worker in microseconds, by its last PING.
 * 0: the worker is idle. */
static inline int64_t link_busy_us(const struct link *l, int64_t now_us)
{
    return l->busy_since_us != 0 ? now_us - l->busy_since_us : 0;
}

/* Initialises *s, which must be zeroed. Returns 0 or -ENOMEM. sessions_close() must be called in
 * both cases. */
int sessions_open(struct sessions *s, struct env *env, const struct sessions_owner *owner);
void sessions_close(struct sessions *s);
/* Starts the timers and the resolution of the bootstrap names. */
void sessions_start(struct sessions *s);

/* ---- events ---- */

void sessions_up(struct sessions *s, const struct node_event *ev);
void sessions_down(struct sessions *s, const struct node_event *ev);
void sessions_dial_failed(struct sessions *s, const struct node_event *ev);
void sessions_resolved(struct sessions *s, const struct node_event *ev);
/* Called when data arrives on the driver's link `number`. Returns the session. Returns NULL if the
 * session has ended or this peer has hung up; the message must then be ignored. */
const struct link *sessions_heard(struct sessions *s, uint32_t number);
void sessions_hello(struct sessions *s, const struct link *l, const struct wire_hello *h);
void sessions_members(struct sessions *s, const struct link *l, const struct wire_members *told);
/* Handles a STATUS_REQ message. If a transfer of the member table is under way, the STATUS is sent
 * after it, because the sender may want to ask these members next. */
void sessions_status_req(struct sessions *s, const struct link *l);
void sessions_ping(struct sessions *s, const struct link *l, const struct wire_ping *ping);
void sessions_probe(struct sessions *s, const struct link *l, const struct wire_probe *m);
/* Handles a HEARD message, the answer to a PROBE. */
void sessions_vouched(struct sessions *s, const struct wire_heard *m);
/* Runs the timers of this module. Called every TICK_US. */
void sessions_tick(struct sessions *s);

/* ---- requests of other modules ---- */

/* Sends a message on the session, unless this peer has hung up. `head` is copied, `body` may be
 * NULL and is borrowed until the next step. `bulk` selects the lane for large messages. */
void sessions_send(struct sessions *s, const struct link *l, bool bulk, const uint8_t *head,
                   size_t n_head, struct packet *body);
/* Ends the session. `violation`: the reason is a violation of the protocol by the other end. `why`:
 * the reason for a debug note, a string literal. */
void sessions_hang_up(struct sessions *s, const struct link *l, bool violation, const char *why);
/* Counts a violation of the protocol, prints a warning, quarantines the other end and hangs up.
 * `what` describes the violation and must be a string literal, because the pointer is stored. */
void sessions_violation(struct sessions *s, const struct link *l, const char *what);
/* Forwards changes of the member table to all sessions, within the limit SESSIONS_NEWS. */
void sessions_news(struct sessions *s);
/* Forwards all changes of the member table without a limit. Called when this peer ends, because
 * other peers may wait for these changes. */
void sessions_last_news(struct sessions *s);
/* Sends this peer's signed record with the state LEFT to all sessions, so that no member waits for
 * this peer or declares it dead later. */
void sessions_leave(struct sessions *s);
/* Sends a new HELLO to all peers with a session. Called when the phase of this peer has changed. */
void sessions_hello_all(struct sessions *s);
/* Sends a new HELLO on all sessions. Called when this peer has got, changed or given up its run. */
void sessions_run_fixed(struct sessions *s);
/* Tells the other end of `l` that this peer's model is final. The message is queued after the last
 * delta. Does nothing if the model is not final. */
void sessions_say_finished(struct sessions *s, const struct link *l);
void sessions_say_finished_all(struct sessions *s);
/* Clears `finished` of all sessions. Called when an attempt of the finish protocol was aborted,
 * because the models of the peers are then no longer final. */
void sessions_reopen(struct sessions *s);
/* Called when an edge opens on this session. The member is then redialled quickly if the session is
 * lost. */
void sessions_opened(struct sessions *s, const struct link *l);

/* Records that the member of this session has sent a model that the certificate of the run does not
 * cover. */
void sessions_uncertified(struct sessions *s, const struct link *l);

/* ---- dialling (dial.c) ---- */

/* Marks the member as a wanted contact, so that sessions_call() can dial it. Returns 0 or
 * -ENOMEM. */
int sessions_want(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
bool sessions_wants(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Undoes sessions_want(). The failure detector may still dial the member. */
void sessions_unwant(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Dials a contact if there is no session with it and the back-off has expired. A peer with the
 * greater id does not dial before lost_us + DIAL_YIELD_US. lost_us is the time, in microseconds, at
 * which the last session with the contact was lost. */
void sessions_call(struct sessions *s, const uint8_t id[WIRE_ID_BYTES], int64_t lost_us);
/* Allows the next dial to this contact at once. Called after the loss of a session on which an edge
 * was open. */
void sessions_call_soon(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);

/* ---- queries ---- */

/* Returns the session with the driver's number `number`, or NULL. */
const struct link *sessions_link(const struct sessions *s, uint32_t number);
/* Returns the session with peer `id` if its HELLO was accepted and it was not hung up, or NULL. */
const struct link *sessions_to(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Returns the last time at which this peer, or a member that it asked, heard the member `id`, in
 * microseconds. 0: never. */
int64_t sessions_heard_us(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Returns whether there is a session with any peer. */
bool sessions_any(const struct sessions *s);
/* Returns whether this peer was cut off or paused, and the processes of all dead members have ended
 * since. The evidence is that their hosts have refused all dials of this peer for a while. If so,
 * returns SESSIONS_CUT or SESSIONS_STOOD, else SESSIONS_THERE. O(members). */
enum sessions_away sessions_deserted(const struct sessions *s);
/* Returns whether a connected peer has this peer's run and has started it. */
bool sessions_run_begun(const struct sessions *s);

/* ---- internal to sessions.c, handshake.c, dissemination.c, dial.c, failure_detector.c ---- */

/* Merges the record in a HELLO. The sender is another peer, or another process with this peer's
 * identity. */
enum members_verdict handshake_hello(struct sessions *s, const struct link *l,
                                     const struct record *r);
/* Called when the HELLO on `l` was accepted. This peer can now endorse the member. */
void handshake_met(struct sessions *s, const struct link *l);
/* Merges a member's record, which the other end of `l` has forwarded, into the member table. Drops
 * the record if that end has announced too many new members. A forged record ends the session.
 * Proof that an older process has this peer's identity ends the node. */
void handshake_record(struct sessions *s, const struct link *l, const struct record *r);
/* Signs the endorsements that members need from this peer. */
void handshake_tick(struct sessions *s);
/* Handles the end of a session. Prints an error if the other end closed it in favour of another
 * process with this peer's identity. */
void handshake_lost(struct sessions *s, const struct link *l);

/* Starts to send the whole member table over `l`: one batch now, the rest in
 * dissemination_tick(). */
void dissemination_tell_all(struct sessions *s, struct link *l);
/* Continues the transfers of the member table, and renews the allowance for membership changes. */
void dissemination_tick(struct sessions *s);
/* Call members_listener() and members_heard() for the session `l`. The member table tracks which
 * records the other end of each session knows. */
void dissemination_listens(struct sessions *s, const struct link *l, bool member);
void dissemination_heard(struct sessions *s, const struct link *l, const struct record *r);

void dial_start(struct sessions *s);
/* Dials `address`, which must stay valid until the next step. *tag identifies the result. At most
 * NODE_DIALS_MAX dials may be made in one step; the caller checks this. */
void dial_address(struct sessions *s, const char *address, uint32_t *tag);
/* Dials the member of record r if this peer has dropped the member from its table. Another member
 * has announced r. r must stay valid until the end of the step. */
void dial_dropped(struct sessions *s, const struct record *r);
/* Ends the dial with this tag. `id`: the peer that answered; NULL: the dial failed for the reason
 * `why`. */
void dial_over(struct sessions *s, uint32_t tag, const uint8_t *id, enum node_why why);
/* Called when a session ends on which no edge was opened, or which this peer ended for a violation.
 * Increases the back-off before the next dial to this contact. */
void dial_in_vain(struct sessions *s, const struct link *l);
/* Resets the back-off of contact `id` after an edge opened. */
void dial_opened(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Allows dials to all bootstrap addresses again, also to those at which this peer's own identity
 * has answered. The process that answered may be another one with a copy of the identity. */
void dial_all_again(struct sessions *s);
/* Starts to resolve each bootstrap name if its next_us has passed. Results arrive in
 * sessions_resolved(). */
void dial_tick_seeds(struct sessions *s);
/* Dials one dead member if the time has come. O(members). */
void dial_tick_dead(struct sessions *s);
/* Returns the contact with this id, or NULL. */
struct contact *dial_contact(struct sessions *s, const uint8_t *id);
/* Adds a contact that is neither wanted nor watched yet. Returns NULL if memory is exhausted. Makes
 * pointers to other contacts invalid. */
struct contact *dial_add_contact(struct sessions *s, const uint8_t *id);
/* Removes contacts for which neither `wanted` nor `watched` is true. Makes pointers to contacts
 * invalid. */
void dial_sift(struct sessions *s);
/* Called after this process was paused for pause_us (clock.h). Probes that were sent before the
 * pause are sent again. */
void failure_detector_continue(struct sessions *s, int64_t pause_us);
void failure_detector_tick(struct sessions *s);
/* Handles the end of a session with a peer. */
void failure_detector_lost(struct sessions *s, const struct link *l);
/* Handles the first HELLO on a session with a peer. */
void failure_detector_met(struct sessions *s, const struct link *l);
/* Called when this peer has refused a session with member `id`, or the member has refused one with
 * this peer. The attempt proves that the member is alive, so this peer does not accuse it for
 * REFUSAL_VALID_US. */
void failure_detector_refused(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);

#endif
