/* gossip/members/rings.c -- finds who stands ahead of us on a ring. */
#include "gossip/members/rings.h"

#include <assert.h>
#include <string.h>

static bool is_self(const struct members *m, const struct member *e)
{
    return memcmp(e->record->id, members_self(m)->id, WIRE_ID_BYTES) == 0;
}

/* Two accusers are enough: a third watcher would find nothing out. */
static bool wants_watching(const struct members *m, const struct member *e)
{
    bool suspect = e->state == MEMBER_SUSPECT;
    bool lives = e->state == MEMBER_ALIVE || (suspect && member_accusers(e) < MEMBERS_ACCUSERS);
    return lives && (e->counts || e->vouched) && !record_state_is_final(e->record->state)
           && !is_self(m, e);
}

/* Keeps the least of all distances that it is given, in order. */
static void keep_least(uint64_t *least, uint32_t n, uint64_t distance)
{
    for (uint32_t i = 0; i < n; i++)
        if (distance < least[i]) {
            uint64_t next = least[i];
            least[i] = distance;
            distance = next;
        }
}

uint32_t rings_ahead(const struct members *m, uint32_t ring, uint32_t n_alive,
                     uint8_t id[RINGS_AHEAD_MAX][WIRE_ID_BYTES])
{
    uint64_t own = members_find(m, members_self(m)->id)->place[ring], least[RINGS_ALIVE_MAX];
    size_t count = members_count(m);
    uint32_t n = 0;
    assert(n_alive > 0 && n_alive <= RINGS_ALIVE_MAX);
    memset(least, 0xff, sizeof least);
    for (size_t i = 0; i < count; i++) {
        const struct member *e = members_at(m, i);
        if (e->state == MEMBER_ALIVE && e->counts && wants_watching(m, e))
            keep_least(least, n_alive, e->place[ring] - own); /* Around it. */
    }
    for (size_t i = 0; i < count && n < RINGS_AHEAD_MAX; i++) {
        const struct member *e = members_at(m, i);
        if (wants_watching(m, e) && e->place[ring] - own <= least[n_alive - 1])
            memcpy(id[n++], e->record->id, WIRE_ID_BYTES);
    }
    return n;
}
