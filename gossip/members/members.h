/* gossip/members/members.h -- the membership protocol: which peers are in the cluster.
 *
 * The ideas of SWIM and Lifeguard, over the existing TCP links instead of UDP:
 *
 *          record with a higher incarnation (refutation), or a live session
 *        +--------------------------------------------------------------+
 *        v                                                              |
 *     ALIVE --an accusation of this incarnation--> SUSPECT --deadline--> DEAD
 *        |                                            |                  |
 *        +-------------- record says LEFT ------------+----> LEFT <------+
 *
 * Records are signed by the peer they describe, accusations by their accuser. Independent
 * accusers are counted; two shorten the deadline. A live session with a peer overrides
 * any rumour about it. Members that are dead or have left are forgotten after some time,
 * except for an id and an incarnation. A member without endorsements is not accepted

 * (gossip/members/endorsements.h). The module is pure: the caller passes the time and the
 * signature functions.
 *
 * Tables that have received the same statements agree, in any order of arrival. Of two records
 * the one with the higher incarnation wins. With equal incarnations (a key used twice) the
 * later state wins, then the greater bytes. An accusation counts only against the
 * incarnation it names, and is stored if the record of that incarnation is still to come.
 */
#ifndef GOSSIP_MEMBERS_MEMBERS_H
#define GOSSIP_MEMBERS_MEMBERS_H

#include "gossip/members/records.h"
#include "gossip/wire/wire.h"

enum member_state { MEMBER_ALIVE, MEMBER_SUSPECT, MEMBER_DEAD, MEMBER_LEFT };

enum {
    MEMBERS_ACCUSERS = 2, /* Accusations stored per member. More accusers have no effect. */
    MEMBERS_RINGS = 4,
    MEMBERS_LISTENERS = 64
};

/* One member of a table. 78 bytes in all (gossip/members/table.h), so that a simulator can hold
 * a thousand tables of a thousand members. */
struct member
{
    /* The member's record, shared between tables (gossip/members/records.h). Never NULL. */
    const struct record *record;
    /* Array of n_accusers accusations, some possibly of a later incarnation. NULL: none. */
    struct accusation *accusation;
    /* SUSPECT: time at which the member becomes DEAD. DEAD, LEFT: time of that change. */
    int64_t dead_at_us;
    /* Positions on the monitor rings (rings.h), derived from the id alone. */
    uint64_t place[MEMBERS_RINGS];
    enum member_state state;
    uint16_t
        tallied; /* Counts of members_tally() that include the member: a bit set (members.c). */
    uint8_t n_accusers; /* Number of accusations, at most MEMBERS_ACCUSERS. */
    bool connected : 1; /* True: a session is live. Set by members_session(). */
    /* True: the member is in another run or not admitted. Set by members_refuse(). */
    bool refused : 1;
    bool dirty : 1; /* True: changed since the last members_dirty() that returned the member. */

    /* The next flags are set by members_settle(). */
    bool known : 1; /* True: the member was known from the start. */
    bool
        counts : 1; /* True: enough other members endorse it, so it is accepted and may be a vertex. */
    bool vouched : 1; /* True: at least one accepted member endorses it. */
    bool firm : 1;    /* True: accepted without an endorsement by this peer. */
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

/* Numbers of members by state. Members that are not accepted (vouches.h) are excluded. */
struct members_tally
{
    uint32_t n_vertices;            /* Vertices of the topology, including this peer. */
    uint32_t says[RECORD_LEFT + 1]; /* Other vertices, by the state in their record. */
    /* Other members that have ended, and those that are alive and working. */
    uint32_t n_final, n_working;
    uint32_t n_there; /* Other members that are neither final nor gone. */
    /* Other members that are not gone and whose workers are stalled. */
    uint32_t n_hung;
    /* Other members that are alive and resumed from a checkpoint. */
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
    /* Time after which a dead or departed member is dropped, in microseconds. 0: never. */
    int64_t forget_us;
};

/* Returns the number of accusations that name the member's current incarnation. */
uint32_t member_accusers(const struct member *e);

/* An opaque member table. members_open() allocates it. Later allocations: growth up to
 * WIRE_MEMBERS_MAX, new records and new accusations. */
struct members;

/* Effect of an arriving record, accusation or endorsement. */
enum members_verdict {
    MEMBERS_NEWS,     /* A change, which members_dirty() will return. */
    MEMBERS_OLD,      /* No change: known already, outdated, or about an unknown member. */
    MEMBERS_ABOUT_ME, /* An outdated statement about this peer, which was refuted. */
    /* A change, and evidence that two processes run with one identity: the member's former
     * process spoke after its later one. Reported once per member. */
    MEMBERS_TWICE,
    /* Duplicate of this peer's identity: another process answered its record, and it started
     * later. */
    MEMBERS_CLONED,
    /* Duplicate of this peer's identity: the other process started earlier, so this process is
     * the surplus one. members_dirty() returns the answer. */
    MEMBERS_CLONE,
    MEMBERS_FULL,  /* Dropped: WIRE_MEMBERS_MAX is reached, or memory is exhausted. */
    MEMBERS_FORGED /* A bad signature or an impossible claim: a protocol violation. */
};

/* Creates a table in *m. `self` is this peer's first record; it is signed here. Returns 0 or
 * -ENOMEM. */
int members_open(struct members **m, const struct record *self, const struct members_config *config,
                 const struct members_crypto *crypto);
void members_close(struct members *m);

/* Merges one record, relayed by any peer. A full table evicts a member that is not accepted,
 * has left or is dead, for a new member that has not left.
 *
 * A record about this peer that this process did not make, with an incarnation not below its
 * own, makes the process raise its incarnation above it and sign again (unless it is
 * 2^64-1). Such a record may come from an earlier process of this peer. If the record names
 * the boot id of this process as `over`, its maker has received the own record: a duplicate
 * identity is running. The record states the maker's age without a wall clock, so both
 * processes know which started first.
 *
 * Signatures are checked only if the record would change something, and only by the first
 * table that shares `records`.
 */
enum members_verdict members_merge(struct members *m, const struct record *r, int64_t now_us);

/* Prefetches the slots of n records that will be merged next. Changes nothing. */
void members_expect(const struct members *m, const struct record *r, uint32_t n);

/* Merges one accusation. An accusation of this peer's current incarnation is refuted by a higher
 * incarnation. An accusation of a connected member is stored and forwarded, so that it can
 * refute, but does not change its state. Accusers must be accepted members or be connected. They
 * must not accuse themselves. */
enum members_verdict members_accused(struct members *m, const struct accusation *a, int64_t now_us);

/* Accuses member `id` of being silent. If another member accused it before, this confirms the
 * accusation. No effect if the member is connected, dead, gone, unknown, this peer, or already
 * accused by it. Returns false if memory is exhausted and the accusation was not stored. */
bool members_accuse(struct members *m, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);

/* Reports that a session with `id` began or ended. During a session the member is ALIVE unless
 * its record says LEFT. When the session ends, accusations that were not refuted make it
 * SUSPECT. No effect if `id` is unknown, so call it after merging the record of the HELLO. */
void members_session(struct members *m, const uint8_t id[WIRE_ID_BYTES], bool connected,
                     int64_t now_us);

/* Marks `id` as refused: it is in another run, or no longer admitted. It is LEFT in this table
 * only, without session, and no vertex even if its record is final. Ends when a session with it
 * begins or `refused` is false. No effect if `id` is unknown. */
void members_refuse(struct members *m, const uint8_t id[WIRE_ID_BYTES], bool refused,
                    int64_t now_us);

/* Change this peer's own record (state, or checkpoints), raise its incarnation and sign it. No
 * effect if nothing changes. */
void members_set_state(struct members *m, enum record_state state);
void members_set_beats(struct members *m, uint64_t newer, uint64_t older);
/* Adds an address to the own record if it is new, valid and there is room. Returns whether it
 * was added. */
bool members_add_address(struct members *m, const char *address);

/* Handles deadlines: suspects whose time is up become DEAD. Returns the time of the next
 * deadline, or INT64_MAX. */
int64_t members_tick(struct members *m, int64_t now_us);

const struct record *members_self(const struct members *m);
size_t members_count(const struct members *m);
/* Returns the i-th member, including this peer, sorted by length of name, name and id, so peer-2
 * comes before peer-10. Valid until the next change. */
const struct member *members_at(const struct members *m, size_t i);
const struct member *members_find(const struct members *m, const uint8_t id[WIRE_ID_BYTES]);

/* Lists the vertices of the topology in sorted order: this peer, and accepted members that
 * are ALIVE or SUSPECT and not stalled. An accepted member whose record is FINISHED or FAILED stays a
 * vertex in any state. Fills at[0..WIRE_MEMBERS_MAX) with indices for members_at() and *self_at
 * with this peer's place; returns the number of vertices. */
size_t members_vertices(const struct members *m, uint32_t *at, size_t *self_at);

/* Returns a hash of the ids and names of the vertices, equal in tables with equal vertices.
 * Never 0. O(1). */
uint64_t members_view(const struct members *m);

/* Returns the current counts, which are updated with each change. O(1). */
const struct members_tally *members_tally(const struct members *m);

/* Returns whether two members, in any state, have the same name. O(1). */
bool members_namesakes(const struct members *m);

/* Returns a counter that changes when a member's state or its accusers may have changed. O(1). */
uint64_t members_changes(const struct members *m);

/* Removes the tombstone of a forgotten member that is present again. Returns true if record r is
 * too old for the tombstone. Then *a is set to a signed accusation to send: refuting it gives
 * the member an incarnation that other members' tombstones accept. */
bool members_revive(struct members *m, const struct record *r, struct accusation *a);

/* Copies unsent changes, oldest first, into out's arrays and marks them as sent: at most `cap`
 * records, accusations and endorsements each. MEMBERS_ACCUSERS <= cap <= WIRE_BATCH_MAX. Returns
 * false if there are none. Call until it returns false. */
bool members_dirty(struct members *m, struct wire_members *out, uint32_t cap);

/* ---- listeners: peers to which membership changes are sent ---- */

/* A listener has a place, so
 * that it is not sent what it sent itself or was sent before. Places from MEMBERS_LISTENERS on
 * are not tracked; such a listener is sent everything. */

/* Starts tracking the listener at `place`, which knows nothing yet. `member` true: the listener
 * is a member, and knows what all members were given at the start. O(members). */
void members_listener(struct members *m, uint32_t place, bool member);
/* Reports that the listener at `place` has sent record r. */
void members_heard(struct members *m, uint32_t place, const struct record *r);
/* Sets the bit set of all listeners. 0: there are others too. Changes that all listeners know
 * are not sent. */
void members_audience(struct members *m, uint64_t listeners);
/* Returns which records of the last members_dirty() batch the listener knows, as a bit set of
 * indices. The others are marked as known, because they are sent to it now. */
uint64_t members_known(struct members *m, uint32_t place);

/* Like members_batch(), without what the listener at `place` knows. */
bool members_tell(struct members *m, uint32_t place, size_t *cursor, struct wire_members *out,
                  uint32_t cap);

/* Fills `out` with the next batch of all members, for a new session or anti-entropy. *cursor is
 * 0 at first and is advanced. Returns false at the end. Changes between calls are allowed. `cap`
 * as in members_dirty(). */
bool members_batch(const struct members *m, size_t *cursor, struct wire_members *out, uint32_t cap);
bool members_told_all(const struct members *m, size_t cursor);

/* Compares two records in the order of members_at(). Also for tests and the command line. */
int record_compare(const struct record *a, const struct record *b);

#endif
