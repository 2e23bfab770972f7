/* gossip/members/table.c -- the member table: finds slots by id (hash table) and by order
 * (sorted list).
 *
 * Slots are referenced by two-byte places rather than pointers. A simulator holds a million of
 * these references, and places stay valid when the table grows.
 */
#include "gossip/members/table.h"

#include "nn/math/rng.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS_FIRST = 32 /* Initial number of slots, a power of two like WIRE_MEMBERS_MAX. */
};

int record_compare(const struct record *a, const struct record *b)
{
    size_t na = strlen(a->name), nb = strlen(b->name);
    if (na != nb)
        return na < nb ? -1 : 1;
    int c = memcmp(a->name, b->name, na);
    return c != 0 ? c : memcmp(a->id, b->id, sizeof a->id);
}

/* Returns the bucket that holds the slot of `id`, or the empty bucket where it belongs. Half of
 * all buckets are empty, and an id is a public key, so its bits need no hashing. */
static uint16_t *bucket_of(const struct table *t, const uint8_t *id)
{
    uint32_t mask = 2 * t->cap - 1, i;
    memcpy(&i, id, sizeof i);
    while (t->bucket[i & mask] != SLOT_NONE
           && memcmp(t->slot[t->bucket[i & mask]].member.record->id, id, WIRE_ID_BYTES) != 0)
        i++;
    return &t->bucket[i & mask];
}

/* Enters all members into the empty hash table, which has 2 * t->cap buckets. */
static void fill_buckets(struct table *t)
{
    for (uint32_t i = 0; i < 2 * t->cap; i++)
        t->bucket[i] = SLOT_NONE;
    for (uint32_t i = 0; i < t->n; i++)
        *bucket_of(t, t->slot[i].member.record->id) = (uint16_t)i;
}

struct slot *table_find(const struct table *t, const uint8_t *id)
{
    uint16_t at = *bucket_of(t, id);
    return at == SLOT_NONE ? NULL : &t->slot[at];
}

/* Returns the bucket at which the search for `id` begins. */
static const uint16_t *first_bucket(const struct table *t, const uint8_t *id)
{
    uint32_t i;
    memcpy(&i, id, sizeof i);
    return &t->bucket[i & (2 * t->cap - 1)];
}

/* Prefetches into the CPU cache the first two cache lines of each record, which hold the fields
 * that are compared first. */
void table_expect(const struct table *t, const struct record *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        __builtin_prefetch(first_bucket(t, r[i].id));
    for (uint32_t i = 0; i < n; i++) {
        uint16_t at = *first_bucket(t, r[i].id);
        if (at == SLOT_NONE)
            continue;
        __builtin_prefetch(&t->slot[at].member);
        __builtin_prefetch(&t->slot[at].knows);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint16_t at = *first_bucket(t, r[i].id);
        if (at == SLOT_NONE)
            continue;
        const char *known = (const char *)t->slot[at].member.record;
        __builtin_prefetch(known);
        __builtin_prefetch(known + 64);
    }
}

bool table_reserve(struct table *t)
{
    assert(t->n < WIRE_MEMBERS_MAX);
    if (t->n < t->cap)
        return true;
    /* If one allocation fails, the arrays that have grown are kept, and t->cap stays the same. New
     * buckets are allocated rather than grown, because the bucket of an id depends on the number of
     * buckets. */
    uint32_t cap = t->cap == 0 ? SLOTS_FIRST : 2 * t->cap;
    uint16_t *bucket = malloc(2 * cap * sizeof *bucket);
    uint16_t *order = realloc(t->order, cap * sizeof *order);
    if (order != NULL)
        t->order = order;
    struct slot *slot = realloc(t->slot, cap * sizeof *slot);
    if (slot != NULL)
        t->slot = slot;
    if (bucket == NULL || order == NULL || slot == NULL) {
        free(bucket);
        return false;
    }
    free(t->bucket);
    t->bucket = bucket;
    t->cap = cap;
    fill_buckets(t);
    return true;
}

/* Returns how many of order[0..n) come before record r. Binary search. */
static uint32_t rank(const struct table *t, const struct record *r, uint32_t n)
{
    uint32_t low = 0;
    while (low < n) {
        uint32_t middle = low + (n - low) / 2;
        if (record_compare(t->slot[t->order[middle]].member.record, r) < 0)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* Returns whether members i and k of the sorted member list have the same name. */
static bool namesakes(const struct table *t, uint32_t i, uint32_t k)
{
    return strcmp(t->slot[t->order[i]].member.record->name,
                  t->slot[t->order[k]].member.record->name)
           == 0;
}

/* Returns by how much the number of adjacent members with equal names (n_namesakes) grows when a
 * member is inserted as the i-th of n members. */
static uint32_t pairs_at(const struct table *t, uint32_t i, uint32_t n)
{
    bool left = i > 0 && namesakes(t, i - 1, i), right = i + 1 < n && namesakes(t, i, i + 1);
    /* If the members before and after the new member both have its name, the two were adjacent
     * before the insertion and already counted as one pair. The number of pairs then grows by one,
     * not by two. */
    bool around = left && right;
    return (uint32_t)left + right - around;
}

/* Inserts slot `at` into the sorted order of n other slots. */
static void order_add(struct table *t, uint16_t at, uint32_t n)
{
    uint32_t i = rank(t, t->slot[at].member.record, n);
    memmove(&t->order[i + 1], &t->order[i], (n - i) * sizeof *t->order);
    t->order[i] = at;
    t->n_namesakes += pairs_at(t, i, n + 1);
}

/* Removes slot `at` from the sorted order. Must be called before the slot's record changes, because
 * the search uses the record. */
static void order_remove(struct table *t, uint16_t at)
{
    uint32_t i = rank(t, t->slot[at].member.record, t->n);
    assert(i < t->n && t->order[i] == at);
    t->n_namesakes -= pairs_at(t, i, t->n);
    memmove(&t->order[i], &t->order[i + 1], (t->n - i - 1) * sizeof *t->order);
}

/* Computes the member's positions on the monitor rings from its id, so all tables agree. */
static void stand(struct member *e)
{
    uint8_t text[WIRE_ID_BYTES + 1];
    memcpy(text, e->record->id, WIRE_ID_BYTES);
    for (int ring = 0; ring < MEMBERS_RINGS; ring++) {
        text[WIRE_ID_BYTES] = (uint8_t)ring;
        e->place[ring] = rng_hash(text, sizeof text);
    }
}

struct slot *table_add(struct table *t, const struct record *r)
{
    assert(t->n < t->cap);
    uint16_t at = (uint16_t)t->n;
    *bucket_of(t, r->id) = at;
    t->slot[at] = (struct slot){.member.record = r, .next_news = SLOT_NONE};
    stand(&t->slot[at].member);
    order_add(t, at, t->n);
    t->n++;
    return &t->slot[at];
}

void table_replace(struct table *t, struct slot *s, const struct record *r)
{
    bool same = memcmp(s->member.record->id, r->id, WIRE_ID_BYTES) == 0;
    if (same && strcmp(s->member.record->name, r->name) == 0) {
        s->member.record = r;
        /* Members are sorted by name and id. Both are the same in the new record, so the member
         * keeps its place in the sorted list. */
        return;
    }
    order_remove(t, table_place(t, s));
    if (!same)
        s->member = (struct member){.dirty = s->member.dirty};
    s->member.record = r;
    order_add(t, table_place(t, s), t->n - 1);
    if (same)
        return;
    stand(&s->member);
    /* If only the bucket of the old id were emptied, searches for other ids would end too early. */
    fill_buckets(t); /* The slot has another id now. */
}

void table_remove(struct table *t, struct slot *s)
{
    uint16_t at = table_place(t, s), last = (uint16_t)(t->n - 1);
    order_remove(t, at);
    t->n--;
    if (at != last) {
        uint32_t i = rank(t, t->slot[last].member.record, t->n);
        assert(t->order[i] == last);
        t->order[i] = at;
        t->slot[at] = t->slot[last];
    }
    fill_buckets(t);
}

void table_close(struct table *t)
{
    free(t->slot);
    free(t->order);
    free(t->bucket);
    *t = (struct table){0};
}

bool slot_runs_twice(struct slot *s, const struct record *old, const struct record *r)
{
    enum { TOLD = 1 };
    uint32_t mark = (uint32_t)(r->boot ^ r->boot >> 32) | 2;
    if (r->boot == old->boot || r->incarnation == old->incarnation || s->former == TOLD)
        return false;
    bool twice = s->former == mark;
    s->former = twice ? TOLD : (uint32_t)(old->boot ^ old->boot >> 32) | 2;
    return twice;
}
