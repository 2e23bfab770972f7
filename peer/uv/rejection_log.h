/* peer/uv/rejection_log.h -- reports refused connections: one line per kind of rejection, at
 * growing intervals (log_backoff.h), so that a flood does not fill the log. Each kind has its own
 * intervals and count. Connections that send nothing, such as health checks and port scans, are
 * counted and not reported. */
#ifndef PEER_UV_REJECTION_LOG_H
#define PEER_UV_REJECTION_LOG_H

#include "peer/uv/link.h"
#include "peer/uv/log_backoff.h"

enum rejection_log_kind {
    /* The other end sent nothing, or closed the connection before its first message was complete.
     * Not reported. */
    REJECTION_LOG_QUIET,
    REJECTION_LOG_UNSEALED, /* The first message is not sealed with the cluster key. */
    /* The first message was sealed with the cluster key. The other end closed the connection after
     * it got the reply. */
    REJECTION_LOG_UNENDED,
    /* The first message was sealed with the cluster key, but the rest of the handshake did not
     * arrive before the deadline. */
    REJECTION_LOG_SLOW,
    REJECTION_LOG_VERSION, /* The two ends have no protocol version in common. */
    /* The connection was refused, or replaced by a newer one, because too many connections
     * arrived. */
    REJECTION_LOG_CROWD,
    REJECTION_LOG_KINDS
};

enum { REJECTION_LOG_TEXT = 240 };

struct rejection_log
{
    struct log_backoff at[REJECTION_LOG_KINDS];
};

/* Returns the name of a kind of rejection: "unsealed", "slow", ... */
const char *rejection_log_word(enum rejection_log_kind kind);

/* Returns the kind of rejection for an accepted link that never became a session. */
enum rejection_log_kind rejection_log_kind(const struct uv_link *l);
/* Counts one rejection. Returns true if it must be reported now; text[] is then the message. */
bool rejection_log_count(struct rejection_log *d, enum rejection_log_kind kind,
                         const struct uv_link *l, uint64_t now_ms, char text[REJECTION_LOG_TEXT]);

#endif
