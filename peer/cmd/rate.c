/* peer/cmd/rate.c -- reads a rate and its unit, and --uplink. */
#include "peer/cmd/rate.h"

#include "nn/math/number.h"
#include "peer/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool cmd_rate(const char *text, double *bits_per_s)
{
    static const struct
    {
        const char *name;
        double factor;
    } units[] = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"Tbit", 1e12}};
    char number[24];
    size_t n = strspn(text, "0123456789.");
    double value;
    if (n == 0 || n >= sizeof number || text[0] == '.' || text[n - 1] == '.')
        return false;
    memcpy(number, text, n);
    number[n] = '\0';
    if (!number_real(number, &value) || !(value > 0))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + n, units[i].name) == 0) {
            *bits_per_s = value * units[i].factor;
            return true;
        }
    }
    return false;
}

int cmd_uplink(const struct options *o, struct node_config *c)
{
    const char *text = options_text(o, "uplink");
    double bits_per_s = 0;
    c->uplink = NODE_UPLINK_AUTO;
    if (text == NULL || strcmp(text, "auto") == 0)
        return CMD_OK;
    c->uplink = NODE_UPLINK_OFF;
    if (strcmp(text, "off") == 0)
        return CMD_OK;
    if (!cmd_rate(text, &bits_per_s))
        return cmd_fail(o, CMD_USAGE, "--uplink: found '%.60s', expected auto, off, or %s", text,
                        CMD_RATE_EXPECTED);
    c->uplink = NODE_UPLINK_RATE;
    c->uplink_rate = bits_per_s / 8;
    return CMD_OK;
}

int cmd_uplink_fits(const struct options *o, const struct run *run, char error[RUN_ERROR_MAX])
{
    const char *text = options_text(o, "uplink");
    if (text == NULL || strcmp(text, "off") == 0 || strcmp(run->compress, RUN_AUTO) == 0)
        return 0;
    snprintf(error, RUN_ERROR_MAX,
             "--uplink %.40s: the run has --compress %.60s, and the link chooses a codec only with "
             "--compress auto",
             text, run->compress);
    return -EINVAL;
}
