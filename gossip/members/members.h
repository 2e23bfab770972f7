/* gossip/members/members.h -- the membership protocol: which peers are in the cluster.
 *
 * The protocol uses the ideas of SWIM and Lifeguard, over the existing TCP sessions instead of UDP:
 *
 *          record with a higher incarnation (refutation), or a live session
 *        +--------------------------------------------------------------+
 *        v                                                              |
 *     ALIVE --an accusation of this incarnation--> SUSPECT --deadline--> DEAD
 *        |                                            |                  |
 *        +-------------- record says LEFT ------------+----> LEFT <------+
 *
 * Each record is signed by the peer that it describes, and each accusation by its accuser. A second
 * accuser shortens the deadline of a suspect. A live session with a member overrides any
 * accusation of it. Members that are dead or have left are dropped after some time; only a
 * tombstone with id and incarnation remains. A member without endorsements is not accepted
 * (gossip/members/endorsements.h). The module is pure: the caller passes the time and the
 * signature functions.
 *
 * Tables that have received the same statements agree, in any order of arrival. Of two records of
 * a member the one with the higher incarnation wins. With equal incarnations (one key used by two
 * processes) the later state wins, then the greater bytes. An accusation counts only against the
 * incarnation that it names, and is stored if the record of that incarnation is still to come.
 */
#ifndef GOSSIP_MEMBERS_MEMBERS_H
#define GOSSIP_MEMBERS_MEMBERS_H

#include "gossip/members/records.h"
#include "gossip/wire/wire.h"

enum member_state { MEMBER_ALIVE, MEMBER_SUSPECT, MEMBER_DEAD, MEMBER_LEFT };

enum {
    /* Maximum number of accusations stored per member. More accusers have no effect. */
    MEMBERS_ACCUSERS = 2,
    MEMBERS_RINGS = 4,
    MEMBERS_LISTENERS = 64
};

/* One member of a table. 64 bytes, so that a simulator can hold a thousand tables of a thousand
 * members. */
struct member
{
    /* The member's record, shared between tables (gossip/members/records.h). Never NULL. */
    const struct record *record;
    /* Array of n_accusers accusations. Some may name a later incarnation than the member's record
     * has. NULL: none. */
    struct accusation *accusation;
    /* In state SUSPECT: time at which the member becomes DEAD. In state DEAD or LEFT: time at which
     * it reached this state. Otherwise, if not endorsed: time since which no member endorses it. */
    int64_t dead_at_us;
    /* Positions on the monitor rings (monitor_rings.h), computed from the id. */
    uint64_t place[MEMBERS_RINGS];
    enum member_state state;
    /* Bit set: the counts of struct members_tally that include the member (flags in members.c). */
    uint16_t tallied;
    uint8_t n_accusers; /* Number of accusations, at most MEMBERS_ACCUSERS. */
    /* True: this peer has a session with the member. Set by members_session(). */
    bool connected : 1;
    /* True: the member is in another run or not admitted. Set by members_refuse(). */
    bool refused : 1;
    bool dirty : 1; /* True: the member has changed since members_dirty() last returned it. */

    /* The flags from `known` on are set by members_settle(), except that members_know() sets
     * `known`. */
    /* True: the member was known from the start of the cluster, so it is accepted. */
    bool known : 1;
    /* True: enough other members endorse this member, so it is accepted and may be a vertex. */
    bool counts : 1;
    bool vouched : 1; /* True: at least one accepted member endorses this member. */
    /* True: the member would be accepted even without an endorsement by this peer. */
    bool firm : 1;
};

/* Signature functions of the caller. verify() checks a signature by key `id` over msg[0..n).
 * sign() signs with this peer's own key. */
struct members_crypto
{
    void *self;
    bool (*verify)(void *self, const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
                   const uint8_t signature[WIRE_SIGNATURE_BYTES]);
    void (*sign)(void *self, const uint8_t *msg, size_t n, uint8_t signature[WIRE_SIGNATURE_BYTES]);
};

/* Numbers of members by state. Members that are not accepted (endorsements.h) are excluded. */
struct members_tally
{
    uint32_t n_vertices; /* Number of vertices of the topology, including this peer. */
    /* For each enum record_state: number of other members that are vertices and whose record
     * announces this state. */
    uint32_t says[RECORD_LEFT + 1];
    /* n_final: number of other members that have ended their run. n_working: number of other
     * members that are alive and training or in the consensus phase. */
    uint32_t n_final, n_working;
    /* Number of other members that are alive or suspect and have not ended their run. */
    uint32_t n_there;
    /* Number of other members that are alive or suspect and whose worker is stalled. */
    uint32_t n_hung;
    /* Number of other members that are alive and resumed from a checkpoint. */
    uint32_t n_resumed;
};

struct members_config
{
    /* Time from an accusation to DEAD with one accuser, in microseconds: 7 s. */
    int64_t suspect_us;
    /* Time from an accusation to DEAD with two accusers, in microseconds: 2 s. */
    int64_t confirmed_us;
    /* Record store shared with other tables of the process (a simulator). NULL: own store. */
    struct records *records;
    /* Time after which a member that is dead, has left or was never endorsed is dropped, in
     * microseconds. 0: never. */
    int64_t forget_us;
};

/* Returns the number of accusations that name the member's current incarnation. */
uint32_t member_accusers(const struct member *e);

/* An opaque member table, allocated by members_open(). The table allocates more memory when it
 * grows (up to WIRE_MEMBERS_MAX members), for new records and for new accusations. */
struct members;

/* Effect that an arriving record, accusation or endorsement has on the table. */
enum members_verdict {
    MEMBERS_NEWS, /* The table has changed, and members_dirty() will return the change. */
    /* No change: the statement was known already, is outdated, or is about an unknown member. */
    MEMBERS_OLD,
    /* The statement was about this peer and outdated. This peer has refuted it by a higher
     * incarnation. */
    MEMBERS_ABOUT_ME,
    /* The table has changed, and two processes run with one identity: a record of the member's
     * earlier process arrived after one of its later process. Reported once per member. */
    MEMBERS_TWICE,
    /* A duplicate of this peer's identity is proven: another process has answered this process's
     * record. This process started first, so it continues. */
    MEMBERS_CLONED,
    /* A duplicate of this peer's identity is proven: another process has answered this process's
     * record. The other process started first, so this process must give up. members_dirty() then
     * returns this process's new record, which tells the other process. */
    MEMBERS_CLONE,
    /* The statement was dropped: the table has WIRE_MEMBERS_MAX members, or memory is exhausted. */
    MEMBERS_FULL,
    /* The statement has a bad signature or makes an impossible claim, so its sender violates the
     * protocol. */
    MEMBERS_FORGED
};

/* Creates a table in *m. `self` is this peer's first record; it is signed here. Returns 0 or
 * -ENOMEM. */
int members_open(struct members **m, const struct record *self, const struct members_config *config,
                 const struct members_crypto *crypto);
void members_close(struct members *m);

/* Merges one record, which any peer may have relayed. In a full table a new member that has not
 * left replaces a member that is not accepted, has left or is dead.
 *
 * A record about this peer may come from another process with this peer's identity: usually an
 * earlier process, sometimes a duplicate that runs now. If the incarnation of such a record reaches
 * that of the own record, this process raises its own incarnation above it and signs its record
 * again. An incarnation of 2^64-1 cannot be exceeded. If the `over` field of the foreign record is
 * the boot id of this process, the process that made it has received the own record and is a
 * duplicate. The foreign record states the age of that process, so both processes know without a
 * wall clock which of them started first.
 *
 * If the foreign record says that this peer is an initial member, the own record says so from now
 * on. For this the incarnation of the foreign record does not matter.
 *
 * A signature is checked only if the record would change the table, and only once by all tables
 * that share `records`.
 */
enum members_verdict members_merge(struct members *m, const struct record *r, int64_t now_us);

/* Prefetches into the cache the slots of n records that will be merged next. Changes nothing. */
void members_expect(const struct members *m, const struct record *r, uint32_t n);

/* Merges one accusation. The accuser must be an accepted or connected member other than the
 * accused. If this peer is accused in its current incarnation, it refutes by raising its
 * incarnation. The state of a connected member does not change, but the accusation is forwarded, so
 * that the member can refute it. */
enum members_verdict members_accused(struct members *m, const struct accusation *a, int64_t now_us);

/* Signs and stores this peer's accusation that member `id` is silent, as the first or second
 * accuser. Does nothing if the member is connected, dead, gone, unknown, this peer itself, or
 * already accused by this peer. Returns false if memory is exhausted and nothing was stored. */
bool members_accuse(struct members *m, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);

/* Reports that a session with `id` began or ended. During a session the member is ALIVE unless its
 * record says LEFT; afterwards, accusations that it has not refuted make it SUSPECT. The record
 * from the HELLO must be merged first, because an unknown `id` is ignored. */
void members_session(struct members *m, const uint8_t id[WIRE_ID_BYTES], bool connected,
                     int64_t now_us);

/* Marks `id` as refused, because it is in another run or no longer admitted, or ends the refusal
 * (`refused` false). A refused member is LEFT in this table only, has no session and is never a
 * vertex. A new session also ends the refusal. Does nothing if `id` is unknown. */
void members_refuse(struct members *m, const uint8_t id[WIRE_ID_BYTES], bool refused,
                    int64_t now_us);

/* Change this peer's own record: its state, or the step counters of its checkpoints. The
 * incarnation is raised and the record signed again, unless nothing changes. */
void members_set_state(struct members *m, enum record_state state);
void members_set_beats(struct members *m, uint64_t newer, uint64_t older);
/* Marks this peer in its own record as an initial member, permanently (struct record). */
void members_set_initial(struct members *m);
/* Returns the last record in which the member says that it is an initial member. NULL: the table
 * has none. A process that has restarted learns from this record that it is an initial member. */
const struct record *members_initial(const struct members *m, const uint8_t id[WIRE_ID_BYTES]);
/* Sets whether a member that has announced its end (FINISHED or FAILED) is treated like all others:
 * its silence is a reason to accuse it, and a dead member is no vertex of the topology and is not
 * in n_final. At first this is false, because in some runs a member exits as soon as it has
 * finished. O(n). */
void members_watch_final(struct members *m, bool watches, int64_t now_us);
/* Returns whether the silence of a member is a reason to accuse it (members_watch_final()). */
bool members_watches(const struct members *m, const struct member *e);
/* Adds an address to this peer's own record if it is new, valid and there is room. Returns whether
 * it was added. */
bool members_add_address(struct members *m, const char *address);

/* Handles deadlines: a suspect becomes DEAD at its deadline. Returns the time of the next deadline
 * in microseconds, or INT64_MAX if there is none. */
int64_t members_tick(struct members *m, int64_t now_us);

const struct record *members_self(const struct members *m);
size_t members_count(const struct members *m);
/* Returns entry i of the member list, which includes this peer. The list is sorted by the length of
 * the name, then by name, then by identity, so peer-2 comes before peer-10. The pointer is valid
 * until the next change of the table. */
const struct member *members_at(const struct members *m, size_t i);
const struct member *members_find(const struct members *m, const uint8_t id[WIRE_ID_BYTES]);

/* Lists the vertices of the topology in sorted order: this peer, and accepted members that are
 * ALIVE or SUSPECT and not stalled, or whose record is FINISHED or FAILED (see
 * members_watch_final() for dead ones). Fills at[], which has WIRE_MEMBERS_MAX elements, with
 * indices for members_at(). Sets *self_at to this peer's position in at[]. Returns the number of
 * vertices. */
size_t members_vertices(const struct members *m, uint32_t *at, size_t *self_at);

/* Returns a hash of the ids and names of all vertices. Tables with equal vertices have equal
 * hashes. Never 0. O(1). */
uint64_t members_view(const struct members *m);

/* Returns the current numbers of members by state, which are updated with each change. O(1). */
const struct members_tally *members_tally(const struct members *m);

/* Returns whether any two members have the same name, whatever their states are. O(1). */
bool members_namesakes(const struct members *m);

/* Returns a counter that changes when a member's state or its accusers may have changed. O(1). */
uint64_t members_changes(const struct members *m);

/* Handles record r of a dropped member that has returned. If the member's tombstone rejects r,
 * removes the tombstone, fills *a with a signed accusation to send to the member, and returns
 * true. By refuting *a the member gets a higher incarnation, which other members' tombstones
 * accept, too. */
bool members_revive(struct members *m, const struct record *r, struct accusation *a);

/* Fills *a with this peer's signed accusation of the member of record r, which this peer has
 * dropped. */
void members_accuse_dropped(const struct members *m, const struct record *r, struct accusation *a);

/* Returns whether the tombstone of a dropped member rejects record r, although the signature is
 * valid and the record does not say that the member has ended its run. If so, the member may have
 * returned. */
bool members_rejected(const struct members *m, const struct record *r);

/* Copies unsent changes, oldest first, into out's arrays and marks them as sent: at most `cap`
 * records, accusations and endorsements each. cap is from MEMBERS_ACCUSERS to WIRE_BATCH_MAX.
 * Returns false if there were none. Must be called until it returns false. */
bool members_dirty(struct members *m, struct wire_members *out, uint32_t cap);

/* ---- listeners: peers to which membership changes are sent ---- */

/* A listener is a peer to which membership changes are sent. The caller gives each listener a
 * number, its place. For a place below MEMBERS_LISTENERS, the table tracks which records the
 * listener has received or sent, and does not send these records to it. A listener at a higher
 * place gets all records. */

/* Starts tracking a new listener at `place`. `member` true: the listener is a member and knows the
 * records that all members had at the start. False: the listener knows no record. O(members). */
void members_listener(struct members *m, uint32_t place, bool member);
/* Reports that the listener at `place` has sent record r. The listener then knows r, so r is not
 * sent to it. */
void members_heard(struct members *m, uint32_t place, const struct record *r);
/* Tells the table which listeners (peers that receive changes) exist: a bit set of their places. A
 * change that all listeners in the set know is not sent. 0: at least one listener has no place in
 * the set, so every change is sent. */
void members_audience(struct members *m, uint64_t listeners);
/* Returns which records of the last members_dirty() batch the listener at `place` knows, as a bit
 * set of indices. The other records are marked as known to the listener, because the caller now
 * sends them. */
uint64_t members_known(struct members *m, uint32_t place);

/* Fills `out` with the next batch of the whole table as members_batch() does, but leaves out the
 * records that the listener at `place` knows. */
bool members_tell(struct members *m, uint32_t place, size_t *cursor, struct wire_members *out,
                  uint32_t cap);

/* Fills `out` with the next batch of the whole table, for a new session or to repair differences
 * (anti-entropy). *cursor is 0 in the first call; the table may change between calls. A batch has
 * at most `cap` records, accusations and endorsements each, with cap from MEMBERS_ACCUSERS to
 * WIRE_BATCH_MAX. Returns false at the end. */
bool members_batch(const struct members *m, size_t *cursor, struct wire_members *out, uint32_t cap);
bool members_told_all(const struct members *m, size_t cursor);

/* Compares two records in the order of members_at(). Also for tests and the command line. */
int record_compare(const struct record *a, const struct record *b);

#endif
