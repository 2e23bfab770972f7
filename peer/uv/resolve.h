/* peer/uv/resolve.h -- converts "host:port" to all its socket addresses, and addresses to text.
 *
 * A bootstrap name may stand for many peers: in Kubernetes, for example, the name of a service has
 * one address for each container. All distinct addresses are therefore kept, at most
 * UV_RESOLVE_MAX. Names are looked up on libuv's threads. A numeric address needs no lookup.
 * Answers are not cached: each call looks the name up again. An IPv6 address is written
 * "[::1]:7100".
 */
#ifndef PEER_UV_RESOLVE_H
#define PEER_UV_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
    UV_RESOLVE_MAX = 64, /* Maximum number of addresses of one name. */
    /* Maximum number of characters of a host name. Old versions of libuv truncate longer names
     * (CVE-2024-24806). */
    UV_RESOLVE_HOST_MAX = 253,
    /* Size of the text of a numeric "host:port", in bytes including the NUL. */
    UV_RESOLVE_TEXT = 64
};

union uv_address
{
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* State of one lookup. Part of the caller's struct, initialised with zeros. */
struct uv_resolve
{
    uv_getaddrinfo_t request;
    bool busy;
    /* True: the address is numeric, and uv_resolve_ripe() will pass `answer` to done(). */
    bool ripe;
    /* True: an earlier lookup found that libuv's threads can start, so later lookups do not check
     * this again. */
    bool threaded;
    union uv_address answer;
    /* Called once per lookup, never within uv_resolve_start(). a[0..n): addresses of the name,
     * borrowed for the call. n == 0: the name does not resolve, or the lookup was cancelled. */
    void (*done)(struct uv_resolve *r, const union uv_address *a, uint32_t n);
    void *self;
    uint32_t tag; /* Value that the caller may use to identify the lookup. */
};

/* Splits "host:port". Returns 0, or -EINVAL if the port is missing or outside 1..65535 (with
 * allow_any_port 0 is valid, too), or if the host is empty, too long or has invalid characters. */
int uv_resolve_split(const char *address, bool allow_any_port, char host[UV_RESOLVE_HOST_MAX + 1],
                     uint16_t *port);

/* Returns what was expected in place of an address that uv_resolve_split() has refused, for an error
 * message: an address, or only another port. */
const char *uv_resolve_expected(const char *address);

/* Converts a numeric address. Returns 0, or -EINVAL if the host is a name. */
int uv_resolve_numeric(const char *address, union uv_address *out);

/* Starts a lookup. Returns 0 or a negative errno; -EBUSY: a lookup is already running. For a
 * numeric address r->ripe is set. The caller must then soon call uv_resolve_ripe() from its loop,
 * and that function calls done(). */
int uv_resolve_start(uv_loop_t *loop, struct uv_resolve *r, const char *address);
void uv_resolve_ripe(struct uv_resolve *r);
/* Cancels a lookup. Returns false if it cannot be stopped; *r must then not be freed. */
bool uv_resolve_cancel(struct uv_resolve *r);

/* Writes an address as text: "127.0.0.1:7100" or "[::1]:7100". IPv4-mapped addresses are written
 * as IPv4. */
void uv_resolve_text(const struct sockaddr *a, char out[UV_RESOLVE_TEXT]);
/* Writes the host without brackets or port. */
void uv_resolve_host(const struct sockaddr *a, char out[UV_RESOLVE_TEXT]);
bool uv_resolve_same(const union uv_address *a, const union uv_address *b);
bool uv_resolve_loopback(const union uv_address *a);
/* Returns whether the address is 0.0.0.0 or [::], also in IPv4-mapped form. Both mean all addresses
 * of the machine. */
bool uv_resolve_wildcard(const union uv_address *a);
/* Returns whether the address is a multicast address or 255.255.255.255, also in IPv4-mapped form.
 * TCP cannot connect to such an address. */
bool uv_resolve_group(const union uv_address *a);
/* Returns the addresses of both ends of a socket. An unknown address is all zero, such as `remote`
 * of a listening socket. */
void uv_resolve_names(const uv_tcp_t *tcp, union uv_address *local, union uv_address *remote);

#endif
