/* peer/uv/door.c -- the words for strangers, and how often they are said. */
#include "peer/uv/door.h"

#include "gossip/wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum door_kind door_kind(const struct uv_link *l)
{
    if (l->error == -ECANCELED)
        return DOOR_CROWD;
    switch (l->why) {
    case NODE_WHY_VERSION:
        return DOOR_VERSION;
    case NODE_WHY_JUNK:
        return l->knows_key ? DOOR_UNENDED : DOOR_UNSEALED;
    case NODE_WHY_SLOW:
        return l->knows_key ? DOOR_SLOW : DOOR_QUIET;
    case NODE_WHY_BROKEN:
        return l->knows_key ? DOOR_UNENDED : DOOR_QUIET;
    case NODE_WHY_UNKNOWN:
    case NODE_WHY_UNRESOLVED:
    case NODE_WHY_REFUSED:
    case NODE_WHY_UNREACHABLE:
    case NODE_WHY_TIMEOUT:
    case NODE_WHY_CLOSED:
    case NODE_WHY_MUTE:
    case NODE_WHY_UNWELCOME:
    case NODE_WHY_OTHER:
    case NODE_WHYS:
        break;
    }
    return DOOR_QUIET;
}

const char *door_word(enum door_kind kind)
{
    static const char *const word[DOOR_KINDS] = {
        [DOOR_QUIET] = "silent", [DOOR_UNSEALED] = "unsealed", [DOOR_UNENDED] = "unended",
        [DOOR_SLOW] = "slow",    [DOOR_VERSION] = "version",   [DOOR_CROWD] = "crowd"};
    return word[kind];
}

static void write_text(char text[DOOR_TEXT], enum door_kind kind, const struct uv_link *l,
                       unsigned long long n)
{
    char host[UV_RESOLVE_TEXT];
    uv_resolve_host(&l->remote.any, host);
    if (host[0] == '\0')
        strcpy(host, "an address that was gone at once");
    switch (kind) {
    case DOOR_QUIET:
    case DOOR_KINDS:
        break;
    case DOOR_UNSEALED:
        snprintf(text, DOOR_TEXT,
                 "a connection from %s was refused: its first message is not sealed with our "
                 "cluster key, or is a copy (%llu so far)",
                 host, n);
        break;
    case DOOR_UNENDED:
        snprintf(
            text, DOOR_TEXT,
            "a connection from %s was given up: it holds our cluster key and left at our answer; "
            "it may be of an older release (%llu so far)",
            host, n);
        break;
    case DOOR_SLOW:
        snprintf(text, DOOR_TEXT,
                 "a connection from %s was given up: it holds our cluster key and did not end the "
                 "handshake in time: it is busy, or the network loses much (%llu so far)",
                 host, n);
        break;
    case DOOR_VERSION:
        snprintf(text, DOOR_TEXT,
                 "a connection from %s was refused: it speaks versions %u to %u of the messages, "
                 "and we %u to %u (%llu so far)",
                 host, (unsigned)l->theirs.least, (unsigned)l->theirs.most,
                 (unsigned)l->net->versions.least, (unsigned)l->net->versions.most, n);
        break;
    case DOOR_CROWD:
        snprintf(text, DOOR_TEXT,
                 "more connections come than can be let in, the last from %s: some are refused "
                 "(%llu so far)",
                 host, n);
        break;
    }
}

bool door_count(struct door *d, enum door_kind kind, const struct uv_link *l, uint64_t now_ms,
                char text[DOOR_TEXT])
{
    if (!calm_count(&d->at[kind], now_ms) || kind == DOOR_QUIET)
        return false;
    write_text(text, kind, l, (unsigned long long)d->at[kind].n);
    return true;
}
