/* tests/unit/sim_sessions.c -- sessions in the simulated network: which events each end receives,
 * and when. */
#include "peer/sim/state.h"
#include "sim_rig.h"

enum { SECOND = 1000 * 1000, LAG = 1000, SEEN = 4096 };

/* One event that a node received. */
struct seen
{
    int64_t at_us;
    uint32_t peer, other;
    enum node_event_type type;
    bool dialled;
};

struct story
{
    struct rig r;
    struct seen seen[SEEN];
    size_t n;
};

static void watch(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    struct story *s = (struct story *)((char *)self - offsetof(struct story, r));
    if (s->n < SEEN)
        s->seen[s->n++] = (struct seen){ev->now_us, peer, other, ev->type,
                                        ev->type == NODE_LINK_UP && ev->up.dialled};
}

static void story_init(struct story *s, uint32_t n)
{
    rig_init(&s->r, n, 50, "ring", "qsgd:4", 0);
    s->n = 0;
    s->r.eta = 0.05f;
    s->r.config.latency_us = LAG;
    s->r.config.step_us = 50 * 1000;
    s->r.config.sessions = true;
    s->r.config.watch = watch;
    s->r.config.run.rounds = 1000;
    s->r.config.run.final_drift = 1e-3;
}

static void story_open(struct story *s, uint32_t n)
{
    story_init(s, n);
    rig_open(&s->r);
}

/* Returns the first event of this type at this peer, at or after `from_us`. NULL: there was
 * none. */
static const struct seen *first(const struct story *s, int64_t from_us, uint32_t peer,
                                enum node_event_type type)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->seen[i].at_us >= from_us && s->seen[i].peer == peer && s->seen[i].type == type)
            return &s->seen[i];
    return NULL;
}

static bool run_to(struct story *s, int64_t t_us)
{
    return sim_run_to(s->r.world, t_us);
}

/* The dialling end must see the beginning of the session LAG earlier than the other end. */
static void test_handshake(void **state)
{
    static struct story s;
    (void)state;
    story_open(&s, 2);
    run_to(&s, SECOND);
    const struct seen *a = first(&s, 0, 0, NODE_LINK_UP), *b = first(&s, 0, 1, NODE_LINK_UP);
    assert_non_null(a);
    assert_non_null(b);
    assert_true(a->dialled != b->dialled);
    assert_int_equal(a->dialled ? b->at_us - a->at_us : a->at_us - b->at_us, LAG);
    rig_close(&s.r);
}

/* Sets a path of 1 byte/us, on which each segment has 700 bytes of headers. */
static void narrow(void *self, uint32_t from, uint32_t to, struct sim_path *path)
{
    (void)self, (void)from, (void)to;
    path->bytes_per_s = 1e6;
    path->headers = 700;
}

/* On a path with headers, a message takes as many bytes as its encrypted form, plus one header for
 * each segment. */
static void test_line_bytes(void **state)
{
    const struct sim_path bare = {.bytes_per_s = 1e6}, path = {.headers = 66};
    size_t record = (size_t)sim_socket_bytes(1) - 1, whole = SIM_SEGMENT - record;
    (void)state;
    assert_int_equal(sim_line_bytes(&bare, 0), 0);
    assert_int_equal(sim_line_bytes(&bare, 100000), 100000);
    assert_int_equal(sim_line_bytes(&path, 0), 66);
    assert_int_equal(sim_line_bytes(&path, 1), 1 + record + 66);
    assert_int_equal(sim_line_bytes(&path, whole), SIM_SEGMENT + 66);
    assert_int_equal(sim_line_bytes(&path, whole + 1), SIM_SEGMENT + 1 + 2 * 66);
    assert_int_equal(sim_line_bytes(&path, 100000), sim_socket_bytes(100000) + 70 * 66);
}

/* The headers of a segment that carries no message must also take time on the path. */
static void test_headers(void **state)
{
    static struct story s;
    (void)state;
    story_init(&s, 2);
    s.r.config.path = narrow;
    rig_open(&s.r);
    run_to(&s, SECOND);
    const struct seen *a = first(&s, 0, 0, NODE_LINK_UP), *b = first(&s, 0, 1, NODE_LINK_UP);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->dialled ? b->at_us - a->at_us : a->at_us - b->at_us, 700 + LAG);
    rig_close(&s.r);
}

/* When a process dies, the other ends of its sessions must notice that after the delay LAG. If the
 * path to the host of the process is cut at that time, they must notice it LAG after the path is
 * restored. */
static void test_half_open(void **state)
{
    static struct story s;
    (void)state;
    story_open(&s, 3);
    run_to(&s, SECOND);
    sim_cut(s.r.world, 2, 1, true);
    s.n = 0;
    sim_kill(s.r.world, 2);
    run_to(&s, 3 * SECOND);
    const struct seen *down = first(&s, 0, 0, NODE_LINK_DOWN);
    assert_non_null(down);
    assert_int_equal(down->at_us, SECOND + LAG);
    assert_null(first(&s, 0, 1, NODE_LINK_DOWN));
    sim_cut(s.r.world, 2, 1, false);
    run_to(&s, 4 * SECOND);
    down = first(&s, 0, 1, NODE_LINK_DOWN);
    assert_non_null(down);
    assert_int_equal(down->at_us, 3 * SECOND + LAG);
    rig_close(&s.r);
}

/* If the host runs but the process on it does not, a dial must fail at once. If the host is off, a
 * dial must fail after 3 s. */
static void test_dials(void **state)
{
    static struct story s;
    (void)state;
    story_open(&s, 3);
    run_to(&s, SECOND);
    sim_kill(s.r.world, 2);
    s.n = 0;
    /* The peer with the larger identity lets the other peer dial first. */
    run_to(&s, 4 * SECOND);
    assert_non_null(first(&s, 0, 0, NODE_DIAL_FAILED));
    assert_int_equal(sim_restart(s.r.world, 2), 0);
    run_to(&s, 6 * SECOND);
    sim_power_off(s.r.world, 2);
    s.n = 0;
    run_to(&s, 8 * SECOND);
    /* The nodes receive no event when the session ends. */
    assert_null(first(&s, 0, 0, NODE_LINK_DOWN));
    assert_null(first(&s, 0, 0, NODE_DIAL_FAILED));
    run_to(&s, 40 * SECOND);
    const struct seen *down = first(&s, 0, 0, NODE_LINK_DOWN);
    assert_non_null(down); /* The nodes' own failure detection ends the session. */
    const struct seen *failed = first(&s, down->at_us, 0, NODE_DIAL_FAILED);
    assert_non_null(failed);
    assert_true(failed->at_us >= down->at_us + 3 * SECOND);
    rig_close(&s.r);
}

/* Messages that are sent while a path is cut must arrive in order when it is restored. No exchange
 * may be lost, and the edges must continue in their epochs. */
static void test_held(void **state)
{
    static struct story s;
    (void)state;
    story_open(&s, 3);
    run_to(&s, 2 * SECOND);
    uint64_t before = rig_progress(&s.r, 0).exchanges;
    s.n = 0;
    sim_cut(s.r.world, 0, 1, true);
    sim_cut(s.r.world, 1, 0, true);
    run_to(&s, 4 * SECOND);
    assert_null(first(&s, 0, 0, NODE_LINK_DOWN));
    sim_cut(s.r.world, 0, 1, false);
    sim_cut(s.r.world, 1, 0, false);
    run_to(&s, 6 * SECOND);
    assert_null(first(&s, 0, 0, NODE_LINK_DOWN));
    assert_true(rig_progress(&s.r, 0).exchanges > before + 20);
    assert_int_equal(rig_progress(&s.r, 0).resets, 0);
    rig_close(&s.r);
}

/* If a session is reset, one end must see this at once, and the other end later. If a middlebox has
 * forgotten a session, neither end sees it until the nodes' failure detection ends the session. */
static void test_reset(void **state)
{
    static struct story s;
    (void)state;
    story_open(&s, 2);
    run_to(&s, SECOND);
    s.n = 0;
    sim_reset(s.r.world, 0, 1, 0, SECOND / 2);
    run_to(&s, SECOND + LAG / 2);
    assert_non_null(first(&s, 0, 0, NODE_LINK_DOWN));
    assert_null(first(&s, 0, 1, NODE_LINK_DOWN));
    run_to(&s, 3 * SECOND);
    assert_non_null(first(&s, 0, 1, NODE_LINK_DOWN));
    s.n = 0;
    sim_reset(s.r.world, 0, 1, -1, -1);
    run_to(&s, 6 * SECOND);
    assert_null(first(&s, 0, 0, NODE_LINK_DOWN));
    assert_null(first(&s, 0, 1, NODE_LINK_DOWN));
    run_to(&s, 20 * SECOND);
    assert_non_null(first(&s, 0, 0, NODE_LINK_DOWN));
    assert_int_equal(rig_progress(&s.r, 0).n_edges, 1);
    rig_close(&s.r);
}

/* An event loop that was stopped must receive all events when it continues, although its clock
 * jumps. A hung worker must not stop the event loop. */
static void test_stops(void **state)
{
    static struct story s;
    (void)state;
    story_open(&s, 2);
    run_to(&s, SECOND);
    s.n = 0;
    sim_stop(s.r.world, 1, true);
    run_to(&s, 2 * SECOND);
    for (size_t i = 0; i < s.n; i++)
        assert_int_equal(s.seen[i].peer, 0);
    sim_stop(s.r.world, 1, false);
    run_to(&s, 3 * SECOND);
    const struct seen *late = first(&s, 0, 1, NODE_RECV);
    assert_non_null(late);
    assert_int_equal(late->at_us, 2 * SECOND);
    s.n = 0;
    sim_hang(s.r.world, 1, true);
    run_to(&s, 5 * SECOND);
    assert_null(first(&s, 0, 1, NODE_WORKED));
    assert_non_null(first(&s, 0, 1, NODE_TIMER));
    sim_hang(s.r.world, 1, false);
    run_to(&s, 6 * SECOND);
    assert_non_null(first(&s, 0, 1, NODE_WORKED));
    rig_close(&s.r);
}

/* Without faults, a run over simulated sessions must train and reach consensus. Two runs must be
 * equal. */
static void test_whole_run(void **state)
{
    uint64_t trace[2];
    (void)state;
    for (int k = 0; k < 2; k++) {
        static struct story s;
        story_open(&s, 5);
        rig_run(&s.r, 400 * 1000);
        rig_ended_well(&s.r, 1e-3);
        trace[k] = sim_trace(s.r.world);
        rig_close(&s.r);
    }
    assert_int_equal(trace[0], trace[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handshake), cmocka_unit_test(test_half_open),
        cmocka_unit_test(test_dials),     cmocka_unit_test(test_held),
        cmocka_unit_test(test_reset),     cmocka_unit_test(test_stops),
        cmocka_unit_test(test_whole_run), cmocka_unit_test(test_line_bytes),
        cmocka_unit_test(test_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
