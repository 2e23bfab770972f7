/* gossip/members/table.h -- storage of the member table: slots by id and by sort order.
 *
 *   slot[]:   members in no order; a member keeps its place until another member is removed
 *   order[]:  places in slot[], sorted by record_compare()
 *   bucket[]: hash table, id -> place in slot[]
 *
 * A member takes 86 bytes: 80 for its slot, 2 in order[] and 4 in bucket[]. At most twice that is
 * allocated. Adding a member costs O(log n) comparisons and a memmove of two bytes per member.
 */
#ifndef GOSSIP_MEMBERS_TABLE_H
#define GOSSIP_MEMBERS_TABLE_H

#include "gossip/members/members.h"

enum { SLOT_NONE = UINT16_MAX };

struct slot
{
    struct member member;
    /* The member's last record that says that it is an initial member, if the present record does
     * not say so. NULL: none. Holds a reference. */
    const struct record *marked;
    uint64_t knows; /* Bit set of the listeners that know the record (dissemination.c). */
    /* Short hash of the boot id of the member's previous process, for slot_runs_twice(). 0:
     * none. 1: already reported. */
    uint32_t former;
    uint16_t next_news; /* Next slot in the queue of slots with unsent changes. */
    uint8_t news; /* Bit set of enum dissemination. member.dirty is true if the set is not empty. */
    /* True: the member is a vertex of the topology, and its hash is part of the view. */
    bool vertex : 1;
    /* True: the stored record is the one that was given to all members at the start
     * (members_know()). */
    bool given : 1;
};

struct table
{
    struct slot *slot; /* Array of the n members in the table, with room for cap. */
    /* Places (indices in slot[]) of the n members in sorted order, with room for `cap`. */
    uint16_t *order;
    /* Hash table with 2 * cap buckets and open addressing. Each bucket holds the index of a slot,
     * or SLOT_NONE if it is empty. */
    uint16_t *bucket;
    uint32_t n, cap;
    /* Number of adjacent pairs of members in order[] that have equal names. */
    uint32_t n_namesakes;
};

/* Returns the slot of `id`, or NULL. The pointer is valid until table_reserve(), which may move all
 * slots in memory. The place of each slot (its index) stays the same. */
struct slot *table_find(const struct table *t, const uint8_t *id);

/* Prefetches into the CPU cache the slots of n records that are looked up next. In a simulator many
 * tables share the cache, so slots are rarely in it; prefetching overlaps the cache misses. */
void table_expect(const struct table *t, const struct record *r, uint32_t n);

/* Reserves room for one more slot; asserts n < WIRE_MEMBERS_MAX. Returns false if memory is
 * exhausted, with the table unchanged. */
bool table_reserve(struct table *t);

/* Returns a zeroed slot for the member of record r, in the reserved room. */
struct slot *table_add(struct table *t, const struct record *r);

/* Replaces the slot's record by r. If r is of another member, all other data of the slot's
 * member are cleared. The old record must still exist. The caller handles reference counts and
 * accusations. */
void table_replace(struct table *t, struct slot *s, const struct record *r);

/* Notes that record r replaces `old` in the slot. Returns true, once per member, if r was made by
 * the process before the member's last restart. This earlier process is still sending records, so
 * two processes run with one identity. */
bool slot_runs_twice(struct slot *s, const struct record *old, const struct record *r);
/* Removes slot s from the table, and moves the last slot of the array to its index. The record of s
 * is read, so it must still exist. */
void table_remove(struct table *t, struct slot *s);

void table_close(struct table *t);

static inline uint16_t table_place(const struct table *t, const struct slot *s)
{
    return (uint16_t)(s - t->slot);
}

#endif
