/* peer/uv/driver.h -- DRIVER 1: one node over real sockets, clock and thread.
 *
 *   sockets, timer, worker, signals --events--> node_step()
 *   sends, dials, hang-ups, lookups, notes, job, files <--effects--
 *
 * One loop thread (network only) and one worker thread (training, encoding).
 * The driver owns the node, the links and their slots. (It is not called
 * uv_loop because libuv has uv_loop_init() and uv_loop_close() already.)
 *
 *   open --> run: START ... until the node asks for exit, or uv_driver_stop()
 *   and its deadline --> links say CLOSE --> handles close --> close
 */
#ifndef PEER_UV_DRIVER_H
#define PEER_UV_DRIVER_H

#include "peer/admission/allow_list.h"
#include "peer/checkpoints/checkpoint_store.h"
#include "peer/node/node.h"
#include "peer/uv/accept.h"
#include "peer/uv/rejection_log.h"
#include "peer/uv/worker.h"

#include <uv.h>

enum {
    UV_DRIVER_SLOTS =
        NODE_LINKS_MAX + 64 + 64, /* Sessions, half-open ones, those that are closing or dialled. */
    UV_DRIVER_PORT = 6
};

struct uv_driver;

struct uv_driver_config
{
    struct node_config node; /* listen_port is filled in by the driver. */
    const struct channel_identity *identity;
    const uint8_t *psk;
    union uv_address listen;
    int listen_fd; /* Inherited listening socket, or -1. Taken over. */
    int leash_fd;  /* The process exits when this pipe ends, at the loop's next turn; or -1. */
    bool signals;  /* SIGTERM, SIGINT and SIGHUP stop; a second SIGINT exits with 130, if it is no
                       * echo (twice.h). With a leash SIGINT is nothing. */
    uint32_t stop_ms; /* From the stop to the end, whatever the node says. */
    struct uv_link_limits link;
    struct uv_accept_limits accept;

    struct checkpoint_store
        *slots; /* Checkpoints go there, if node.checkpoint_us says that there are any. */

    /* Path of the members file. NULL: the cluster has no allow-list. */
    const char *members;
    /* Initial contents of the members file. uv_driver_start() takes ownership. */
    struct allow_list *listed;

    /* All may be NULL. From the loop thread, within a step: they must not call the driver. */
    void *self;
    void (*note)(void *self, enum note_level level, const char *text);
    void (*measured)(void *self, const struct node_progress *p);
    /* True: it is stored, as is all that belongs to it. */
    bool (*write_model)(void *self, const struct node *n);
    /* Another peer's model (node_handed()). True: it is stored. NULL: none can be. */
    bool (*write_handed)(void *self, const struct node *n);
    /* Returns the number of milliseconds after which the write is tried again while the node
     * waits. 0 or no function: it is not tried again. A stop does not wait. */
    uint32_t (*again_ms)(void *self);
    /* The node is at its end, and its links are: for how many milliseconds is the loop to go on
     * before this is asked again, as there is something to write? 0: for none. A stop ends it. */
    uint32_t (*late_ms)(void *self);
};

/* Defaults for everything but identity, psk, listen and node. */
void uv_driver_defaults(struct uv_driver_config *c);

/* Part of the driver that could not be opened, for an error message. */
enum uv_driver_part {
    UV_DRIVER_DOOR,  /* The listening socket. */
    UV_DRIVER_LEASH, /* The pipe of config.leash_fd. */
    UV_DRIVER_REST   /* Memory, the node, the worker's thread, signals. */
};

/* Bind, then open the node. The config is borrowed as long as the driver
 * lives. 0 or a negative errno (-EADDRINUSE ...; -EINVAL from the node): then
 * nothing of the driver is left on the loop, and *failed (which may be NULL)
 * says what it was. */
int uv_driver_open(struct uv_driver **d, uv_loop_t *loop, const struct uv_driver_config *config,
                   enum uv_driver_part *failed);

/* The port it listens on. */
uint16_t uv_driver_port(const struct uv_driver *d);
struct node *uv_driver_node(struct uv_driver *d);
/* Bytes at the sockets so far. */
void uv_driver_totals(const struct uv_driver *d, uint64_t *sent, uint64_t *received);
const struct uv_accept_counts *uv_driver_counts(const struct uv_driver *d);
/* Returns the bytes exchanged in sessions with one peer. The counts start at 0 again if the peer
 * had no session while many other peers connected (traffic.h). */
void uv_driver_traffic(const struct uv_driver *d, const uint8_t id[WIRE_ID_BYTES], uint64_t *sent,
                       uint64_t *received);
/* Returns how many connections of a kind ended before they were sessions. */
uint64_t uv_driver_refused(const struct uv_driver *d, enum rejection_log_kind kind);
/* Checkpoints that could not be written, since the last that could. */
uint64_t uv_driver_unkept(const struct uv_driver *d);
/* How many checkpoints are stored so far, and the seconds that they took from training: copying,
 * which it waits for, and what their thread computed. */
uint64_t uv_driver_checkpoints(const struct uv_driver *d, double *seconds);

/* Feed START. The driver then lives on the loop's callbacks. */
void uv_driver_start(struct uv_driver *d);
/* Stops the driver, as SIGTERM does. */
void uv_driver_stop(struct uv_driver *d);
/* All handles are closed: the loop no longer knows of it. */
bool uv_driver_done(const struct uv_driver *d);
int uv_driver_exit_code(const struct uv_driver *d);
/* A job is still running at the deadline: the caller writes what it has to
 * and ends the process by _exit(), because the thread cannot be joined. */
bool uv_driver_stuck(const struct uv_driver *d);

/* Only when done. */
void uv_driver_close(struct uv_driver *d);

#endif
