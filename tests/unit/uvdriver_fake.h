/* tests/unit/uvdriver_fake.h -- a scripted node for tests of the libuv driver.
 *
 * Defines every node_* symbol itself, so that the real node is not linked. A test gives each fake
 * node a script, which sees the events and fills in effects. Loops run until a condition holds,
 * under a watchdog, and never sleep. */
#ifndef TESTS_UVDRIVER_FAKE_H
#define TESTS_UVDRIVER_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gossip/exchange/packet.h"
#include "peer/uv/event_adapter.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    FAKE_LINKS = 8,
    /* Time limit that ends a test that hangs. A test that passes takes far less time. */
    WATCHDOG_MS = 240 * 1000,
    TICK_MS = 20,
    /* Time limit in milliseconds for waits that must not time out, however busy the machine is. */
    FAKE_GENEROUS_MS = 120 * 1000
};

/* A label of this length is invalid, so that the lookup fails locally. Even a name that ends with
 * .invalid may be sent to a DNS server, and without an answer the lookup takes minutes. */
#define FAKE_NO_NAME                                                                               \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.invalid:7100"

struct fake
{
    void (*script)(struct fake *f, const struct node_event *ev, struct node_effects *fx);
    size_t control_max, bulk_max;
    bool runs; /* True: node_run() returns a run. False: it returns NULL. */
    bool disk_full;

    uint32_t n_up, n_down, n_clean, n_dial_failed, n_recv, n_sent, n_timer, n_worked, n_resolved,
        n_stop, n_kept, n_stored;
    /* Numbers of the links whose sessions were established, in the order of the LINK_UP events. */
    uint32_t link[FAKE_LINKS];
    uint8_t id[WIRE_ID_BYTES]; /* Identity of the peer at the other end of the most recent link. */
    bool dialled;
    uint32_t tag;
    uint32_t version;  /* Message version of the most recent session. */
    enum node_why why; /* Reason of the most recent failed dial. */
    /* Range of message versions that the peer at the other end supports. */
    uint32_t least, most;
    char note[NODE_NOTE_MAX]; /* Text of the most recent note, that is a line for the log. */
    char local_host[64], remote_host[64];
    uint64_t bytes_sent, bytes_received, n_strangers;
    uint32_t n_models, n_notes;
    void (*work)(void);

    /* Effects that the fake node asks for at its next event. */
    struct node_effects asks;
    struct packet_pool pool;
    struct uv_driver_config config;
    struct uv_driver *driver;
    struct channel_identity identity;
    char address[32];
};

struct node
{
    struct fake *f;
};

int node_open(struct node **n, const struct node_config *config)
{
    *n = calloc(1, sizeof **n);
    assert_non_null(*n);
    (*n)->f = config->make_trainer_self;
    return 0;
}

/* Returns 0, because the fake node never has a checkpoint to write. */
uint64_t node_checkpoint(struct node *n, struct state *s)
{
    (void)n, (void)s;
    return 0;
}

void node_close(struct node *n)
{
    free(n);
}

static void count(struct fake *f, const struct node_event *ev)
{
    f->bytes_sent = ev->io.bytes_sent;
    f->bytes_received = ev->io.bytes_received;
    f->n_strangers = ev->io.n_strangers;
    switch (ev->type) {
    case NODE_START:
        break;
    case NODE_TIMER:
        f->n_timer++;
        break;
    case NODE_LINK_UP:
        assert_true(f->n_up < FAKE_LINKS);
        f->link[f->n_up++] = ev->link;
        memcpy(f->id, ev->up.id, sizeof f->id);
        f->dialled = ev->up.dialled;
        f->tag = ev->up.tag;
        f->version = ev->up.version;
        strcpy(f->local_host, ev->up.local_host);
        strcpy(f->remote_host, ev->up.remote_host);
        break;
    case NODE_LINK_DOWN:
        f->n_down++;
        f->n_clean += ev->down.clean;
        break;
    case NODE_DIAL_FAILED:
        f->n_dial_failed++;
        f->tag = ev->dial.tag;
        f->why = ev->dial.why;
        f->least = ev->dial.least;
        f->most = ev->dial.most;
        break;
    case NODE_RESOLVED:
        f->n_resolved++;
        break;
    case NODE_RECV:
        f->n_recv++;
        break;
    case NODE_WORKED:
        f->n_worked++;
        break;
    case NODE_SENT:
        f->n_sent++;
        break;
    case NODE_ADMIT:
    case NODE_CARRIED:
    case NODE_HEARD:
    case NODE_PART:
    case NODE_SIGNED:
    case NODE_WRITTEN:
        break;
    case NODE_KEPT:
        f->n_kept++;
        f->n_stored += ev->kept.why == NULL;
        break;
    case NODE_STOP:
        f->n_stop++;
        break;
    }
}

void node_step(struct node *n, const struct node_event *ev, struct node_effects *fx)
{
    struct fake *f = n->f;
    *fx = f->asks;
    memset(&f->asks, 0, sizeof f->asks);
    f->asks.wake_us = INT64_MAX;
    count(f, ev);
    if (f->script)
        f->script(f, ev, fx);
}

void node_work(struct node *n, int64_t (*clock_us)(void))
{
    assert_true(clock_us() > 0);
    if (n->f->work)
        n->f->work();
}

void node_progress(const struct node *n, struct node_progress *p)
{
    (void)n;
    *p = (struct node_progress){.round = 7};
}

const float *node_model(const struct node *n, const struct segment **segments, size_t *n_segments,
                        size_t *n_params)
{
    (void)n;
    (void)segments;
    (void)n_segments;
    (void)n_params;
    return NULL;
}

const struct run *node_run(const struct node *n)
{
    static const struct run run;
    return n->f->runs ? &run : NULL;
}

size_t node_control_max(const struct node *n)
{
    return n->f->control_max;
}

size_t node_bulk_max(const struct node *n)
{
    return n->f->bulk_max;
}

/* ---- A pair of drivers on one loop ------------------------------------ */

static const uint8_t fake_psk[CHANNEL_KEY] = {1, 2, 3};
static uv_loop_t fake_loop;
static int fake_ticks; /* Number of ticks of the watchdog timer in the current FAKE_RUN_UNTIL(). */

static const char *fake_wrote_model(void *self, const struct node *n)
{
    (void)n;
    struct fake *f = self;
    f->n_models++;
    return f->disk_full ? "model: the disk is full" : NULL;
}

static void fake_note(void *self, enum note_level level, const char *module, const char *text)
{
    (void)level, (void)module;
    struct fake *f = self;
    f->n_notes++;
    snprintf(f->note, sizeof f->note, "%s", text);
}

static inline void fake_init(struct fake *f, uint8_t seed)
{
    uint8_t bytes[32] = {seed};
    memset(f, 0, sizeof *f);
    f->control_max = WIRE_CONTROL_MAX;
    f->bulk_max = 32 * 1024 * 1024;
    f->asks.wake_us = INT64_MAX;
    packet_pool_init(&f->pool, f->bulk_max);
    channel_identity_from_seed(&f->identity, bytes);
    uv_driver_defaults(&f->config);
    f->config.identity = &f->identity;
    f->config.psk = fake_psk;
    f->config.node.make_trainer_self = f;
    f->config.self = f;
    f->config.write_model = fake_wrote_model;
    f->config.note = fake_note;
    f->config.link.connect_ms = f->config.link.handshake_ms = FAKE_GENEROUS_MS;
    f->config.link.drain_ms = FAKE_GENEROUS_MS;
    /* Value 0 turns off the filter for connection attempts (SYN packets). The filter would drop
     * some of them, because tests connect at a high rate and count the accepted connections. */
    f->config.accept.sieve.per_s = 0;
    assert_int_equal(uv_resolve_numeric("127.0.0.1:0", &f->config.listen), 0);
}

static inline void fake_open(struct fake *f)
{
    assert_int_equal(uv_driver_open(&f->driver, &fake_loop, &f->config, NULL), 0);
    snprintf(f->address, sizeof f->address, "127.0.0.1:%u", (unsigned)uv_driver_port(f->driver));
    uv_driver_start(f->driver);
}

static void fake_watchdog(uv_timer_t *t)
{
    (void)t;
    if (++fake_ticks * TICK_MS >= WATCHDOG_MS)
        fail_msg("nothing happened for %d ms", WATCHDOG_MS);
}

/* Runs the loop until cond holds. The watchdog timer ticks, because one turn of UV_RUN_ONCE runs
 * due timers first and then waits for other events. Without ticks, a condition that a timer made
 * true would be noticed only at the next event. */
#define FAKE_RUN_UNTIL(cond)                                                                       \
    do {                                                                                           \
        uv_timer_t watchdog_;                                                                      \
        uv_update_time(&fake_loop);                                                                \
        uv_timer_init(&fake_loop, &watchdog_);                                                     \
        fake_ticks = 0;                                                                            \
        uv_timer_start(&watchdog_, fake_watchdog, TICK_MS, TICK_MS);                               \
        while (!(cond))                                                                            \
            uv_run(&fake_loop, UV_RUN_ONCE);                                                       \
        uv_close((uv_handle_t *)&watchdog_, NULL);                                                 \
        uv_run(&fake_loop, UV_RUN_NOWAIT);                                                         \
    } while (0)

/* Feeds a TIMER event to the fake node, so that it takes a step and the driver carries out the
 * effects in f->asks. An additional TIMER is harmless. */
static inline void fake_poke(struct fake *f)
{
    uv_feed(f->driver, &(struct node_event){.type = NODE_TIMER});
}

static inline void fake_dial(struct fake *f, const char *address, uint32_t tag)
{
    f->asks.dials[f->asks.n_dials++] = (struct node_dial){tag, address};
    fake_poke(f);
}

static inline void fake_exit(struct fake *f)
{
    f->asks.exit = true;
    fake_poke(f);
}

static inline void fake_close(struct fake *f)
{
    FAKE_RUN_UNTIL(uv_driver_done(f->driver));
    uv_driver_close(f->driver);
    channel_identity_close(&f->identity);
    /* packet_pool_close() asserts that every packet was returned to the pool. */
    packet_pool_close(&f->pool);
}

/* Opens the drivers a and b. b dials a. Returns when both have received LINK_UP. */
static inline void fake_meet(struct fake *a, struct fake *b, uint32_t tag)
{
    fake_open(a);
    fake_open(b);
    fake_dial(b, a->address, tag);
    FAKE_RUN_UNTIL(a->n_up == 1 && b->n_up == 1);
}

/* Stops and closes the drivers a and b. */
static inline void fake_part(struct fake *a, struct fake *b)
{
    fake_exit(a);
    fake_exit(b);
    fake_close(a);
    fake_close(b);
}

/* Raises the limit of open file descriptors to its maximum. Returns false if fewer than n can be
 * open. Connections would then wait without end, so the caller skips its tests (exit code 77). */
static inline bool fake_descriptors(rlim_t n)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= n)
        return true;
    printf("skipped: fewer than %llu file descriptors\n", (unsigned long long)n);
    return false;
}

static int fake_setup(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return uv_loop_init(&fake_loop);
}

/* No handle may be left on the event loop. */
static int fake_teardown(void **state)
{
    (void)state;
    uv_run(&fake_loop, UV_RUN_NOWAIT);
    return uv_loop_close(&fake_loop);
}

#endif
