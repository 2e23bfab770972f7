/* gossip/members/inside.h -- private definition of struct members, for this folder only.
 *
 *   members.c   records and accusations: which statement overrides which
 *   vouches.c   endorsements: which members are accepted (vouches.h)
 *   news.c      what is sent to other members
 *   forget.c    members that are evicted or dropped, and their tombstones
 */
#ifndef GOSSIP_MEMBERS_INSIDE_H
#define GOSSIP_MEMBERS_INSIDE_H

#include "gossip/members/endorsements.h"
#include "gossip/members/table.h"

enum {
    SELF = 0 /* Slot of this peer's own record, which is always added first. */
};

/* Parts of a member's state that may be unsent: bits of slot.news. */
enum dissemination { DISSEMINATION_RECORD = 1, DISSEMINATION_ACCUSATIONS = 2 };

/* An endorsement. Its two members are given by their places in the table. */
struct vouch_slot
{
    uint16_t voucher, member;
    bool news; /* True: the endorsement was not sent to other members yet. */
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

/* Trace of a dropped member: its records up to this incarnation are ignored. */
struct tombstone
{
    uint8_t id[WIRE_ID_BYTES];
    uint64_t incarnation;
};

enum { TOMBSTONES_MAX = WIRE_MEMBERS_MAX };

struct members
{
    struct members_config config;
    struct members_crypto crypto;
    struct records *records; /* Store of records: owned, or shared with other tables. */
    bool owns_records;
    struct record self; /* Record of slot SELF. Not in `records`, because the own record changes. */
    struct table table;
    uint16_t first_news, last_news; /* Queue of slots with unsent changes, oldest first. */
    struct members_tally tally;     /* Sums of the slots' `tallied` values. */
    /* Sum of the vertices' hashes, so the order of vertices does not matter. */
    uint64_t view;
    int64_t due_us;     /* Earliest deadline of a suspect, in microseconds. */
    uint64_t n_changes; /* Number of calls that may have changed a member's state. */
    /* First time passed to this table, in microseconds. -1: none yet. */
    int64_t began_us;

    /* The next fields are written by news.c only. */
    uint64_t audience; /* Bit set of all listeners. 0: unknown. */
    /* Slots of the n_told records in the last batch of changes that was sent. */
    uint16_t told[WIRE_BATCH_MAX];
    uint32_t n_told;

    /* The next fields are written by vouches.c only. */
    struct vouch_slot *vouch; /* n_vouches endorsements in no order, with room for cap_vouches. */
    uint32_t n_vouches, cap_vouches;
    bool unsettled;    /* True: members_settle() must recompute which members are accepted. */
    bool vouches_news; /* True: some endorsements may have to be sent. */
    bool strangers;    /* True: some member was not known from the start. */

    /* The next fields are written by forget.c only. */
    /* n_tombs tombstones. When there are TOMBSTONES_MAX, the oldest is at next_tomb. */
    struct tombstone *tomb;
    uint32_t n_tombs, cap_tombs, next_tomb;
    uint32_t next_victim;  /* Place at which the next search for a member to evict begins. */
    int64_t forget_due_us; /* Earliest time at which a member may be forgotten, in microseconds. */
};

static inline bool is_self(const struct members *m, const struct slot *s)
{
    return s == &m->table.slot[SELF];
}

/* ---- members.c ---- */

/* Updates a member's state, a suspect's deadline, and whether the member is a vertex. Called
 * after any change of the member. */
void members_judge(struct members *m, struct slot *s, int64_t now_us);

/* Removes the slot's member from all counts, before the slot gets another member or is freed. */
void members_untally(struct members *m, struct slot *s);

/* ---- news.c ---- */

/* Marks a change as unsent. The slot joins the queue, or keeps its place in it. */
void members_add_news(struct members *m, struct slot *s, enum dissemination news);

/* ---- vouches.c ---- */

/* Drops all endorsements by or for the member at `place`, then renames place `moved` to `place`.
 * Pass the same place twice if no member moved. */
void vouches_drop(struct members *m, uint16_t place, uint16_t moved);

/* ---- forget.c ---- */

/* Returns the slot to reuse for a new member of a full table, or NULL. */
struct slot *members_victim(struct members *m);
/* Stores a tombstone for a member that is dead or has left, so that older records of it are
 * ignored. Without memory no tombstone is stored. */
void members_bury(struct members *m, const struct slot *s);
bool members_buried(const struct members *m, const struct record *r);
/* Removes the tombstone of a member that has returned. */
void members_dig_up(struct members *m, const uint8_t *id);
/* Drops members that have been dead or gone for longer than config.forget_us. */
void members_forget_old(struct members *m, int64_t now_us);

#endif
