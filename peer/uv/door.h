/* peer/uv/door.h -- what people are told of strangers: one line a kind, at growing intervals.
 *
 * The first of a kind is told at once, the next after 10 s at the earliest, then 20 s, 40 s, ...
 * 10 minutes, with the number so far: a flood does not flood the log. After 10 quiet minutes the
 * first is told at once again. Who only connects, as health checks and port scanners do, is counted and
 * not told of.
 */
#ifndef PEER_UV_DOOR_H
#define PEER_UV_DOOR_H

#include "peer/uv/link.h"

enum door_kind {
    DOOR_QUIET,    /* Nothing to tell. */
    DOOR_UNSEALED, /* Its first message is not sealed with our cluster key. */
    DOOR_UNENDED,  /* That one was, and the handshake did not end. */
    DOOR_VERSION,  /* No version of the messages in common. */
    DOOR_CROWD,    /* Refused or pushed out, because too many come. */
    DOOR_KINDS
};

enum { DOOR_TEXT = 240 };

struct door
{
    struct
    {
        uint64_t n, last_ms, tell_ms, gap_ms;
    } at[DOOR_KINDS];
};

/* What kind is this end of a link that was accepted and never came up? */
enum door_kind door_kind(const struct uv_link *l);
/* One more of that kind. True: `text` is to be told. */
bool door_count(struct door *d, enum door_kind kind, const struct uv_link *l, uint64_t now_ms,
                char text[DOOR_TEXT]);

#endif
