/* peer/uv/door.h -- what people are told of strangers: one line a kind, at growing intervals.
 *
 * A kind has its own intervals (calm.h), and its number so far: a flood does not flood the log. Who only connects, as health checks and port scanners do, is counted and
 * not told of.
 */
#ifndef PEER_UV_DOOR_H
#define PEER_UV_DOOR_H

#include "peer/uv/calm.h"
#include "peer/uv/link.h"

enum door_kind {
    DOOR_QUIET,    /* Nothing to tell. */
    DOOR_UNSEALED, /* Its first message is not sealed with our cluster key. */
    DOOR_UNENDED,  /* That one was, and it gave up at our answer. */
    DOOR_SLOW,     /* That one was, and the handshake was not done in time. */
    DOOR_VERSION,  /* No version of the messages in common. */
    DOOR_CROWD,    /* Refused or pushed out, because too many come. */
    DOOR_KINDS
};

enum { DOOR_TEXT = 240 };

struct door
{
    struct calm at[DOOR_KINDS];
};

/* A kind in a word: "unsealed", "slow", ... */
const char *door_word(enum door_kind kind);

/* What kind is this end of a link that was accepted and never came up? */
enum door_kind door_kind(const struct uv_link *l);
/* One more of that kind. True: `text` is to be told. */
bool door_count(struct door *d, enum door_kind kind, const struct uv_link *l, uint64_t now_ms,
                char text[DOOR_TEXT]);

#endif
