/* gossip/members/inside.h -- private definition of struct members, for this folder only.
 *
 *   members.c         records and accusations: which statement overrides which
 *   endorsements.c    which members are accepted
 *   dissemination.c   what is sent to other members
 *   forget.c          members that are evicted or dropped, and their tombstones
 */
#ifndef GOSSIP_MEMBERS_INSIDE_H
#define GOSSIP_MEMBERS_INSIDE_H

#include "gossip/members/endorsements.h"
#include "gossip/members/table.h"

enum {
    SELF = 0 /* Slot of this peer's own record. It is always the first slot. */
};

/* Parts of a member's state that may have to be sent to other members: bits of slot.news. */
enum dissemination { DISSEMINATION_RECORD = 1, DISSEMINATION_ACCUSATIONS = 2 };

/* A stored endorsement. voucher and member are the places (indices of slots in the member table) of
 * the endorsing and the endorsed member. */
struct vouch_slot
{
    uint16_t voucher, member;
    bool news; /* True: the endorsement was not sent to other members yet. */
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

/* Tombstone of a dropped member: its id and last incarnation. Records of the member up to this
 * incarnation are ignored. */
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
    /* This peer's own record. It is not in the shared store, because it changes. */
    struct record self;
    struct table table;
    /* First and last slot of the queue of slots with unsent changes, oldest change first. */
    uint16_t first_news, last_news;
    /* Counts of members by state. The field `tallied` of struct member says which counts include a
     * member. */
    struct members_tally tally;
    /* Sum of the hashes of all vertices of the topology. A sum does not depend on the order in
     * which vertices were added. */
    uint64_t view;
    int64_t due_us; /* Earliest deadline of a suspect, in microseconds. */
    /* Change counter: number of calls so far that may have changed the state of a member. */
    uint64_t n_changes;
    bool watches_final; /* True: members that have ended are watched (members_watch_final()). */
    /* First time that was passed to this table, in microseconds. -1: none yet. */
    int64_t began_us;

    /* The fields from `audience` on are written by dissemination.c only. */
    /* Bit set of all listeners (peers that receive changes), from members_audience(). 0: some
     * listeners have no bit in the set. */
    uint64_t audience;
    /* Slots of the n_told records that the last call of members_dirty() returned. */
    uint16_t told[WIRE_BATCH_MAX];
    uint32_t n_told;

    /* The fields from `vouch` on are written by endorsements.c only. */
    /* Array of n_vouches endorsements, in no order. It has room for cap_vouches. */
    struct vouch_slot *vouch;
    uint32_t n_vouches, cap_vouches;
    bool unsettled;    /* True: members_settle() must recompute which members are accepted. */
    bool vouches_news; /* True: some endorsements may have to be sent. */
    bool strangers;    /* True: at least one member was not in the cluster from its start. */

    /* The fields from `tomb` on are written by forget.c only. */
    /* Array of n_tombs tombstones. If all TOMBSTONES_MAX are used, next_tomb is the oldest. */
    struct tombstone *tomb;
    uint32_t n_tombs, cap_tombs, next_tomb;
    uint32_t next_victim;  /* Slot at which the next search for a member to evict begins. */
    int64_t forget_due_us; /* Earliest time at which a member may be dropped, in microseconds. */
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

/* Implemented in dissemination.c. Marks a change of a slot as unsent. The slot is appended to the
 * queue of unsent changes, unless it is already in the queue. */
void members_add_news(struct members *m, struct slot *s, enum dissemination news);

/* Implemented in endorsements.c. Removes a member from the stored endorsements: drops all
 * endorsements by the member at `place` and of it. The member at place `moved` has moved to
 * `place`, so its endorsements are renamed. If `moved` equals `place`, no member moved. */
void vouches_drop(struct members *m, uint16_t place, uint16_t moved);

/* ---- forget.c ---- */

/* Returns the slot of the member to evict for a new member of a full table. NULL: no member may
 * be evicted. */
struct slot *members_victim(struct members *m);
/* Stores a tombstone for a member that is dead or has left, so that older records of it are
 * ignored. If memory is exhausted, no tombstone is stored. */
void members_bury(struct members *m, const struct slot *s);
bool members_buried(const struct members *m, const struct record *r);
/* Removes the tombstone of a member that has returned. */
void members_dig_up(struct members *m, const uint8_t *id);
/* Drops members that have been dead or gone for longer than config.forget_us. */
void members_forget_old(struct members *m, int64_t now_us);

#endif
