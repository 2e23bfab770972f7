/* peer/node/membership/quorum.c -- counts the present members, and compares them with the initial members. */
#include "peer/node/membership/quorum.h"

#include "peer/node/mark.h"
#include "peer/node/timers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether a member counts as present. A member whose model is final counts even if it is
 * dead, because it has done its whole part of the run. */
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

int quorum_begin(struct quorum *q, const struct members *m, int64_t now_us)
{
    size_t count = members_count(m);
    quorum_close(q);
    q->initial = calloc(count, sizeof *q->initial);
    if (q->initial == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct record *r = members_at(m, i)->record;
        if (!lives(members_at(m, i)) || r->state == RECORD_LEFT)
            continue;
        memcpy(q->initial[q->n].id, r->id, WIRE_ID_BYTES);
        snprintf(q->initial[q->n++].name, sizeof q->initial[0].name, "%s", r->name);
    }
    q->n_members = q->n_live = q->n;
    q->since_us = now_us;
    return 0;
}

void quorum_close(struct quorum *q)
{
    free(q->initial);
    *q = (struct quorum){.initial = NULL};
}

uint32_t quorum_needed(const struct quorum *q, double share)
{
    /* In floating point 0.07 * 100 is above 7. The small constant prevents rounding up to 8. */
    double needed = ceil(share * q->n_members - 1e-9);
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

/* Counts the present members, this peer included. A single suspect counts as present while the
 * quorum is there, because most suspects are heard again within seconds. Two suspects at once are
 * probably a network failure. Below the quorum no suspect counts until it is heard. */
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
    MARK_IF(q->state == QUORUM_THERE && n_suspects == 1, "quorum: a single suspect counts");
    return n_live + (q->state == QUORUM_THERE && n_suspects == 1);
}

bool quorum_departed(const struct quorum_member *k, const struct members *m)
{
    const struct member *e = members_find(m, k->id);
    return e != NULL ? e->record->state == RECORD_LEFT || e->refused : k->departed;
}

void quorum_follow(struct quorum *q, const struct members *m)
{
    if (q->followed == members_changes(m))
        return;
    q->followed = members_changes(m);
    for (uint32_t i = 0; i < q->n; i++)
        q->initial[i].departed = quorum_departed(&q->initial[i], m);
}

uint32_t quorum_members(const struct quorum *q, const struct members *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct quorum_member *k = &q->initial[i];
        const struct member *e = members_find(m, k->id);
        bool replaced = e != NULL ? quorum_replaced(m, e) : is_present(m, k->name);
        n += !replaced && !quorum_departed(k, m);
    }
    return n;
}

/* Counting costs O(members), so it is repeated only after a change of the member table or of the
 * quorum's state. */
static void count(struct quorum *q, const struct members *m)
{
    uint64_t changes = members_changes(m), view = members_view(m);
    if (q->counted.changes == changes && q->counted.view == view && q->counted.state == q->state)
        return;
    q->counted.changes = changes;
    q->counted.view = view;
    q->counted.state = q->state;
    q->n_members = quorum_members(q, m);
    q->n_live = count_live(q, m);
}

/* Sets the time at which the present state began. If the quorum was there for a short time only,
 * --quorum-timeout continues where it stopped. Otherwise a member that returns briefly again and
 * again could stop the training of all others without a limit. */
static void turn(struct quorum *q, enum quorum_state before, int64_t now_us)
{
    bool moment = before == QUORUM_THERE && now_us - q->since_us < QUORUM_STABLE_US;
    if (before == QUORUM_HELD)
        q->held_us = now_us - q->since_us;
    MARK_IF(q->state == QUORUM_HELD && moment, "quorum: the timeout continues");
    q->since_us = q->state == QUORUM_HELD && moment ? now_us - q->held_us : now_us;
}

bool quorum_look(struct quorum *q, const struct members *m, double share, int64_t patience_us,
                 int64_t now_us)
{
    enum quorum_state before = q->state;
    if (q->initial == NULL)
        return false;
    quorum_follow(q, m);
    count(q, m);
    if (q->n_live >= quorum_needed(q, share))
        q->state = QUORUM_THERE;
    else if (before == QUORUM_THERE)
        q->state = QUORUM_HELD;
    else if (before == QUORUM_HELD && now_us - q->since_us >= patience_us)
        q->state = QUORUM_RESIGNED;
    MARK_IF(q->state != before && q->state == QUORUM_HELD, "quorum: lost");
    MARK_IF(q->state != before && q->state == QUORUM_RESIGNED, "quorum: timeout");
    MARK_IF(q->state != before && q->state == QUORUM_THERE, "quorum: reached again");
    if (q->state != before)
        turn(q, before, now_us);
    return q->state != before;
}
