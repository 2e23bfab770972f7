/* peer/uv/settings.c -- checks the options of one peer and stores them in a driver's
 * configuration. */
#include "peer/uv/settings.h"

#include "nn/files/file.h"
#include "nn/math/number.h"
#include "peer/admission/token.h"
#include "peer/node/step/evaluation.h"
#include "peer/run/duration.h"
#include "peer/run/rate.h"
#include "peer/uv/accept.h"
#include "peer/uv/allow_list_watcher.h"
#include "peer/uv/identity.h"
#include "peer/uv/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SPARE_PORTS = 100, /* Number of ports that next_free_port() tries. */
    SHOWN = 8          /* Number of hexadecimal digits of a public key that an error text shows. */
};

__attribute__((format(printf, 3, 4))) static int refuse(char error[SETTINGS_ERROR_MAX], int err,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, SETTINGS_ERROR_MAX, format, args);
    va_end(args);
    return err;
}

int settings_begin(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX])
{
    uv_timeval64_t now;
    uint64_t random[2];
    if (uv_gettimeofday(&now) < 0 || uv_random(NULL, NULL, random, sizeof random, 0, NULL) < 0)
        return refuse(error, -EIO, "cannot get the time or random bytes from the system");
    c->node.boot = random[0];
    c->node.own_seed = random[1];
    /* The incarnation is the start time in ms, times 2^20. A process that starts later therefore
     * has a larger incarnation, even if the earlier process has incremented its own incarnation. */
    c->node.incarnation = ((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000) << 20;
    c->node.crypto = &s->crypto;
    c->identity = &s->identity;
    c->psk = s->psk;
    return 0;
}

/* ---- Lists of addresses ---- */

static int cut_list(const struct options *o, const char *option, uint32_t max,
                    struct settings_list *list, char error[SETTINGS_ERROR_MAX])
{
    const char *text = options_text(o, option);
    if (text == NULL)
        return 0;
    if (strlen(text) >= sizeof list->text)
        return refuse(error, -EINVAL, "--%s: found %zu characters, expected fewer than %d", option,
                      strlen(text), SETTINGS_LIST_MAX);
    strcpy(list->text, text);
    char *rest = list->text, *one;
    while ((one = strsep(&rest, ",")) != NULL) {
        char host[UV_RESOLVE_HOST_MAX + 1];
        uint16_t port;
        if (*one == '\0')
            return refuse(error, -EINVAL,
                          "--%s: found '%.80s', expected HOST:PORT,... without empty addresses",
                          option, text);
        if (uv_resolve_split(one, false, host, &port) < 0)
            return refuse(error, -EINVAL, "--%s: found '%.80s', expected %s", option, one,
                          uv_resolve_expected(one));
        if (list->n == max)
            return refuse(error, -EINVAL, "--%s: found more than %u addresses", option,
                          (unsigned)max);
        list->at[list->n++] = one;
    }
    return 0;
}

int settings_addresses(struct settings *s, struct uv_driver_config *c,
                       char error[SETTINGS_ERROR_MAX])
{
    int err = cut_list(s->o, "bootstrap", NODE_SEEDS_MAX, &s->bootstrap, error);
    if (err == 0)
        err = cut_list(s->o, "advertise", WIRE_ADDRESSES_MAX, &s->advertise, error);
    for (uint32_t i = 0; i < s->advertise.n && err == 0; i++) {
        union uv_address a;
        if (uv_resolve_numeric(s->advertise.at[i], &a) == 0
            && (uv_resolve_wildcard(&a) || uv_resolve_group(&a)))
            err =
                refuse(error, -EINVAL,
                       "--advertise: found '%.80s', expected an address that other peers can call",
                       s->advertise.at[i]);
    }
    c->node.bootstrap = s->bootstrap.at;
    c->node.n_bootstrap = s->bootstrap.n;
    c->node.advertise = s->advertise.at;
    c->node.n_advertise = s->advertise.n;
    return err;
}

/* ---- Listening address -------------------------------------------------- */

static uint16_t port_of(const union uv_address *a)
{
    /* sin_port also reads the port of an IPv6 address, because it is at the same offset as
     * sin6_port. */
    return ntohs(a->v4.sin_port);
}

static void set_port(union uv_address *a, uint16_t port)
{
    a->v4.sin_port = htons(port);
}

/* Returns whether a socket can be bound to the address, which is possible only if the address
 * belongs to this machine. */
static bool is_local(const struct addrinfo *found)
{
    union uv_address a = {0};
    if (found->ai_addrlen > sizeof a)
        return false;
    memcpy(&a, found->ai_addr, found->ai_addrlen);
    set_port(&a, 0);
    return uv_accept_try(&a) == 0;
}

/* Returns whether an address "host:port" names the given port on this machine. */
static bool names_local(const char *address, uint16_t port)
{
    char host[UV_RESOLVE_HOST_MAX + 1];
    uint16_t its_port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    bool local = false;
    if (uv_resolve_split(address, false, host, &its_port) < 0 || its_port != port
        || getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    for (const struct addrinfo *i = found; i != NULL && !local; i = i->ai_next)
        local = is_local(i);
    freeaddrinfo(found);
    return local;
}

/* Returns the next free port above the port of `a`. 0: the next SPARE_PORTS ports are in use. */
static uint16_t next_free_port(const union uv_address *a)
{
    union uv_address next = *a;
    for (uint32_t port = port_of(a) + 1u;
         port <= port_of(a) + (uint32_t)SPARE_PORTS && port <= 65535; port++) {
        set_port(&next, (uint16_t)port);
        if (uv_accept_try(&next) == 0)
            return (uint16_t)port;
    }
    return 0;
}

/* Moves the second of two peers on one machine to a free port. The commands of the README start
 * two such peers and name no port, so the second one finds the default port in use. */
bool settings_move(struct settings *s, struct uv_driver_config *c)
{
    union uv_address first;
    bool local = false;
    if (options_given(s->o, "listen")
        || uv_resolve_numeric(options_text(s->o, "listen"), &first) < 0)
        return false;
    for (uint32_t i = 0; i < s->bootstrap.n && !local; i++)
        local = names_local(s->bootstrap.at[i], port_of(&first));
    uint16_t port = local ? next_free_port(&first) : 0;
    if (port == 0)
        return false;
    set_port(&c->listen, port);
    snprintf(s->notice, sizeof s->notice,
             "port %u is in use on this machine, and --bootstrap names it: this peer listens on "
             "port %u; --listen HOST:PORT chooses another",
             (unsigned)port_of(&first), (unsigned)port);
    return true;
}

/* Chooses one of the addresses that a name stands for: an address of this machine, preferably one
 * that other machines can call. If no address belongs to this machine, chooses the first address;
 * listening then fails. */
static void pick(const struct addrinfo *found, union uv_address *out)
{
    const struct addrinfo *best = found;
    int best_rank = 0;
    for (const struct addrinfo *i = found; i != NULL; i = i->ai_next) {
        union uv_address a = {0};
        memcpy(&a, i->ai_addr, i->ai_addrlen < sizeof a ? i->ai_addrlen : sizeof a);
        int rank = !is_local(i) ? 0 : uv_resolve_loopback(&a) ? 1 : 2;
        best = rank > best_rank ? i : best;
        best_rank = rank > best_rank ? rank : best_rank;
    }
    memset(out, 0, sizeof *out);
    memcpy(out, best->ai_addr, best->ai_addrlen < sizeof *out ? best->ai_addrlen : sizeof *out);
}

static int look_up(const char *text, union uv_address *out, char error[SETTINGS_ERROR_MAX])
{
    char host[UV_RESOLVE_HOST_MAX + 1];
    uint16_t port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (uv_resolve_split(text, true, host, &port) < 0)
        return refuse(error, -EINVAL, "--listen: found '%.80s', expected %s, or fd:N", text,
                      uv_resolve_expected(text));
    int wrong = getaddrinfo(host, NULL, &hints, &found);
    if (wrong != 0)
        return refuse(error, -EINVAL, "--listen: cannot look up '%.80s': %s", host,
                      gai_strerror(wrong));
    pick(found, out);
    freeaddrinfo(found);
    set_port(out, port);
    return 0;
}

int settings_listen(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX])
{
    const char *text = options_text(s->o, "listen");
    uint64_t fd;
    s->notice[0] = '\0';
    if (strncmp(text, "fd:", 3) == 0 && number_whole(text + 3, &fd) && fd <= 65535) {
        c->listen_fd = (int)fd;
        if (fcntl((int)fd, F_GETFD) >= 0)
            return 0;
        return refuse(error, -EINVAL, "--listen: file descriptor %d is not open", (int)fd);
    }
    if (uv_resolve_numeric(text, &c->listen) < 0) {
        int err = look_up(text, &c->listen, error);
        if (err < 0)
            return err;
    }
    if (uv_resolve_group(&c->listen))
        return refuse(error, -EINVAL,
                      "--listen: found '%.80s', a multicast or broadcast address, expected an "
                      "address of this machine, or 0.0.0.0 or [::] for all of them",
                      text);
    if (!options_given(s->o, "listen") && uv_accept_try(&c->listen) == -EADDRINUSE)
        (void)settings_move(s, c);
    return 0;
}

void settings_not_listening(const struct settings *s, const struct uv_driver_config *c, int err,
                            char error[SETTINGS_ERROR_MAX])
{
    char address[UV_RESOLVE_TEXT];
    union uv_address other = c->listen;
    const char *text = options_text(s->o, "listen"), *why = uv_strerror(err);
    uint16_t port = err == -EADDRINUSE && c->listen_fd < 0 ? next_free_port(&other) : 0;
    if (c->listen_fd >= 0) {
        refuse(error, err, "cannot listen on %.80s: %s", text, why);
        return;
    }
    uv_resolve_text(&c->listen.any, address);
    set_port(&other, port);
    if (port != 0) {
        char free_one[UV_RESOLVE_TEXT];
        uv_resolve_text(&other.any, free_one);
        refuse(error, err, "cannot listen on %s: %s; try --listen %s, which is free", address, why,
               free_one);
    } else if (err == -EADDRINUSE) {
        refuse(error, err, "cannot listen on %s: %s; choose a free port with --listen HOST:PORT",
               address, why);
    } else if (err == -EADDRNOTAVAIL) {
        refuse(error, err,
               "cannot listen on %s: %s; expected an address of this machine, or 0.0.0.0 or [::] "
               "for all of them",
               address, why);
    } else if (err == -EACCES) {
        refuse(error, err, "cannot listen on %s: %s; expected a port above 1023", address, why);
    } else {
        refuse(error, err, "cannot listen on %s: %s", address, why);
    }
}

/* ---- Identity and admission ---- */

/* Makes a default name from the host name and the port. Without a port the process id is used. */
static void default_name(char name[WIRE_NAME_MAX + 1], unsigned port)
{
    char host[UV_MAXHOSTNAMESIZE] = "peer", clean[25];
    size_t n = sizeof host, k = 0;
    (void)uv_os_gethostname(host, &n);
    for (size_t i = 0; host[i] && k + 1 < sizeof clean; i++)
        clean[k++] =
            strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", host[i])
                ? host[i]
                : '-';
    clean[k] = '\0';
    snprintf(name, WIRE_NAME_MAX + 1, "%s-%u", clean,
             port ? port : (unsigned)uv_os_getpid() % 1000000);
}

int settings_name(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX])
{
    const char *name = options_text(s->o, "name");
    if (name == NULL)
        default_name(s->name, ntohs(c->listen.v4.sin_port));
    else if (!wire_name_ok(name))
        return refuse(error, -EINVAL,
                      "--name: found '%.80s', expected 1 to %d of A-Z a-z 0-9 . _ -", name,
                      WIRE_NAME_MAX);
    else
        strcpy(s->name, name);
    c->node.name = s->name;
    return 0;
}

int settings_key(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX])
{
    char why[KEYFILE_ERROR_MAX];
    (void)c;
    int err = keyfile_read(options_text(s->o, "key"), s->psk, why);
    return err < 0 ? refuse(error, -EINVAL, "--key: %s", why) : 0;
}

int settings_identity(struct settings *s, struct uv_driver_config *c, const char *path,
                      const char *owner, char error[SETTINGS_ERROR_MAX])
{
    char why[KEYFILE_ERROR_MAX];
    uint8_t seed[KEYFILE_BYTES];
    int err, lock = -1;
    /* If the peer has checkpoints, a missing identity file is an error: a peer with a new key could
     * not resume from them. */
    if (path != NULL && owner != NULL && access(path, F_OK) != 0) {
        size_t n_digits = strspn(owner, "0123456789abcdef");
        return refuse(error, -ENOKEY,
                      "identity: %.200s is missing, but there are checkpoints of the peer with key "
                      "%.*s; restore this file",
                      path, n_digits < SHOWN ? (int)n_digits : SHOWN, owner);
    }
    if (path != NULL) {
        err = uv_identity_own(path, seed, &lock, why);
    } else {
        err = uv_random(NULL, NULL, seed, sizeof seed, 0, NULL);
        if (err < 0)
            snprintf(why, sizeof why, "no random bytes: %s", uv_strerror(err));
    }
    if (err < 0)
        return refuse(error, err, "identity: %s", why);
    s->locks = lock >= 0;
    s->lock = lock;
    channel_identity_from_seed(&s->identity, seed);
    explicit_bzero(seed, sizeof seed);
    memcpy(c->node.id, s->identity.sign_pk, sizeof c->node.id);
    s->crypto = uv_identity_crypto(&s->identity);
    return 0;
}

int settings_members(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX])
{
    char why[UV_ROSTER_ERROR_MAX];
    const char *path = options_text(s->o, "members");
    if (path == NULL)
        return 0;
    int err = uv_roster_read(&s->listed, path, why);
    if (err < 0)
        return refuse(error, err == -ENOMEM ? err : -EINVAL, "--members: %s", why);
    c->members = path;
    c->listed = &s->listed;
    return 0;
}

/* The token file ends with a newline, as hearsay key invite writes it. */
static int read_token(const char *path, char text[TOKEN_TEXT + 64], char error[SETTINGS_ERROR_MAX])
{
    char why[FILE_ERROR_MAX];
    if (file_read_text(path, text, TOKEN_TEXT + 64, why) < 0)
        return refuse(error, -EINVAL, "--token: %s", why);
    text[strcspn(text, " \t\r\n")] = '\0';
    return 0;
}

int settings_token(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX])
{
    char why[KEYFILE_ERROR_MAX], text[TOKEN_TEXT + 64];
    const char *given = options_text(s->o, "token");
    if (given == NULL)
        return 0;
    if (given[0] == '@') {
        if (read_token(given + 1, text, error) < 0)
            return -EINVAL;
        given = text;
    }
    int err = token_certify(&s->certificate, given, s->identity.sign_pk, why);
    explicit_bzero(text, sizeof text);
    if (err < 0)
        return refuse(error, -EINVAL, "--token: %s", why);
    c->node.certificate = &s->certificate;
    return 0;
}

/* ---- Time limits and evaluation ----------------------------------------- */

int settings_duration(const struct options *o, const char *name, int64_t *us,
                      char error[SETTINGS_ERROR_MAX])
{
    const char *text = options_text(o, name);
    if (duration_parse(text, us))
        return 0;
    return refuse(error, -EINVAL, "--%s: found '%.40s', expected " DURATION_EXPECTED, name, text);
}

void settings_limits(const struct options *o, struct node_config *c)
{
    c->patience_us = (int64_t)(options_real(o, "quorum-timeout") * 1e6);
    c->worker_limit_us = (int64_t)(options_real(o, "straggler-timeout") * 1e6);
    c->evaluate_every = NODE_EVALUATE_AUTO;
    /* options_uint() returns 0 if --evaluate-samples is not given. The node then chooses the number
     * of samples. */
    c->evaluate_samples = options_uint(o, "evaluate-samples");
    if (!options_given(o, "evaluate-every"))
        return;
    c->evaluate_every = options_uint(o, "evaluate-every");
    if (c->evaluate_samples == 0)
        c->evaluate_samples = EVALUATION_SAMPLES;
}

int settings_uplink(const struct options *o, struct node_config *c, char error[SETTINGS_ERROR_MAX])
{
    const char *text = options_text(o, "bandwidth");
    double bits_per_s = 0;
    c->uplink = NODE_UPLINK_AUTO;
    if (text == NULL || strcmp(text, "auto") == 0)
        return 0;
    c->uplink = NODE_UPLINK_OFF;
    if (strcmp(text, "off") == 0)
        return 0;
    if (!rate_parse(text, &bits_per_s))
        return refuse(error, -EINVAL, "--bandwidth: found '%.60s', expected auto, off, or %s", text,
                      RATE_EXPECTED);
    c->uplink = NODE_UPLINK_RATE;
    c->uplink_rate = bits_per_s / 8;
    return 0;
}

int settings_uplink_fits(const struct options *o, const struct run *run, char error[RUN_ERROR_MAX])
{
    const char *text = options_text(o, "bandwidth");
    if (text == NULL || strcmp(text, "off") == 0 || strcmp(run->compress, RUN_AUTO) == 0)
        return 0;
    snprintf(error, RUN_ERROR_MAX,
             "--bandwidth %.40s: the run has --compress %.60s, expected --compress auto, the only "
             "setting that adapts codecs to the link",
             text, run->compress);
    return -EINVAL;
}

void settings_close(struct settings *s)
{
    allow_list_close(&s->listed);
    channel_identity_close(&s->identity);
    explicit_bzero(s->psk, sizeof s->psk);
    if (s->locks)
        close(s->lock);
    s->locks = false;
}
