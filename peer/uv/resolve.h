/* peer/uv/resolve.h -- addresses as text: "host:port" to all its socket addresses, and back.
 *
 * A bootstrap name may stand for many peers (a container service has one
 * address for each replica), so all answers are kept: deduplicated, at most
 * UV_RESOLVE_MAX. Names are looked up on libuv's threads; a numeric address
 * needs none. The caller asks again whenever it wants fresh answers. IPv6
 * reads "[::1]:7100".
 */
#ifndef PEER_UV_RESOLVE_H
#define PEER_UV_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
    UV_RESOLVE_MAX = 64, /* Answers kept. */
    UV_RESOLVE_HOST_MAX =
        253, /* Characters of a name; longer ones were cut by old libuv (CVE-2024-24806). */
    UV_RESOLVE_TEXT = 64 /* Bytes of a numeric "host:port" with its NUL. */
};

union uv_address
{
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* One lookup at a time; embed it, zeroed. */
struct uv_resolve
{
    uv_getaddrinfo_t request;
    bool busy;
    bool ripe;     /* A numeric address has its answer: uv_resolve_ripe() gives it. */
    bool threaded; /* A lookup of this one has had its thread. */
    union uv_address answer;
    /* Called once a lookup, never from within uv_resolve_start(). n == 0: did
     * not resolve, or was cancelled. The answers are borrowed for the call. */
    void (*done)(struct uv_resolve *r, const union uv_address *a, uint32_t n);
    void *self;
    uint32_t tag; /* The caller's. */
};

/* Cut "host:port" in two. -EINVAL: no port, a port outside 1..65535 (0 where
 * allow_any_port), an empty or too long host, or characters no name has. */
int uv_resolve_split(const char *address, bool allow_any_port, char host[UV_RESOLVE_HOST_MAX + 1],
                     uint16_t *port);

/* A numeric address without a lookup; -EINVAL where it is a name. */
int uv_resolve_numeric(const char *address, union uv_address *out);

/* Begin a lookup. 0 or a negative errno; -EBUSY while one runs. A numeric
 * address is ripe at once: done() is then called by uv_resolve_ripe(), which
 * the caller calls from its loop, soon. */
int uv_resolve_start(uv_loop_t *loop, struct uv_resolve *r, const char *address);
void uv_resolve_ripe(struct uv_resolve *r);
/* Give it up. False: it cannot be stopped, and its memory must stay. */
bool uv_resolve_cancel(struct uv_resolve *r);

/* "127.0.0.1:7100", "[::1]:7100"; v4-mapped addresses as v4. */
void uv_resolve_text(const struct sockaddr *a, char out[UV_RESOLVE_TEXT]);
/* The host alone, without brackets. */
void uv_resolve_host(const struct sockaddr *a, char out[UV_RESOLVE_TEXT]);
bool uv_resolve_same(const union uv_address *a, const union uv_address *b);
bool uv_resolve_loopback(const union uv_address *a);
/* True for 0.0.0.0 and [::], also v4-mapped, which stand for all addresses of the machine. */
bool uv_resolve_wildcard(const union uv_address *a);
/* Both ends of a connected or listening socket; a zeroed address on failure. */
void uv_resolve_names(const uv_tcp_t *tcp, union uv_address *local, union uv_address *remote);

#endif
