/* peer/cmd/metrics_ports.c -- gives each peer of `hearsay local` its own port for --metrics. The
 * ports are consecutive. */
#include "peer/cmd/metrics_ports.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { TRIES = 100 /* Number of first ports that free_ports() tries. */ };

static void address_of(const char *host, uint32_t port, char out[DIARY_MONITOR_ADDRESS])
{
    bool six = strchr(host, ':') != NULL;
    snprintf(out, DIARY_MONITOR_ADDRESS, "%s%s%s:%u", six ? "[" : "", host, six ? "]" : "",
             (unsigned)port);
}

/* Returns how many of the n ports from `port` on are free, up to the first one that is not. If the
 * result is less than n, `error` says why this process cannot listen on the next port. */
static uint32_t free_ports(const char *host, uint32_t port, uint32_t n,
                           char error[DIARY_MONITOR_ERROR])
{
    char at[DIARY_MONITOR_ADDRESS];
    uint32_t i = 0;
    for (; i < n; i++) {
        address_of(host, port + i, at);
        if (diary_monitor_try(at, error) < 0)
            break;
    }
    return i;
}

/* Checks that all n ports are free, before the first of them is announced. Otherwise another run
 * may serve its page there. */
static int check_free(const struct options *o, const char *host, uint16_t port, uint32_t n)
{
    char error[DIARY_MONITOR_ERROR], ignored[DIARY_MONITOR_ERROR], at[DIARY_MONITOR_ADDRESS];
    uint32_t used = free_ports(host, port, n, error);
    if (used == n)
        return CMD_OK;
    for (uint32_t next = port + used + 1, k = 0; k < TRIES && next + n - 1 <= UINT16_MAX; k++) {
        uint32_t n_free = free_ports(host, next, n, ignored);
        address_of(host, next, at);
        if (n_free == n)
            return cmd_fail(o, CMD_USAGE, "%s (port of peer-%u of %u); try --metrics %s", error,
                            (unsigned)used, (unsigned)n, at);
        next += n_free + 1;
    }
    return cmd_fail(o, CMD_USAGE, "%s (port of peer-%u of %u); choose %u free ports", error,
                    (unsigned)used, (unsigned)n, (unsigned)n);
}

int cmd_metrics_ports_check(const struct options *o, uint32_t n)
{
    char host[UV_RESOLVE_HOST_MAX + 1], first[DIARY_MONITOR_ADDRESS];
    uint16_t port;
    const char *given = options_text(o, "metrics");
    if (given == NULL)
        return CMD_OK;
    if (diary_monitor_split(given, host, &port) < 0 || port == 0 || port + n - 1 > UINT16_MAX)
        return cmd_fail(
            o, CMD_USAGE,
            "--metrics: found '%.80s', expected PORT or HOST:PORT with a port from 1 to "
            "%u, so that each of %u peers has one",
            given, (unsigned)(UINT16_MAX - n + 1), (unsigned)n);
    int code = check_free(o, host, port, n);
    if (code != CMD_OK)
        return code;
    (void)cmd_metrics_ports_address(o, 0, first);
    return cmd_fail(
        o, CMD_OK,
        "a live page is at http://%s/, figures are at http://%s/metrics; the other peers use the "
        "next ports, up to %u",
        first, first, (unsigned)(port + n - 1));
}

const char *cmd_metrics_ports_address(const struct options *o, uint32_t i,
                                      char out[DIARY_MONITOR_ADDRESS])
{
    char host[UV_RESOLVE_HOST_MAX + 1];
    uint16_t port = 0;
    int err = diary_monitor_split(options_text(o, "metrics"), host, &port);
    assert(err == 0); /* cmd_metrics_ports_check() has already checked the value of --metrics. */
    address_of(host, port + i, out);
    return out;
}
