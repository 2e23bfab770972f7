/* gossip/members/forget.c -- drops old members from the table and keeps their tombstones.
 *
 * A member that is dead, has left or is not endorsed is dropped after config.forget_us, or at once
 * if a full table needs room for a new member. Repeated restarts of a process without a stored
 * identity therefore cannot fill the table. A tombstone (id and incarnation) makes the table ignore old records of a
 * dropped member.
 */
#include "gossip/members/inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- tombstones ---- */

static struct tombstone *find_tomb(const struct members *m, const uint8_t *id)
{
    for (uint32_t i = 0; i < m->n_tombs; i++)
        if (memcmp(m->tomb[i].id, id, WIRE_ID_BYTES) == 0)
            return &m->tomb[i];
    return NULL;
}

/* Returns a new tombstone, or the oldest tombstone, which the caller overwrites. NULL: out of
 * memory. */
static struct tombstone *add_tomb(struct members *m)
{
    if (m->n_tombs == TOMBSTONES_MAX) {
        m->next_tomb = (m->next_tomb + 1) % TOMBSTONES_MAX;
        return &m->tomb[(m->next_tomb + TOMBSTONES_MAX - 1) % TOMBSTONES_MAX];
    }
    if (m->n_tombs == m->cap_tombs) {
        uint32_t cap = m->cap_tombs == 0 ? 8 : 2 * m->cap_tombs;
        struct tombstone *grown = realloc(m->tomb, cap * sizeof *grown);
        if (grown == NULL)
            return NULL;
        m->tomb = grown;
        m->cap_tombs = cap;
    }
    return &m->tomb[m->n_tombs++];
}

void members_bury(struct members *m, const struct slot *s)
{
    const struct record *r = s->member.record;
    if (s->member.state != MEMBER_DEAD && s->member.state != MEMBER_LEFT)
        return;
    struct tombstone *t = find_tomb(m, r->id);
    if (t == NULL && (t = add_tomb(m)) == NULL)
        return;
    memcpy(t->id, r->id, sizeof t->id);
    t->incarnation = r->incarnation;
}

bool members_buried(const struct members *m, const struct record *r)
{
    const struct tombstone *t = find_tomb(m, r->id);
    return t != NULL && r->incarnation <= t->incarnation;
}

void members_dig_up(struct members *m, const uint8_t *id)
{
    struct tombstone *t = find_tomb(m, id);
    if (t == NULL)
        return;
    /* The last tombstone moves to the freed array element. This changes the order of the
     * tombstones, which only decides which tombstone is overwritten next. */
    *t = m->tomb[--m->n_tombs];
    m->next_tomb = 0;
}

void members_accuse_dropped(const struct members *m, const struct record *r, struct accusation *a)
{
    *a = (struct accusation){.incarnation = r->incarnation};
    memcpy(a->accused, r->id, sizeof a->accused);
    memcpy(a->accuser, m->self.id, sizeof a->accuser);
    uint8_t msg[SIGNED_MAX];
    size_t n = wire_accusation_signed(msg, sizeof msg, a);
    assert(n > 0);
    m->crypto.sign(m->crypto.self, msg, n, a->signature);
}

bool members_revive(struct members *m, const struct record *r, struct accusation *a)
{
    if (table_find(&m->table, r->id) != NULL || !members_buried(m, r))
        return false;
    members_dig_up(m, r->id);
    members_accuse_dropped(m, r, a);
    return true;
}

/* ---- eviction ---- */

/* Returns the eviction class of a slot. 0: not endorsed, 1: has left, 2: dead, -1: never
 * evicted. Lower classes are evicted first. */
static int claim_of(const struct members *m, const struct slot *s)
{
    const struct member *e = &s->member;
    if (is_self(m, s) || e->connected || s->vertex)
        return -1;
    if (!e->counts && !e->vouched)
        return 0;
    return e->state == MEMBER_LEFT ? 1 : e->state == MEMBER_DEAD ? 2 : -1;
}

/* Returns the member to evict, one of the lowest eviction class (claim_of()). Among members that
 * have left or are dead, it is the one that has been gone for the longest time. Among members
 * without endorsements, slots are chosen in turn. */
struct slot *members_victim(struct members *m)
{
    struct slot *best = NULL;
    int least = 3;
    for (uint32_t i = 0; i < m->table.n; i++) {
        struct slot *s = &m->table.slot[(m->next_victim + i) % m->table.n];
        int claim = claim_of(m, s);
        if (claim < 0 || claim > least
            || (claim == least && (claim == 0 || s->member.dead_at_us >= best->member.dead_at_us)))
            continue;
        best = s;
        least = claim;
    }
    if (best != NULL)
        m->next_victim = table_place(&m->table, best) + 1u;
    return best;
}

/* ---- forgetting ---- */

/* Removes slot s. The last slot moves to its place in the array. The queue of unsent changes and
 * the endorsements refer to slots by place, so they are updated. */
static void drop(struct members *m, struct slot *s)
{
    uint16_t gone = table_place(&m->table, s), last = (uint16_t)(m->table.n - 1);
    uint16_t queue[WIRE_MEMBERS_MAX], n = 0;
    const struct record *old = s->member.record, *marked = s->marked;
    members_bury(m, s);
    for (uint16_t at = m->first_news; at != SLOT_NONE; at = m->table.slot[at].next_news)
        if (at != gone)
            queue[n++] = at == last ? gone : at;
    members_untally(m, s);
    free(s->member.accusation);
    table_remove(&m->table, s);
    records_release(m->records, old);
    records_release(m->records, marked);
    m->first_news = n > 0 ? queue[0] : SLOT_NONE;
    m->last_news = n > 0 ? queue[n - 1] : SLOT_NONE;
    for (uint16_t i = 0; i < n; i++)
        m->table.slot[queue[i]].next_news = i + 1 < n ? queue[i + 1] : SLOT_NONE;
    vouches_drop(m, gone, last);
    m->n_changes++;
}

void members_forget_old(struct members *m, int64_t now_us)
{
    if (m->config.forget_us == 0 || now_us < m->forget_due_us)
        return;
    m->forget_due_us = INT64_MAX;
    for (uint32_t i = m->table.n; i-- > SELF + 1;) {
        struct slot *s = &m->table.slot[i];
        if (claim_of(m, s) < 0)
            continue;
        int64_t due_us = s->member.dead_at_us + m->config.forget_us;
        if (due_us <= now_us)
            drop(m, s);
        else if (due_us < m->forget_due_us)
            m->forget_due_us = due_us;
    }
}
