/* gossip/members/members.c -- the rules of membership: which statement overrides which.
 *
 * Each received statement takes the same path: compare its age with that of the stored
 * statement, verify the signature, store it, then members_judge() updates the member's state.
 * Signatures are verified only if the statement would change something, because verification is by
 * far the most expensive step and most rumours are old.
 */
#include "gossip/members/members.h"

#include "gossip/members/inside.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Step by which this process raises its incarnation above that of a duplicate of its identity.
     * A record with a still higher incarnation proves that the duplicate is running, because its
     * maker must have received the raised record. */
    ABOVE_OTHER = 1000,
};

/* ---- effects of a change ---- */

/* Makes a member a vertex of the topology, or removes it from the vertices. The view is a sum of
 * the vertices' hashes, so it is updated with one addition and does not depend on the order of
 * arrival. */
static void set_vertex(struct members *m, struct slot *s, bool vertex)
{
    if (s->vertex == vertex)
        return;
    uint8_t text[WIRE_ID_BYTES + WIRE_NAME_MAX] = {0};
    memcpy(text, s->member.record->id, WIRE_ID_BYTES);
    memcpy(text + WIRE_ID_BYTES, s->member.record->name, strlen(s->member.record->name));
    uint64_t h = rng_hash(text, sizeof text);
    m->view += vertex ? h : 0 - h;
    s->vertex = vertex;
}

/* Flags in member.tallied, one for each count of struct members_tally. The bits from SAYS_SHIFT on
 * hold the state in the member's record. */
enum { FINAL = 1, WORKING = 2, THERE = 4, HUNG = 8, VERTEX = 16, RESUMED = 32, SAYS_SHIFT = 6 };

static uint16_t tally_of(const struct members *m, const struct slot *s)
{
    const struct member *e = &s->member;
    enum record_state says = e->record->state;
    bool final = record_state_is_final(says),
         works = says == RECORD_RUNNING || says == RECORD_TRAINED;
    bool gone = e->state == MEMBER_DEAD || e->state == MEMBER_LEFT;
    final &= !(m->watches_final && gone);
    unsigned is = s->vertex ? VERTEX : 0;
    if (!is_self(m, s) && e->counts)
        is |= (final ? FINAL : 0u) | (e->state == MEMBER_ALIVE && works ? WORKING : 0u)
              | (!final && !gone ? THERE : 0u) | (says == RECORD_STALLED && !gone ? HUNG : 0u)
              | (e->state == MEMBER_ALIVE && e->record->beat[0] != 0 ? RESUMED : 0u);
    return (uint16_t)(is | (unsigned)says << SAYS_SHIFT);
}

/* Updates the counts of members: replaces the slot's old flags (member.tallied) by the flags `now`.
 * Each flag says whether one count includes the slot. */
static void tally(struct members *m, struct slot *s, uint16_t now)
{
    struct members_tally *t = &m->tally;
    uint16_t was = s->member.tallied;
    struct
    {
        uint16_t flag;
        uint32_t *n;
    } counts[] = {{FINAL, &t->n_final}, {WORKING, &t->n_working}, {THERE, &t->n_there},
                  {HUNG, &t->n_hung},   {VERTEX, &t->n_vertices}, {RESUMED, &t->n_resumed}};
    if (was == now)
        return;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i].n += (uint32_t)((now & counts[i].flag) != 0) - ((was & counts[i].flag) != 0);
    t->says[was >> SAYS_SHIFT] -= (was & VERTEX) && !is_self(m, s);
    t->says[now >> SAYS_SHIFT] += (now & VERTEX) && !is_self(m, s);
    s->member.tallied = now;
}

void members_untally(struct members *m, struct slot *s)
{
    tally(m, s, 0);
}

/* An accusation may name a later incarnation than the stored record has. It does not count until
 * the record of that incarnation arrives. */
uint32_t member_accusers(const struct member *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_accusers; i++)
        n += e->accusation[i].incarnation == e->record->incarnation;
    return n;
}

/* Returns the state that follows from record, session and accusations. First match wins:
 *
 *   its own record says LEFT, or it is refused         LEFT
 *   this peer itself, a live session, or not accused   ALIVE
 *   accused, and the deadline has passed               DEAD (set by members_tick())
 *   accused                                            SUSPECT
 */
static enum member_state state_of(const struct members *m, const struct slot *s)
{
    const struct member *e = &s->member;
    if (e->record->state == RECORD_LEFT || e->refused)
        return MEMBER_LEFT;
    if (is_self(m, s) || e->connected || member_accusers(e) == 0)
        return MEMBER_ALIVE;
    return e->state == MEMBER_DEAD ? MEMBER_DEAD : MEMBER_SUSPECT;
}

/* A suspect's deadline is set when the member becomes suspect. Later accusers can make it earlier
 * but not later. */
void members_judge(struct members *m, struct slot *s, int64_t now_us)
{
    struct member *e = &s->member;
    enum member_state before = e->state;
    m->n_changes++;
    e->state = state_of(m, s);
    if (e->state == MEMBER_SUSPECT) {
        int64_t span_us = member_accusers(e) >= 2 ? m->config.confirmed_us : m->config.suspect_us;
        if (before != MEMBER_SUSPECT || now_us + span_us < e->dead_at_us)
            e->dead_at_us = now_us + span_us;
        if (e->dead_at_us < m->due_us)
            m->due_us = e->dead_at_us;
    }
    bool lives = e->state == MEMBER_ALIVE || e->state == MEMBER_SUSPECT;
    bool works = lives && e->record->state != RECORD_STALLED;
    bool gone = e->state == MEMBER_DEAD || e->state == MEMBER_LEFT;
    if (gone && e->state != before)
        e->dead_at_us = now_us;
    /* members_forget_old() keeps a member while it has a session. The session may just have ended. */
    if (gone || (!e->counts && !e->vouched))
        m->forget_due_us = 0;
    bool final = record_state_is_final(e->record->state) && !e->refused;
    final &= !(m->watches_final && gone);
    set_vertex(m, s, is_self(m, s) || (e->counts && (final || works)));
    tally(m, s, tally_of(m, s));
}

/* Drops accusations of a member that name an earlier incarnation than its new record. Accusations
 * that name the incarnation of the new record begin to count. */
static void sift_accusations(struct members *m, struct slot *s)
{
    struct member *e = &s->member;
    uint8_t n = 0;
    for (uint32_t i = 0; i < e->n_accusers; i++)
        if (e->accusation[i].incarnation >= e->record->incarnation)
            e->accusation[n++] = e->accusation[i];
    e->n_accusers = n;
    if (member_accusers(e) > 0)
        members_add_news(m, s, DISSEMINATION_ACCUSATIONS);
    if (n == 0) {
        free(e->accusation);
        e->accusation = NULL;
    }
}

/* ---- records ---- */

/* Returns how long this process has run, in microseconds since the first time that was passed to
 * this table. */
static int64_t age_us(struct members *m, int64_t now_us)
{
    m->began_us = m->began_us < 0 ? now_us : m->began_us;
    return now_us - m->began_us;
}

/* Returns whether the signature of r is valid. A record in the store has been verified before,
 * by this table or by another one that shares the store. */
static bool record_signed_well(const struct members *m, const struct record *r)
{
    if (records_find(m->records, r) != NULL)
        return true;
    uint8_t msg[SIGNED_MAX];
    size_t n = wire_record_signed(msg, sizeof msg, r);
    assert(n > 0);
    return m->crypto.verify(m->crypto.self, r->id, msg, n, r->signature);
}

/* Signs this peer's own record after a change and queues it for sending. */
static void speak(struct members *m)
{
    struct slot *s = &m->table.slot[SELF];
    uint8_t msg[SIGNED_MAX];
    size_t n = wire_record_signed(msg, sizeof msg, &m->self);
    assert(n > 0);
    m->crypto.sign(m->crypto.self, msg, n, m->self.signature);
    s->knows = 0;
    members_add_news(m, s, DISSEMINATION_RECORD);
    /* The time argument has no effect here, because this peer is never a suspect in its own
     * table. */
    members_judge(m, s, 0);
}

/* Sets the own incarnation to `incarnation` + 1 and signs the record again. The largest
 * incarnation, 2^64-1, is kept. */
static void speak_above(struct members *m, uint64_t incarnation)
{
    m->self.incarnation = incarnation < UINT64_MAX ? incarnation + 1 : incarnation;
    speak(m);
}

static uint64_t above_other(uint64_t incarnation)
{
    return incarnation < UINT64_MAX - ABOVE_OTHER ? incarnation + ABOVE_OTHER : incarnation;
}

/* Merges a record about this peer that another process has made: an earlier process of this peer,
 * or a duplicate that runs now. The own record must override it. A duplicate is proven if the
 * record names this process's boot id, because its maker must have received the own record. */
static enum members_verdict merge_self(struct members *m, const struct record *r, int64_t now_us)
{
    bool regains = r->initial && !m->self.initial;
    if ((r->incarnation < m->self.incarnation && !regains) || record_equal(r, &m->self))
        return MEMBERS_OLD;
    if (!record_signed_well(m, r))
        return MEMBERS_FORGED;
    m->self.initial |= r->initial;
    if (r->incarnation < m->self.incarnation) {
        speak_above(m, m->self.incarnation);
        return MEMBERS_OLD;
    }
    bool other = r->boot != m->self.boot;
    /* Both processes compare the two ages at which they first learnt of each other. If the ages were
     * updated, each process could compare its present age with an older one of the other process. */
    if (other && m->self.over != r->boot) {
        m->self.over = r->boot;
        m->self.age_ms = (uint64_t)age_us(m, now_us) / 1000;
    }
    if (r->incarnation < UINT64_MAX)
        speak_above(m, other ? above_other(r->incarnation) : r->incarnation);
    else if (regains)
        speak(m);
    if (!other || r->over != m->self.boot)
        return MEMBERS_ABOUT_ME;
    return record_younger(&m->self, r) ? MEMBERS_CLONE : MEMBERS_CLONED;
}

/* Replaces a member's record by a later one. If the later record has a higher incarnation,
 * accusations of former incarnations become invalid. In this way a member refutes accusations. */
static enum members_verdict replace_record(struct members *m, struct slot *s,
                                           const struct record *r, int64_t now_us)
{
    struct member *e = &s->member;
    const struct record *kept = records_hold(m->records, r);
    if (kept == NULL)
        return MEMBERS_FULL;
    const struct record *old = e->record;
    bool newer = r->incarnation > old->incarnation, twice = slot_runs_twice(s, old, r);
    s->knows = 0;
    s->given = false;
    if (strcmp(old->name, r->name) != 0)
        /* The hash of a vertex contains the member's name. The hash with the old name must be
         * subtracted from the view (the sum of all hashes) before the record is replaced. */
        set_vertex(m, s, false);
    table_replace(&m->table, s, kept);
    if (old->initial || r->initial) {
        records_release(m->records, s->marked);
        s->marked = NULL;
    }
    if (old->initial && !r->initial)
        s->marked = old;
    else
        records_release(m->records, old);
    members_add_news(m, s, DISSEMINATION_RECORD);
    if (newer) {
        e->state = MEMBER_ALIVE;
        sift_accusations(m, s);
    }
    members_judge(m, s, now_us);
    return twice ? MEMBERS_TWICE : MEMBERS_NEWS;
}

/* Gives the slot of an evicted member to another record. The slot may still be in the queue of
 * unsent changes and keeps its place there. */
static void reuse_slot(struct members *m, struct slot *s, const struct record *kept)
{
    const struct record *old = s->member.record;
    assert(!s->vertex);
    members_bury(m, s);
    members_untally(m, s);
    free(s->member.accusation);
    table_replace(&m->table, s, kept);
    records_release(m->records, old);
    records_release(m->records, s->marked);
    s->marked = NULL;
    s->former = 0;
    s->knows = 0;
    s->given = false;
    vouches_drop(m, table_place(&m->table, s), table_place(&m->table, s));
}

/* Adds an unknown member. If the table is full and no member can be evicted, returns MEMBERS_FULL
 * before the signature is verified. Memory is allocated only after verification. */
static enum members_verdict add_member(struct members *m, const struct record *r, int64_t now_us)
{
    bool full = m->table.n == WIRE_MEMBERS_MAX;
    struct slot *s = NULL;
    if (members_buried(m, r))
        return MEMBERS_OLD;
    if (full && r->state != RECORD_LEFT)
        s = members_victim(m);
    if (full && s == NULL)
        return MEMBERS_FULL;
    if (!record_signed_well(m, r))
        return MEMBERS_FORGED;
    if (!full && !table_reserve(&m->table))
        return MEMBERS_FULL;
    const struct record *kept = records_hold(m->records, r);
    if (kept == NULL)
        return MEMBERS_FULL;
    if (full)
        reuse_slot(m, s, kept);
    else
        s = table_add(&m->table, kept);
    s->member.dead_at_us = now_us;
    m->strangers = m->unsettled = true;
    members_add_news(m, s, DISSEMINATION_RECORD);
    members_judge(m, s, now_us);
    return MEMBERS_NEWS;
}

enum members_verdict members_merge(struct members *m, const struct record *r, int64_t now_us)
{
    assert(r->n_addresses <= WIRE_ADDRESSES_MAX);
    struct slot *s = table_find(&m->table, r->id);
    if (s == NULL)
        return add_member(m, r, now_us);
    if (is_self(m, s))
        return merge_self(m, r, now_us);
    const struct record *known = s->member.record;
    if (r->incarnation < known->incarnation || record_equal(r, known)
        || !record_supersedes(r, known))
        return MEMBERS_OLD;
    if (!record_signed_well(m, r))
        return MEMBERS_FORGED;
    return replace_record(m, s, r, now_us);
}

bool members_rejected(const struct members *m, const struct record *r)
{
    bool ended = r->state == RECORD_LEFT || record_state_is_final(r->state);
    return table_find(&m->table, r->id) == NULL && members_buried(m, r) && !ended
           && record_signed_well(m, r);
}

void members_expect(const struct members *m, const struct record *r, uint32_t n)
{
    table_expect(&m->table, r, n);
}

/* ---- accusations ---- */

/* Returns the index at which accusation `a` may be stored. Returns MEMBERS_ACCUSERS if `a` is
 * already stored or the array has no place for it. In a full array, an accusation of the current
 * incarnation may replace one of a later incarnation. */
static uint32_t accusation_place(const struct member *e, const struct accusation *a)
{
    uint32_t at = e->n_accusers;
    for (uint32_t i = 0; i < e->n_accusers; i++) {
        const struct accusation *b = &e->accusation[i];
        if (a->incarnation == b->incarnation
            && memcmp(a->accuser, b->accuser, sizeof a->accuser) == 0)
            return MEMBERS_ACCUSERS;
        if (at == MEMBERS_ACCUSERS && a->incarnation == e->record->incarnation
            && b->incarnation > e->record->incarnation)
            at = i;
    }
    return at;
}

/* Stores an accusation. The caller has verified its signature. */
static enum members_verdict store_accusation(struct members *m, struct slot *s,
                                             const struct accusation *a, uint32_t at,
                                             int64_t now_us)
{
    struct member *e = &s->member;
    if (e->accusation == NULL)
        e->accusation = malloc(MEMBERS_ACCUSERS * sizeof *e->accusation);
    if (e->accusation == NULL)
        return MEMBERS_FULL;
    e->accusation[at] = *a;
    if (at == e->n_accusers)
        e->n_accusers++;
    if (a->incarnation > e->record->incarnation)
        /* The accusation has no effect until the record of the accused incarnation arrives. */
        return MEMBERS_OLD;
    members_add_news(m, s, DISSEMINATION_ACCUSATIONS);
    members_judge(m, s, now_us);
    return MEMBERS_NEWS;
}

static bool accusation_signed_well(const struct members *m, const struct accusation *a)
{
    uint8_t msg[SIGNED_MAX];
    size_t n = wire_accusation_signed(msg, sizeof msg, a);
    assert(n > 0);
    return m->crypto.verify(m->crypto.self, a->accuser, msg, n, a->signature);
}

enum members_verdict members_accused(struct members *m, const struct accusation *a, int64_t now_us)
{
    if (memcmp(a->accused, a->accuser, sizeof a->accused) == 0)
        return MEMBERS_FORGED;
    struct slot *s = table_find(&m->table, a->accused);
    const struct slot *by = table_find(&m->table, a->accuser);
    if (s == NULL || by == NULL || by->member.refused
        || !(is_self(m, by) || by->member.counts || by->member.connected))
        return MEMBERS_OLD;
    const struct record *r = s->member.record;
    if (a->incarnation < r->incarnation || r->state == RECORD_LEFT)
        return MEMBERS_OLD;
    if (is_self(m, s)) {
        if (a->incarnation > m->self.incarnation)
            return MEMBERS_OLD;
        if (!accusation_signed_well(m, a))
            return MEMBERS_FORGED;
        speak_above(m, m->self.incarnation);
        return MEMBERS_ABOUT_ME;
    }
    uint32_t at = accusation_place(&s->member, a);
    if (at == MEMBERS_ACCUSERS)
        return MEMBERS_OLD;
    if (!accusation_signed_well(m, a))
        return MEMBERS_FORGED;
    return store_accusation(m, s, a, at, now_us);
}

bool members_accuse(struct members *m, const uint8_t id[WIRE_ID_BYTES], int64_t now_us)
{
    struct slot *s = table_find(&m->table, id);
    if (s == NULL || is_self(m, s) || s->member.connected || s->member.state == MEMBER_DEAD
        || s->member.state == MEMBER_LEFT)
        return true;
    struct accusation a = {.incarnation = s->member.record->incarnation};
    memcpy(a.accused, id, sizeof a.accused);
    memcpy(a.accuser, m->self.id, sizeof a.accuser);
    uint32_t at = accusation_place(&s->member, &a);
    if (at == MEMBERS_ACCUSERS)
        return true;
    uint8_t msg[SIGNED_MAX];
    size_t n = wire_accusation_signed(msg, sizeof msg, &a);
    assert(n > 0);
    m->crypto.sign(m->crypto.self, msg, n, a.signature);
    return store_accusation(m, s, &a, at, now_us) != MEMBERS_FULL;
}

/* ---- the other public functions ---- */

int members_open(struct members **out, const struct record *self,
                 const struct members_config *config, const struct members_crypto *crypto)
{
    assert(wire_name_ok(self->name) && self->n_addresses <= WIRE_ADDRESSES_MAX);
    struct members *m = malloc(sizeof *m);
    if (m == NULL)
        return -ENOMEM;
    *m = (struct members){.config = *config,
                          .crypto = *crypto,
                          .self = *self,
                          .records = config->records,
                          .first_news = SLOT_NONE,
                          .last_news = SLOT_NONE,
                          .due_us = INT64_MAX,
                          .began_us = -1};
    if (m->records == NULL) {
        m->records = records_open();
        m->owns_records = true;
    }
    if (m->records == NULL || !table_reserve(&m->table)) {
        members_close(m);
        return -ENOMEM;
    }
    struct slot *s = table_add(&m->table, &m->self);
    s->member.known = s->member.counts = true;
    speak(m);
    *out = m;
    return 0;
}

void members_close(struct members *m)
{
    if (m == NULL)
        return;
    for (uint32_t i = 0; i < m->table.n; i++) {
        struct member *e = &m->table.slot[i].member;
        free(e->accusation);
        if (i != SELF)
            records_release(m->records, e->record);
        records_release(m->records, m->table.slot[i].marked);
    }
    if (m->owns_records)
        records_close(m->records);
    table_close(&m->table);
    free(m->vouch);
    free(m->tomb);
    free(m);
}

void members_session(struct members *m, const uint8_t id[WIRE_ID_BYTES], bool connected,
                     int64_t now_us)
{
    struct slot *s = table_find(&m->table, id);
    if (s == NULL || is_self(m, s))
        return;
    if (connected && !s->member.connected && !s->member.counts && !s->member.vouched)
        members_add_news(m, s, DISSEMINATION_RECORD);
    s->member.connected = connected;
    if (connected && s->member.refused)
        members_refuse(m, id, false, now_us);
    members_judge(m, s, now_us);
}

void members_refuse(struct members *m, const uint8_t id[WIRE_ID_BYTES], bool refused,
                    int64_t now_us)
{
    struct slot *s = table_find(&m->table, id);
    if (s == NULL || is_self(m, s))
        return;
    s->member.refused = refused;
    s->member.connected &= !refused;
    /* Queues the member's record to be sent to other members. The record is left out if the member
     * is still refused when the queue is sent. */
    members_add_news(m, s, DISSEMINATION_RECORD);
    members_judge(m, s, now_us);
}

void members_set_state(struct members *m, enum record_state state)
{
    if (m->self.state == state)
        return;
    m->self.state = state;
    speak_above(m, m->self.incarnation);
}

void members_watch_final(struct members *m, bool watches, int64_t now_us)
{
    m->watches_final = watches;
    for (size_t i = 0; i < m->table.n; i++)
        members_judge(m, &m->table.slot[i], now_us);
}

bool members_watches(const struct members *m, const struct member *e)
{
    return m->watches_final || !record_state_is_final(e->record->state);
}

void members_set_beats(struct members *m, uint64_t newer, uint64_t older)
{
    if (m->self.beat[0] == newer && m->self.beat[1] == older)
        return;
    m->self.beat[0] = newer;
    m->self.beat[1] = older;
    speak_above(m, m->self.incarnation);
}

void members_set_initial(struct members *m)
{
    if (m->self.initial)
        return;
    m->self.initial = true;
    speak_above(m, m->self.incarnation);
}

const struct record *members_initial(const struct members *m, const uint8_t id[WIRE_ID_BYTES])
{
    const struct slot *s = table_find(&m->table, id);
    if (s == NULL)
        return NULL;
    return s->member.record->initial ? s->member.record : s->marked;
}

bool members_add_address(struct members *m, const char *address)
{
    struct record *r = &m->self;
    if (r->n_addresses == WIRE_ADDRESSES_MAX || !wire_address_ok(address))
        return false;
    for (uint32_t i = 0; i < r->n_addresses; i++)
        if (strcmp(r->address[i], address) == 0)
            return false;
    memcpy(r->address[r->n_addresses++], address, strlen(address) + 1);
    speak_above(m, r->incarnation);
    return true;
}

int64_t members_tick(struct members *m, int64_t now_us)
{
    (void)age_us(m, now_us);
    members_settle(m, now_us);
    members_forget_old(m, now_us);
    if (now_us < m->due_us)
        return m->due_us;
    m->due_us = INT64_MAX;
    for (uint32_t i = 0; i < m->table.n; i++) {
        struct member *e = &m->table.slot[i].member;
        if (e->state != MEMBER_SUSPECT)
            continue;
        if (e->dead_at_us <= now_us)
            e->state = MEMBER_DEAD;
        members_judge(m, &m->table.slot[i], now_us);
    }
    return m->due_us;
}

const struct record *members_self(const struct members *m)
{
    return &m->self;
}

size_t members_count(const struct members *m)
{
    return m->table.n;
}

const struct member *members_at(const struct members *m, size_t i)
{
    assert(i < m->table.n);
    return &m->table.slot[m->table.order[i]].member;
}

const struct member *members_find(const struct members *m, const uint8_t id[WIRE_ID_BYTES])
{
    struct slot *s = table_find(&m->table, id);
    return s == NULL ? NULL : &s->member;
}

size_t members_vertices(const struct members *m, uint32_t *at, size_t *self_at)
{
    size_t n = 0;
    for (uint32_t i = 0; i < m->table.n; i++) {
        uint16_t place = m->table.order[i];
        if (place == SELF)
            *self_at = n;
        if (m->table.slot[place].vertex)
            at[n++] = i;
    }
    return n;
}

uint64_t members_view(const struct members *m)
{
    return m->view != 0 ? m->view : 1;
}

const struct members_tally *members_tally(const struct members *m)
{
    return &m->tally;
}

bool members_namesakes(const struct members *m)
{
    return m->table.n_namesakes > 0;
}

uint64_t members_changes(const struct members *m)
{
    return m->n_changes;
}
