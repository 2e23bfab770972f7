/* peer/uv/event_adapter.h -- translates callbacks of libuv to events of the node, and effects of
 * the node to calls of libuv.
 *
 * Included by driver.c (life cycle), event_adapter.c (events and effects) and
 * allow_list_watcher.c only.
 *
 *   uv_feed() --> node_step() --> sends, hang-ups, dials, lookups, notes,
 *                                 files, job, wake-up, exit
 *
 * A call of node_step() never starts within another one: the result of an effect is reported in a
 * later callback of the loop. There is one exception: after the effects are carried out, the same
 * call of uv_feed() reports whether the model was stored (NODE_KEPT).
 */
#ifndef PEER_UV_EVENT_ADAPTER_H
#define PEER_UV_EVENT_ADAPTER_H

#include "peer/uv/allow_list_watcher.h"
#include "peer/uv/driver.h"
#include "peer/uv/rejection_log.h"
#include "peer/uv/signal_debounce.h"
#include "peer/uv/traffic.h"
#include "peer/uv/writer.h"

struct uv_driver
{
    const struct uv_driver_config *config;
    uv_loop_t *loop;
    struct node *node;
    struct node_effects *fx;
    struct uv_link_net net;
    struct replay answered;
    struct uv_accept accept;
    struct rejection_log door;
    struct traffic traffic;
    /* Counts the checkpoints that could not be written since the last successful write, and limits
     * the warnings about them. */
    struct log_backoff unkept;
    struct uv_worker worker;
    /* The thread that writes checkpoints. It runs only if config->slots, the checkpoint store, is
     * set. */
    struct uv_writer writer;
    /* Copy of the node's state for the next checkpoint. The memory is exchanged with the writer. */
    struct state copy;
    /* Total time for which the node was paused to copy its state, in microseconds. */
    int64_t copy_us;
    /* Step counter of a checkpoint whose write could not be started, to be reported to the node. 0:
     * none. */
    uint64_t unwritten;
    uv_timer_t wake, stop, end;
    struct uv_roster roster; /* Watcher of the members file. Started if config->members is set. */
    uv_signal_t on_term, on_int, on_hup;
    struct uv_twice asked;
    uv_pipe_t leash;
    char leash_byte[16];
    char port[UV_DRIVER_PORT];
    /* Listening address that the node announces to other peers. "": a wildcard address, which is
     * not announced. */
    char announced[UV_RESOLVE_TEXT];
    /* The address in `announced`, as a list for struct node_config. */
    const char *announces[1];
    /* Number of the driver's own handles that are not closed yet. */
    uint32_t n_open;
    uint64_t n_sessions; /* Number of links that have become sessions so far. */
    uint32_t n_up;
    int64_t wake_us;
    /* Time at which the throughput of the links was last reported to the node (NODE_CARRIED), in
     * microseconds. */
    int64_t carried_us;
    /* True: the wake-up timer fired late, and the sockets have been polled since the timer
     * fired. */
    bool polled;
    /* True: node_step() or its effects are running, so uv_feed() must not be called. */
    bool feeding;
    /* Why the last write_model effect has not stored the model. NULL: the model is stored, or
     * config->write_model is NULL. */
    const char *unstored;
    /* True: node and links have ended, but config->late_ms() has asked the driver not to close
     * yet. */
    bool late;
    bool stopping, exiting, ended;
    bool stuck;
    int exit_code;
    /* Number of dials in failed[] that could not be started. Reported to the node at the next
     * wake-up. */
    uint32_t n_failed;
    uint32_t failed[NODE_DIALS_MAX];
    /* True: a lookup of a numeric bootstrap address is complete, and the node gets the answer at
     * the next wake-up. */
    bool ripe;
    struct uv_resolve seed[NODE_SEEDS_MAX]; /* Name lookups for the bootstrap list. */
    struct uv_resolve dial[NODE_DIALS_MAX]; /* Name lookups for dials to a host name. */
    struct uv_link slot[UV_DRIVER_SLOTS];
};

/* Passes one event to the node and carries out the resulting effects (sends, dials, notes, ...).
 * Does nothing once the driver is exiting. */
void uv_feed(struct uv_driver *d, struct node_event *ev);

/* Sets in d->net the callbacks and the message versions that all links of the driver use. */
void uv_feed_net(struct uv_driver *d);
/* Callback of the worker: more bytes of the delta are ready. */
void uv_feed_part(void *driver, size_t n);
void uv_feed_worked(void *driver); /* Callback of the worker: the job has ended. */
void uv_feed_signed(void *driver); /* Callback of the worker: the job has made progress. */
/* Callback of the writer: a checkpoint was written or failed. */
void uv_feed_written(void *driver, const struct uv_writer_result *r);

/* Implemented in driver.c. uv_driver_end() makes the links send CLOSE and then closes
 * everything. uv_driver_link_ended() is called after each link that has ended. */
void uv_driver_end(struct uv_driver *d, int exit_code);
void uv_driver_link_ended(struct uv_driver *d);

#endif
