/* peer/uv/resolve.c -- parses, looks up, compares and prints addresses, IPv4 and IPv6 alike. */
#include "peer/uv/resolve.h"

#include "nn/math/number.h"
#include "peer/uv/fd_reserve.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Returns whether a host name has a valid length, consists of printable ASCII without blanks and
 * brackets, and has no empty label, as in "a..b". Other characters cannot be part of a name and would
 * garble log lines. */
static bool host_ok(const char *host, size_t n)
{
    if (n == 0 || n > UV_RESOLVE_HOST_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (host[i] <= ' ' || host[i] > '~' || host[i] == '[' || host[i] == ']')
            return false;
        if (host[i] == '.' && (i == 0 || host[i - 1] == '.'))
            return false;
    }
    return true;
}

static bool read_port(const char *text, uint16_t *port)
{
    uint64_t number;
    const char *behind = number_digits(text, UINT16_MAX, &number);
    if (behind == NULL || *behind != '\0' || behind - text > 5)
        return false;
    *port = (uint16_t)number;
    return true;
}

int uv_resolve_split(const char *address, bool allow_any_port, char host[UV_RESOLVE_HOST_MAX + 1],
                     uint16_t *port)
{
    const char *colon = strrchr(address, ':');
    uint16_t number;
    if (colon == NULL || !read_port(colon + 1, &number) || (number == 0 && !allow_any_port))
        return -EINVAL;
    const char *begin = address, *end = colon;
    bool v6 = begin < end && *begin == '[' && end[-1] == ']';
    if (v6) {
        begin++;
        end--;
    }
    size_t n = (size_t)(end - begin);
    if (end < begin || !host_ok(begin, n))
        return -EINVAL;
    /* An IPv6 address without brackets is refused, because it does not show which colon precedes
     * the port. */
    if (!v6 && memchr(begin, ':', n))
        return -EINVAL;
    memcpy(host, begin, n);
    host[n] = '\0';
    *port = number;
    return 0;
}

const char *uv_resolve_expected(const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
    uint16_t port;
    bool wrong_port =
        digits > 0 && colon[1 + digits] == '\0' && (!read_port(colon + 1, &port) || port == 0);
    return wrong_port ? "a port from 1 to 65535" : "HOST:PORT";
}

int uv_resolve_numeric(const char *address, union uv_address *out)
{
    char host[UV_RESOLVE_HOST_MAX + 1];
    uint16_t port;
    if (uv_resolve_split(address, true, host, &port) < 0)
        return -EINVAL;
    memset(out, 0, sizeof *out);
    if (uv_ip4_addr(host, port, &out->v4) == 0)
        return 0;
    return uv_ip6_addr(host, port, &out->v6) == 0 ? 0 : -EINVAL;
}

bool uv_resolve_same(const union uv_address *a, const union uv_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET)
        return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return a->v6.sin6_port == b->v6.sin6_port && memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, 16) == 0
           && a->v6.sin6_scope_id == b->v6.sin6_scope_id;
}

bool uv_resolve_loopback(const union uv_address *a)
{
    if (a->any.sa_family == AF_INET)
        return (ntohl(a->v4.sin_addr.s_addr) >> 24) == 127;
    const uint8_t *p = a->v6.sin6_addr.s6_addr;
    if (memcmp(p, mapped, sizeof mapped) == 0)
        return p[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

bool uv_resolve_wildcard(const union uv_address *a)
{
    static const uint8_t none[4];
    if (a->any.sa_family == AF_INET)
        return a->v4.sin_addr.s_addr == htonl(INADDR_ANY);
    const uint8_t *p = a->v6.sin6_addr.s6_addr;
    if (memcmp(p, mapped, sizeof mapped) == 0)
        return memcmp(p + sizeof mapped, none, sizeof none) == 0;
    return IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

bool uv_resolve_group(const union uv_address *a)
{
    uint32_t v4 = ntohl(a->v4.sin_addr.s_addr);
    if (a->any.sa_family != AF_INET) {
        const uint8_t *p = a->v6.sin6_addr.s6_addr;
        if (memcmp(p, mapped, sizeof mapped) != 0)
            return IN6_IS_ADDR_MULTICAST(&a->v6.sin6_addr);
        p += sizeof mapped;
        v4 = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    return IN_MULTICAST(v4) || v4 == INADDR_BROADCAST;
}

/* Copies the distinct IPv4 and IPv6 addresses of a lookup to out[]. Returns their number. */
static uint32_t collect(const struct addrinfo *list, union uv_address out[UV_RESOLVE_MAX])
{
    uint32_t n = 0;
    for (const struct addrinfo *i = list; i && n < UV_RESOLVE_MAX; i = i->ai_next) {
        bool v4 = i->ai_family == AF_INET && i->ai_addrlen == sizeof out->v4;
        bool v6 = i->ai_family == AF_INET6 && i->ai_addrlen == sizeof out->v6;
        if (!v4 && !v6)
            continue;
        union uv_address a = {0};
        memcpy(&a, i->ai_addr, i->ai_addrlen);
        bool known = false;
        for (uint32_t j = 0; j < n; j++)
            known |= uv_resolve_same(&a, &out[j]);
        if (!known)
            out[n++] = a;
    }
    return n;
}

static void on_answer(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct uv_resolve *r = request->data;
    union uv_address answer[UV_RESOLVE_MAX];
    uint32_t n = status == 0 ? collect(list, answer) : 0;
    uv_freeaddrinfo(list);
    r->busy = false;
    r->done(r, answer, n);
}

/* Starts to look up a name on libuv's threads. libuv starts these threads for the first lookup, and
 * aborts the process if they cannot start. Before the first lookup, uv_spare_pool() therefore
 * checks that they can start (fd_reserve.h). */
static int ask(uv_loop_t *loop, struct uv_resolve *r, const char *host, uint16_t port)
{
    char service[6];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int err = r->threaded ? 0 : uv_spare_pool();
    if (err == 0)
        err = uv_getaddrinfo(loop, &r->request, on_answer, host, service, &hints);
    r->threaded |= err == 0;
    return err;
}

int uv_resolve_start(uv_loop_t *loop, struct uv_resolve *r, const char *address)
{
    char host[UV_RESOLVE_HOST_MAX + 1];
    uint16_t port;
    if (r->busy)
        return -EBUSY;
    if (uv_resolve_split(address, false, host, &port) < 0)
        return -EINVAL;
    r->request.data = r;
    r->ripe = uv_resolve_numeric(address, &r->answer) == 0;
    int err = r->ripe ? 0 : ask(loop, r, host, port);
    r->busy = err == 0;
    return err;
}

void uv_resolve_ripe(struct uv_resolve *r)
{
    if (!r->ripe)
        return;
    /* r->answer is copied, because done() may start the next lookup, which overwrites it. */
    union uv_address answer = r->answer;
    r->ripe = r->busy = false;
    r->done(r, &answer, 1);
}

bool uv_resolve_cancel(struct uv_resolve *r)
{
    if (r->ripe)
        r->ripe = r->busy = false;
    return !r->busy || uv_cancel((uv_req_t *)&r->request) == 0;
}

void uv_resolve_host(const struct sockaddr *a, char out[UV_RESOLVE_TEXT])
{
    union uv_address u = {0};
    out[0] = '\0';
    if (a->sa_family == AF_INET) {
        memcpy(&u.v4, a, sizeof u.v4);
        uv_ip4_name(&u.v4, out, UV_RESOLVE_TEXT);
    } else if (a->sa_family == AF_INET6) {
        memcpy(&u.v6, a, sizeof u.v6);
        const uint8_t *p = u.v6.sin6_addr.s6_addr;
        if (memcmp(p, mapped, sizeof mapped) == 0)
            uv_inet_ntop(AF_INET, p + sizeof mapped, out, UV_RESOLVE_TEXT);
        else
            uv_ip6_name(&u.v6, out, UV_RESOLVE_TEXT);
    }
}

void uv_resolve_text(const struct sockaddr *a, char out[UV_RESOLVE_TEXT])
{
    char host[UV_RESOLVE_TEXT];
    uv_resolve_host(a, host);
    /* sin_port also reads the port of an IPv6 address, because it is at the same offset as
     * sin6_port. */
    uint16_t port = 0;
    union uv_address u = {0};
    memcpy(&u.v4, a, sizeof u.v4);
    port = ntohs(u.v4.sin_port);
    assert(strlen(host) < UV_RESOLVE_TEXT - 9);
    const char *format = strchr(host, ':') ? "[%.54s]:%u" : "%.54s:%u";
    snprintf(out, UV_RESOLVE_TEXT, format, host, (unsigned)port);
}

void uv_resolve_names(const uv_tcp_t *tcp, union uv_address *local, union uv_address *remote)
{
    int n = sizeof *local;
    memset(local, 0, sizeof *local);
    memset(remote, 0, sizeof *remote);
    (void)uv_tcp_getsockname(tcp, &local->any, &n);
    n = sizeof *remote;
    (void)uv_tcp_getpeername(tcp, &remote->any, &n);
}
