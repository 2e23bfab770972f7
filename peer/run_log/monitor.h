/* peer/run_log/monitor.h -- serves the state of a running peer over HTTP (--metrics). Runs on the
 * event loop and feeds peer/http.
 *
 *   open    starts the HTTP server, which answers that the peer has not started yet
 *   start   called before the event loop runs: takes a snapshot every second
 *   round   adds a point to the history after each round
 *   stop    called after the event loop has ended: no more snapshots
 *   close   stops the HTTP server
 *
 * All functions do nothing if --metrics is not given.
 */
#ifndef PEER_RUN_LOG_MONITOR_H
#define PEER_RUN_LOG_MONITOR_H

#include "peer/http/server.h"
#include "peer/run_log/run_log.h"
#include "peer/uv/driver.h"
#include "peer/uv/resolve.h"

enum {
    DIARY_MONITOR_ADDRESS = 300, /* Size of an address "HOST:PORT", in bytes. */
    DIARY_MONITOR_ERROR = 400    /* Size of an error message, in bytes. */
};

/* HTTP monitor of one peer. Set all bytes to zero before the first use. */
struct diary_monitor
{
    struct server *server; /* HTTP server. NULL: --metrics is not given. */
    /* Run log of this peer, which knows its files. Borrowed. */
    const struct run_log *diary;
    /* Identity of this peer, borrowed. */
    const uint8_t *id;
    /* Driver of the peer, borrowed. Set by diary_monitor_start(). */
    struct uv_driver *driver;
    uv_timer_t timer;
    /* True while the snapshot timer runs. */
    bool ticks;
    /* One point per completed round, for the graphs of the live page. */
    struct history history;
    /* Most recent graph, kept so that an unchanged graph is not computed again. */
    struct snapshot_graph graph;
};

/* Splits an address into host and port: "7200", ":7200" (host 127.0.0.1) or "HOST:7200". An IPv6
 * host is in brackets. Returns 0 or -EINVAL. */
__attribute__((warn_unused_result)) int diary_monitor_split(const char *given,
                                                            char host[UV_RESOLVE_HOST_MAX + 1],
                                                            uint16_t *port);
/* Checks whether this process can serve the page at `given` (--metrics) now. Returns 0, or a
 * negative errno such as -EADDRINUSE with a message. */
int diary_monitor_try(const char *given, char error[DIARY_MONITOR_ERROR]);

/* Starts the HTTP server at the address `given`, for the peer with this run log and configuration,
 * and reports the address with a note. `given` NULL: --metrics is not given, and no server starts.
 * `c->id` must stay valid until diary_monitor_close(). Starts a thread, which inherits the caller's
 * signal mask. Returns 0, or a negative errno with a message. */
__attribute__((warn_unused_result)) int diary_monitor_open(struct diary_monitor *m,
                                                           const char *given,
                                                           const struct run_log *diary,
                                                           const struct node_config *c,
                                                           char error[DIARY_MONITOR_ERROR]);
/* Starts the timer that takes a snapshot every second on `loop`. `d` is borrowed until
 * diary_monitor_stop(). */
void diary_monitor_start(struct diary_monitor *m, uv_loop_t *loop, struct uv_driver *d);
/* Adds a completed round to the history. `time_s`: time of the round, in seconds. */
void diary_monitor_round(struct diary_monitor *m, const struct node_progress *p, double time_s);
/* Begins to close the timer. The loop must run once more to complete the close. */
void diary_monitor_stop(struct diary_monitor *m);
/* Stops the HTTP server and its thread. */
void diary_monitor_close(struct diary_monitor *m);

#endif
