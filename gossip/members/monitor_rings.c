/* gossip/members/monitor_rings.c -- finds the successors that this peer monitors on a ring. */
#include "gossip/members/monitor_rings.h"

#include <assert.h>
#include <string.h>

/* Returns whether a member may be monitored. A suspect with MEMBERS_ACCUSERS accusers needs no
 * monitor. */
static bool wants_watching(const struct members *m, const struct member *e)
{
    bool suspect = e->state == MEMBER_SUSPECT;
    bool lives = e->state == MEMBER_ALIVE || (suspect && member_accusers(e) < MEMBERS_ACCUSERS);
    return lives && (e->counts || e->vouched) && members_watches(m, e);
}

/* Inserts a distance on the ring into the sorted list of the n least distances. */
static void keep_least(uint64_t *least, uint32_t n, uint64_t distance)
{
    for (uint32_t i = 0; i < n; i++)
        if (distance < least[i]) {
            uint64_t next = least[i];
            least[i] = distance;
            distance = next;
        }
}

void monitor_rings_look(struct monitor_rings *r, const struct members *m)
{
    const struct member *self = members_find(m, members_self(m)->id);
    size_t count = members_count(m);
    memcpy(r->own, self->place, sizeof r->own);
    r->n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct member *e = members_at(m, i);
        if (wants_watching(m, e) && e != self)
            r->at[r->n++] = e;
    }
}

uint32_t monitor_rings_ahead(const struct monitor_rings *r, uint32_t ring, uint32_t n_alive,
                             uint8_t id[MONITOR_RINGS_AHEAD_MAX][WIRE_ID_BYTES])
{
    uint64_t own = r->own[ring], least[MONITOR_RINGS_ALIVE_MAX];
    uint32_t n = 0;
    assert(n_alive > 0 && n_alive <= MONITOR_RINGS_ALIVE_MAX);
    memset(least, 0xff, sizeof least);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct member *e = r->at[i];
        if (e->state == MEMBER_ALIVE && e->counts)
            /* The difference of the two ring positions is unsigned, so a distance past the end of
             * the ring is correct, too. */
            keep_least(least, n_alive, e->place[ring] - own);
    }
    for (uint32_t i = 0; i < r->n && n < MONITOR_RINGS_AHEAD_MAX; i++)
        if (r->at[i]->place[ring] - own <= least[n_alive - 1])
            memcpy(id[n++], r->at[i]->record->id, WIRE_ID_BYTES);
    return n;
}
