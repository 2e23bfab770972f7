/* tests/unit/http_status.c -- tests of /status.json, /healthz and /readyz. */
#include "peer/http/status.h"

#include "peer/http/health.h"
#include "peer/node/timers.h"
#include "tests/unit/http_rig.h"

#include <jansson.h>
#include <stdlib.h>

static struct snapshot shot;
static struct status_history history;

/* Returns /status.json as a parsed object, which the caller frees with json_decref(). */
static json_t *written(int64_t now_us)
{
    struct text t = {0};
    json_error_t error;
    status_write(&t, &history, &shot, now_us);
    assert_false(t.failed);
    assert_true(t.p[t.n - 1] == '\n');
    json_t *j = json_loads(t.p, JSON_REJECT_DUPLICATES, &error);
    if (j == NULL)
        fail_msg("%s at %d of %s", error.text, error.position, t.p);
    text_close(&t);
    return j;
}

static void test_object(void **state)
{
    (void)state;
    static const struct
    {
        const char *name;
        double value;
    } row[] = {{"round", 412},
               {"rounds", 1563},
               {"time_s", 60},
               {"loss", 0.3125},
               {"accuracy", 0.875},
               {"accuracy_round", 405},
               {"relative_drift", 0.0078125},
               {"drift_round", 390},
               {"drift_age", 22},
               {"bytes_sent", 18446744073},
               {"bytes_received", 9007199254740991},
               {"age_s", 1.5},
               {"snapshot_age_s", 1},
               {"live", 8},
               {"open_edges", 2},
               {"min_peers", 8},
               {"violations", 9},
               {"checkpoints", 3},
               {"disk_free_bytes", 70640791552}};
    rig_snapshot(&shot);
    json_t *j = written(RIG_TAKEN_US + 1000000);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!(json_number_value(json_object_get(j, row[i].name)) == row[i].value))
            fail_msg("%s is %.15g", row[i].name,
                     json_number_value(json_object_get(j, row[i].name)));
    assert_string_equal(json_string_value(json_object_get(j, "phase")), "training");
    assert_string_equal(json_string_value(json_object_get(j, "codec")), "qsgd:4");
    assert_string_equal(json_string_value(json_object_get(j, "run_id")), "0123456789abcdef");
    assert_true(json_is_true(json_object_get(j, "ready")));
    json_t *member = json_array_get(json_object_get(j, "members"), 1);
    assert_string_equal(json_string_value(json_object_get(member, "state")), "suspect");
    assert_int_equal(json_integer_value(json_object_get(member, "round")), 411);
    assert_true(json_is_null(json_object_get(member, "loss")));
    json_t *edge = json_array_get(json_object_get(j, "edges"), 0);
    assert_int_equal(json_integer_value(json_object_get(edge, "bytes_sent")), 1234);
    assert_string_equal(json_string_value(json_object_get(edge, "state")), "open");
    json_decref(j);
}

static json_t *waiting(enum node_waits_for what)
{
    shot.wait.what = what;
    json_t *j = written(RIG_TAKEN_US), *w = json_incref(json_object_get(j, "waiting"));
    json_decref(j);
    return w;
}

static void test_waiting(void **state)
{
    (void)state;
    rig_snapshot(&shot);
    shot.wait.have = 3;
    shot.wait.need = 5;
    json_t *w = waiting(NODE_WAITS_NEIGHBOUR);
    assert_string_equal(json_string_value(json_object_get(w, "for")), "neighbour");
    assert_string_equal(json_string_value(json_object_get(w, "name")), "b");
    assert_string_equal(json_string_value(json_object_get(w, "id")), shot.edge[0].id);
    assert_int_equal(json_integer_value(json_object_get(w, "round")), 411);
    assert_true(json_number_value(json_object_get(w, "since_s")) == 3.5);
    assert_true(json_is_null(json_object_get(w, "have")));
    json_decref(w);
    for (int what = NODE_WAITS_RUN; what < NODE_WAITS; what++) {
        w = waiting((enum node_waits_for)what);
        bool counts = what == NODE_WAITS_MEMBERS || what == NODE_WAITS_QUORUM;
        assert_true(json_is_string(json_object_get(w, "for")));
        bool others = what == NODE_WAITS_OTHERS;
        assert_int_equal(json_is_string(json_object_get(w, "id")),
                         what == NODE_WAITS_NEIGHBOUR || others);
        assert_int_equal(json_is_number(json_object_get(w, "limit_s")), others);
        assert_int_equal(json_is_integer(json_object_get(w, "need")), counts);
        if (counts)
            assert_int_equal(json_integer_value(json_object_get(w, "need")), 5);
        json_decref(w);
    }
    memset(shot.wait.id, 0, sizeof shot.wait.id);
    w = waiting(NODE_WAITS_OTHERS);
    assert_true(json_is_null(json_object_get(w, "name")) && json_is_null(json_object_get(w, "id")));
    json_decref(w);
    w = waiting(NODE_WAITS_NOTHING);
    assert_true(json_is_null(w));
    json_decref(w);
}

/* The "edges" of the "graph" are those of all peers, as pairs of vertices. "edges" is null if there
 * are too many, and "graph" is null if the topology is not known. */
static void test_graph(void **state)
{
    (void)state;
    rig_snapshot(&shot);
    json_t *j = written(RIG_TAKEN_US), *g = json_object_get(j, "graph"), *m;
    assert_string_equal(json_string_value(json_object_get(g, "topology")), "ring");
    assert_int_equal(json_integer_value(json_object_get(g, "vertices")), 3);
    assert_int_equal(json_integer_value(json_object_get(g, "n_edges")), 2);
    char *edges = json_dumps(json_object_get(g, "edges"), JSON_COMPACT);
    assert_string_equal(edges, "[[0,1],[1,2]]");
    free(edges);
    m = json_object_get(j, "members");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(m, 0), "vertex")), 1);
    assert_true(json_is_null(json_object_get(json_array_get(m, 1), "vertex")));
    json_t *edge = json_array_get(json_object_get(j, "edges"), 0);
    assert_int_equal(json_integer_value(json_object_get(edge, "neighbour_round")), 411);
    assert_true(json_number_value(json_object_get(edge, "neighbour_busy_s")) == 0.75);
    json_decref(j);
    shot.graph.whole = false;
    shot.graph.n_edges = 99999;
    shot.edge[0].neighbour = (struct node_neighbour){.busy_s = NAN};
    j = written(RIG_TAKEN_US);
    g = json_object_get(j, "graph");
    assert_true(json_is_null(json_object_get(g, "edges")));
    assert_int_equal(json_integer_value(json_object_get(g, "n_edges")), 99999);
    edge = json_array_get(json_object_get(j, "edges"), 0);
    assert_true(json_is_null(json_object_get(edge, "neighbour_round")));
    assert_true(json_is_null(json_object_get(edge, "neighbour_busy_s")));
    json_decref(j);
    shot.graph.topology[0] = '\0';
    j = written(RIG_TAKEN_US);
    assert_true(json_is_null(json_object_get(j, "graph")));
    json_decref(j);
}

/* Before the node's loop has started, and without a run, unknown values are null and not 0. */
static void test_unknown(void **state)
{
    (void)state;
    memset(&shot, 0, sizeof shot);
    json_t *j = written(RIG_TAKEN_US);
    assert_true(json_is_null(json_object_get(j, "run_id")));
    assert_true(json_is_null(json_object_get(j, "name")));
    assert_true(json_is_null(json_object_get(j, "snapshot_age_s")));
    assert_true(json_is_false(json_object_get(j, "ready")));
    assert_int_equal(json_array_size(json_object_get(j, "history")), 0);
    json_decref(j);
    rig_snapshot(&shot);
    shot.figures.has_run = false;
    shot.figures.node.loss = shot.figures.node.drift = shot.figures.node.accuracy = NAN;
    shot.figures.has_disk_free = false;
    j = written(RIG_TAKEN_US);
    static const char *const name[] = {
        "loss", "drift",  "drift_round", "accuracy",    "accuracy_round",
        "run",  "run_id", "min_peers",   "final_drift", "disk_free_bytes"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!json_is_null(json_object_get(j, name[i])))
            fail_msg("%s is not null", name[i]);
    json_decref(j);
}

/* The server stores the text of the history between requests and appends new points. This text
 * remains correct while the history grows and while points are removed from it. */
static void test_history(void **state)
{
    (void)state;
    rig_snapshot(&shot);
    for (uint64_t i = 1; i <= 5000; i++) {
        struct history_point p = {.round = i,
                                  .time_s = (double)i,
                                  .loss = 1.0 / (double)i,
                                  .accuracy = i % 100 == 0 ? 0.5 : NAN,
                                  .relative_drift = i > 2 ? 0.25 : NAN,
                                  .drift_round = i - 1,
                                  .bytes_sent = 10 * i};
        history_add(&shot.history, &p);
        if (i > 3 && i % 331 != 0 && i != 998 && i != 999)
            continue;
        json_t *j = written(RIG_TAKEN_US), *list = json_object_get(j, "history");
        const struct history_point *newest = history_newest(&shot.history);
        assert_int_equal(json_array_size(list), shot.history.n + (newest != NULL));
        uint64_t before = 0;
        for (size_t k = 0; k < json_array_size(list); k++) {
            json_t *q = json_array_get(list, k);
            uint64_t round = (uint64_t)json_integer_value(json_object_get(q, "round"));
            assert_true(round > before);
            before = round;
            assert_int_equal(json_integer_value(json_object_get(q, "bytes_sent")), 10 * round);
            assert_true(json_number_value(json_object_get(q, "time_s")) == (double)round);
            assert_true(json_is_null(json_object_get(q, "accuracy")) == (round % 100 != 0));
            assert_true(json_is_null(json_object_get(q, "drift_round")) == (round <= 2));
        }
        assert_int_equal(before, i);
        json_decref(j);
    }
    text_close(&history.points);
}

/* ---- Health ------------------------------------------------------------- */

static void test_health(void **state)
{
    (void)state;
    static const struct
    {
        enum node_phase phase;
        bool has_run, holds;
        uint32_t live;
        int64_t late_us;
        bool healthy, ready;
        const char *says;
    } row[] = {
        {NODE_JOINING, false, false, 1, 0, true, false, "no run yet"},
        {NODE_JOINING, true, false, 3, 0, true, false, "joining: 3 of 8 members are present"},
        {NODE_JOINING, true, false, 8, 0, true, false, "waits for their edges or for a model"},
        {NODE_TRAINING, true, false, 8, 0, true, true, "training: round 412 of 1563"},
        {NODE_TRAINING, true, true, 3, 0, true, false, "quorum"},
        {NODE_CONSENSUS, true, false, 8, 0, true, true,
         "consensus: round 9 of the consensus phase"},
        {NODE_FINISHING, true, false, 8, 0, true, true, "finishing"},
        {NODE_LEFT, true, false, 8, 0, true, false, "left"},
        {NODE_TRAINING, true, false, 8, HEALTH_SILENT_US, true, true, "training"},
        {NODE_TRAINING, true, false, 8, HEALTH_SILENT_US + 1, false, false,
         "not responded for 10 s"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[HEALTH_TEXT];
        rig_snapshot(&shot);
        shot.figures.node.phase = row[i].phase;
        shot.figures.node.settle_rounds = 9;
        shot.figures.node.holds = row[i].holds;
        shot.figures.node.n_live = row[i].live;
        shot.figures.has_run = row[i].has_run;
        assert_int_equal(health_live(&shot, RIG_TAKEN_US + row[i].late_us, NULL), row[i].healthy);
        assert_int_equal(health_ready(&shot, RIG_TAKEN_US + row[i].late_us, text), row[i].ready);
        if (strstr(text, row[i].says) == NULL)
            fail_msg("'%s' does not say '%s'", text, row[i].says);
    }
    char text[HEALTH_TEXT];
    memset(&shot, 0, sizeof shot);
    /* A peer that has not begun counts as live: it may still read its data, which may take long. */
    assert_true(health_live(&shot, INT64_MAX / 2, text));
    assert_false(health_ready(&shot, INT64_MAX / 2, text));
    assert_non_null(strstr(text, "starting"));
}

/* "timers" has each row of timer_all[] in its order, also before the node's loop has started. */
static void test_timers(void **state)
{
    (void)state;
    memset(&shot, 0, sizeof shot);
    json_t *j = written(RIG_TAKEN_US), *all = json_object_get(j, "timers");
    size_t n = 0;
    for (const struct timer *t = timer_all; t->name != NULL; t++, n++) {
        json_t *row = json_array_get(all, n);
        double seconds = json_number_value(json_object_get(row, "seconds"));
        assert_int_equal(json_object_size(row), 3);
        assert_string_equal(json_string_value(json_object_get(row, "name")), t->name);
        assert_string_equal(json_string_value(json_object_get(row, "purpose")), t->purpose);
        assert_int_equal((int64_t)(seconds * 1e6 + 0.5), t->period_us);
    }
    assert_true(n > 0);
    assert_int_equal(json_array_size(all), n);
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object),  cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_graph),   cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_history), cmocka_unit_test(test_health),
        cmocka_unit_test(test_timers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
