/* gossip/members/members.h -- full membership by rumour: who is in the cluster.
 *
 * SWIM's and Lifeguard's ideas over the links that exist (no UDP):
 *
 *          record with a higher incarnation (refutation), or a live session
 *        +--------------------------------------------------------------+
 *        v                                                              |
 *     ALIVE --an accusation of this incarnation--> SUSPECT --deadline--> DEAD
 *        |                                            |                  |
 *        +-------------- record says LEFT ------------+----> LEFT <------+
 *
 * Records are signed by the peer they describe, accusations by their accuser;
 * independent accusers are counted (two are enough to shorten the deadline). A
 * live session with a peer overrides any rumour about it. The long dead and
 * those that left are forgotten, all but an id and an incarnation. Who exists by
 * its own word alone does not count (gossip/members/vouches.h). Pure: time comes
 * with the call, signatures are checked by the owner's functions.
 *
 * Rumours commute: of two records the one with the higher incarnation wins;
 * of two of one incarnation (a key used twice) the further state, then the
 * greater bytes. An accusation counts only against the incarnation it names,
 * and waits where that one's record is still on its way. So tables that have
 * heard the same agree, in whatever order they heard it.
 */
#ifndef GOSSIP_MEMBERS_MEMBERS_H
#define GOSSIP_MEMBERS_MEMBERS_H

#include "gossip/members/records.h"
#include "gossip/wire/wire.h"

enum member_state { MEMBER_ALIVE, MEMBER_SUSPECT, MEMBER_DEAD, MEMBER_LEFT };

enum {
    MEMBERS_ACCUSERS = 2, /* Kept a member; more change nothing. */
    MEMBERS_RINGS = 4,
    MEMBERS_LISTENERS = 64
};

/* One member of a table. Small (78 bytes in all, gossip/members/table.h), so that a
 * simulator can hold a thousand tables of a thousand. */
struct member
{
    const struct record *record;   /* Shared, see gossip/members/records.h; never NULL. */
    struct accusation *accusation; /* n_accusers of them, some perhaps of an
                                    * incarnation still to come; NULL: none. */
    int64_t dead_at_us;            /* SUSPECT: when it is taken for dead; DEAD, LEFT: since when. */
    uint64_t place[MEMBERS_RINGS]; /* Its places on the rings (rings.h): by its id alone. */
    enum member_state state;
    uint16_t tallied;   /* What it is counted as, for members_tally(): members.c. */
    uint8_t n_accusers; /* At most MEMBERS_ACCUSERS. */
    bool connected : 1; /* A live session: set by members_session(). */
    bool refused : 1;   /* In another run, or not admitted: set by members_refuse(). */
    bool dirty : 1;     /* Changed since members_dirty() last gave it out. */

    /* By members_settle(). */
    bool known : 1;   /* From the start. */
    bool counts : 1;  /* Others have spoken with it: it may be a vertex. */
    bool vouched : 1; /* Somebody that counts has. */
    bool firm : 1;    /* Enough have, but for us. */
};

/* The owner's signing. verify: is `signature` by key `id` over msg? sign: by
 * our own key. */
struct members_crypto
{
    void *self;
    bool (*verify)(void *self, const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
                   const uint8_t signature[WIRE_SIGNATURE_BYTES]);
    void (*sign)(void *self, const uint8_t *msg, size_t n, uint8_t signature[WIRE_SIGNATURE_BYTES]);
};

/* How many of the others say and do what. Those that do not count (vouches.h) are left out. */
struct members_tally
{
    uint32_t n_vertices;            /* With us. */
    uint32_t says[RECORD_LEFT + 1]; /* Other vertices whose record says this. */
    uint32_t n_final, n_working;    /* They have ended; they live and work; */
    uint32_t n_there;               /* they are neither final nor gone; */
    uint32_t n_hung;                /* they are not gone, and their workers hang; */
    uint32_t n_resumed;             /* they live, and go on from a checkpoint. */
};

struct members_config
{
    int64_t suspect_us;      /* From an accusation to death, one accuser: 7 s. */
    int64_t confirmed_us;    /* The same with two accusers: 2 s. */
    struct records *records; /* Shared with the other tables of this process (a
                              * simulator), or NULL: the table has its own. */
    int64_t forget_us;       /* Who is dead or gone is dropped after this; 0: never. */
};

/* How many accusations name the member's present incarnation. */
uint32_t member_accusers(const struct member *e);

/* Opaque. members_open() allocates; later only growth up to WIRE_MEMBERS_MAX, new
 * records and accusations do. */
struct members;

/* What an arriving record or accusation did. */
enum members_verdict {
    MEMBERS_NEWS,     /* Changed something; will be in members_dirty(). */
    MEMBERS_OLD,      /* Known already, or older, or of nobody we know. */
    MEMBERS_ABOUT_ME, /* About us and not by our present word: we refuted. */
    MEMBERS_TWICE,    /* NEWS, and the member's former process has spoken after its later one: two
                       * processes run with one identity. Said once a member. */
    MEMBERS_CLONED,   /* The same of us: another process has answered our word, and began after us;
                       * or before us: then we are the one too many. Our answer to it is in */
    MEMBERS_CLONE,    /* members_dirty(). */
    MEMBERS_FULL,     /* WIRE_MEMBERS_MAX reached, or no memory: dropped. */
    MEMBERS_FORGED    /* Bad signature, or a claim nobody may make: a violation. */
};

/* `self` is our own first record, unsigned; it is signed here. 0 or -ENOMEM. */
int members_open(struct members **m, const struct record *self, const struct members_config *config,
                 const struct members_crypto *crypto);
void members_close(struct members *m);

/* Merge one record from anybody (whoever relays it). A record about us with
 * incarnation >= ours that we did not make raises our incarnation above it and
 * re-signs. That may be a former life of ours, whatever its clock said. Where the record
 * names our boot id as the one it is raised above, it was made by a process that has heard
 * us: a clone of our identity lives. Its record says how old it was then, by no clock on a wall,
 * so that both ends know who was first.
 * At 2^64-1 there is no above: our record stays. Signatures are checked only
 * where the record would change something, and by the first table that shares
 * `records`. A full table gives up a member that does not count, has left or is dead for a
 * new one that has not left. */
enum members_verdict members_merge(struct members *m, const struct record *r, int64_t now_us);

/* These n are merged next: memory is told, and nothing changes. */
void members_expect(const struct members *m, const struct record *r, uint32_t n);

/* Merge one accusation. About us, as we are now: we refute by a higher
 * incarnation (only our own signature can raise it further than that). About a
 * connected member: kept and passed on, so that it can refute, but kept from
 * changing its state. Only members that count or talk with us accuse, others and once each. */
enum members_verdict members_accused(struct members *m, const struct accusation *a, int64_t now_us);

/* We accuse: we hear nothing from it any more. Where another's accusation has
 * made it SUSPECT already, ours confirms it. No-op where it is connected, dead,
 * gone, unknown, ourselves, or accused by us already. False: there was no memory, and it is
 * unsaid. */
bool members_accuse(struct members *m, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);

/* A session with `id` began or ended. While one lives the member is ALIVE,
 * unless it has LEFT by its own word. When it ends, accusations that were not
 * refuted meanwhile make it SUSPECT. No-op where `id` is unknown: call it after
 * merging the record of its HELLO. */
void members_session(struct members *m, const uint8_t id[WIRE_ID_BYTES], bool connected,
                     int64_t now_us);

/* `id` has been found to be of another run, or may be no member any more: LEFT, as we see it, no
 * vertex even where its record is final, and nobody is told of it, until a session with it begins
 * or it is not `refused` any longer. Without a session from now on. No-op where `id` is unknown. */
void members_refuse(struct members *m, const uint8_t id[WIRE_ID_BYTES], bool refused,
                    int64_t now_us);

/* Change our own record (state, checkpoints, addresses): bumps the incarnation, re-signs.
 * No-op where nothing changes. */
void members_set_state(struct members *m, enum record_state state);
void members_set_beats(struct members *m, uint64_t newer, uint64_t older);
/* Adds an address if it is new, valid and there is room; true if it changed. */
bool members_add_address(struct members *m, const char *address);

/* Deadlines: suspects whose time is up become DEAD. Returns the next deadline,
 * INT64_MAX for none. */
int64_t members_tick(struct members *m, int64_t now_us);

const struct record *members_self(const struct members *m);
size_t members_count(const struct members *m);
/* The i-th member in the sorted order: by length of name, then name, then id,
 * so that peer-2 comes before peer-10. Includes ourselves. Valid until the
 * next change. */
const struct member *members_at(const struct members *m, size_t i);
const struct member *members_find(const struct members *m, const uint8_t id[WIRE_ID_BYTES]);

/* The vertices of the topology, in sorted order: members that count, are ALIVE or SUSPECT
 * and whose workers do not stall, ourselves always. A member that counts and whose record is final
 * (FINISHED, FAILED) stays a vertex whatever its state. Fills at[0..WIRE_MEMBERS_MAX) with indices for
 * members_at(); returns how many; *self_at is our own place. */
size_t members_vertices(const struct members *m, uint32_t *at, size_t *self_at);

/* A number that changes whenever the vertices or their order change (a hash of
 * their ids and names), equal in tables with equal vertices; never 0. O(1). */
uint64_t members_view(const struct members *m);

/* As of now, and kept up to date. O(1). */
const struct members_tally *members_tally(const struct members *m);

/* Do two members, whatever has become of them, have one name? O(1). */
bool members_namesakes(const struct members *m);

/* A number that changes whenever the state of a member may have, or its accusers. O(1). */
uint64_t members_changes(const struct members *m);

/* It was forgotten, and is here: its tombstone goes. True where r would have been too old for it:
 * *a is then our accusation, that it may speak anew, for others have tombstones of it, too. */
bool members_revive(struct members *m, const struct record *r, struct accusation *a);

/* News for the others, oldest first: copies at most cap changed records, at most cap
 * accusations and vouches each, into out's arrays and marks them clean. MEMBERS_ACCUSERS
 * <= cap <= WIRE_BATCH_MAX. Returns false when there were none. Call until
 * false. */
bool members_dirty(struct members *m, struct wire_members *out, uint32_t cap);

/* Those whom the owner tells of members have places, so that nobody is told what it knows: it has
 * said so itself, or was told. From MEMBERS_LISTENERS on a place is nobody's: who has no other is
 * told all. */

/* Somebody new listens there: it knows nothing yet; or it has turned out to be a member: beside what
 * it has said it knows what all were given at the start. O(members). */
void members_listener(struct members *m, uint32_t place, bool member);
/* It has said this of a member. */
void members_heard(struct members *m, uint32_t place, const struct record *r);
/* All who listen, a set by places; 0: others do, too. Else what all of them know is no news. */
void members_audience(struct members *m, uint64_t listeners);
/* Which of the records that members_dirty() has just given out does this listener know? A set by
 * their places. It is told the others, and knows them from now on. */
uint64_t members_known(struct members *m, uint32_t place);

/* As members_batch(), for this listener: but for what it knows. */
bool members_tell(struct members *m, uint32_t place, size_t *cursor, struct wire_members *out,
                  uint32_t cap);

/* Everything, in batches, for a new session or anti-entropy: fills from *cursor
 * (0 at first) on and moves it; false at the end, with nothing filled. Changes
 * in between are allowed. cap as above. */
bool members_batch(const struct members *m, size_t *cursor, struct wire_members *out, uint32_t cap);
bool members_told_all(const struct members *m, size_t cursor);

/* Order of two records as in members_at(); for tests and the command line. */
int record_compare(const struct record *a, const struct record *b);

#endif
