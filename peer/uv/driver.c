/* peer/uv/driver.c -- the driver's life cycle: open, signals, the parent's pipe, the deadline of
 * a stop, and close. */
#include "peer/uv/driver.h"

#include "peer/uv/event_adapter.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    /* Time limit of a stop, in milliseconds. Closing the links takes up to 0.5 s more, so that a
     * stop takes 5 s at most. */
    STOP_MS = 4200,
    /* Time limit at a stop for a checkpoint that is being written, in microseconds. */
    FINISH_US = 3 * 1000 * 1000,
    /* Time limit for the writer thread to abandon a checkpoint, in microseconds. The time begins
     * when FINISH_US is over and the thread is told to abandon the checkpoint. */
    LIMIT_US = 1000 * 1000,
    N_HANDLES = 8 /* Number of handles in struct uv_driver. close_handles() lists them. */
};

void uv_driver_defaults(struct uv_driver_config *c)
{
    *c = (struct uv_driver_config){
        .listen_fd = -1,
        .leash_fd = -1,
        .stop_ms = STOP_MS,
        .link = uv_link_limits_default,
        .accept = uv_accept_limits_default,
    };
}

/* ---- Stopping and closing the driver ---- */

static void on_closed(uv_handle_t *h)
{
    struct uv_driver *d = h->data;
    d->n_open--;
}

/* Stops the signal handles and ignores signals from now on. libuv restores the default action of a
 * signal when its last handle stops, and the default action would end the process while it writes
 * its result. SIGTERM is ignored, because the process is about to end. The signal that stopped the
 * peer is ignored, because a duplicate may follow. A peer with a parent pipe ignores SIGINT and
 * SIGHUP, because its parent sends SIGTERM. */
static void stop_signals(struct uv_driver *d)
{
    bool leashed = d->config->signals && d->config->leash_fd >= 0;
    bool hangup_ignored = uv_hangup_ignored();
    uv_signal_stop(&d->on_int);
    if (leashed || d->asked.number == SIGINT)
        signal(SIGINT, SIG_IGN);
    uv_signal_stop(&d->on_hup);
    if (hangup_ignored || leashed || d->asked.number == SIGHUP)
        signal(SIGHUP, SIG_IGN);
    uv_signal_stop(&d->on_term);
    if (d->config->signals)
        signal(SIGTERM, SIG_IGN);
}

static void close_handles(struct uv_driver *d)
{
    uv_handle_t *handle[N_HANDLES] = {(uv_handle_t *)&d->wake,         (uv_handle_t *)&d->stop,
                                      (uv_handle_t *)&d->end,          (uv_handle_t *)&d->on_term,
                                      (uv_handle_t *)&d->on_int,       (uv_handle_t *)&d->leash,
                                      (uv_handle_t *)&d->roster.timer, (uv_handle_t *)&d->on_hup};
    uv_roster_close(&d->roster);
    stop_signals(d);
    for (uint32_t i = 0; i < N_HANDLES; i++) {
        handle[i]->data = d;
        uv_close(handle[i], on_closed);
    }
}

/* Cancels all name lookups. Returns true if a lookup cannot be cancelled, because it already runs
 * on a thread of libuv. A running lookup may take many seconds. */
static bool lookups_hang(struct uv_driver *d)
{
    bool hang = false;
    for (uint32_t i = 0; i < NODE_SEEDS_MAX; i++)
        hang |= !uv_resolve_cancel(&d->seed[i]);
    for (uint32_t i = 0; i < NODE_DIALS_MAX; i++)
        hang |= !uv_resolve_cancel(&d->dial[i]);
    return hang;
}

/* Closes the thread that writes checkpoints. Waits for the last checkpoint, which must not be lost
 * because of a slow disk. Returns false if the disk does not answer within the time limits. */
static bool close_writer(struct uv_driver *d)
{
    const struct uv_driver_config *c = d->config;
    struct uv_writer_result r;
    bool last = false;
    if (c->slots == NULL)
        return true;
    if (uv_writer_close(&d->writer, FINISH_US, LIMIT_US, &r, &last) < 0)
        return false;
    if (last && r.err < 0 && c->note)
        c->note(c->self, NOTE_WARNING, "writer", r.why);
    return true;
}

static void on_end(uv_timer_t *timer)
{
    struct uv_driver *d = timer->data;
    const struct uv_driver_config *c = d->config;
    if (d->ended)
        return;
    uint32_t ms = c->late_ms != NULL && !d->stopping ? c->late_ms(c->self) : 0;
    d->late = ms > 0;
    if (d->late) {
        uv_timer_start(&d->end, on_end, ms, 0);
        return;
    }
    d->ended = true;
    uv_accept_close(&d->accept);
    for (uint32_t i = 0; i < UV_DRIVER_SLOTS; i++)
        uv_link_hangup(&d->slot[i], false);
    close_handles(d);
    d->stuck = d->worker.busy || lookups_hang(d) || !close_writer(d);
    if (!d->worker.busy)
        uv_worker_close(&d->worker);
    if (d->stuck)
        uv_stop(d->loop);
}

void uv_driver_link_ended(struct uv_driver *d)
{
    if (d->exiting && !d->ended && !d->late && d->n_up == 0)
        uv_timer_start(&d->end, on_end, 0, 0);
}

/* Starts to end the driver. Each session sends CLOSE first. A session whose other end does not
 * answer is closed after drain_ms. */
void uv_driver_end(struct uv_driver *d, int exit_code)
{
    if (d->exiting)
        return;
    d->exiting = true;
    d->exit_code = exit_code;
    uv_timer_stop(&d->wake);
    uv_timer_stop(&d->stop);
    for (uint32_t i = 0; i < UV_DRIVER_SLOTS; i++)
        uv_link_hangup(&d->slot[i], true);
    uint64_t ms = d->n_up > 0 ? d->net.limits.drain_ms / 2 : 0;
    uv_timer_start(&d->end, on_end, ms, 0);
}

/* Runs during a stop, if the node has not ended within stop_ms. Writes the node's model, unless the
 * worker thread is using it. */
static void on_overdue(uv_timer_t *timer)
{
    struct uv_driver *d = timer->data;
    const struct uv_driver_config *c = d->config;
    if (!d->worker.busy && c->write_model && node_run(d->node))
        (void)c->write_model(c->self, d->node);
    uv_driver_end(d, 0);
}

void uv_driver_stop(struct uv_driver *d)
{
    if (d->stopping || (d->exiting && !d->late))
        return;
    d->stopping = true;
    uv_update_time(d->loop);
    if (d->late) {
        uv_timer_start(&d->end, on_end, 0, 0);
        return;
    }
    uv_timer_start(&d->stop, on_overdue, d->config->stop_ms, 0);
    uv_feed(d, &(struct node_event){.type = NODE_STOP});
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct uv_driver *d = handle->data;
    if (uv_twice(&d->asked, number, (int64_t)(uv_hrtime() / 1000)))
        return;
    if (number == SIGINT && d->stopping)
        _exit(130);
    uv_driver_stop(d);
}

static void on_others(uv_signal_t *handle, int number)
{
    (void)handle, (void)number;
}

static void on_leash_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct uv_driver *d = h->data;
    *buf = uv_buf_init(d->leash_byte, sizeof d->leash_byte);
}

static void on_leash(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    (void)s;
    (void)buf;
    if (n < 0)
        _exit(1); /* End of file on the parent's pipe: the parent process has ended. */
}

/* ---- Opening the driver ---- */

/* Initialises the driver's own handles except the signal handles. None of the initialisations can
 * fail. */
static void init_handles(struct uv_driver *d)
{
    uv_timer_init(d->loop, &d->wake);
    uv_timer_init(d->loop, &d->stop);
    uv_timer_init(d->loop, &d->end);
    uv_timer_init(d->loop, &d->roster.timer);
    uv_pipe_init(d->loop, &d->leash, 0);
    d->n_open = N_HANDLES;
    d->wake.data = d->stop.data = d->end.data = d;
    d->on_term.data = d->on_int.data = d->on_hup.data = d->leash.data = d;
}

/* Initialises the signal handles. Only the first initialisation may fail, because libuv opens a
 * pipe for it; the other handles share this pipe. After an error there is no handle to close. */
static int init_signals(struct uv_driver *d)
{
    int err = uv_signal_init(d->loop, &d->on_term);
    if (err < 0)
        return err;
    err = uv_signal_init(d->loop, &d->on_int);
    assert(err == 0);
    err = uv_signal_init(d->loop, &d->on_hup);
    assert(err == 0);
    return 0;
}

static int start_signals(struct uv_driver *d)
{
    if (!d->config->signals)
        return 0;
    bool leashed = d->config->leash_fd >= 0;
    int err = uv_signal_start(&d->on_term, on_signal, SIGTERM);
    /* A terminal that closes sends SIGHUP to all its processes, as Ctrl-C sends SIGINT. */
    if (err == 0 && (leashed || !uv_hangup_ignored()))
        err = uv_signal_start(&d->on_hup, leashed ? on_others : on_signal, SIGHUP);
    if (err < 0)
        return err;
    /* Ctrl-C in a terminal reaches all processes. A peer with a parent pipe ignores SIGINT and
     * waits for SIGTERM from its parent, because both signals together would look like two
     * requests. */
    return uv_signal_start(&d->on_int, leashed ? on_others : on_signal, SIGINT);
}

static int start_leash(struct uv_driver *d)
{
    if (d->config->leash_fd < 0)
        return 0;
    int err = uv_pipe_open(&d->leash, d->config->leash_fd);
    return err < 0 ? err : uv_read_start((uv_stream_t *)&d->leash, on_leash_room, on_leash);
}

/* Announces the address that this peer listens on. Does nothing if the user gave --advertise, or if
 * the address is a wildcard: other peers then learn the address from connections. */
static void announce(struct uv_driver *d, struct node_config *node)
{
    union uv_address local, remote;
    uv_resolve_names(&d->accept.tcp, &local, &remote);
    if (node->n_advertise > 0 || local.any.sa_family == AF_UNSPEC || uv_resolve_wildcard(&local))
        return;
    uv_resolve_text(&local.any, d->announced);
    d->announces[0] = d->announced;
    node->advertise = d->announces;
    node->n_advertise = 1;
}

/* Opens the node, the threads, the signals and the parent's pipe. The node needs the listening
 * port, so the socket is open already. */
static int open_parts(struct uv_driver *d, enum uv_driver_part *failed)
{
    const struct uv_driver_config *c = d->config;
    snprintf(d->port, sizeof d->port, "%u", (unsigned)d->accept.port);
    struct node_config node = c->node;
    node.listen_port = d->port;
    node.calls_back = true;
    announce(d, &node);
    node.part = uv_worker_part;
    node.sign = uv_worker_sign;
    node.part_self = node.sign_self = &d->worker;
    int err = node_open(&d->node, &node);
    if (err < 0)
        return err;
    err = uv_worker_open(
        &d->worker, d->loop, d->node,
        &(struct uv_worker_calls){
            .done = uv_feed_worked, .part_ready = uv_feed_part, .sign = uv_feed_signed, .self = d});
    if (err < 0)
        goto no_worker;
    if (c->slots != NULL)
        err = uv_writer_open(&d->writer, d->loop, c->slots, uv_feed_written, d);
    if (err < 0)
        goto no_writer;
    err = init_signals(d);
    if (err < 0)
        goto no_signals;
    init_handles(d);
    err = start_signals(d);
    if (err == 0) {
        *failed = UV_DRIVER_LEASH;
        err = start_leash(d);
    }
    if (err == 0)
        return 0;
    close_handles(d);
no_signals:
    /* close_writer() cannot fail here, because no checkpoint has been passed to the writer yet. */
    (void)close_writer(d);
no_writer:
    uv_worker_close(&d->worker);
no_worker:
    node_close(d->node);
    return err;
}

static int prepare(struct uv_driver *d, uv_loop_t *loop, const struct uv_driver_config *config)
{
    uint8_t key[REPLAY_KEY];
    int err = uv_random(NULL, NULL, key, sizeof key, 0, NULL);
    if (err < 0)
        return err;
    replay_init(&d->answered, key);
    d->config = config;
    d->loop = loop;
    d->wake_us = INT64_MAX;
    d->net = (struct uv_link_net){.loop = loop,
                                  .identity = config->identity,
                                  .psk = config->psk,
                                  .answered = &d->answered,
                                  .watches = config->node.uplink == NODE_UPLINK_AUTO,
                                  .limits = config->link};
    uv_feed_net(d);
    return 0;
}

int uv_driver_open(struct uv_driver **out, uv_loop_t *loop, const struct uv_driver_config *config,
                   enum uv_driver_part *failed)
{
    struct uv_driver *d = calloc(1, sizeof *d);
    struct node_effects *fx = calloc(1, sizeof *fx);
    enum uv_driver_part part = UV_DRIVER_REST;
    int err = d && fx ? 0 : -ENOMEM;
    if (err < 0)
        goto no_memory;
    err = prepare(d, loop, config);
    if (err < 0)
        goto no_memory;
    d->fx = fx;
    part = UV_DRIVER_DOOR;
    err = uv_accept_open(&d->accept, &d->net, &config->accept, &config->listen, config->listen_fd);
    if (err < 0)
        goto no_door;
    uv_accept_slots(&d->accept, d->slot, UV_DRIVER_SLOTS);
    part = UV_DRIVER_REST;
    err = open_parts(d, &part);
    if (err == 0) {
        *out = d;
        return 0;
    }
    uv_accept_close(&d->accept);
no_door:
    /* The handles are members of *d, so the loop must close them before *d is freed. */
    uv_run(loop, UV_RUN_NOWAIT);
no_memory:
    free(fx);
    free(d);
    if (failed)
        *failed = part;
    return err;
}

void uv_driver_start(struct uv_driver *d)
{
    uv_feed(d, &(struct node_event){.type = NODE_START});
    /* The node must have the allow-list before the first session. */
    if (d->config->members != NULL)
        uv_roster_start(&d->roster, d, d->config->members, d->config->listed);
}

uint16_t uv_driver_port(const struct uv_driver *d)
{
    return d->accept.port;
}

struct node *uv_driver_node(struct uv_driver *d)
{
    return d->node;
}

void uv_driver_totals(const struct uv_driver *d, uint64_t *sent, uint64_t *received)
{
    *sent = d->net.bytes_sent;
    *received = d->net.bytes_received;
}

const struct uv_accept_counts *uv_driver_counts(const struct uv_driver *d)
{
    return &d->accept.counts;
}

void uv_driver_traffic(const struct uv_driver *d, const uint8_t id[WIRE_ID_BYTES], uint64_t *sent,
                       uint64_t *received)
{
    traffic_of(&d->traffic, id, sent, received);
    for (uint32_t i = 0; i < UV_DRIVER_SLOTS; i++) {
        const struct uv_link *l = &d->slot[i];
        if (l->state == UV_LINK_FREE || !l->was_up
            || memcmp(l->channel.peer_id, id, WIRE_ID_BYTES) != 0)
            continue;
        *sent += l->bytes_sent;
        *received += l->bytes_received;
    }
}

uint64_t uv_driver_refused(const struct uv_driver *d, enum rejection_log_kind kind)
{
    return d->door.at[kind].n;
}

uint64_t uv_driver_unkept(const struct uv_driver *d)
{
    return d->unkept.n;
}

uint64_t uv_driver_checkpoints(const struct uv_driver *d, double *seconds)
{
    *seconds = (double)(d->copy_us + d->writer.cpu_us) * 1e-6;
    return d->writer.n_kept;
}

bool uv_driver_done(const struct uv_driver *d)
{
    bool done = d->ended && !d->stuck && d->n_open == 0;
    for (uint32_t i = 0; i < UV_DRIVER_SLOTS && done; i++)
        done = d->slot[i].state == UV_LINK_FREE;
    return done;
}

int uv_driver_exit_code(const struct uv_driver *d)
{
    return d->exit_code;
}

bool uv_driver_stuck(const struct uv_driver *d)
{
    return d->stuck;
}

void uv_driver_close(struct uv_driver *d)
{
    assert(uv_driver_done(d));
    node_close(d->node);
    state_close(&d->copy);
    free(d->fx);
    free(d);
}
