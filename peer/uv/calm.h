/* peer/uv/calm.h -- what happens again and again is told at growing intervals.
 *
 *   told at once, then after 10 s at the earliest, 20 s, 40 s, ... 10 minutes; after 10 quiet
 *   minutes the next is told at once again
 */
#ifndef PEER_UV_CALM_H
#define PEER_UV_CALM_H

#include <stdbool.h>
#include <stdint.h>

/* Begin with zeros. */
struct calm
{
    uint64_t n; /* So often so far. */
    uint64_t last_ms, tell_ms, gap_ms;
};

/* Once more. True: it is to be told. */
bool calm_count(struct calm *c, uint64_t now_ms);

#endif
