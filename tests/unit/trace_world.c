/* tests/unit/trace_world.c -- the trace of simulated peers: order, phases, ends, and independence
 * of the number of threads. */
#include "peer/trace/trace.h"

#include "sim_rig.h"

enum { PEERS = 4, ROUNDS = 12 };

/* A trace that is written to memory. */
struct writer
{
    struct rig rig;
    struct trace *trace;
    struct trace_peer *peer[PEERS];
    char *text;
    size_t n;
};

static void take(void *self, const char *line)
{
    struct writer *w = self;
    size_t n = strlen(line);
    w->text = realloc(w->text, w->n + n + 2);
    assert_non_null(w->text);
    memcpy(w->text + w->n, line, n);
    memcpy(w->text + w->n + n, "\n", 2);
    w->n += n + 1;
}

static void watch(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    struct writer *w = self;
    (void)other;
    trace_event(w->peer[peer], sim_node_at_work(w->rig.world, peer), ev);
}

static void stepped(void *self, uint32_t peer, const struct node_event *ev,
                    const struct node_effects *fx)
{
    struct writer *w = self;
    trace_effects(w->peer[peer], sim_node_at_work(w->rig.world, peer), ev->now_us, fx);
}

/* Runs four peers to the end with this number of threads. The caller frees the text. */
static void run(struct writer *w, uint32_t threads)
{
    *w = (struct writer){.n = 0};
    rig_init(&w->rig, PEERS, 64, "ring", "none", 1);
    w->rig.eta = 0.1f;
    w->rig.config.run.rounds = ROUNDS;
    w->rig.config.run.final_drift = 0.05;
    w->rig.config.threads = threads;
    w->rig.config.watch = watch;
    w->rig.config.stepped = stepped;
    w->trace = trace_open(&(struct trace_config){.line = take, .self = w});
    assert_non_null(w->trace);
    for (uint32_t i = 0; i < PEERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "peer-%u", i);
        w->peer[i] = trace_add_peer(w->trace, name);
        assert_non_null(w->peer[i]);
    }
    rig_run(&w->rig, UINT64_MAX);
    rig_ended_well(&w->rig, 0.05);
    trace_close(w->trace);
    rig_close(&w->rig);
}

/* Finds a line of peer-0 in the trace: `line` is its text after the time and the name. Returns its
 * position. */
static const char *find(const struct writer *w, const char *line)
{
    char text[256];
    snprintf(text, sizeof text, "  peer-0  %s\n", line);
    const char *at = strstr(w->text, text);
    if (at == NULL) {
        fprintf(stderr, "%s", w->text);
        fail_msg("the trace has no line %s", line);
    }
    return at;
}

static void test_steps_are_in_order(void **state)
{
    static const char *const lines[] = {
        "starts",
        "at 0: joining",
        "session with peer-1",
        "<- peer-1  HELLO round 0",
        "at 0: joining, peer-1 open, peer-3 open",
        "at 0: training, peer-1 open, peer-3 open",
        "<- peer-1  DELTA e1 round 0 codec 0 beat 1",
        "at 12: consensus, peer-1 open, peer-3 open",
        "<- peer-1  PING finished",
        "ends with exit code 0",
    };
    struct writer w;
    const char *last = NULL;
    double then = 0;
    (void)state;
    run(&w, 1);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *at = find(&w, lines[i]);
        if (last != NULL && at < last)
            fail_msg("'%s' is before '%s'", lines[i], lines[i - 1]);
        last = at;
    }
    for (char *line = strtok(w.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        double now = strtod(line, NULL);
        assert_true(now >= then);
        then = now;
    }
    free(w.text);
}

/* The number of worker threads does not change the trace. */
static void test_threads_do_not_matter(void **state)
{
    struct writer a, b;
    (void)state;
    run(&a, 1);
    run(&b, 3);
    assert_string_equal(a.text, b.text);
    free(a.text);
    free(b.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_in_order),
        cmocka_unit_test(test_threads_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
