/* peer/uv/rejection_log.c -- decides when refused connections are reported, and writes the
 * messages. */
#include "peer/uv/rejection_log.h"

#include "gossip/wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum rejection_log_kind rejection_log_kind(const struct uv_link *l)
{
    if (l->error == -ECANCELED)
        return REJECTION_LOG_CROWD;
    switch (l->why) {
    case NODE_WHY_VERSION:
        return REJECTION_LOG_VERSION;
    case NODE_WHY_JUNK:
        return l->knows_key ? REJECTION_LOG_UNENDED : REJECTION_LOG_UNSEALED;
    case NODE_WHY_SLOW:
        return l->knows_key ? REJECTION_LOG_SLOW : REJECTION_LOG_QUIET;
    case NODE_WHY_BROKEN:
        return l->knows_key ? REJECTION_LOG_UNENDED : REJECTION_LOG_QUIET;
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
    return REJECTION_LOG_QUIET;
}

const char *rejection_log_word(enum rejection_log_kind kind)
{
    static const char *const word[REJECTION_LOG_KINDS] = {
        [REJECTION_LOG_QUIET] = "silent",    [REJECTION_LOG_UNSEALED] = "unsealed",
        [REJECTION_LOG_UNENDED] = "unended", [REJECTION_LOG_SLOW] = "slow",
        [REJECTION_LOG_VERSION] = "version", [REJECTION_LOG_CROWD] = "crowd"};
    return word[kind];
}

static void write_text(char text[REJECTION_LOG_TEXT], enum rejection_log_kind kind,
                       const struct uv_link *l, unsigned long long n)
{
    char host[UV_RESOLVE_TEXT];
    uv_resolve_host(&l->remote.any, host);
    if (host[0] == '\0')
        strcpy(host, "an unknown address");
    switch (kind) {
    case REJECTION_LOG_QUIET:
    case REJECTION_LOG_KINDS:
        break;
    case REJECTION_LOG_UNSEALED:
        snprintf(text, REJECTION_LOG_TEXT,
                 "a connection from %s was refused: its first message is not encrypted with this "
                 "cluster key, or is a replay (%llu so far)",
                 host, n);
        break;
    case REJECTION_LOG_UNENDED:
        snprintf(text, REJECTION_LOG_TEXT,
                 "a connection from %s was closed: the peer has this cluster key but disconnected "
                 "when this peer answered; it may run an older release (%llu so far)",
                 host, n);
        break;
    case REJECTION_LOG_SLOW:
        snprintf(text, REJECTION_LOG_TEXT,
                 "a connection from %s was closed: the peer has this cluster key but did not "
                 "finish the handshake in time; it is busy, or the network loses packets (%llu "
                 "so far)",
                 host, n);
        break;
    case REJECTION_LOG_VERSION:
        snprintf(text, REJECTION_LOG_TEXT,
                 "a connection from %s was refused: the peer supports protocol versions %u to %u, "
                 "this program %u to %u (%llu so far)",
                 host, (unsigned)l->theirs.least, (unsigned)l->theirs.most,
                 (unsigned)l->net->versions.least, (unsigned)l->net->versions.most, n);
        break;
    case REJECTION_LOG_CROWD:
        snprintf(text, REJECTION_LOG_TEXT,
                 "too many connections, the last from %s: some are refused (%llu so far)", host, n);
        break;
    }
}

bool rejection_log_count(struct rejection_log *d, enum rejection_log_kind kind,
                         const struct uv_link *l, uint64_t now_ms, char text[REJECTION_LOG_TEXT])
{
    if (!log_backoff_count(&d->at[kind], now_ms) || kind == REJECTION_LOG_QUIET)
        return false;
    write_text(text, kind, l, (unsigned long long)d->at[kind].n);
    return true;
}
