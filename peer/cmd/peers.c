/* peer/cmd/peers.c -- --min-peers and --topology against the number of peers. */
#include "peer/cmd/peers.h"

#include "topology/topology.h"

#include <assert.h>
#include <stdio.h>

int cmd_peers_flags(const struct options *o, uint32_t n, struct run_flags *flags)
{
    char error[RUN_ERROR_MAX], text[24];
    const char *topology = options_text(o, "topology");
    unsigned least = options_given(o, "min-peers") ? (unsigned)options_uint(o, "min-peers") : n;
    unsigned made_for = topology_peers(topology);
    if (least > n)
        return cmd_fail(o, CMD_USAGE, "--min-peers: found %u, expected at most the %u of --peers",
                        least, (unsigned)n);
    if (made_for != 0 && made_for != n)
        return cmd_fail(o, CMD_USAGE, "--topology: %.100s is for %u peers, but --peers is %u",
                        topology, made_for, (unsigned)n);
    *flags = o->run;
    snprintf(text, sizeof text, "%u", least);
    int err = run_flags_set(flags, "min-peers", text, error);
    assert(err == 0); /* The row has the key's range. */
    return CMD_OK;
}
