/* peer/uv/event_adapter.h -- the driver's inner side: events to the node, effects to the world.
 *
 * For peer/uv/driver.c (its life) and peer/uv/event_adapter.c (its work) only.
 *
 *   uv_feed() --> node_step() --> sends, hang-ups, dials, lookups, notes,
 *                                 files, job, wake-up, exit
 *
 * A step is never entered from within a step: whatever an effect brings about
 * comes back in a later callback of the loop. But for one: as soon as the effects are out,
 * the node hears whether its model is stored (KEPT), or, where that is to be tried again, later.
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
    struct log_backoff unkept; /* Checkpoints that could not be written, since the last that was. */
    struct uv_worker worker;
    struct uv_writer writer; /* Open where there are slots. */
    /* State of a checkpoint. Its memory is passed from the node to the writer and back. */
    struct state copy;
    /* Total time for which the node was paused to copy its state, in microseconds. */
    int64_t copy_us;
    uint64_t unwritten; /* The checkpoint of this beat was not even begun; 0: none. */
    uv_timer_t wake, stop, end, keep;
    struct uv_roster roster; /* Started where there is a members file. */
    uv_signal_t on_term, on_int, on_hup;
    struct uv_twice asked;
    uv_pipe_t leash;
    char leash_byte[16];
    char port[UV_DRIVER_PORT];
    char announced[UV_RESOLVE_TEXT]; /* Listening address to announce, unless it is a wildcard. */
    const char *announces[1];        /* `announced`, as a list for struct node_config. */
    uint32_t n_open;                 /* Own handles not yet closed. */
    uint64_t n_sessions;             /* Links that ever came up. */
    uint32_t n_up;
    int64_t wake_us;
    int64_t carried_us; /* When the node last heard what links carry. */
    bool polled;        /* The late wake-up has had its poll. */
    bool feeding;       /* node_step() and its effects are not re-entered. */
    /* The model that the last step asked to write was written, or no writer exists. */
    bool stored;
    bool handed; /* The same for a model of another peer. */
    bool late;   /* All has ended but for what is still to be written. */
    bool stopping, exiting, ended;
    bool stuck;
    int exit_code;
    uint32_t n_failed; /* Dials that failed before they began. */
    uint32_t failed[NODE_DIALS_MAX];
    bool ripe; /* A seed's address is numeric, and the node is to hear of it soon. */
    struct uv_resolve seed[NODE_SEEDS_MAX]; /* Lookups, */
    struct uv_resolve dial[NODE_DIALS_MAX]; /* also of dials by name. */
    struct uv_link slot[UV_DRIVER_SLOTS];
};

/* One event in, its effects out. Nothing once the end has begun. */
void uv_feed(struct uv_driver *d, struct node_event *ev);

/* Fill in the links' callbacks. */
void uv_feed_net(struct uv_driver *d);
/* Callback of the worker: more bytes of the delta are ready. */
void uv_feed_part(void *driver, size_t n);
void uv_feed_worked(void *driver); /* Callback of the worker: the job has ended. */
void uv_feed_signed(void *driver); /* Callback of the worker: the job makes progress. */
/* Callback of the writer: a checkpoint was written or failed. */
void uv_feed_written(void *driver, const struct uv_writer_result *r);

/* In driver.c: the links say CLOSE, then everything closes. */
void uv_driver_end(struct uv_driver *d, int exit_code);
void uv_driver_link_ended(struct uv_driver *d);

#endif
