/* tests/unit/trace_lines.c -- the lines of a trace of protocol events: times, names, messages, and
 * what is left out. */
#include "peer/trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LINK = 7, LINES_MAX = 4096 };

static char lines[LINES_MAX][128];
static size_t n_lines;

static void take(void *self, const char *line)
{
    (void)self;
    assert_true(n_lines < LINES_MAX);
    snprintf(lines[n_lines++], sizeof *lines, "%s", line);
}

/* Callback that names peers: the peer whose identity begins with 2 is "two", and other peers have
 * no name. */
static bool name_two(void *self, const uint8_t id[WIRE_ID_BYTES], char out[TRACE_NAME_SIZE])
{
    (void)self;
    if (id[0] == 2)
        snprintf(out, TRACE_NAME_SIZE, "two");
    return id[0] == 2;
}

/* A trace of the peer "one" that has a session with the peer whose identity begins with `other`. */
static struct trace_peer *begin(struct trace **t, bool all, uint8_t other)
{
    n_lines = 0;
    *t = trace_open(
        &(struct trace_config){.line = take, .name = name_two, .all = all, .origin_us = 5000000});
    struct trace_peer *p = trace_add_peer(*t, "one");
    struct node_event up = {.now_us = 5000000, .type = NODE_LINK_UP, .link = LINK};
    up.up.id[0] = other;
    up.up.id[3] = 0xab;
    trace_event(p, NULL, &up);
    return p;
}

static void receive(struct trace_peer *p, int64_t now_us, const uint8_t *bytes, size_t n)
{
    assert_true(n > 0);
    trace_event(p, NULL,
                &(struct node_event){
                    .now_us = now_us, .type = NODE_RECV, .link = LINK, .recv = {bytes, n}});
}

static void receive_delta(struct trace_peer *p, int64_t now_us, uint64_t epoch, uint64_t round)
{
    static const uint8_t payload[4];
    uint8_t out[256];
    struct wire_delta d = {.epoch = epoch,
                           .round = round,
                           .run_round = round + 1,
                           .payload = {payload, sizeof payload}};
    size_t n = wire_put_delta(out, sizeof out - sizeof payload, &d);
    memcpy(out + n, payload, sizeof payload);
    receive(p, now_us, out, n + sizeof payload);
}

static void expect(size_t i, const char *line)
{
    if (i >= n_lines)
        fail_msg("there are %zu lines; expected '%s'", n_lines, line);
    assert_string_equal(lines[i], line);
}

static void test_a_line_has_time_peer_and_event(void **state)
{
    struct trace *t;
    struct trace_peer *p = begin(&t, false, 2);
    (void)state;
    trace_say(p, 6234999, "two\nlines\x1b[1m");
    trace_mark(t, 7000000, "late ends");
    trace_event(p, NULL,
                &(struct node_event){
                    .now_us = 7500000, .type = NODE_LINK_DOWN, .link = LINK, .down = {true}});
    expect(0, "    0.000  one  session with two");
    expect(1, "    1.234  one  two lines [1m");
    expect(2, "    2.000  ---- late ends");
    expect(3, "    2.500  one  session with two ends by a word");
    assert_int_equal(n_lines, 4);
    trace_close(t);
}

/* A peer whose name is not known is shown by the first bytes of its identity. */
static void test_an_unknown_peer_has_a_name(void **state)
{
    struct trace *t;
    (void)state;
    (void)begin(&t, false, 9);
    expect(0, "    0.000  one  session with #090000ab");
    trace_close(t);
}

static void test_messages_in_words(void **state)
{
    struct trace *t;
    struct trace_peer *p = begin(&t, false, 2);
    uint8_t out[256];
    (void)state;
    receive(
        p, 5000000, out,
        wire_put_edge(out, sizeof out, &(struct wire_edge){.round = 3, .nonce = 2, .answers = 1}));
    receive(
        p, 5000000, out,
        wire_put_edge(out, sizeof out, &(struct wire_edge){.epoch = 77, .round = 4, .nonce = 3}));
    receive(p, 5000000, out, wire_put_edge_close(out, sizeof out));
    receive(p, 5000000, (const uint8_t *)"?", 1);
    expect(1, "    0.000  one  <- two  EDGE no epoch round 3 answer");
    expect(2, "    0.000  one  <- two  EDGE e1 round 4");
    expect(3, "    0.000  one  <- two  EDGE_CLOSE");
    expect(4, "    0.000  one  <- two  a message that cannot be parsed, 1 bytes");
    trace_close(t);
}

/* The trace leaves out a delta that directly follows the previous one in its epoch. A repeated
 * delta, a delta after a gap, and the first delta of a new epoch each get a line. */
static void test_repetitions_are_left_out(void **state)
{
    struct trace *t;
    struct trace_peer *p = begin(&t, false, 2);
    uint8_t out[64];
    (void)state;
    for (uint64_t round = 0; round < 5; round++)
        receive_delta(p, 5000000, 70, round);
    receive_delta(p, 5000000, 70, 4);
    receive_delta(p, 5000000, 70, 5);
    receive_delta(p, 5000000, 70, 7);
    receive_delta(p, 5000000, 80, 8);
    receive_delta(p, 5000000, 80, 9);
    receive(p, 5000000, out, wire_put_ping(out, sizeof out, &(struct wire_ping){.round = 1}));
    expect(1, "    0.000  one  <- two  DELTA e1 round 0 codec 0 beat 1");
    expect(2, "    0.000  one  <- two  DELTA e1 round 4 codec 0 beat 5");
    expect(3, "    0.000  one  <- two  DELTA e1 round 7 codec 0 beat 8");
    expect(4, "    0.000  one  <- two  DELTA e2 round 8 codec 0 beat 9");
    assert_int_equal(n_lines, 5);
    trace_close(t);
}

/* With the option `all`, nothing may be left out of the trace, and times must be written to the
 * microsecond. */
static void test_all_events(void **state)
{
    struct trace *t;
    struct trace_peer *p = begin(&t, true, 2);
    uint8_t out[64];
    (void)state;
    receive_delta(p, 5000001, 70, 0);
    receive_delta(p, 5000002, 70, 1);
    receive(p, 5000003, out, wire_put_ping(out, sizeof out, &(struct wire_ping){.round = 1}));
    trace_event(p, NULL, &(struct node_event){.now_us = 5000004, .type = NODE_TIMER});
    trace_event(p, NULL, &(struct node_event){.now_us = 5000005, .type = NODE_WORKED});
    expect(1, "    0.000001  one  <- two  DELTA e1 round 0 codec 0 beat 1");
    expect(2, "    0.000002  one  <- two  DELTA e1 round 1 codec 0 beat 2");
    expect(3, "    0.000003  one  <- two  PING");
    expect(4, "    0.000005  one  job ends");
    assert_int_equal(n_lines, 5);
    trace_close(t);
}

/* A trace remembers only the last epochs, but the numbers in the names of epochs must continue to
 * count. */
static void test_many_epochs_and_peers(void **state)
{
    enum { EPOCHS = 3000 };
    struct trace *t;
    struct trace_peer *p = begin(&t, false, 2);
    char text[128];
    (void)state;
    for (uint64_t k = 1; k <= EPOCHS; k++)
        receive_delta(p, 5000000, 1000 + k, 0);
    for (uint64_t k = 1; k <= EPOCHS; k++) {
        snprintf(text, sizeof text, "    0.000  one  <- two  DELTA e%u round 0 codec 0 beat 1",
                 (unsigned)k);
        expect(k, text);
    }
    receive_delta(p, 5000000, 1000 + EPOCHS - 1, 5);
    snprintf(text, sizeof text, "    0.000  one  <- two  DELTA e%u round 5 codec 0 beat 6",
             (unsigned)EPOCHS - 1);
    expect(n_lines - 1, text);
    trace_close(t);
}

/* A peer that has restarted has no sessions. The trace must not name the sender of a message on a
 * link from before the restart. */
static void test_a_start_forgets_sessions(void **state)
{
    struct trace *t;
    struct trace_peer *p = begin(&t, false, 2);
    uint8_t out[64];
    (void)state;
    trace_event(p, NULL, &(struct node_event){.now_us = 5000000, .type = NODE_START});
    receive(p, 5000000, out, wire_put_edge_close(out, sizeof out));
    expect(1, "    0.000  one  starts");
    expect(2, "    0.000  one  <- ?  EDGE_CLOSE");
    trace_close(t);
}

/* The trace must accept more sessions than a node does, and any bytes from them. */
static void test_outside_data_have_limits(void **state)
{
    struct trace *t;
    struct trace_peer *p = begin(&t, true, 2);
    uint8_t bytes[64];
    (void)state;
    n_lines = 0;
    for (uint32_t i = 0; i < 2 * NODE_LINKS_MAX; i++) {
        struct node_event up = {.now_us = 5000000, .type = NODE_LINK_UP, .link = 100 + i};
        up.up.id[0] = 2;
        trace_event(p, NULL, &up);
        memset(bytes, (int)i, sizeof bytes);
        receive(p, 5000000, bytes, sizeof bytes);
    }
    assert_int_equal(n_lines, 4 * NODE_LINKS_MAX);
    trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_has_time_peer_and_event),
        cmocka_unit_test(test_an_unknown_peer_has_a_name),
        cmocka_unit_test(test_messages_in_words),
        cmocka_unit_test(test_repetitions_are_left_out),
        cmocka_unit_test(test_all_events),
        cmocka_unit_test(test_many_epochs_and_peers),
        cmocka_unit_test(test_a_start_forgets_sessions),
        cmocka_unit_test(test_outside_data_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
