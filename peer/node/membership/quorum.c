/* peer/node/membership/quorum.c -- keeps the list of initial members, and compares it with the
 * members that are present. Reads the counts of the member table. */
#include "peer/node/membership/quorum.h"

#include "peer/node/mark.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An initial member. The member table drops members some time after they have died or left, so the
 * facts that the quorum needs are stored here. */
struct quorum_member
{
    uint8_t id[WIRE_ID_BYTES];
    char name[WIRE_NAME_MAX + 1];
    /* State in the member's last entry in the member table. left: the member has announced that it
     * left. refused: the allow-list no longer admits it. */
    bool left, refused;
};

struct quorum
{
    /* The n initial members that this peer knows, sorted by identity. Owned. */
    struct quorum_member *initial;
    uint32_t n, cap;
    bool begun;         /* True: training has begun. */
    uint32_t min_peers; /* --min-peers of the run. Above 1, the number of voters is fixed. */
    uint64_t followed;  /* Version of the member table at the last quorum_follow(). */
    /* State and counts for quorum_status(). n_initial is unused here: quorum_status() sets it to
     * quorum.n. */
    struct quorum_status now;
    /* Versions of the member table (members_changes(), members_view()) and state of the quorum at
     * the last count of the members. */
    struct
    {
        uint64_t changes, view;
        enum quorum_state state;
    } counted;
    /* Length of the last period in the state HELD (too few members), in microseconds. Set when the
     * period ends. */
    int64_t held_us;
};

struct quorum *quorum_open(void)
{
    return calloc(1, sizeof(struct quorum));
}

void quorum_close(struct quorum *q)
{
    if (q != NULL)
        free(q->initial);
    free(q);
}

/* Returns whether a member counts as present. A member that has ended its run counts even if it is
 * dead, because it has completed the run. */
static bool lives(const struct member *m)
{
    return m->counts
           && (m->state == MEMBER_ALIVE || m->state == MEMBER_SUSPECT
               || record_state_is_final(m->record->state));
}

/* Returns whether a member is present and takes part. A member with a stalled worker does not take
 * part until its job ends. */
static bool works(const struct member *m)
{
    return lives(m) && m->record->state != RECORD_STALLED;
}

static void quorum_check(const struct quorum *q, int64_t now_us)
{
    assert(q->n <= q->cap);
    assert(q->begun || q->now.state == QUORUM_THERE);
    assert(q->now.since_us <= now_us && q->held_us >= 0);
}

void quorum_begin(struct quorum *q, int64_t now_us)
{
    assert(!q->begun && q->now.state == QUORUM_THERE);
    q->begun = true;
    q->now.since_us = now_us;
    quorum_check(q, now_us);
}

uint32_t quorum_needed(uint32_t n_members, double share)
{
    /* Rounding errors could raise the result, so 1e-9 is subtracted: 0.07 * 100 is above 7 in
     * floating point, and would be rounded up to 8. */
    double needed = ceil(share * n_members - 1e-9);
    return needed < 1 ? 1 : (uint32_t)needed;
}

/* Returns whether a present member has this name. O(members). */
static bool is_present(const struct members *all, const char *name)
{
    for (size_t i = 0; i < members_count(all); i++) {
        const struct member *m = members_at(all, i);
        if (lives(m) && strcmp(m->record->name, name) == 0)
            return true;
    }
    return false;
}

bool quorum_replaced(const struct members *all, const struct member *m)
{
    return !lives(m) && is_present(all, m->record->name);
}

/* Counts the present members, this peer included. In the state THERE (enough members) a single
 * suspect counts as present, because most suspects are heard again within seconds. Two or more
 * suspects do not count, because the network has probably failed. In the other states a suspect
 * never counts. */
static uint32_t count_live(const struct quorum *q, const struct members *m)
{
    uint32_t n_live = 0, n_suspects = 0;
    for (size_t i = 0; i < members_count(m); i++) {
        const struct member *e = members_at(m, i);
        bool suspect =
            works(e) && e->state == MEMBER_SUSPECT && !record_state_is_final(e->record->state);
        n_suspects += suspect;
        n_live += works(e) && !suspect;
    }
    MARK_IF(q->now.state == QUORUM_THERE && n_suspects == 1, "quorum: a single suspect counts");
    return n_live + (q->now.state == QUORUM_THERE && n_suspects == 1);
}

/* ---- the initial members ---- */

/* Returns the index of the first initial member whose identity is not below `id`. */
static uint32_t place_of(const struct quorum *q, const uint8_t id[WIRE_ID_BYTES])
{
    uint32_t low = 0, high = q->n;
    while (low < high) {
        uint32_t at = low + (high - low) / 2;
        if (memcmp(q->initial[at].id, id, WIRE_ID_BYTES) < 0)
            low = at + 1;
        else
            high = at;
    }
    return low;
}

bool quorum_is_initial(const struct quorum *q, const uint8_t id[WIRE_ID_BYTES])
{
    uint32_t at = place_of(q, id);
    return at < q->n && memcmp(q->initial[at].id, id, WIRE_ID_BYTES) == 0;
}

/* Adds an initial member. Returns 0 or -ENOMEM. */
static int add(struct quorum *q, const struct record *r)
{
    if (q->n == q->cap) {
        uint32_t cap = q->cap == 0 ? 16 : 2 * q->cap;
        struct quorum_member *grown = realloc(q->initial, cap * sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        q->initial = grown;
        q->cap = cap;
    }
    uint32_t at = place_of(q, r->id);
    assert(at == q->n || memcmp(q->initial[at].id, r->id, WIRE_ID_BYTES) != 0);
    memmove(q->initial + at + 1, q->initial + at, (q->n - at) * sizeof *q->initial);
    q->initial[at] = (struct quorum_member){.left = false};
    memcpy(q->initial[at].id, r->id, WIRE_ID_BYTES);
    snprintf(q->initial[at].name, sizeof q->initial[at].name, "%s", r->name);
    q->n++;
    /* place_of() searches in sorted identities. */
    assert(at == 0 || memcmp(q->initial[at - 1].id, r->id, WIRE_ID_BYTES) < 0);
    assert(at + 1 == q->n || memcmp(q->initial[at + 1].id, r->id, WIRE_ID_BYTES) > 0);
    return 0;
}

/* Returns whether initial member k has announced that it left. */
static bool has_left(const struct quorum_member *k, const struct members *m)
{
    const struct member *e = members_find(m, k->id);
    return e != NULL ? e->record->state == RECORD_LEFT : k->left;
}

/* Returns whether initial member k has given up or lost its vote. */
static bool is_removed(const struct quorum *q, const struct quorum_member *k,
                       const struct members *m)
{
    const struct member *e = members_find(m, k->id);
    return (e != NULL ? e->refused : k->refused) || (q->min_peers <= 1 && has_left(k, m));
}

int quorum_follow(struct quorum *q, const struct members *m, uint32_t min_peers)
{
    assert(q->followed <= members_changes(m));
    q->min_peers = min_peers;
    if (q->followed == members_changes(m))
        return 0;
    for (size_t i = 0; i < members_count(m); i++) {
        const struct member *e = members_at(m, i);
        if (!e->record->initial || !e->counts || quorum_is_initial(q, e->record->id))
            continue;
        int err = add(q, e->record);
        if (err != 0)
            return err;
    }
    for (uint32_t i = 0; i < q->n; i++) {
        struct quorum_member *k = &q->initial[i];
        const struct member *e = members_find(m, k->id);
        k->left = has_left(k, m);
        k->refused = e != NULL ? e->refused : k->refused;
    }
    q->followed = members_changes(m);
    return 0;
}

const uint8_t *quorum_first(const struct quorum *q, const struct members *m)
{
    for (uint32_t i = 0; i < q->n; i++)
        if (!is_removed(q, &q->initial[i], m))
            return q->initial[i].id;
    return NULL;
}

/* ---- the voters ---- */

/* Returns whether initial member k is absent, and a present member has its name. O(members). */
static bool is_taken_over(const struct quorum_member *k, const struct members *m)
{
    const struct member *old = members_find(m, k->id);
    return (old == NULL || !lives(old)) && is_present(m, k->name);
}

/* Returns whether member e, which is not an initial member, votes instead of an initial member. No
 * member votes instead of one that has lost its vote: the number of voters would then depend on
 * which members are present, and two parts of a split network could each have a quorum. O(initial
 * members + members). */
static bool takes_over(const struct quorum *q, const struct members *m, const struct member *e)
{
    for (uint32_t i = 0; i < q->n && lives(e); i++) {
        const struct quorum_member *k = &q->initial[i];
        if (strcmp(k->name, e->record->name) == 0 && !is_removed(q, k, m) && is_taken_over(k, m))
            return true;
    }
    return false;
}

/* Returns whether initial member k is a voter. O(members). */
static bool has_vote(const struct quorum *q, const struct members *m, const struct quorum_member *k)
{
    const struct member *e = members_find(m, k->id);
    return (e == NULL || e->counts) && !is_removed(q, k, m) && !is_taken_over(k, m);
}

/* Returns whether member e of the table could still be a voter: it is accepted, not refused, and
 * has not left. */
static bool stays(const struct member *e)
{
    return e->counts && !e->refused && e->record->state != RECORD_LEFT;
}

/* Like quorum_voters(), but counts only initial members, and members that have taken over the name
 * of one. */
static uint32_t initial_voters(const struct quorum *q, const struct members *m, bool *voter)
{
    uint32_t n = 0;
    for (size_t i = 0; i < members_count(m); i++) {
        const struct member *e = members_at(m, i);
        uint32_t at = place_of(q, e->record->id);
        bool initial = quorum_is_initial(q, e->record->id);
        bool votes = initial ? has_vote(q, m, &q->initial[at]) : stays(e) && takes_over(q, m, e);
        n += votes;
        if (voter != NULL)
            voter[i] = votes;
    }
    for (uint32_t i = 0; i < q->n; i++) {
        const struct quorum_member *k = &q->initial[i];
        n += members_find(m, k->id) == NULL && has_vote(q, m, k);
    }
    bool misses = n > 0 && q->min_peers > 1 && q->n < q->min_peers && members_self(m)->initial;
    MARK_IF(misses, "quorum: not all initial members are known");
    return misses ? n + q->min_peers - q->n : n;
}

bool quorum_has_initial(const struct quorum *q, const struct members *m)
{
    return initial_voters(q, m, NULL) > 0;
}

uint32_t quorum_voters(const struct quorum *q, const struct members *m, bool *voter)
{
    uint32_t n = initial_voters(q, m, voter);
    MARK_IF(n == 0, "quorum: no initial member is left");
    for (size_t i = 0, none = n == 0; i < members_count(m) && none; i++) {
        const struct member *e = members_at(m, i);
        bool votes = stays(e) && !quorum_replaced(m, e);
        n += votes;
        if (voter != NULL)
            voter[i] = votes;
    }
    return n;
}

/* ---- the state ---- */

/* Counts the voters and the present members. Counting may cost O(members^2), so it is repeated only
 * after a change of the member table or of the quorum's state. */
static void count(struct quorum *q, const struct members *m)
{
    uint64_t changes = members_changes(m), view = members_view(m);
    if (q->counted.changes == changes && q->counted.view == view
        && q->counted.state == q->now.state)
        return;
    q->counted.changes = changes;
    q->counted.view = view;
    q->counted.state = q->now.state;
    q->now.n_members = quorum_voters(q, m, NULL);
    q->now.n_live = count_live(q, m);
}

/* Sets the time at which the current state began. If the state was THERE (enough members) for less
 * than QUORUM_STABLE_US between two periods in the state HELD (too few), both periods count for
 * --quorum-timeout. Without this rule, a member that returns briefly again and again could stop the
 * training of all others without a time limit. */
static void turn(struct quorum *q, enum quorum_state before, int64_t now_us)
{
    bool moment = before == QUORUM_THERE && now_us - q->now.since_us < QUORUM_STABLE_US;
    assert(q->now.state != before && (q->now.state != QUORUM_RESIGNED || before == QUORUM_HELD));
    if (before == QUORUM_HELD)
        q->held_us = now_us - q->now.since_us;
    MARK_IF(q->now.state == QUORUM_HELD, "quorum: lost");
    MARK_IF(q->now.state == QUORUM_HELD && moment, "quorum: the timeout continues");
    MARK_IF(q->now.state == QUORUM_RESIGNED, "quorum: timeout");
    MARK_IF(q->now.state == QUORUM_THERE, "quorum: reached again");
    q->now.since_us = q->now.state == QUORUM_HELD && moment ? now_us - q->held_us : now_us;
}

bool quorum_look(struct quorum *q, const struct members *m, double share, int64_t patience_us,
                 int64_t now_us)
{
    enum quorum_state before = q->now.state;
    quorum_check(q, now_us);
    if (!q->begun)
        return false;
    count(q, m);
    if (q->now.n_live >= quorum_needed(q->now.n_members, share))
        q->now.state = QUORUM_THERE;
    else if (before == QUORUM_THERE)
        q->now.state = QUORUM_HELD;
    else if (before == QUORUM_HELD && now_us - q->now.since_us >= patience_us)
        q->now.state = QUORUM_RESIGNED;
    if (q->now.state != before)
        turn(q, before, now_us);
    quorum_check(q, now_us);
    return q->now.state != before;
}

bool quorum_is_held(const struct quorum *q)
{
    return q->now.state == QUORUM_HELD;
}

struct quorum_status quorum_status(const struct quorum *q)
{
    struct quorum_status now = q->now;
    now.n_initial = q->n;
    return now;
}

/* ---- counts of the other members ---- */

uint32_t member_counts_vertices(const struct env *v)
{
    return members_tally(v->members)->n_vertices;
}

bool member_counts_live(const struct env *v)
{
    for (size_t i = 0; i < members_count(v->members); i++) {
        const struct member *m = members_at(v->members, i);
        if (m->state == MEMBER_ALIVE && !env_same_id(m->record->id, v->config.id))
            return true;
    }
    return false;
}

bool member_counts_some(const struct env *v, enum record_state state)
{
    return members_tally(v->members)->says[state] > 0;
}

bool member_counts_ended(const struct env *v)
{
    return members_tally(v->members)->n_final > 0;
}

bool member_counts_end(const struct env *v)
{
    return members_tally(v->members)->n_working > 0;
}

bool member_counts_there(const struct env *v)
{
    return members_tally(v->members)->n_there > 0;
}

bool member_counts_hang(const struct env *v)
{
    return members_tally(v->members)->n_hung > 0;
}

bool member_counts_finished(const struct env *v)
{
    if (member_counts_there(v))
        return false;
    for (size_t i = 0; i < members_count(v->members); i++) {
        const struct member *m = members_at(v->members, i);
        if (m->counts && record_state_is_final(m->record->state)
            && !env_same_id(m->record->id, v->config.id))
            return true;
    }
    return false;
}
