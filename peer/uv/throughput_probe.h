/* peer/uv/throughput_probe.h -- measures the throughput of a session's socket with figures of
 * the kernel.
 *
 * Linux counts the acknowledged bytes of a connection, and the time during which some bytes were
 * not acknowledged (TCP_INFO: tcpi_bytes_acked, tcpi_busy_time). A *burst* is a period in which
 * bytes are unacknowledged (gossip/exchange/uplink.h). The probe reads both counters when
 * something is sent on an idle connection, which ends the previous burst. The cost is one system
 * call per burst.
 *
 *   bytes in flight  ----####-------#---####-----
 *   counters read        ^          ^   ^        ^ and when uv_carried_take() is called
 *
 * The kernel measures the time in ticks (4 ms at 250 Hz). A burst begins anywhere in a tick, so
 * the time of one burst is wrong by up to one tick, but the sum over many bursts is right.
 *
 * On systems other than Linux nothing is measured.
 */
#ifndef PEER_UV_THROUGHPUT_PROBE_H
#define PEER_UV_THROUGHPUT_PROBE_H

#include "gossip/exchange/uplink.h"

#include <stdint.h>

struct uv_carried
{
    /* Counters of the connection when they were last read: acknowledged bytes and busy time. */
    uint64_t acked, busy_us;
    /* Bursts of sent bytes measured since the last uv_carried_take(). */
    struct uplink_bursts bursts;
    double rtt_us; /* Smallest round-trip time in microseconds. 0: unknown. */
};

/* Starts to measure the connection `fd`. Earlier traffic is not counted. */
void uv_carried_init(struct uv_carried *c, int fd);
/* Called before something is sent. If the other end has acknowledged all bytes sent so far, the
 * current burst has ended and is recorded. */
void uv_carried_look(struct uv_carried *c, int fd);
/* Returns the bursts measured since the last call of this function. A burst that is still in
 * progress is counted up to now, and its rest counts as a new burst. */
struct uplink_bursts uv_carried_take(struct uv_carried *c, int fd);

/* Acknowledges a complete message at once. Otherwise the kernel may delay the acknowledgement by
 * up to 40 ms, which the sender would count as time of the link. */
void uv_carried_acknowledge(int fd);

#endif
