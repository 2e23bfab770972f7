/* tests/unit/uvdriver_parts.c -- tests addresses, resource limits, metrics lines, observers and
 * child processes. */
#include "tests/unit/uvdriver_fake.h"

#include "peer/uv/client.h"
#include "peer/uv/cluster.h"
#include "peer/uv/fd_reserve.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Addresses -------------------------------------------------------- */

static void test_split(void **state)
{
    (void)state;
    char host[UV_RESOLVE_HOST_MAX + 1], text[300];
    uint16_t port;
    static const char *const bad[] = {"",        ":",        "a",    "a:",    ":1",     "a:0",
                                      "a:65536", "a:-1",     "a:+1", "a: 1",  "a:1x",   "a:000001",
                                      "a b:1",   "::1:7100", "[]:1", "[::1]", "[::1:1", "a\x01:1",
                                      "a\xff:1", "a..b:1",   ".a:1", ".:1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (uv_resolve_split(bad[i], false, host, &port) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
    }
    assert_int_equal(uv_resolve_split("a.example:7100", false, host, &port), 0);
    assert_string_equal(host, "a.example");
    assert_int_equal(port, 7100);
    assert_int_equal(uv_resolve_split("[fe80::1]:65535", false, host, &port), 0);
    assert_string_equal(host, "fe80::1");
    assert_int_equal(uv_resolve_split("a:0", true, host, &port), 0);
    memset(text, 'a', sizeof text);
    strcpy(text + UV_RESOLVE_HOST_MAX, ":1");
    assert_int_equal(uv_resolve_split(text, false, host, &port), 0);
    text[UV_RESOLVE_HOST_MAX] = 'a';
    strcpy(text + UV_RESOLVE_HOST_MAX + 1, ":1");
    assert_int_equal(uv_resolve_split(text, false, host, &port), -EINVAL);
}

static void test_expected(void **state)
{
    (void)state;
    static const char *const bad_port[] = {"a:0", "a:65536", "a:000001", "[::1]:70000"};
    static const char *const bad[] = {"", ":", "a", "a:", ":1", "a:1x", "a b:1", "::1:7100"};
    for (size_t i = 0; i < sizeof bad_port / sizeof *bad_port; i++)
        assert_string_equal(uv_resolve_expected(bad_port[i]), "a port from 1 to 65535");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_string_equal(uv_resolve_expected(bad[i]), "HOST:PORT");
}

static void test_numeric_and_back(void **state)
{
    (void)state;
    static const char *const same[] = {"127.0.0.1:7100", "[::1]:7100", "[2001:db8::7]:1",
                                       "255.255.255.255:65535"};
    union uv_address a, b;
    char text[UV_RESOLVE_TEXT];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_int_equal(uv_resolve_numeric(same[i], &a), 0);
        uv_resolve_text(&a.any, text);
        assert_string_equal(text, same[i]);
    }
    assert_int_equal(uv_resolve_numeric("localhost:1", &a), -EINVAL);
    assert_int_equal(uv_resolve_numeric("[::ffff:10.0.0.1]:5", &a), 0);
    uv_resolve_text(&a.any, text);
    assert_string_equal(text, "10.0.0.1:5");
    assert_int_equal(uv_resolve_numeric("[::ffff:127.0.0.2]:5", &a), 0);
    assert_true(uv_resolve_loopback(&a));
    assert_int_equal(uv_resolve_numeric("127.0.0.1:5", &a), 0);
    assert_int_equal(uv_resolve_numeric("127.0.0.1:6", &b), 0);
    assert_true(uv_resolve_same(&a, &a) && !uv_resolve_same(&a, &b));
}

static uint32_t n_answers;

static void on_ripe(struct uv_resolve *r, const union uv_address *a, uint32_t n)
{
    (void)r;
    char text[UV_RESOLVE_TEXT];
    assert_int_equal(n, 1);
    uv_resolve_text(&a->any, text);
    assert_string_equal(text, "[::1]:7100");
    n_answers++;
}

/* A numeric address is resolved without a thread and without the event loop. Nevertheless,
 * uv_resolve_start() never delivers the result itself. */
static void test_numeric_needs_no_lookup(void **state)
{
    (void)state;
    struct uv_resolve r = {.done = on_ripe};
    assert_int_equal(uv_resolve_start(NULL, &r, "[::1]:7100"), 0);
    assert_int_equal(uv_resolve_start(NULL, &r, "[::1]:7100"), -EBUSY);
    assert_int_equal(n_answers, 0);
    uv_resolve_ripe(&r);
    uv_resolve_ripe(&r);
    assert_int_equal(n_answers, 1);
    assert_int_equal(uv_resolve_start(NULL, &r, "[::1]:7100"), 0);
    assert_true(uv_resolve_cancel(&r));
    uv_resolve_ripe(&r);
    assert_int_equal(n_answers, 1);
}

/* A numeric address in the bootstrap list needs no lookup. Its result must nevertheless be
 * delivered by a later event, like the result of a lookup. */
static void test_numeric_seed(void **state)
{
    (void)state;
    static struct fake f;
    fake_init(&f, 'a');
    fake_open(&f);
    f.asks.n_resolves = 1;
    f.asks.resolves[0].seed = 3;
    f.asks.resolves[0].name = "127.0.0.1:7100";
    fake_poke(&f);
    assert_int_equal(f.n_resolved, 0);
    FAKE_RUN_UNTIL(f.n_resolved == 1);
    fake_exit(&f);
    fake_close(&f);
}

/* ---- Resources that libuv requires ---- */

static void with_limit(int resource, rlim_t soft, int (*ask)(void), int expected)
{
    struct rlimit before, low;
    assert_int_equal(getrlimit(resource, &before), 0);
    low = before;
    low.rlim_cur = soft;
    assert_int_equal(setrlimit(resource, &low), 0);
    int err = ask();
    assert_int_equal(setrlimit(resource, &before), 0);
    assert_int_equal(err, expected);
}

static int init_loop(void)
{
    uv_loop_t loop;
    int err = uv_spare_loop_init(&loop);
    if (err == 0)
        assert_int_equal(uv_loop_close(&loop), 0);
    return err;
}

static void test_spare(void **state)
{
    (void)state;
    assert_int_equal(init_loop(), 0);
    with_limit(RLIMIT_NOFILE, 9, init_loop, -EMFILE);
    assert_int_equal(init_loop(), 0);
/* In builds with sanitizers, threads need more memory than the limit that this test sets. */
#ifndef HEARSAY_SANITIZED
    with_limit(RLIMIT_AS, 1 << 20, uv_spare_pool, -EAGAIN);
#endif
    assert_int_equal(uv_spare_pool(), 0);
}

/* ---- Metrics ---------------------------------------------------------- */

static void test_metrics_line(void **state)
{
    (void)state;
    struct node_progress p = {.phase = NODE_CONSENSUS,
                              .round = 7,
                              .n_rounds = 9,
                              .loss = 0.5,
                              .accuracy = 0.25,
                              .test_loss = 0.75,
                              .accuracy_round = 6,
                              .accuracy_samples = 123,
                              .drift = NAN,
                              .relative_drift = INFINITY,
                              .bytes_sent = UINT64_C(1) << 40,
                              .n_live = 3};
    for (int i = 0; i < 2; i++) {
        p.evaluated = i == 1;
        char *line = uv_metrics_line(&p, 1.5);
        json_t *j = json_loads(line, 0, NULL);
        assert_non_null(j);
        assert_null(strchr(line, '\n'));
        assert_int_equal(json_integer_value(json_object_get(j, "round")), 7);
        assert_string_equal(json_string_value(json_object_get(j, "phase")), "consensus");
        assert_true(json_is_null(json_object_get(j, "drift")));
        assert_true(json_is_null(json_object_get(j, "relative_drift")));
        assert_int_equal(json_integer_value(json_object_get(j, "bytes_sent")), INT64_C(1) << 40);
        assert_int_equal(json_integer_value(json_object_get(j, "live")), 3);
        static const char *const found[] = {"accuracy", "test_loss", "accuracy_round",
                                            "accuracy_samples"};
        for (size_t k = 0; k < sizeof found / sizeof *found; k++)
            assert_true(json_is_null(json_object_get(j, found[k])) == (i == 0));
        if (i == 1) {
            assert_true(json_real_value(json_object_get(j, "accuracy")) == 0.25);
            assert_true(json_real_value(json_object_get(j, "test_loss")) == 0.75);
            assert_int_equal(json_integer_value(json_object_get(j, "accuracy_round")), 6);
            assert_int_equal(json_integer_value(json_object_get(j, "accuracy_samples")), 123);
        }
        json_decref(j);
        free(line);
    }
}

/* While a run trains, each round has a line in the run log. In the consensus phase, only ten lines
 * per second are written after the first 1,000 rounds. */
static void test_metrics_due(void **state)
{
    (void)state;
    struct node_progress p = {.phase = NODE_TRAINING};
    struct uv_metrics_pace pace = {0};
    for (int i = 0; i < 3000; i++)
        assert_true(uv_metrics_due(&pace, &p, i * 1e-3));
    p.phase = NODE_CONSENSUS;
    int n = 0;
    for (int i = 0; i < 11000; i++) {
        p.settle_rounds = (uint64_t)i + 1;
        n += uv_metrics_due(&pace, &p, 3 + i * 1e-3);
        assert_true(i >= 1000 || n == i + 1);
    }
    assert_true(n >= 1095 && n <= 1101);
    p.phase = NODE_FINISHING;
    for (int i = 0; i < 3; i++)
        assert_true(uv_metrics_due(&pace, &p, 14));
}

static void test_metrics_start(void **state)
{
    (void)state;
    static const struct
    {
        int64_t at;
        uint64_t from;
        const char *want;
    } rows[] = {{0, 0, "\"1970-01-01T00:00:00Z\""},
                {1795355582, 120, "\"2026-11-22T13:53:02Z\""},
                {-1, 7, "null"}};
    for (size_t i = 0; i < 3; i++) {
        char *line = uv_metrics_start(rows[i].at, rows[i].from), want[128];
        snprintf(want, sizeof want,
                 "{\"start\": true, \"at\": %s, \"version\": \"%s\", "
                 "\"from_round\": %llu}",
                 rows[i].want, HEARSAY_VERSION, (unsigned long long)rows[i].from);
        assert_string_equal(line, want);
        free(line);
    }
}

/* If the quorum is missing, the phase `training` is shown as `no-quorum`. All other phases keep
 * their names. A peer may send any phase number, so there is a name for unknown ones. */
static void test_phases(void **state)
{
    (void)state;
    static const struct
    {
        int phase;
        const char *word, *held;
    } row[] = {{NODE_JOINING, "joining", "joining"},
               {NODE_TRAINING, "training", "no-quorum"},
               {NODE_CONSENSUS, "consensus", "consensus"},
               {NODE_FINISHING, "finishing", "finishing"},
               {NODE_LEFT, "left", "left"},
               {77, "unknown", "unknown"}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_string_equal(figure_phase((enum node_phase)row[i].phase, false), row[i].word);
        assert_string_equal(figure_phase((enum node_phase)row[i].phase, true), row[i].held);
    }
    struct node_progress p = {.phase = NODE_TRAINING, .holds = true};
    char *line = uv_metrics_line(&p, 0);
    assert_non_null(strstr(line, "\"phase\": \"no-quorum\""));
    free(line);
}

/* A number from a peer may be any 64-bit value. JSON numbers are limited to INT64_MAX. */
static void test_whole(void **state)
{
    (void)state;
    static const struct
    {
        uint64_t n;
        json_int_t expected;
    } row[] = {{0, 0},
               {7, 7},
               {INT64_MAX, INT64_MAX},
               {UINT64_C(1) << 63, INT64_MAX},
               {UINT64_MAX, INT64_MAX}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        json_t *j = uv_metrics_whole(row[i].n);
        assert_true(json_integer_value(j) == row[i].expected);
        json_decref(j);
    }
}

/* ---- Observer --------------------------------------------------------- */

static struct fake a;
static struct packet *model;
static uint32_t seen_up, seen_session, seen_message, seen_end;
static size_t seen_bytes;

/* Plays the peer to which the observer connects. It expects a HELLO of an observer first, then
 * answers STATUS_REQ with a MODEL message in the bulk lane. */
static void peer_script(struct fake *f, const struct node_event *ev, struct node_effects *fx)
{
    static struct wire_batch batch;
    static struct wire_message m;
    static uint8_t head[WIRE_HEAD_MAX];
    static const uint8_t noise[] = {7};
    if (ev->type != NODE_RECV)
        return;
    assert_true(wire_read(ev->recv.bytes, ev->recv.len, &batch, &m));
    if (f->n_recv == 1) {
        assert_int_equal(m.type, WIRE_HELLO);
        assert_int_equal(m.hello.role, WIRE_OBSERVER);
        return;
    }
    assert_int_equal(m.type, WIRE_STATUS_REQ);
    struct wire_model answer = {.round = 7, .payload = {model->bytes, model->len}};
    /* First, the peer sends a message with random contents, which the client must ignore. */
    fx->sends[fx->n_sends++] =
        (struct node_send){.link = ev->link, .head = noise, .n_head = sizeof noise};
    fx->sends[fx->n_sends++] =
        (struct node_send){.link = ev->link,
                           .bulk = true,
                           .head = head,
                           .n_head = wire_put_model(head, sizeof head, &answer),
                           .body = model};
}

static void client_up(void *self, uint32_t tag, uint32_t session, const uint8_t id[WIRE_ID_BYTES])
{
    (void)self;
    assert_int_equal(tag, 9);
    assert_memory_equal(id, a.identity.sign_pk, WIRE_ID_BYTES);
    seen_up++;
    seen_session = session;
}

static void client_message(void *self, uint32_t session, const struct wire_message *m)
{
    assert_int_equal(m->type, WIRE_MODEL);
    assert_int_equal(m->model.round, 7);
    seen_message++;
    seen_bytes = m->model.payload.n;
    uv_client_hangup(*(struct uv_client **)self, session);
}

static void client_ended(void *self, uint32_t tag, uint32_t session)
{
    (void)self;
    (void)tag;
    (void)session;
    seen_end++;
}

static bool client_is_up(void *self)
{
    (void)self;
    uv_run(&fake_loop, UV_RUN_NOWAIT);
    return seen_up == 1;
}

static bool client_done(void *self)
{
    (void)self;
    /* The peer runs in the same thread as the client, so the test must run the event loop of the
     * peer. */
    uv_run(&fake_loop, UV_RUN_NOWAIT);
    return seen_end == 1;
}

static bool never(void *self)
{
    (void)self;
    return false;
}

static void wait_until(struct uv_client *c, bool (*holds)(void *self))
{
    bool held = false;
    for (int i = 0; i < WATCHDOG_MS && !held; i++)
        held = uv_client_wait(c, 1, holds);
    assert_true(held);
}

static void test_observer(void **state)
{
    (void)state;
    uint8_t ask[16];
    struct uv_client *c;
    union uv_address at;
    struct uv_client_calls calls = {
        .self = &c, .up = client_up, .message = client_message, .ended = client_ended};
    fake_init(&a, 'a');
    a.script = peer_script;
    fake_open(&a);
    model = packet_get(&a.pool);
    model->len = 3000000;
    memset(model->bytes, 1, model->len);
    assert_int_equal(uv_client_open(&c, fake_psk, NULL, &calls), 0);
    assert_int_equal(uv_resolve_numeric(a.address, &at), 0);
    /* No event arrives, so the wait ends at its deadline. */
    assert_false(uv_client_wait(c, 1, never));
    assert_int_equal(uv_client_dial(c, 9, &at, 1), 0);
    wait_until(c, client_is_up);
    /* A wait of 0 ms must return at once. The session has no timer and no message that could wake
     * the event loop, so a loop that polls after the deadline would block forever. */
    assert_false(uv_client_wait(c, 0, never));
    uv_client_send(c, seen_session, ask, wire_put_status_req(ask, sizeof ask));
    wait_until(c, client_done);
    assert_int_equal(seen_up, 1);
    assert_int_equal(seen_message, 1);
    assert_int_equal(seen_bytes, 3000000);
    FAKE_RUN_UNTIL(a.n_down == 1);
    assert_int_equal(a.n_clean, 1);
    packet_release(model);
    uv_client_close(c);
    fake_exit(&a);
    fake_close(&a);
}

/* ---- Children --------------------------------------------------------- */

static uint32_t n_lines, n_children_ended;
static char last_line[64];

static void child_line(void *self, uint32_t i, char *text)
{
    (void)self;
    assert_int_equal(i, 0);
    n_lines++;
    snprintf(last_line, sizeof last_line, "%s", text);
}

static void child_ended(void *self, uint32_t i)
{
    (void)self;
    (void)i;
    n_children_ended++;
}

static void run_child(struct uv_cluster *c, const char *script, uint32_t n)
{
    static char *env[] = {NULL};
    char sh[] = "/bin/sh", flag[] = "-c", text[256];
    char *args[] = {sh, flag, text, NULL};
    snprintf(text, sizeof text, "%s", script);
    n_lines = n_children_ended = 0;
    assert_int_equal(uv_cluster_open(c, &fake_loop, n), 0);
    c->line = child_line;
    c->ended = child_ended;
    assert_int_equal(uv_cluster_spawn(c, 0, args, env), 0);
}

static void close_cluster(struct uv_cluster *c)
{
    uv_cluster_close(c);
    uv_run(&fake_loop, UV_RUN_NOWAIT);
    uv_cluster_free(c);
}

static void test_child_speaks_and_ends(void **state)
{
    (void)state;
    struct uv_cluster c;
    run_child(&c, "echo one; echo two; printf half; exit 3", 1);
    assert_true(c.child[0].port > 0);
    FAKE_RUN_UNTIL(n_children_ended == 1);
    assert_int_equal(n_lines, 2); /* Text without a newline does not count as a line. */
    assert_string_equal(last_line, "two");
    assert_int_equal(c.child[0].status, 3);
    close_cluster(&c);
}

static void test_child_is_stopped(void **state)
{
    (void)state;
    struct uv_cluster c;
    run_child(&c, "echo up; exec cat <&4", 1);
    FAKE_RUN_UNTIL(n_lines == 1);
    uv_cluster_stop(&c);
    FAKE_RUN_UNTIL(n_children_ended == 1);
    assert_int_equal(c.child[0].signal, SIGTERM);
    close_cluster(&c);
}

/* A child process must end when its parent dies. The child notices the end of the pipe that the
 * parent holds open, which the test closes here. */
static void test_leash(void **state)
{
    (void)state;
    struct uv_cluster c;
    run_child(&c, "echo up; cat <&4 >/dev/null; exit 5", 1);
    FAKE_RUN_UNTIL(n_lines == 1);
    close(c.leash[1]);
    c.leash[1] = -1;
    FAKE_RUN_UNTIL(n_children_ended == 1);
    assert_int_equal(c.child[0].status, 5);
    close_cluster(&c);
}

static void test_over_long_line(void **state)
{
    (void)state;
    struct uv_cluster c;
    run_child(
        &c, "i=0; while [ $i -lt 3000 ]; do printf 1234567890; i=$((i+1)); done; echo; echo short",
        1);
    FAKE_RUN_UNTIL(n_children_ended == 1);
    assert_int_equal(n_lines, 1);
    assert_string_equal(last_line, "short");
    close_cluster(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_expected),
        cmocka_unit_test(test_numeric_and_back),
        cmocka_unit_test(test_numeric_needs_no_lookup),
        cmocka_unit_test_setup_teardown(test_numeric_seed, fake_setup, fake_teardown),
        cmocka_unit_test(test_spare),
        cmocka_unit_test(test_metrics_line),
        cmocka_unit_test(test_metrics_due),
        cmocka_unit_test(test_metrics_start),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_whole),
        cmocka_unit_test_setup_teardown(test_observer, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_child_speaks_and_ends, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_child_is_stopped, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_leash, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_over_long_line, fake_setup, fake_teardown),
    };
    if (!fake_descriptors(64))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
