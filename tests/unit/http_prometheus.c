/* tests/unit/http_prometheus.c -- tests of the Prometheus text format, line by line, and of each
 * value. */
#include "peer/http/prometheus.h"

#include "tests/unit/http_rig.h"

#include <ctype.h>
#include <stdlib.h>

static struct snapshot shot;
static struct text page;

static const char *written(int64_t now_us)
{
    text_close(&page);
    prometheus_write(&page, &shot, now_us);
    assert_false(page.failed);
    return page.p;
}

/* Returns the value in the line that begins with `series` and a space. NaN: there is no such
 * line. */
static double value_of(const char *text, const char *series)
{
    size_t n = strlen(series);
    for (const char *p = text; (p = strstr(p, series)) != NULL; p += n)
        if ((p == text || p[-1] == '\n') && p[n] == ' ')
            return strtod(p + n + 1, NULL);
    return NAN;
}

/* ---- The format --------------------------------------------------------- */

/* Checks that a metric name of the form hearsay_[a-z_]* is at `p`. Returns its length. */
static size_t name_length(const char *p)
{
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz_");
    assert_true(n > 8 && strncmp(p, "hearsay_", 8) == 0);
    return n;
}

/* Checks the labels at `p`, such as {name="value"}, if there are any. Returns the text after
 * them. */
static const char *skip_labels(const char *p)
{
    if (*p != '{')
        return p;
    do {
        p++;
        size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz_");
        assert_true(n > 0 && p[n] == '=' && p[n + 1] == '"');
        for (p += n + 2; *p != '"'; p++) {
            assert_true(*p != '\n' && *p != '\0');
            p += *p == '\\'; /* A quote after a backslash does not end the value of the label. */
        }
        p++;
    } while (*p == ',');
    assert_true(*p == '}');
    return p + 1;
}

/* Checks that each metric has one HELP line, then one TYPE line, then all of its sample lines. */
static void check_format(const char *text)
{
    char name[80] = "", type[16] = "";
    size_t samples = 0, n;
    for (const char *p = text; *p != '\0'; p = strchr(p, '\n') + 1) {
        assert_non_null(strchr(p, '\n'));
        if (strncmp(p, "# HELP ", 7) == 0) {
            assert_true(name[0] == '\0' || samples > 0);
            n = name_length(p + 7);
            assert_true(p[7 + n] == ' ' && isupper((unsigned char)p[8 + n]) | isdigit(p[8 + n]));
            snprintf(name, sizeof name, "%.*s", (int)n, p + 7);
            char again[100];
            snprintf(again, sizeof again, "# HELP %s ", name);
            assert_null(strstr(p + 1, again));
            p = strchr(p, '\n') + 1;
            assert_int_equal(sscanf(p, "# TYPE %*s %15s", type), 1);
            assert_memory_equal(p + 7, name, n);
            assert_true(strcmp(type, "gauge") == 0 || strcmp(type, "counter") == 0);
            bool total = n > 6 && strcmp(name + n - 6, "_total") == 0;
            assert_true(total == (strcmp(type, "counter") == 0));
            samples = 0;
            continue;
        }
        n = name_length(p);
        assert_true(n == strlen(name) && memcmp(p, name, n) == 0);
        const char *number = skip_labels(p + n);
        char *end;
        assert_true(*number == ' ' && isfinite(strtod(number, &end)) && *end == '\n');
        samples++;
    }
    assert_true(samples > 0);
}

static void test_format(void **state)
{
    (void)state;
    rig_snapshot(&shot);
    check_format(written(RIG_TAKEN_US));
    shot.n_edges = shot.n_refused = shot.n_violations = 0;
    check_format(written(RIG_TAKEN_US));
    memset(&shot, 0, sizeof shot);
    check_format(written(RIG_TAKEN_US)); /* A snapshot of zeros: no run, no texts. */
    assert_true(value_of(page.p, "hearsay_ready") == 0);
}

/* Special characters in a codec or a name do not begin a new line. */
static void test_escapes(void **state)
{
    (void)state;
    rig_snapshot(&shot);
    strcpy(shot.codec, "a\"b\\c\nd");
    check_format(written(RIG_TAKEN_US));
    assert_non_null(strstr(page.p, "{codec=\"a\\\"b\\\\c\\nd\",by=\"drift\"} 1\n"));
}

/* ---- The figures -------------------------------------------------------- */

static void test_figures(void **state)
{
    (void)state;
    static const char *const other =
        "2222222222222222222222222222222222222222222222222222222222222222";
    static const struct
    {
        const char *series;
        double value;
    } row[] = {
        {"hearsay_round", 412},
        {"hearsay_run_rounds", 1563},
        {"hearsay_rounds_done_total", 400},
        {"hearsay_rounds_skipped_total", 7},
        {"hearsay_joined_round", 5},
        {"hearsay_settle_rounds", 0},
        {"hearsay_round_age_seconds", 2.5},
        {"hearsay_local_steps", 3},
        {"hearsay_local_steps_done_total", 1200},
        {"hearsay_loss", 0.3125},
        {"hearsay_accuracy_ratio", 0.875},
        {"hearsay_accuracy_round", 405},
        {"hearsay_test_loss", 0.4375},
        {"hearsay_drift", 0.5},
        {"hearsay_relative_drift", 0.0078125},
        {"hearsay_drift_round", 390},
        {"hearsay_drift_age_rounds", 22},
        {"hearsay_final_drift", 0.001},
        {"hearsay_drift_excess", 0.625},
        {"hearsay_drift_target", 1},
        {"hearsay_own_distance", 0.25},
        {"hearsay_statistics_disagreement", 0.0625},
        {"hearsay_gamma", 0.75},
        {"hearsay_goodput_bytes_per_second", 125000},
        {"hearsay_live_members", 8},
        {"hearsay_run_min_peers", 8},
        {"hearsay_open_edges", 2},
        {"hearsay_below_quorum", 0},
        {"hearsay_ready", 1},
        {"hearsay_exchanges_total", 810},
        {"hearsay_edge_resets_total", 4},
        {"hearsay_violations_total", 9},
        {"hearsay_violations_by_reason_total{reason=\"DELTA does not decode\"}", 9},
        {"hearsay_refused_connections_total{reason=\"unsealed\"}", 6},
        {"hearsay_distrusted_total", 2},
        {"hearsay_diverged", 0},
        {"hearsay_checkpoints_total", 3},
        {"hearsay_checkpoint_seconds_total", 0.125},
        {"hearsay_disk_free_bytes", 70640791552},
        {"hearsay_uptime_seconds", 62},
        {"hearsay_snapshot_age_seconds", 2},
        {"hearsay_bytes_total{direction=\"sent\"}", 18446744073},
        {"hearsay_bytes_total{direction=\"received\"}", 9007199254740991},
        {"hearsay_activity_seconds_total{activity=\"compute\"}", 11.5},
        {"hearsay_activity_seconds_total{activity=\"wait\"}", 2.75},
        {"hearsay_activity_seconds_total{activity=\"mix\"}", 1.25},
        {"hearsay_phase{phase=\"training\"}", 1},
        {"hearsay_phase{phase=\"no-quorum\"}", 0},
        {"hearsay_members{state=\"alive\"}", 1},
        {"hearsay_members{state=\"suspect\"}", 1},
        {"hearsay_members{state=\"dead\"}", 0},
        {"hearsay_codec_info{codec=\"qsgd:4\",by=\"drift\"}", 1},
        {"hearsay_run_info{run_id=\"0123456789abcdef\",model=\"lenet5\",data=\"glyphs\","
         "topology=\"ring\",compress=\"auto\",mixer=\"\",policy=\"\"}",
         1},
    };
    char series[200];
    rig_snapshot(&shot);
    const char *text = written(RIG_TAKEN_US + 2000000);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!(value_of(text, row[i].series) == row[i].value))
            fail_msg("%s is %.15g, expected %.15g", row[i].series, value_of(text, row[i].series),
                     row[i].value);
    snprintf(series, sizeof series,
             "hearsay_edge_bytes_total{neighbour=\"b\",id=\"%s\",direction=\"received\"}", other);
    assert_true(value_of(text, series) == 4321);
    snprintf(series, sizeof series, "hearsay_edge_round{neighbour=\"b\",id=\"%s\"}", other);
    assert_true(value_of(text, series) == 409);
}

/* A metric whose value is not known has no sample line. */
static void test_unknown(void **state)
{
    (void)state;
    static const char *const name[] = {
        "hearsay_loss",        "hearsay_accuracy_ratio",   "hearsay_accuracy_round",
        "hearsay_drift",       "hearsay_relative_drift",   "hearsay_drift_round",
        "hearsay_gamma",       "hearsay_drift_age_rounds", "hearsay_goodput_bytes_per_second",
        "hearsay_round",       "hearsay_run_rounds",       "hearsay_run_min_peers",
        "hearsay_final_drift", "hearsay_disk_free_bytes"};
    rig_snapshot(&shot);
    struct node_progress *p = &shot.figures.node;
    p->loss = p->accuracy = p->drift = p->relative_drift = p->gamma = p->goodput = NAN;
    p->own_distance = INFINITY; /* An infinite value gets no sample line, as NaN does not. */
    p->phase = NODE_JOINING;
    shot.figures.has_run = false;
    shot.figures.has_disk_free = false;
    const char *text = written(RIG_TAKEN_US);
    check_format(text);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!isnan(value_of(text, name[i])))
            fail_msg("%s is there, and not known", name[i]);
    assert_true(isnan(value_of(text, "hearsay_own_distance")));
    assert_null(strstr(text, "run_info"));
    assert_true(value_of(text, "hearsay_phase{phase=\"joining\"}") == 1);
    text_close(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format), cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_figures), cmocka_unit_test(test_unknown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
