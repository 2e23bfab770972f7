/* peer/uv/rejection_log.h -- what people are told of strangers: one line a kind, at growing intervals.
 *
 * A kind has its own intervals (calm.h), and its number so far: a flood does not flood the log. Who only connects, as health checks and port scanners do, is counted and
 * not told of.
 */
#ifndef PEER_UV_REJECTION_LOG_H
#define PEER_UV_REJECTION_LOG_H

#include "peer/uv/link.h"
#include "peer/uv/log_backoff.h"

enum rejection_log_kind {
    REJECTION_LOG_QUIET,    /* Nothing to tell. */
    REJECTION_LOG_UNSEALED, /* Its first message is not sealed with our cluster key. */
    REJECTION_LOG_UNENDED,  /* That one was, and it gave up at our answer. */
    REJECTION_LOG_SLOW,     /* That one was, and the handshake was not done in time. */
    REJECTION_LOG_VERSION,  /* No version of the messages in common. */
    REJECTION_LOG_CROWD,    /* Refused or pushed out, because too many come. */
    REJECTION_LOG_KINDS
};

enum { REJECTION_LOG_TEXT = 240 };

struct rejection_log
{
    struct log_backoff at[REJECTION_LOG_KINDS];
};

/* A kind in a word: "unsealed", "slow", ... */
const char *rejection_log_word(enum rejection_log_kind kind);

/* What kind is this end of a link that was accepted and never came up? */
enum rejection_log_kind rejection_log_kind(const struct uv_link *l);
/* One more of that kind. True: `text` is to be told. */
bool rejection_log_count(struct rejection_log *d, enum rejection_log_kind kind,
                         const struct uv_link *l, uint64_t now_ms, char text[REJECTION_LOG_TEXT]);

#endif
