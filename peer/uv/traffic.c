/* peer/uv/traffic.c -- counts bytes by peer identity in a table. A new peer replaces the least
 * recently used row.
 */
#include "peer/uv/traffic.h"

#include <string.h>

static bool is_of(const struct traffic *t, size_t i, const uint8_t id[WIRE_ID_BYTES])
{
    return t->row[i].counted != 0 && memcmp(t->row[i].id, id, WIRE_ID_BYTES) == 0;
}

/* Returns the row of the peer `id`. If the peer has no row, returns the row that it may use: a free
 * one or the least recently used one. */
static size_t place_of(const struct traffic *t, const uint8_t id[WIRE_ID_BYTES])
{
    size_t oldest = 0;
    for (size_t i = 0; i < TRAFFIC_PEERS; i++) {
        if (is_of(t, i, id))
            return i;
        if (t->row[i].counted < t->row[oldest].counted)
            oldest = i;
    }
    return oldest;
}

void traffic_add(struct traffic *t, const uint8_t id[WIRE_ID_BYTES], uint64_t sent,
                 uint64_t received)
{
    size_t i = place_of(t, id);
    if (!is_of(t, i, id)) {
        memcpy(t->row[i].id, id, WIRE_ID_BYTES);
        t->row[i].sent = t->row[i].received = 0;
    }
    t->row[i].sent += sent;
    t->row[i].received += received;
    t->row[i].counted = ++t->n_sessions;
}

void traffic_of(const struct traffic *t, const uint8_t id[WIRE_ID_BYTES], uint64_t *sent,
                uint64_t *received)
{
    size_t i = place_of(t, id);
    bool there = is_of(t, i, id);
    *sent = there ? t->row[i].sent : 0;
    *received = there ? t->row[i].received : 0;
}
