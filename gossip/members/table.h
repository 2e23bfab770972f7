/* gossip/members/table.h -- the store under gossip/members/members.c: slots by id and by order.
 *
 *   slot[]:   in no order; a member keeps its place until another is removed
 *   order[]:  places in slot[], sorted by record_compare()
 *   bucket[]: hash of the id -> place in slot[]
 *
 * 88 bytes a member and no more than twice that allocated. Adding one costs
 * O(log n) comparisons and a memmove of two bytes a member.
 */
#ifndef GOSSIP_MEMBERS_TABLE_H
#define GOSSIP_MEMBERS_TABLE_H

#include "gossip/members/members.h"

enum { SLOT_NONE = UINT16_MAX };

struct slot
{
    struct member member;
    uint64_t knows;     /* Listeners that know its record: a set (news.c). */
    uint32_t former;    /* A mark of the process before: slot_runs_twice(). */
    uint16_t next_news; /* In the queue of those with news. */
    uint8_t news;       /* Set of enum news; member.dirty says "not empty". */
    bool vertex : 1;    /* Counted in the view. */
    bool given : 1;     /* Its record is the one that all were given at the start. */
};

struct table
{
    struct slot *slot; /* n of cap. */
    uint16_t *order;   /* n of cap. */
    uint16_t *bucket;  /* 2 cap of them, open addressing; SLOT_NONE is empty. */
    uint32_t n, cap;
    uint32_t n_namesakes; /* Neighbours in order[] that have one name. */
};

/* The slot of `id`, or NULL. The pointer holds until table_reserve(), which may
 * move all slots; their places stay. */
struct slot *table_find(const struct table *t, const uint8_t *id);

/* These will be looked up now. In a simulator each table's turn comes when the others have driven
 * it out of the cache: the waits for its lines overlap where they would follow each other. */
void table_expect(const struct table *t, const struct record *r, uint32_t n);

/* Room for one more; asserts n < WIRE_MEMBERS_MAX. False without memory; then
 * all is as before. */
bool table_reserve(struct table *t);

/* A zeroed slot for the member of this record, in the room reserved. */
struct slot *table_add(struct table *t, const struct record *r);

/* The slot gets another record, of the same member or of another, of which nothing else is known
 * then. The old one must still be alive; reference counts and accusations are the caller's. */
void table_replace(struct table *t, struct slot *s, const struct record *r);

/* The member's record `old` gives way to r. A member that restarts has another process from then
 * on. Where the one before speaks again, both run: true, once. */
bool slot_runs_twice(struct slot *s, const struct record *old, const struct record *r);
/* The slot goes, and the last one takes its place. The record must still be alive. */
void table_remove(struct table *t, struct slot *s);

void table_close(struct table *t);

static inline uint16_t table_place(const struct table *t, const struct slot *s)
{
    return (uint16_t)(s - t->slot);
}

#endif
