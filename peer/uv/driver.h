/* peer/uv/driver.h -- runs one node over real sockets, a real clock and threads, with libuv.
 *
 *   sockets, timer, worker, signals --events--> node_step()
 *   sends, dials, hang-ups, lookups, notes, job, files <--effects--
 *
 * One loop thread does all networking, and one worker thread trains and encodes. The driver owns
 * the node, the links and their slots. (The driver is not called uv_loop, because libuv already has
 * functions uv_loop_init() and uv_loop_close().)
 *
 *   open --> run: START ... until the node asks for exit, or the deadline of uv_driver_stop()
 *        --> links send CLOSE --> handles close --> close
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
    /* Number of links: NODE_LINKS_MAX sessions, 64 accepted links in handshake, and 64 links that
     * are being dialled or closed. */
    UV_DRIVER_SLOTS = NODE_LINKS_MAX + 64 + 64,
    UV_DRIVER_PORT = 6
};

struct uv_driver;

struct uv_driver_config
{
    /* Configuration of the node. The driver sets listen_port and the callbacks. */
    struct node_config node;
    const struct channel_identity *identity;
    const uint8_t *psk;
    union uv_address listen;
    /* Inherited listening socket. uv_driver_open() takes ownership. -1: the driver makes a socket
     * for the address `listen`. */
    int listen_fd;
    /* Read end of a pipe from the parent process. The process exits as soon as the pipe ends.
     * -1: none. */
    int leash_fd;
    /* True: SIGTERM, SIGINT and SIGHUP stop the peer. A second SIGINT exits at once with code 130,
     * unless it is a duplicate of the first (signal_debounce.h). With leash_fd (pipe from the
     * parent process), SIGINT and SIGHUP are ignored. */
    bool signals;
    /* Time limit of a stop, in milliseconds. After this time the driver ends, even if the node has
     * not ended. */
    uint32_t stop_ms;
    struct uv_link_limits link;
    struct uv_accept_limits accept;

    /* Store for checkpoints, used if node.checkpoint_us is set. NULL: no checkpoints. */
    struct checkpoint_store *slots;

    /* Path of the members file. NULL: the cluster has no allow-list. */
    const char *members;
    /* Initial contents of the members file. uv_driver_start() takes ownership. */
    struct allow_list *listed;

    /* Callbacks of the driver's owner, and their first argument. Each may be NULL. They run on the
     * loop thread within a step, so they must not call the driver. */
    void *self;
    /* Receives a message for the user. `module`: name of the source file that sends it. */
    void (*note)(void *self, enum note_level level, const char *module, const char *text);
    /* Called twice per event: before the node gets the event, and after the node has handled it but
     * before its effects (sends, dials, notes, ...) are carried out. A job of the node may run at
     * the same time. */
    void (*watch)(void *self, const struct node *n, const struct node_event *ev);
    void (*stepped)(void *self, const struct node *n, const struct node_event *ev,
                    const struct node_effects *fx);
    void (*measured)(void *self, const struct node_progress *p);
    /* Writes the node's model and all files that belong to the model. Returns NULL if all files are
     * stored. Otherwise returns a text with the file and the reason, valid until the callback is
     * called again. */
    const char *(*write_model)(void *self, const struct node *n);
    /* Called when the node and its links have ended, but the caller may still have to write files.
     * Returns the number of milliseconds for which the loop continues before the next call. If the
     * result is 0, or the callback is NULL, the driver closes. uv_driver_stop() ends the wait. */
    uint32_t (*late_ms)(void *self);
    /* Returns the text that identifies the training data in checkpoints (`trained_on` in
     * peer/checkpoints/checkpoint_file.h), valid until the next call. A NULL result, or a NULL
     * callback, means that the text is not known. */
    const char *(*trained_on)(void *self);
};

/* Sets defaults for all fields except identity, psk, listen and node. */
void uv_driver_defaults(struct uv_driver_config *c);

/* Part of the driver that could not be opened, for an error message. */
enum uv_driver_part {
    UV_DRIVER_DOOR,  /* The listening socket could not be opened. */
    UV_DRIVER_LEASH, /* The pipe to the parent process (config.leash_fd) could not be opened. */
    /* A part other than the listening socket and the parent's pipe failed: memory, the node, a
     * thread or a signal handler. */
    UV_DRIVER_REST
};

/* Binds the listening socket, then opens the node. The config is borrowed as long as the driver
 * exists. Returns 0 or a negative errno, for example -EADDRINUSE, or -EINVAL from the node.
 * After an error nothing of the driver is left on the loop, and *failed (may be NULL) says which
 * part failed. */
int uv_driver_open(struct uv_driver **d, uv_loop_t *loop, const struct uv_driver_config *config,
                   enum uv_driver_part *failed);

/* Returns the port on which the driver listens. */
uint16_t uv_driver_port(const struct uv_driver *d);
struct node *uv_driver_node(struct uv_driver *d);
/* Returns the total bytes sent and received at all sockets since the driver was opened. */
void uv_driver_totals(const struct uv_driver *d, uint64_t *sent, uint64_t *received);
const struct uv_accept_counts *uv_driver_counts(const struct uv_driver *d);
/* Returns the bytes exchanged in sessions with one peer. The table of these counts has a fixed size
 * (traffic.h). If many other peers connect while this peer has no session, its row may be reused.
 * Its counts then start at 0 again. */
void uv_driver_traffic(const struct uv_driver *d, const uint8_t id[WIRE_ID_BYTES], uint64_t *sent,
                       uint64_t *received);
/* Returns how many connections were rejected or lost before they became sessions, for the reason
 * `kind`. */
uint64_t uv_driver_refused(const struct uv_driver *d, enum rejection_log_kind kind);
/* Returns the number of checkpoints that could not be written since the last successful one. */
uint64_t uv_driver_unkept(const struct uv_driver *d);
/* Returns the number of checkpoints stored so far. *seconds: the time that they took from
 * training, which is the time of copying the state plus the CPU time of the writer thread. */
uint64_t uv_driver_checkpoints(const struct uv_driver *d, double *seconds);

/* Passes START to the node. From then on the callbacks of the loop run the driver. */
void uv_driver_start(struct uv_driver *d);
/* Stops the driver, as SIGTERM does. */
void uv_driver_stop(struct uv_driver *d);
/* Returns whether all handles are closed, so that the loop no longer refers to the driver. */
bool uv_driver_done(const struct uv_driver *d);
int uv_driver_exit_code(const struct uv_driver *d);
/* Returns whether a thread was still busy at the deadline of the stop and cannot be joined. The
 * thread runs a job, looks up a name or writes a checkpoint. The caller then writes its last files
 * and ends the process with _exit(). */
bool uv_driver_stuck(const struct uv_driver *d);

/* Frees the driver. May be called only after uv_driver_done() has returned true. */
void uv_driver_close(struct uv_driver *d);

#endif
