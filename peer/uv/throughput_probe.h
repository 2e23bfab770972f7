/* peer/uv/throughput_probe.h -- measures the throughput of a session's socket with figures of the kernel.
 *
 * Linux counts the acknowledged bytes of a connection, and the time during which some bytes were not
 * acknowledged (TCP_INFO: tcpi_bytes_acked, tcpi_busy_time). The probe reads both whenever something is
 * sent on an idle connection, which gives one *burst* after the other (gossip/exchange/uplink.h). The
 * cost is one system call per burst.
 *
 *   bytes  ----####-------#---####-----
 *   read       ^          ^   ^        ^ and when somebody asks
 *
 * The time comes in ticks (4 ms at 250 Hz). A burst begins anywhere in a tick, so that sums
 * over many are right, though each is off by up to one.
 *
 * On other systems nothing is ever known.
 */
#ifndef PEER_UV_THROUGHPUT_PROBE_H
#define PEER_UV_THROUGHPUT_PROBE_H

#include "gossip/exchange/uplink.h"

#include <stdint.h>

struct uv_carried
{
    uint64_t acked, busy_us;     /* The connection's totals when it was last read. */
    struct uplink_bursts bursts; /* Bursts since they were last read. */
    double rtt_us;               /* The least round trip; 0: not known. */
};

/* The connection begins to count: what it carried before does not. */
void uv_carried_init(struct uv_carried *c, int fd);
/* Something is about to be sent: if nothing is outstanding, a burst has ended. */
void uv_carried_look(struct uv_carried *c, int fd);
/* The bursts since they were last taken; one that is under way is cut here. */
struct uplink_bursts uv_carried_take(struct uv_carried *c, int fd);

/* A whole message has come: say so at once. Else the system may wait for up to 40 ms for
 * something to say it with, and the other end would take that for the link's doing. */
void uv_carried_acknowledge(int fd);

#endif
