/* peer/node/quorum.c -- counts who lives against who was there at the beginning. */
#include "peer/node/quorum.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Enough members for less than this is a moment. */
static const int64_t moment_us = 30 * 1000 * 1000;

/* Is it a member that is there, by what we know? One whose model is final is, dead or
 * not: it has done all that was to be done. */
static bool lives(const struct member *m)
{
    return m->counts
           && (m->state == MEMBER_ALIVE || m->state == MEMBER_SUSPECT
               || record_state_is_final(m->record->state));
}

/* Does it take part? One whose worker hangs does not, until that is done. */
static bool works(const struct member *m)
{
    return lives(m) && m->record->state != RECORD_STALLED;
}

int quorum_begin(struct quorum *q, const struct members *m, int64_t now_us)
{
    size_t count = members_count(m);
    quorum_close(q);
    q->id = malloc(count * sizeof *q->id);
    if (q->id == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (lives(members_at(m, i)) && members_at(m, i)->record->state != RECORD_LEFT)
            memcpy(q->id[q->n++], members_at(m, i)->record->id, WIRE_ID_BYTES);
    q->n_members = q->n_live = q->n;
    q->since_us = now_us;
    return 0;
}

void quorum_close(struct quorum *q)
{
    free(q->id);
    *q = (struct quorum){.id = NULL};
}

uint32_t quorum_needed(const struct quorum *q, double share)
{
    /* A share such as 0.7 is no binary fraction: 0.7 of 10 is 7, not 8. */
    double needed = ceil(share * q->n_members - 1e-9);
    return needed < 1 ? 1 : (uint32_t)needed;
}

/* A machine that lost its identity is there again under its old name, as a newcomer: it
 * must not count as dead, too. */
static bool replaced(const struct members *all, const struct member *m)
{
    for (size_t i = 0; i < members_count(all) && !lives(m); i++) {
        const struct member *other = members_at(all, i);
        if (other != m && lives(other) && strcmp(other->record->name, m->record->name) == 0)
            return true;
    }
    return false;
}

/* One suspect alone counts as there while we train: most are heard again within seconds. Where two
 * are silent at once that is no slip of theirs. And who was missed stays missed until it is heard. */
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
    return n_live + (q->state == QUORUM_THERE && n_suspects == 1);
}

/* A member that the table has given up has left: only those are (members.h). */
uint32_t quorum_members(const struct quorum *q, const struct members *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct member *e = members_find(m, q->id[i]);
        n += e != NULL && e->record->state != RECORD_LEFT && !replaced(m, e);
    }
    return n;
}

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

/* Who comes back for a moment, again and again, must not hold the others for ever: patience goes
 * on where it was. */
static void turn(struct quorum *q, enum quorum_state before, int64_t now_us)
{
    bool moment = before == QUORUM_THERE && now_us - q->since_us < moment_us;
    if (before == QUORUM_HELD)
        q->held_us = now_us - q->since_us;
    q->since_us = q->state == QUORUM_HELD && moment ? now_us - q->held_us : now_us;
}

bool quorum_look(struct quorum *q, const struct members *m, double share, int64_t patience_us,
                 int64_t now_us)
{
    enum quorum_state before = q->state;
    if (q->id == NULL)
        return false;
    count(q, m);
    if (q->n_live >= quorum_needed(q, share))
        q->state = QUORUM_THERE;
    else if (before == QUORUM_THERE)
        q->state = QUORUM_HELD;
    else if (before == QUORUM_HELD && now_us - q->since_us >= patience_us)
        q->state = QUORUM_RESIGNED;
    if (q->state != before)
        turn(q, before, now_us);
    return q->state != before;
}
