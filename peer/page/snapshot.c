/* peer/page/snapshot.c -- words for what a snapshot holds as numbers. */
#include "peer/page/snapshot.h"

const char *snapshot_member_state(enum member_state state)
{
    switch (state) {
    case MEMBER_ALIVE:
        return "alive";
    case MEMBER_SUSPECT:
        return "suspect";
    case MEMBER_DEAD:
        return "dead";
    case MEMBER_LEFT:
        return "left";
    }
    return "unknown";
}

void snapshot_hex(char *out, const uint8_t *bytes, size_t n)
{
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digit[bytes[i] >> 4];
        out[2 * i + 1] = digit[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}
