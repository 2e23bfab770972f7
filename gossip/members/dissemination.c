/* gossip/members/dissemination.c -- selects what is sent to other members: changes, and the
 * whole table.
 *
 * Refused members are not forwarded. A member without endorsements is forwarded only if this peer
 * has a session with it, because forged members would otherwise fill the tables of other peers.
 */
#include "gossip/members/inside.h"

#include <assert.h>
#include <string.h>

void members_add_news(struct members *m, struct slot *s, enum dissemination news)
{
    if (s->news == 0) {
        uint16_t at = table_place(&m->table, s);
        s->next_news = SLOT_NONE;
        if (m->first_news == SLOT_NONE)
            m->first_news = at;
        else
            m->table.slot[m->last_news].next_news = at;
        m->last_news = at;
    }
    s->news = (uint8_t)(s->news | news);
    s->member.dirty = true;
}

static bool may_be_told(const struct member *e)
{
    return !e->refused && (e->counts || e->vouched || e->connected);
}

static uint32_t vouches_cap(uint32_t cap)
{
    return cap < WIRE_VOUCHES_MAX ? cap : WIRE_VOUCHES_MAX;
}

/* Appends what `news` (bits of enum dissemination) selects: the record of a member, its
 * accusations, or both. Returns false and appends nothing if they do not fit. */
static bool append_news(const struct member *e, unsigned news, struct wire_members *out,
                        uint32_t cap)
{
    uint32_t n_accusations = news & DISSEMINATION_ACCUSATIONS ? member_accusers(e) : 0;
    if (((news & DISSEMINATION_RECORD) && out->n_records == cap)
        || n_accusations > cap - out->n_accusations)
        return false;
    if (news & DISSEMINATION_RECORD)
        out->records[out->n_records++] = *e->record;
    for (uint32_t i = 0; n_accusations > 0 && i < e->n_accusers; i++)
        if (e->accusation[i].incarnation == e->record->incarnation)
            out->accusations[out->n_accusations++] = e->accusation[i];
    return true;
}

/* Returns whether an endorsement may be sent. Only endorsements by accepted members are sent,
 * because a receiver ignores all others. */
static bool vouch_may_be_told(const struct members *m, const struct vouch_slot *v)
{
    return m->table.slot[v->voucher].member.counts && may_be_told(&m->table.slot[v->member].member);
}

static void append_vouch(const struct members *m, const struct vouch_slot *v,
                         struct wire_members *out)
{
    struct vouch *w = &out->vouches[out->n_vouches++];
    memcpy(w->voucher, m->table.slot[v->voucher].member.record->id, sizeof w->voucher);
    memcpy(w->member, m->table.slot[v->member].member.record->id, sizeof w->member);
    memcpy(w->signature, v->signature, sizeof w->signature);
}

static void append_vouches_news(struct members *m, struct wire_members *out, uint32_t cap)
{
    for (uint32_t i = 0; i < m->n_vouches && m->vouches_news; i++) {
        struct vouch_slot *v = &m->vouch[i];
        if (!v->news || !vouch_may_be_told(m, v))
            continue;
        if (out->n_vouches == vouches_cap(cap))
            return;
        append_vouch(m, v, out);
        v->news = false;
    }
    /* All changed endorsements were sent, so the flag `vouches_news` is cleared. The flag is set
     * again when an endorsement is added or the set of accepted members changes. */
    m->vouches_news = false;
}

/* Returns whether nothing has to be sent for this slot: only its record has changed, and all
 * listeners (the peers that receive changes) already know the record. */
static bool is_known(const struct members *m, const struct slot *s)
{
    return s->news == DISSEMINATION_RECORD && m->audience != 0 && (m->audience & ~s->knows) == 0;
}

bool members_dirty(struct members *m, struct wire_members *out, uint32_t cap)
{
    assert(cap >= MEMBERS_ACCUSERS && cap <= WIRE_BATCH_MAX);
    out->n_records = out->n_accusations = out->n_vouches = 0;
    m->n_told = 0;
    while (m->first_news != SLOT_NONE) {
        struct slot *s = &m->table.slot[m->first_news];
        bool told = may_be_told(&s->member) && !is_known(m, s);
        if (told && !append_news(&s->member, s->news, out, cap))
            return true;
        if (out->n_records > m->n_told)
            m->told[m->n_told++] = m->first_news;
        m->first_news = s->next_news;
        s->news = 0;
        s->member.dirty = false;
    }
    append_vouches_news(m, out, cap);
    return out->n_records > 0 || out->n_accusations > 0 || out->n_vouches > 0;
}

/* ---- listeners ---- */

static uint64_t set_of(uint32_t place)
{
    return place < MEMBERS_LISTENERS ? UINT64_C(1) << place : 0;
}

void members_listener(struct members *m, uint32_t place, bool member)
{
    uint64_t set = set_of(place);
    for (uint32_t i = 0; i < m->table.n; i++) {
        struct slot *s = &m->table.slot[i];
        s->knows = !member ? s->knows & ~set : s->given ? s->knows | set : s->knows;
    }
}

/* Notes that the listener (a peer that receives changes) knows the stored record, if r is that
 * record: the signature and the incarnation are equal. */
void members_heard(struct members *m, uint32_t place, const struct record *r)
{
    struct slot *s = table_find(&m->table, r->id);
    const struct record *held = s != NULL ? s->member.record : NULL;
    if (held != NULL && held->incarnation == r->incarnation
        && memcmp(held->signature, r->signature, sizeof r->signature) == 0)
        s->knows |= set_of(place);
}

void members_audience(struct members *m, uint64_t listeners)
{
    m->audience = listeners;
}

uint64_t members_known(struct members *m, uint32_t place)
{
    uint64_t known = 0, set = set_of(place);
    for (uint32_t i = 0; i < m->n_told; i++) {
        struct slot *s = &m->table.slot[m->told[i]];
        known |= (uint64_t)((s->knows & set) != 0) << i;
        s->knows |= set;
    }
    return known;
}

/* ---- the whole table ---- */

/* Appends a member's record with some of its endorsements, without which the receiver would reject
 * the member. If the receiver already knows the record, appends only accusations. The other
 * endorsements are sent after the records of all members. */
static bool append_member(const struct members *m, uint16_t place, uint64_t to,
                          struct wire_members *out, uint32_t cap)
{
    const struct slot *s = &m->table.slot[place];
    const struct member *e = &s->member;
    uint32_t before = out->n_vouches, most = before + ENDORSEMENTS_WITH_RECORD;
    if (!may_be_told(e))
        return true;
    if (s->knows & to)
        return append_news(e, DISSEMINATION_ACCUSATIONS, out, cap);
    if (m->n_vouches > 0 && most > vouches_cap(cap))
        return false;
    if (!append_news(e, DISSEMINATION_RECORD | DISSEMINATION_ACCUSATIONS, out, cap))
        return false;
    for (uint32_t i = 0; i < m->n_vouches && out->n_vouches < most; i++)
        if (m->vouch[i].member == place && vouch_may_be_told(m, &m->vouch[i]))
            append_vouch(m, &m->vouch[i], out);
    return true;
}

/* Fills `out` with the next messages of a copy of the whole table. `to`: bit set of the peers that
 * receive it. *cursor counts the members sent so far. After the last member, it also counts the
 * endorsements sent. */
static bool batch(const struct members *m, uint64_t to, size_t *cursor, struct wire_members *out,
                  uint32_t cap)
{
    assert(cap >= MEMBERS_ACCUSERS && cap <= WIRE_BATCH_MAX);
    out->n_records = out->n_accusations = out->n_vouches = 0;
    while (*cursor < m->table.n && append_member(m, (uint16_t)*cursor, to, out, cap))
        ++*cursor;
    while (!members_told_all(m, *cursor) && *cursor >= m->table.n
           && out->n_vouches < vouches_cap(cap)) {
        const struct vouch_slot *v = &m->vouch[*cursor - m->table.n];
        if (vouch_may_be_told(m, v))
            append_vouch(m, v, out);
        ++*cursor;
    }
    return out->n_records > 0 || out->n_accusations > 0 || out->n_vouches > 0;
}

bool members_batch(const struct members *m, size_t *cursor, struct wire_members *out, uint32_t cap)
{
    return batch(m, 0, cursor, out, cap);
}

bool members_tell(struct members *m, uint32_t place, size_t *cursor, struct wire_members *out,
                  uint32_t cap)
{
    size_t before = *cursor;
    bool any = batch(m, set_of(place), cursor, out, cap);
    for (size_t i = before; i < *cursor && i < m->table.n; i++)
        if (may_be_told(&m->table.slot[i].member))
            m->table.slot[i].knows |= set_of(place);
    return any;
}

bool members_told_all(const struct members *m, size_t cursor)
{
    return cursor >= (size_t)m->table.n + m->n_vouches;
}
