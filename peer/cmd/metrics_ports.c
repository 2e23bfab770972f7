/* peer/cmd/metrics_ports.c -- gives each peer of `hearsay local` its own port for --metrics. The
 * ports are consecutive. */
#include "peer/cmd/metrics_ports.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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
    bool six = strchr(host, ':') != NULL;
    snprintf(out, DIARY_MONITOR_ADDRESS, "%s%s%s:%u", six ? "[" : "", host, six ? "]" : "",
             (unsigned)(port + i));
    return out;
}
