/* peer/uv/throughput_probe.c -- measures the throughput of a connection from the kernel's TCP_INFO,
 * and acknowledges data at once (TCP_QUICKACK). */
#include "peer/uv/throughput_probe.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __linux__

/* The kernel's header is used, because struct tcp_info of libc lacks the last fields, such as
 * tcpi_bytes_acked. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* Reads TCP_INFO. Returns false on error, or if the kernel is too old to have the needed fields. */
static bool read_info(int fd, struct tcp_info *info)
{
    socklen_t n = sizeof *info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &n) == 0
           && n >= offsetof(struct tcp_info, tcpi_rwnd_limited);
}

static void end_burst(struct uv_carried *c, const struct tcp_info *info)
{
    uint64_t bytes = info->tcpi_bytes_acked - c->acked;
    if (bytes > 0)
        uplink_burst(&c->bursts, (double)bytes, (double)(info->tcpi_busy_time - c->busy_us));
    c->acked = info->tcpi_bytes_acked;
    c->busy_us = info->tcpi_busy_time;
    c->rtt_us = info->tcpi_min_rtt < UINT32_MAX ? (double)info->tcpi_min_rtt : 0;
}

void uv_carried_init(struct uv_carried *c, int fd)
{
    struct tcp_info info;
    *c = (struct uv_carried){.acked = 0};
    if (read_info(fd, &info))
        end_burst(c, &info);
    c->bursts = (struct uplink_bursts){.n = 0};
}

void uv_carried_look(struct uv_carried *c, int fd)
{
    struct tcp_info info;
    if (read_info(fd, &info) && info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0)
        end_burst(c, &info);
}

struct uplink_bursts uv_carried_take(struct uv_carried *c, int fd)
{
    struct tcp_info info;
    if (read_info(fd, &info))
        end_burst(c, &info);
    struct uplink_bursts taken = c->bursts;
    c->bursts = (struct uplink_bursts){.n = 0};
    return taken;
}

void uv_carried_acknowledge(int fd)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

#else

void uv_carried_init(struct uv_carried *c, int fd)
{
    (void)fd;
    *c = (struct uv_carried){.acked = 0};
}

void uv_carried_look(struct uv_carried *c, int fd)
{
    (void)c, (void)fd;
}

struct uplink_bursts uv_carried_take(struct uv_carried *c, int fd)
{
    (void)c, (void)fd;
    return (struct uplink_bursts){.n = 0};
}

void uv_carried_acknowledge(int fd)
{
    (void)fd;
}

#endif
