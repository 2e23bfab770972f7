/* peer/http/server.h -- a small HTTP server on its own thread (libmicrohttpd).
 *
 *   event loop                     HTTP thread, at the lowest priority
 *   server_blank() ... fill        request --> snapshot_exchange --> routes.h --> response
 *   server_publish() ---snapshot-->            cached for other requests of the same second
 *
 * The server never accesses the node, and the event loop never waits for the server. Limits: at
 * most SERVER_CLIENTS connections, and a new connection replaces the oldest. A connection without
 * progress for SERVER_STALL_S seconds is closed. A request has at most SERVER_MEMORY bytes. The
 * server has no files, uploads, TLS or passwords: the operator decides which machines can reach its
 * address.
 */
#ifndef PEER_HTTP_SERVER_H
#define PEER_HTTP_SERVER_H

#include "peer/http/hosts.h"
#include "peer/http/snapshot.h"

#include <sys/socket.h>

enum {
    SERVER_CLIENTS = 32,
    SERVER_STALL_S = 10,
    /* Memory per connection in bytes, for the request and the header of the response. */
    SERVER_MEMORY = 16 * 1024,
    SERVER_ERROR_MAX = 200
};

struct server;

/* Opens the server at `address`. Until the first snapshot is published, answers say that the peer
 * is starting. Requests with a Host header that is not in `hosts` get status 421; `hosts` is
 * copied. Returns 0, or a negative errno with a message in `error`. */
int server_open(struct server **s, const struct sockaddr *address, socklen_t n,
                const struct hosts *hosts, char error[SERVER_ERROR_MAX]);
/* Stops the server and its thread. s may be NULL. */
void server_close(struct server *s);

/* Returns the port that the server listens on, also if the system chose it. */
uint16_t server_port(const struct server *s);

/* server_blank() returns a snapshot to fill in, which contains an older snapshot or zeros.
 * server_publish() makes this snapshot visible to the HTTP thread. Both are called on the thread of
 * the event loop. */
struct snapshot *server_blank(struct server *s);
void server_publish(struct server *s);

#endif
