/* peer/http/server.h -- a small HTTP server on a thread of its own (libmicrohttpd).
 *
 *   loop thread                    HTTP thread, of the lowest priority
 *   server_blank() ... fill        request --> board --> routes.h --> response
 *   server_publish() ---board--->              kept for other requests of the same second
 *
 * The server never accesses the node, and the loop never waits for the server. Limits: SERVER_CLIENTS
 * connections, of which a new one replaces the oldest; a connection without progress for
 * SERVER_STALL_S seconds is closed; a request has at most SERVER_MEMORY bytes. The server has no
 * files, uploads, TLS or passwords: the operator decides who can reach its address.
 */
#ifndef PEER_HTTP_SERVER_H
#define PEER_HTTP_SERVER_H

#include "peer/http/hosts.h"
#include "peer/http/snapshot.h"

#include <sys/socket.h>

enum {
    SERVER_CLIENTS = 32,
    SERVER_STALL_S = 10,
    SERVER_MEMORY = 16 * 1024, /* Bytes of a connection: its request and the answer's head. */
    SERVER_ERROR_MAX = 200
};

struct server;

/* Opens the server at `address`. Until the main loop begins, each request is answered with "the
 * loop has not begun". Requests whose Host header is not in `hosts` get status 421; `hosts` is
 * copied. Returns 0, or a negative errno with a message in `error`. */
int server_open(struct server **s, const struct sockaddr *address, socklen_t n,
                const struct hosts *hosts, char error[SERVER_ERROR_MAX]);
/* Ends its thread. s may be NULL. */
void server_close(struct server *s);

/* The port, also where it was left to the system. */
uint16_t server_port(const struct server *s);

/* The loop thread's next word: fill in what server_blank() gives (which holds an older one, or zeros),
 * then publish it. */
struct snapshot *server_blank(struct server *s);
void server_publish(struct server *s);

#endif
