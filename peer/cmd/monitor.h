/* peer/cmd/monitor.h -- what a running peer tells over HTTP (--metrics): the loop's side.
 *
 *   cmd_monitor_open      listens; from now on it answers that the peer has not begun
 *   cmd_monitor_start     the loop is about to run: a snapshot a second from now on
 *   cmd_monitor_measured  a round is done: a point of its history
 *   cmd_monitor_close
 *
 * All of these do nothing where --metrics is not given.
 */
#ifndef PEER_CMD_MONITOR_H
#define PEER_CMD_MONITOR_H

#include "peer/cmd/cmd.h"
#include "peer/cmd/peer_report.h"
#include "peer/page/server.h"

enum { CMD_MONITOR_ADDRESS = 300 /* Bytes of "HOST:PORT". */ };

#define CMD_ROW_METRICS                                                                            \
    {                                                                                              \
        .name = "metrics", .kind = OPTION_TEXT, .arg = "HOST:PORT",                                \
        .help = "serve figures over HTTP there: a live page for browsers at /, /metrics for "      \
                "Prometheus, /status.json, /healthz, /readyz; PORT alone is that of 127.0.0.1"     \
    }

struct cmd_monitor
{
    struct server *server; /* NULL: --metrics is not given. */
    char address[CMD_MONITOR_ADDRESS];
    struct cmd_peer_report *report; /* Borrowed, as is our identity. */
    const uint8_t *id;
    struct uv_driver *driver;
    uv_timer_t timer;
    bool ticks;
    struct history history;
    struct snapshot_graph graph; /* The last one that was made. */
    uint64_t accuracy_round;
};

/* Takes what the report is of. CMD_OK, or an exit code after a line that says what is wrong with --metrics. */
int cmd_monitor_open(struct cmd_monitor *m, const struct options *o, struct cmd_peer_report *report,
                     const uint8_t id[WIRE_ID_BYTES]);
void cmd_monitor_start(struct cmd_monitor *m, uv_loop_t *loop, struct uv_driver *d);
void cmd_monitor_measured(struct cmd_monitor *m, const struct node_progress *p, double time_s);
/* The loop has ended: no more snapshots, and its timer is closed. */
void cmd_monitor_stop(struct cmd_monitor *m, uv_loop_t *loop);
void cmd_monitor_close(struct cmd_monitor *m);

/* For `local`, whose n children have ports that follow each other. CMD_OK, or CMD_USAGE after a line
 * where --metrics leaves no room for them. */
int cmd_monitor_check(const struct options *o, uint32_t n);
/* What child i is given of a --metrics that was checked: `out`. */
const char *cmd_monitor_child(const struct options *o, uint32_t i, char out[CMD_MONITOR_ADDRESS]);

#endif
