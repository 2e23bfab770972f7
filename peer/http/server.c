/* peer/http/server.c -- runs libmicrohttpd: its thread, its connections, and cached responses. */
#include "peer/http/server.h"

#include "nn/math/c_locale.h"
#include "peer/http/routes.h"
#include "peer/http/snapshot_exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    /* Number of connections that may wait in the kernel to be accepted. The number is so large that
     * a burst of connections does not make the kernel drop the SYN packet of an honest client. */
    BACKLOG = 512,
    /* Lifetime of a cached response in microseconds. A newer snapshot ends it earlier. */
    KEPT_US = 1000 * 1000,
    /* Largest number of connections, including connections that were replaced by newer ones and are
     * still closing. */
    HARD_MAX = 2 * SERVER_CLIENTS,
    LEAST_URGENT = 19
};

/* A cached response, which may answer several requests. */
struct kept
{
    struct MHD_Response *response; /* The cached response. NULL: nothing is cached. */
    uint64_t number;               /* Number of the snapshot from which the response was made. */
    int64_t made_us;               /* Time at which the response was made, in microseconds. */
    unsigned status;
};

/* The HTTP server. Once the HTTP thread runs, only this thread uses the fields, except `board` and
 * `port`. */
struct server
{
    struct snapshot_exchange board;
    struct routes routes;
    struct hosts hosts;
    struct MHD_Daemon *daemon;
    uint16_t port;
    bool calm; /* True: the HTTP thread has already set its own priority to the lowest. */
    struct kept kept[ROUTES_KEPT];
    struct
    {
        int fd; /* Socket of the connection. -1: free entry. */
        /* Sequence number of the connection. The oldest connection has the smallest number. */
        uint64_t since;
    } client[HARD_MAX];
    uint64_t n_clients;
};

/* Returns the present time, by the same clock as snapshot.taken_us. */
static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- Accepting connections ---- */

/* Gives the HTTP thread the lowest priority, because training is more important. On Linux each
 * thread has its own priority. */
static void calm_down(struct server *s)
{
#ifdef __linux__
    if (!s->calm)
        (void)setpriority(PRIO_PROCESS, 0, LEAST_URGENT);
#endif
    s->calm = true;
}

/* Adds a connection. If there are more than SERVER_CLIENTS, calls shutdown() on the oldest one;
 * libmicrohttpd detects this and closes the connection. */
static void add_client(struct server *s, int fd)
{
    int oldest = -1, free_one = -1, n = 0;
    for (int i = 0; i < HARD_MAX; i++) {
        if (s->client[i].fd < 0) {
            free_one = i;
            continue;
        }
        n++;
        if (oldest < 0 || s->client[i].since < s->client[oldest].since)
            oldest = i;
    }
    if (n >= SERVER_CLIENTS) {
        shutdown(s->client[oldest].fd, SHUT_RDWR);
        /* The oldest connection, which is being closed, gets the largest sequence number, so that
         * it is not chosen again as the oldest one. */
        s->client[oldest].since = UINT64_MAX;
    }
    if (free_one < 0)
        return;
    s->client[free_one].fd = fd;
    s->client[free_one].since = ++s->n_clients;
}

static void remove_client(struct server *s, int fd)
{
    for (int i = 0; i < HARD_MAX; i++)
        if (s->client[i].fd == fd)
            s->client[i].fd = -1;
}

static void on_connection(void *self, struct MHD_Connection *c, void **of_socket,
                          enum MHD_ConnectionNotificationCode code)
{
    struct server *s = self;
    (void)of_socket;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    calm_down(s);
    if (info == NULL)
        return;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        add_client(s, info->connect_fd);
    else
        remove_client(s, info->connect_fd);
}

/* ---- Answering requests ---- */

static struct MHD_Response *response_of(struct routes_answer *a)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(a->body.n, a->body.p, MHD_RESPMEM_MUST_COPY);
    if (r == NULL)
        return NULL;
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    (void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (a->policy != NULL)
        (void)MHD_add_response_header(r, "Content-Security-Policy", a->policy);
    if (a->allow != NULL)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, a->allow);
    return r;
}

/* Returns the cached response if it is still valid, else NULL. */
static const struct kept *find_kept(const struct server *s, int place, const struct snapshot *shot,
                                    int64_t now)
{
    const struct kept *k = place >= 0 ? &s->kept[place] : NULL;
    bool good =
        k != NULL && k->response != NULL && k->number == shot->number && now - k->made_us < KEPT_US;
    return good ? k : NULL;
}

/* Caches a response and releases the previous one. libmicrohttpd frees a response when the last
 * client has received it. */
static void keep(struct kept *k, struct MHD_Response *r, unsigned status, uint64_t number,
                 int64_t now)
{
    if (k->response != NULL)
        MHD_destroy_response(k->response);
    *k = (struct kept){.response = r, .number = number, .made_us = now, .status = status};
}

static enum MHD_Result answer(struct server *s, struct MHD_Connection *c, const char *method,
                              const char *path)
{
    int64_t now = now_us();
    const struct snapshot *shot = snapshot_exchange_read(&s->board);
    const struct kept *k = find_kept(s, routes_place(method, path), shot, now);
    if (k != NULL)
        return MHD_queue_response(c, k->status, k->response);
    struct routes_answer a;
    routes_answer(&s->routes, method, path, shot, now, &a);
    struct MHD_Response *r = response_of(&a);
    text_close(&a.body);
    if (r == NULL)
        return MHD_NO;
    enum MHD_Result result = MHD_queue_response(c, a.status, r);
    if (a.place >= 0)
        keep(&s->kept[a.place], r, a.status, shot->number, now);
    else
        MHD_destroy_response(r);
    return result;
}

struct host_headers
{
    const char *last;
    int n;
};

static enum MHD_Result on_header(void *self, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    struct host_headers *h = self;
    (void)kind;
    if (strcasecmp(key, MHD_HTTP_HEADER_HOST) != 0)
        return MHD_YES;
    h->last = value;
    h->n++;
    return MHD_YES;
}

/* Returns whether the Host header is allowed or missing. An HTTP/1.0 client may send none, but
 * every browser sends one. */
static bool is_for_us(const struct server *s, struct MHD_Connection *c)
{
    struct host_headers h = {.n = 0};
    (void)MHD_get_connection_values(c, MHD_HEADER_KIND, on_header, &h);
    return h.n == 0 || (h.n == 1 && h.last != NULL && hosts_allow(&s->hosts, h.last));
}

static enum MHD_Result answer_stranger(struct MHD_Connection *c)
{
    struct routes_answer a;
    routes_misdirected(&a);
    struct MHD_Response *r = response_of(&a);
    text_close(&a.body);
    if (r == NULL)
        return MHD_NO;
    enum MHD_Result result = MHD_queue_response(c, a.status, r);
    MHD_destroy_response(r);
    return result;
}

/* Returns whether the request has a body, whatever its method. */
static bool has_body(struct MHD_Connection *c)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH) != NULL
           || MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING)
                  != NULL;
}

/* Called by libmicrohttpd when the header of a request has arrived, and once more when the request
 * is complete. A request without a body is answered in the second call, so that the connection
 * stays open. A request with a body is answered in the first call: its body is not read, and
 * libmicrohttpd closes the connection. */
static enum MHD_Result on_request(void *self, struct MHD_Connection *c, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *n_upload, void **of_request)
{
    /* The HTTP thread has the locale of the program, which may write 0.5 as "0,5". The numbers in
     * the answer need the C locale. */
    C_LOCALE_HERE;
    (void)version, (void)upload, (void)n_upload;
    if (*of_request == NULL && !has_body(c)) {
        *of_request = self;
        return MHD_YES;
    }
    return is_for_us(self, c) ? answer(self, c, method, path) : answer_stranger(c);
}

/* ---- Starting and stopping the server ---- */

static uint16_t port_of(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

/* Returns a new listening socket for the HTTP server, or a negative errno. */
static int listen_at(const struct sockaddr *address, socklen_t n)
{
    int on = 1, fd = socket(address->sa_family, SOCK_STREAM, 0);
    if (fd < 0)
        return -errno;
    bool good = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0
                && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && bind(fd, address, n) == 0
                && listen(fd, BACKLOG) == 0;
    if (good)
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

/* Replaces libmicrohttpd's decoding of %XX in paths: leaves the path as it was sent. A decoded %00
 * would end the string, so that "/metrics%00x" would look like "/metrics". */
static size_t as_sent(void *self, struct MHD_Connection *c, char *text)
{
    (void)self, (void)c;
    return strlen(text);
}

static struct MHD_Daemon *start(struct server *s, int fd)
{
    return MHD_start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC, 0, NULL, NULL, on_request, s,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)HARD_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SERVER_STALL_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)SERVER_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, s, MHD_OPTION_UNESCAPE_CALLBACK, as_sent, NULL, MHD_OPTION_END);
}

int server_open(struct server **out, const struct sockaddr *address, socklen_t n,
                const struct hosts *hosts, char error[SERVER_ERROR_MAX])
{
    struct server *s = calloc(1, sizeof *s);
    int fd = -1, err = s != NULL ? snapshot_exchange_open(&s->board) : -ENOMEM;
    if (err < 0)
        goto failed;
    s->hosts = *hosts;
    for (int i = 0; i < HARD_MAX; i++)
        s->client[i].fd = -1;
    fd = listen_at(address, n);
    err = fd < 0 ? fd : 0;
    if (err < 0)
        goto failed;
    s->port = port_of(fd);
    s->daemon = start(s, fd);
    err = s->daemon != NULL ? 0 : -EAGAIN;
    if (err == 0) {
        *out = s;
        return 0;
    }
    close(fd);
failed:
    snprintf(error, SERVER_ERROR_MAX, "%s", strerror(-err));
    if (s != NULL)
        snapshot_exchange_close(&s->board);
    free(s);
    return err;
}

void server_close(struct server *s)
{
    if (s == NULL)
        return;
    MHD_stop_daemon(s->daemon);
    for (int i = 0; i < ROUTES_KEPT; i++)
        if (s->kept[i].response != NULL)
            MHD_destroy_response(s->kept[i].response);
    routes_close(&s->routes);
    snapshot_exchange_close(&s->board);
    free(s);
}

uint16_t server_port(const struct server *s)
{
    return s->port;
}

struct snapshot *server_blank(struct server *s)
{
    return snapshot_exchange_blank(&s->board);
}

void server_publish(struct server *s)
{
    snapshot_exchange_publish(&s->board);
}
