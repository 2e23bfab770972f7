/* peer/diary/monitor.h -- what a running peer tells over HTTP (--metrics): the loop's side of peer/page.
 *
 *   open    listens; from now on it answers that the peer has not begun
 *   start   the loop is about to run: a snapshot a second from now on
 *   round   a round is done: a point of its history
 *   stop    the loop has ended: no more snapshots
 *   close   nobody listens any more
 *
 * All of these do nothing where --metrics is not given.
 */
#ifndef PEER_DIARY_MONITOR_H
#define PEER_DIARY_MONITOR_H

#include "peer/diary/diary.h"
#include "peer/page/server.h"
#include "peer/uv/driver.h"
#include "peer/uv/resolve.h"

enum {
    DIARY_MONITOR_ADDRESS = 300, /* Bytes of "HOST:PORT", */
    DIARY_MONITOR_ERROR = 400    /* and of a sentence about it. */
};

/* Embed it, zeroed. */
struct diary_monitor
{
    struct server *server;     /* NULL: --metrics is not given. */
    const struct diary *diary; /* Borrowed, as is our identity. */
    const uint8_t *id;
    struct uv_driver *driver;
    uv_timer_t timer;
    bool ticks;
    struct history history;
    struct snapshot_graph graph; /* The last one that was made. */
    uint64_t accuracy_round;
};

/* "7200", ":7200" and "HOST:7200" become host and port; an IPv6 host has its brackets. 0 or -EINVAL. */
__attribute__((warn_unused_result)) int diary_monitor_split(const char *given,
                                                            char host[UV_RESOLVE_HOST_MAX + 1],
                                                            uint16_t *port);

/* Listens at `given`, the address of --metrics, for the peer with this diary and configuration. A
 * note reports the address. NULL: --metrics is not given, and nothing is opened. c->id must stay
 * valid until diary_monitor_close(). Starts a thread, which inherits the caller's signal mask.
 * Returns 0, or a negative errno with a message. */
__attribute__((warn_unused_result)) int diary_monitor_open(struct diary_monitor *m,
                                                           const char *given,
                                                           const struct diary *diary,
                                                           const struct node_config *c,
                                                           char error[DIARY_MONITOR_ERROR]);
void diary_monitor_start(struct diary_monitor *m, uv_loop_t *loop, struct uv_driver *d);
void diary_monitor_round(struct diary_monitor *m, const struct node_progress *p, double time_s);
/* Its timer begins to close, for which the loop has to run once more. */
void diary_monitor_stop(struct diary_monitor *m);
void diary_monitor_close(struct diary_monitor *m);

#endif
