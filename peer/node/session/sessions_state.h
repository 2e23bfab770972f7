/* peer/node/session/sessions_state.h -- state of the sessions module, and the functions by which
 * the files of this folder call each other. Other folders include sessions.h.
 *
 * Times are node times in microseconds. A *contact* is a member with which this peer wants a
 * session. A *seed* is a name of the bootstrap list.
 */
#ifndef PEER_NODE_SESSION_SESSIONS_STATE_H
#define PEER_NODE_SESSION_SESSIONS_STATE_H

#include "peer/node/session/limits.h"
#include "peer/node/session/sessions.h"

enum {
    /* Maximum number of addresses of one bootstrap name. Further addresses are dropped. */
    NODE_SEED_ADDRESSES = 64,
    /* Maximum number of records per tick and session in a transfer of the whole member table. The
     * first batch may be larger. The limit exists because a link may be slow and its send queue is
     * bounded. */
    SESSIONS_PIECE = 16,
    /* Number of membership changes that this peer may forward per tick. The unused part of this
     * number is saved for later ticks, up to WIRE_BATCH_MAX changes in all. A neighbour usually
     * knows about half of the changes already, and these are not sent to it. */
    SESSIONS_NEWS = 32,
    SESSIONS_KINDS = 48 /* Maximum number of kinds of violations that are counted separately. */
};

/* ---- admit.c ---- */

enum {
    ADMIT_TOLD = 16, /* Number of refusals that are remembered, so that no warning is repeated. */
    /* Values of admit.told.at[].what in addition to enum wire_refusal. ADMIT_OTHER_RUN: sessions.c
     * has refused a peer of another run. Such an entry limits the warnings, but does not delay
     * dials (admit_must_wait()). ADMIT_OBSERVER: an observer was refused. The warning about an
     * observer has a value of its own, so that it does not suppress the warning about a peer with
     * the same identity. */
    ADMIT_OTHER_RUN = REFUSED_NAME + 1,
    ADMIT_OBSERVER
};

/* Allow-list, recent refusals by this peer, and refusals of this peer by others. */
struct admit
{
    /* The allow-list: n sorted identities. NULL: none has arrived, so every holder of the cluster
     * key is admitted. Owned. */
    uint8_t (*id)[WIRE_ID_BYTES];
    size_t n;
    /* Difference between the wall clock (microseconds since 1970) and the driver's clock, measured
     * when the allow-list arrived. The driver's clock does not stop during pauses. */
    int64_t unix_us;
    /* Recent refusals by this peer. recent_case.what: the reason. */
    struct recent told;

    /* Times of the first and of the last refusal of this peer by other peers. If refused_us is 0,
     * this peer does not count as refused: no peer has refused it, a session has lasted for
     * ADMITTED_US, or the last refusal is older than REFUSAL_VALID_US. */
    int64_t refused_us, last_us;
    /* Time at which a refusal of this peer was last printed, by reason. 0: never. */
    int64_t said_us[REFUSED_NAME + 1];
};

/* ---- callback.c ---- */

enum {
    CALLBACK_CALLS = 4, /* Maximum number of simultaneous test calls to members' addresses. */
    /* Maximum number of warnings, each with the name of a member, about failed test calls. After
     * these, one last warning without a name is printed. */
    CALLBACK_LINES = 8,
    /* Maximum number of remembered warnings. A remembered warning is not repeated. */
    CALLBACK_NAMES = 32
};

enum callback_state {
    CALLBACK_OPEN = 0, /* No result is known, and no call is in progress. */
    CALLBACK_CALLING,  /* A call to the member is in progress. */
    CALLBACK_WORKS,    /* The member answered at an announced address. */
    CALLBACK_FAILS,    /* The member answered at none of its announced addresses. */
    /* All calls failed, but the reason of the last failure does not show that the address is wrong.
     * For example, the member was too busy to answer. */
    CALLBACK_UNKNOWN
};

/* Results of the test calls between this peer and the member of one session. */
struct callback_link
{
    /* theirs: result of this peer's calls to the member's announced addresses. ours: result of the
     * member's calls to this peer, as reported by the member. */
    enum callback_state theirs, ours;
    /* Hash of the bootstrap address that this peer dialled for the session. 0: none. */
    uint64_t dialled;
    uint32_t n_calls; /* Number of calls to the member's addresses so far. */
    int64_t next_us;  /* Earliest time of the next call. */
    /* If `ours` is CALLBACK_FAILS: reason why the member's last call to this peer failed. */
    enum node_why why;
};

/* Test calls in progress, their results, and the warnings about failed test calls. */
struct callback
{
    /* Result of the test call to the member of each session, by the slot of the session. */
    struct callback_link of[NODE_LINKS_MAX];
    struct
    {
        uint32_t tag;  /* Tag of the dial. 0: the entry is free. */
        uint32_t link; /* Driver's number of the session with the member that is called. */
        char address[WIRE_ADDRESS_MAX + 1]; /* Address of the member that is called. */
    } call[CALLBACK_CALLS];
    /* The latest warnings about failed calls. recent_case.what: hash of the address. */
    struct recent told;
    /* Address of this peer in the last CALLBACK message that reported a failed call. */
    char address[WIRE_ADDRESS_MAX + 1];
    /* Back-off of the warning that members cannot call this peer. tell.next_us is 0 if no warning
     * is planned. */
    struct backoff tell;
};

/* ---- connection_diagnostics.c ---- */

/* Warnings about missing sessions and a missing run. */
struct connection_diagnostics
{
    bool met; /* True: this process has had a session with another peer. */
    /* True: the message that all bootstrap names are addresses of this peer was printed. */
    bool told_own;
    /* End of the last session or, before the first session, start of the process. 0: there is a
     * session. */
    int64_t alone_us;
    struct backoff no_run; /* Back-off of the warning that no connected peer has a run. */
};

/* ---- dial.c ---- */

/* A member with which this peer wants a session. */
struct contact
{
    uint8_t id[WIRE_ID_BYTES];
    /* wanted: an edge, a state transfer, a resume or the finish protocol needs the session.
     * watched: the failure detector monitors the member. A contact with neither is removed. */
    bool wanted, watched;
    uint32_t tag; /* Tag of the dial in progress. 0: none. */
    struct backoff redial;
    /* Index of the address for the next dial, modulo the number of addresses of the member. */
    uint32_t next_address;
    uint32_t refusals; /* Number of consecutive dials that the member's host refused. */
    /* Time of the first failed dial while the member was alive and had had no session with this
     * peer yet. 0: there was no such dial. Written by callback.c only. */
    int64_t unmet_us;

    /* The fields from here on are written by failure_detector.c. */

    /* True: this peer had a session with the member since the member became a contact. */
    bool met;
    int64_t call_us; /* Earliest time at which the failure detector dials the member. */
    /* Last time that this peer, or a member that it asked, heard the member. If no peer has heard
     * the member yet: about the time at which the member became a contact. */
    int64_t heard_us;
    /* Time at which this peer asked other members whether they have heard the member. 0: not
     * asked. */
    int64_t asked_us;
    /* True: this peer has accused the member, and the member has not refuted the accusation yet. */
    bool accused;
    uint64_t accused_incarnation; /* Incarnation of the member in this peer's last accusation. */
    /* Delay of the next accusation: the member is not accused before spared.next_us. The delay
     * doubles with each refutation. */
    struct backoff spared;
};

/* Failures to reach one bootstrap name since its last success. Written by
 * connection_diagnostics.c. */
struct seed_failure
{
    enum node_why why;   /* Reason of the last failure. */
    uint32_t n;          /* Number of consecutive failures for this reason. 0: no failure. */
    int64_t since_us;    /* Time of the first of the n failures. */
    struct backoff tell; /* Back-off of the warning about the bootstrap name. */
    /* If `why` is NODE_WHY_VERSION: oldest and newest protocol version that the other end
     * supports. */
    uint32_t least, most;
};

/* A name of the bootstrap list, its addresses and the dials to them. */
struct seed
{
    const char *name; /* "host:port". */
    /* busy: the name is being resolved. warned: a warning that it does not resolve was printed. */
    bool busy, warned;
    int64_t next_us; /* Time at which the name is resolved next. */
    uint32_t n;      /* Number of addresses of the name, in at[]. */
    struct seed_address
    {
        char address[WIRE_ADDRESS_MAX + 1];
        /* busy: a dial is in progress. self: the address belongs to this peer, so it is not
         * dialled. */
        bool busy, self;
        uint32_t tag; /* Tag of the last dial to this address. 0: none. */
    } at[NODE_SEED_ADDRESSES];
    struct seed_failure failure;
};

/* ---- quarantine.c ---- */

/* Maximum number of violators in the table. If the table is full, a new violator replaces the
 * oldest one. */
enum { QUARANTINE_IDS = 64 };

/* The latest violators of the protocol. A struct of zeros is empty. */
struct quarantine
{
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        /* Last quarantine of the peer. It lasts last.gap_us and ends at last.next_us. If
         * last.gap_us is 0, the entry is free. */
        struct backoff last;
    } at[QUARANTINE_IDS];
};

/* ---- the sessions ---- */

/* State of the sessions module. If a comment names a file, only that file writes the fields. The
 * fields above `admit` are written by several files. */
struct sessions
{
    struct env *env;
    struct sessions_owner owner;
    struct link links[NODE_LINKS_MAX];
    /* Number of slots in links[] that were ever used. A new session takes the first free slot, so
     * all slots from this index on are unused. */
    size_t n_links;
    /* Protocol violations by other peers, counted by kind. The last entry counts all kinds for
     * which there is no entry. */
    struct
    {
        const char *what; /* Kind of protocol violation, a string literal. NULL: unused entry. */
        uint64_t n;
    } kind[SESSIONS_KINDS];
    struct quarantine quarantine;
    /* Times of the next heartbeat, and of the next transfer of the whole member table to a random
     * session (anti-entropy). */
    int64_t heartbeat_us, entropy_us;
    /* Number of membership changes that may still be forwarded before the next tick. */
    uint32_t n_news;
    /* Earliest time at which the error about a duplicate of this peer's identity is printed
     * again. */
    int64_t cloned_us;

    struct admit admit; /* Allow-list and refusals. Written by admit.c only. */

    /* The fields from here to refused_us are written by dial.c. */

    struct seed *seeds;              /* One entry per name of the bootstrap list. Owned. */
    struct contact *contacts;        /* The contacts, in no order. Owned. */
    size_t n_contacts, cap_contacts; /* Used and allocated length of contacts[]. */
    uint32_t dead_tag;               /* Tag of the dial in progress to a dead member. 0: none. */
    /* Time at which the next dead member is dialled. A peer that is alone dials it earlier
     * (dial_tick_dead()). */
    int64_t dead_redial_us;
    /* Index in the member table at which the search for the next dead member begins. */
    size_t next_dead;
    /* Number of dropped members that were accused, and dialled if possible, in the current interval
     * of DIAL_DROPPED_US. */
    struct quota dropped;
    uint32_t next_tag; /* Tag of the last dial. Tags are counted up from 1. */

    /* Number of consecutive refused dials to members. Reset to 0 by the next dial that succeeds or
     * fails for another reason, and when this peer loses its last session (failure_detector.c). */
    uint32_t n_refused;
    int64_t refused_us; /* Time of the first dial that n_refused counts. */

    struct connection_diagnostics seek; /* Written by connection_diagnostics.c only. */
    struct callback callback;           /* Written by callback.c only. */

    /* The fields from here on are written by failure_detector.c. */

    /* Time at which this process last continued after a pause longer than SILENT_US. 0: there was
     * no such pause. */
    int64_t stood_us;
    enum sessions_away away; /* Whether this peer has lost all its sessions, and how. */
    struct
    {
        /* Hash of the ids of two live members with the same name. 0: there are no such members. */
        uint64_t pair;
        int64_t seen_us; /* Last time at which the member table contained the members of `pair`. */
        /* Time since which the member table has contained the members of `pair`. */
        int64_t since_us;
        bool told;                    /* True: one of the members of `pair` has been refused. */
        bool ours;                    /* True: this peer is one of the members of `pair`. */
        uint8_t other[WIRE_ID_BYTES]; /* If `ours` is true: id of the other member of `pair`. */
    } twins;                          /* Two live members with the same name. */
    /* Value of members_changes() when the members to monitor were last chosen. */
    uint64_t failure_detector_changes;
};

/* An identity in hexadecimal, for a message. */
struct hex
{
    char text[2 * WIRE_ID_BYTES + 1];
};

/* Returns an identity in hexadecimal, as in a members file. */
struct hex sessions_hex(const uint8_t id[WIRE_ID_BYTES]);

/* Returns whether this peer opened the session, not the other end. */
static inline bool link_dialled(const struct link *l)
{
    return l->tag != 0;
}

/* ---- sessions.c, handshake.c, dissemination.c ---- */

/* Returns the writable link for a const one. Other modules only hold pointers to const links. */
struct link *sessions_own(struct sessions *s, const struct link *l);
/* Ends the session. `why`: the reason for a debug note, a string literal. */
void sessions_hang_up(struct sessions *s, const struct link *l, const char *why);

/* Merges record r of a HELLO, and returns its effect on the member table. The sender is another
 * peer, or another process with this peer's identity. If the result is MEMBERS_FORGED, the session
 * has been ended. */
enum members_verdict handshake_hello(struct sessions *s, const struct link *l,
                                     const struct record *r);
/* Handles the end of a session. Prints an error if the other end closed it in favour of another
 * process with this peer's identity. */
void handshake_lost(struct sessions *s, const struct link *l);

/* dissemination_send() sends a MEMBERS message. dissemination_send_record() sends one that contains
 * only record r. */
void dissemination_send(struct sessions *s, const struct link *l, const struct wire_members *m);
void dissemination_send_record(struct sessions *s, const struct link *l, const struct record *r);
/* Starts to send the whole member table over `l`: one batch now, the rest in
 * dissemination_tick(). */
void dissemination_tell_all(struct sessions *s, struct link *l);
/* Continues the transfers of the member table, and allows SESSIONS_NEWS more membership changes to
 * be forwarded. */
void dissemination_tick(struct sessions *s);
void dial_start(struct sessions *s);
/* Dials `address`, which must stay valid until the next step. Sets *tag to the number that
 * identifies the result of the dial. At most NODE_DIALS_MAX dials may be made in one step; the
 * caller checks this. */
void dial_address(struct sessions *s, const char *address, uint32_t *tag);
/* Handles record r, which arrived on session l. If this peer has dropped the member of r from its
 * table: sends an accusation of this member to the other end of l, and dials this member. r must
 * stay valid until the end of the step. */
void dial_dropped(struct sessions *s, const struct link *l, const struct record *r);
/* Ends the dial that has the number `tag`. `id`: the peer that answered; NULL: the dial failed for
 * the reason `why`. */
void dial_over(struct sessions *s, uint32_t tag, const uint8_t *id, enum node_why why);
/* Increases the back-off of dials to the other end of session `l`. Called when the session has
 * ended without an edge, or after a violation of the protocol. */
void dial_in_vain(struct sessions *s, const struct link *l);
/* Allows dials to all bootstrap addresses again, also to those at which this peer's own identity
 * has answered. The process that answered may be another process with a copy of the identity. */
void dial_all_again(struct sessions *s);
/* Returns whether this peer announces `address`. Such an address counts as this peer's own, even if
 * a call to it does not reach this peer. */
bool dial_announces(const struct sessions *s, const char *address);
/* Finds the bootstrap address that was last dialled with the tag `tag`. Sets *address to it and
 * returns its bootstrap name. NULL: there is none. */
struct seed *dial_seed_of(struct sessions *s, uint32_t tag, struct seed_address **address);
/* Starts to resolve each bootstrap name if its next_us has passed. Results arrive in
 * sessions_resolved(). */
void dial_tick_seeds(struct sessions *s);
/* Dials one dead or finished member if one is due (dial.c). O(members). */
void dial_tick_dead(struct sessions *s);
/* Returns the contact with this id, or NULL. */
struct contact *dial_contact(struct sessions *s, const uint8_t *id);
/* Returns the contact with this id, and adds it if there is none. NULL: memory is exhausted. Makes
 * pointers to other contacts invalid. */
struct contact *dial_add_contact(struct sessions *s, const uint8_t *id);
/* Removes contacts that are neither `wanted` nor `watched`. Makes pointers to contacts invalid. */
void dial_sift(struct sessions *s);
/* Asserts the invariants of a contact between two events. */
void dial_check_contact(const struct sessions *s, const struct contact *c);
void failure_detector_tick(struct sessions *s);
/* Returns whether this process has continued after a pause longer than SILENT_US within the last
 * DEAD_LINK_US. During this time it still receives messages that were sent before or in the pause,
 * and learns which sessions ended in the pause. */
bool failure_detector_stood(const struct sessions *s);
/* Handles the end of a session with a peer. */
void failure_detector_lost(struct sessions *s, const struct link *l);
/* Handles the first HELLO on a session with a peer. */
void failure_detector_met(struct sessions *s, const struct link *l);
/* Returns whether a peer without sessions must dial member m to learn whether the member's process
 * still exists. This is the case if the member is dead or has finished, is accepted and has an
 * address. */
bool failure_detector_missing(const struct sessions *s, const struct member *m);
/* Prevents accusations of member `id` by this peer for REFUSAL_VALID_US. Called when one of them
 * has refused a session with the other, because the attempt proves that the member is alive. */
void failure_detector_refused(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);

/* ---- admit.c ---- */

/* The first three functions decide on the first HELLO of session `l`. If they return false, they
 * have sent REFUSED, printed a warning and hung up. r: the record in the HELLO.
 *
 *   admit_hello      the allow-list or a certificate admits the sender
 *   admit_name       no live member that started earlier has the sender's name
 *   admit_observer   the observer is admitted (its HELLO contains no record) */
bool admit_hello(struct sessions *s, const struct link *l, const struct record *r);
bool admit_name(struct sessions *s, const struct link *l, const struct record *r);
bool admit_observer(struct sessions *s, const struct link *l);
/* Returns whether a warning that peer `id` has another run was printed in the last ten minutes. If
 * not, remembers that the caller prints it now. */
bool admit_run_is_told(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Returns whether the allow-list or a certificate admits the member with record r. Used for records
 * that another member has forwarded. The expiry of a certificate is therefore not checked. */
bool admit_record(struct sessions *s, const struct record *r);
/* Returns whether member `id` is refused (members_refuse()) and the allow-list does not admit its
 * current record either. */
bool admit_keeps_out(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Returns whether this peer must not dial peer `id` now. There are two reasons: this peer has
 * refused `id` within REFUSER_REDIAL_US (2 s), not counting refusals of another run; or some peer
 * has refused this peer within REFUSED_REDIAL_US. */
bool admit_must_wait(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Handles two live members with the same name, given by their records. This peer refuses the member
 * that started later. If this peer is that member, it ends. */
void admit_one_of_two(struct sessions *s, const struct record *a, const struct record *b);
/* Checks whether this peer still counts as refused (sessions_are_refused()). Ends this peer if it
 * has counted as refused for REFUSED_END_US. */
void admit_tick(struct sessions *s);

/* ---- callback.c ---- */

/* Prepares the check of a member's addresses when a session opens. Must be called before
 * dial_over(), after which this peer no longer knows which bootstrap address it dialled. */
void callback_opened(struct sessions *s, const struct link *l);
/* Handles the end of the test call that has the dial number `tag`. `id`: the peer that answered;
 * NULL: the call failed for the reason `why`. Returns false if the call was not made by
 * callback.c. */
bool callback_over(struct sessions *s, uint32_t tag, const uint8_t *id, enum node_why why);
/* Handles a failed dial to contact c. Prints a warning if the contact is alive, has had no session
 * with this peer, and its first failed dial was CALLBACK_UNMET_US ago or earlier. */
void callback_in_vain(struct sessions *s, struct contact *c, enum node_why why);
/* Starts the test calls that are due, and prints the warning about calls to this peer if it is
 * due. */
void callback_tick(struct sessions *s);

/* ---- connection_diagnostics.c ---- */

/* Counts a failed dial (event NODE_DIAL_FAILED). Called before dial_over(). */
void connection_diagnostics_failed(struct sessions *s, const struct node_event *ev);
/* Counts a failure of a bootstrap name that does not resolve. The caller has printed a warning. */
void connection_diagnostics_unresolved(struct sessions *s, struct seed *d);
/* Handles the end of a session. Counts a failure if this peer dialled the session, and the other
 * end closed the session without a HELLO. */
void connection_diagnostics_unwelcome(struct sessions *s, const struct link *l);
/* Handles the first HELLO on a session: clears the failures of the bootstrap name. */
void connection_diagnostics_met(struct sessions *s, const struct link *l);
/* Prints the warnings that are due. `has_run`: this peer has a run or prepares one. */
void connection_diagnostics_tick(struct sessions *s, bool has_run);

/* ---- quarantine.c ---- */

/* Begins a quarantine for peer `id`, which has just violated the protocol. */
void quarantine_add(struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);
/* Returns whether peer `id` is in quarantine now. */
bool quarantine_holds(const struct quarantine *q, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);

/* ---- round_quorum.c ---- */

/* Returns the largest step counter that more than half of the n claims reach. 0 if n is 0. Sorts
 * the claims. */
uint64_t round_quorum_most(uint64_t *claim, size_t n);

/* Returns the largest step counter that more than half of the members with a session have probably
 * reached now. Sets *n to the number of these members. Members that have not begun this run are
 * left out. */
uint64_t round_quorum_sessions(const struct sessions *s, size_t *n);

#endif
