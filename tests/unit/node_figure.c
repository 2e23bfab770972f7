/* tests/unit/node_figure.c -- checks the rows of the table of figures, and how their values are
 * read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gossip/wire/wire.h"
#include "peer/node/figure.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static struct figure_values values;

/* ---- The rows ---- */

/* The rows of an output must have the places 1 to n, each place once. */
static void test_places(void **state)
{
    (void)state;
    for (int output = 0; output < FIGURE_OUTPUTS; output++) {
        uint32_t n = 0;
        for (const struct figure *f = figure_all; f->name != NULL; f++) {
            if (f->place[output] == 0)
                continue;
            n++;
            if (figure_at((enum figure_output)output, f->place[output]) != f)
                fail_msg("%s: place %d of output %d is taken by %s", f->name, f->place[output],
                         output, figure_at((enum figure_output)output, f->place[output])->name);
        }
        assert_true(n > 0);
        for (uint32_t i = 1; i <= n; i++)
            if (figure_at((enum figure_output)output, i) == NULL)
                fail_msg("output %d of %u figures has no figure at place %u", output, n, i);
        assert_null(figure_at((enum figure_output)output, n + 1));
        assert_null(figure_at((enum figure_output)output, 0));
    }
}

static bool is_shown(const struct figure *f)
{
    for (int output = 0; output < FIGURE_OUTPUTS; output++)
        if (f->place[output] > 0)
            return true;
    return false;
}

static void check_sentence(const struct figure *f, const char *text)
{
    size_t n = strlen(text);
    if (n == 0 || text[n - 1] != '.' || !(isupper(text[0]) || isdigit(text[0])))
        fail_msg("%s: found '%s', expected a sentence", f->name, text);
}

/* Each row has a name of its own, a meaning, and an output that shows it. */
static void test_rows(void **state)
{
    (void)state;
    for (const struct figure *f = figure_all; f->name != NULL; f++) {
        assert_ptr_equal(figure_named(f->name), f);
        assert_true(is_shown(f));
        check_sentence(f, f->help);
        if (f->about != NULL)
            check_sentence(f, f->about);
        /* Help texts are printed unchanged, so they must not contain markup such as ` or [. */
        assert_null(strpbrk(f->help, "`|["));
        assert_null(strchr(f->about != NULL ? f->about : "", '|'));
    }
}

/* A figure is a Prometheus counter if and only if its metric's name ends in _total. Figures of
 * one metric are consecutive, and have equal help texts and different labels. */
static void test_metrics(void **state)
{
    (void)state;
    const struct figure *f, *before = NULL;
    for (f = figure_all; f->name != NULL; f++)
        assert_true((f->metric != NULL) == (f->place[FIGURE_PROMETHEUS] > 0));
    for (uint32_t i = 1; (f = figure_at(FIGURE_PROMETHEUS, i)) != NULL; before = f, i++) {
        size_t n = strlen(f->metric);
        bool total = n > 6 && strcmp(f->metric + n - 6, "_total") == 0;
        if (total != (f->type == FIGURE_COUNTER))
            fail_msg("%s: found %s, expected a counter if and only if its name ends in _total",
                     f->name, f->metric);
        for (uint32_t k = 1; k < i; k++) {
            const struct figure *g = figure_at(FIGURE_PROMETHEUS, k);
            if (strcmp(f->metric, g->metric) != 0)
                continue;
            assert_string_equal(f->metric, before->metric);
            assert_string_equal(f->help, g->help);
            assert_true(f->label != NULL && strcmp(f->label, g->label) != 0);
        }
    }
}

/* ---- Values ---- */

static struct figure_value get(const char *name, enum figure_output output)
{
    return figure_get(figure_named(name), &values, output);
}

/* Stores a value other than 0 at the offset that the figure reads. Returns the value as a
 * double. */
static double put(const struct figure *f, uint32_t number)
{
    char *at = (char *)&values + f->offset;
    static const char *const text = "a text";
    const double real = number + 0.5;
    const uint64_t whole = number + (UINT64_C(1) << 40);
    switch (f->kind) {
    case FIGURE_U64:
        memcpy(at, &whole, sizeof whole);
        return (double)whole;
    case FIGURE_U32:
        memcpy(at, &number, sizeof number);
        return number;
    case FIGURE_REAL:
        memcpy(at, &real, sizeof real);
        return real;
    case FIGURE_BOOL:
        memcpy(at, &(bool){true}, sizeof(bool));
        return 1;
    case FIGURE_TEXT:
        memcpy(at, &text, sizeof text);
        return 1;
    case FIGURE_CHARS:
        memcpy(at, text, strlen(text) + 1);
        return 1;
    case FIGURE_PHASE:
        return 1;
    case FIGURE_OTHER:
        break;
    }
    return (double)NAN;
}

/* Each row of the table of figures reads its own field. */
static void test_each_field(void **state)
{
    (void)state;
    uint32_t number = 100;
    for (const struct figure *f = figure_all; f->name != NULL; f++, number++) {
        figure_init(&values);
        values.has_run = values.has_disk_free = true;
        values.node.drift = values.node.accuracy = 1;
        double want = put(f, number), found = figure_number(f, &values);
        if (!(found == want) && !(isnan(want) && isnan(found)))
            fail_msg("%s is %g, expected %g", f->name, found, want);
    }
}

/* If no value was set, real numbers and texts must count as unknown, and totals must be 0. */
static void test_nothing_is_known(void **state)
{
    (void)state;
    figure_init(&values);
    for (const struct figure *f = figure_all; f->name != NULL; f++) {
        struct figure_value x = figure_get(f, &values, FIGURE_METRICS);
        bool real = f->kind == FIGURE_REAL,
             text = f->kind == FIGURE_TEXT || f->kind == FIGURE_CHARS;
        if ((real && f->type == FIGURE_GAUGE) || text)
            assert_int_equal(x.is, FIGURE_IS_UNKNOWN);
        else if (real)
            assert_true(x.is == FIGURE_IS_REAL && x.real == 0);
    }
    values.node.loss = INFINITY;
    assert_int_equal(get("loss", FIGURE_METRICS).is, FIGURE_IS_UNKNOWN);
    assert_true(isnan(figure_number(figure_named("loss"), &values)));
    /* Prometheus has the number 0 for a run that has not diverged. */
    assert_true(figure_number(figure_named("diverged"), &values) == 0);
    strcpy(values.node.diverged, "at round 3");
    assert_true(figure_number(figure_named("diverged"), &values) == 1);
    assert_string_equal(get("diverged", FIGURE_SUMMARY).text, "at round 3");
}

/* A line of the run log contains an evaluation only if the model was evaluated in that round.
 * The other outputs show the last evaluation. */
static void test_evaluation(void **state)
{
    (void)state;
    static const char *const name[] = {"accuracy", "test_loss", "accuracy_round",
                                       "accuracy_samples"};
    figure_init(&values);
    values.node.accuracy = values.node.test_loss = 0.5;
    values.node.accuracy_round = 7;
    values.node.accuracy_samples = 100;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        values.node.evaluated = false;
        assert_int_equal(get(name[i], FIGURE_METRICS).is, FIGURE_IS_UNKNOWN);
        assert_int_not_equal(get(name[i], FIGURE_STATUS_JSON).is, FIGURE_IS_UNKNOWN);
        assert_int_not_equal(get(name[i], FIGURE_PYTHON).is, FIGURE_IS_UNKNOWN);
        values.node.evaluated = true;
        assert_int_not_equal(get(name[i], FIGURE_METRICS).is, FIGURE_IS_UNKNOWN);
    }
    values.node.accuracy = NAN;
    assert_int_equal(get("accuracy_round", FIGURE_STATUS_JSON).is, FIGURE_IS_UNKNOWN);
    assert_int_equal(get("accuracy_round", FIGURE_PYTHON).is, FIGURE_IS_WHOLE);
}

/* Without a drift estimate, the round of the estimate is unknown. Prometheus gets no round before
 * the run has begun. */
static void test_rounds(void **state)
{
    (void)state;
    figure_init(&values);
    assert_int_equal(get("drift_round", FIGURE_METRICS).is, FIGURE_IS_UNKNOWN);
    assert_int_equal(get("drift_age", FIGURE_STATUS).is, FIGURE_IS_UNKNOWN);
    assert_int_equal(get("drift_round", FIGURE_PYTHON).is, FIGURE_IS_WHOLE);
    assert_int_equal(get("round", FIGURE_METRICS).is, FIGURE_IS_WHOLE);
    assert_true(isnan(figure_number(figure_named("round"), &values)));
    assert_true(isnan(figure_number(figure_named("min_peers"), &values)));
    values.has_run = true;
    values.node.drift = 0.25;
    values.node.drift_round = 3;
    assert_int_equal(get("drift_round", FIGURE_METRICS).whole, 3);
    assert_true(figure_number(figure_named("round"), &values) == 0);
}

/* ---- A peer's status message ---- */

static void test_status(void **state)
{
    (void)state;
    struct wire_status s = {.round = 1,
                            .n_rounds = 2,
                            .phase = NODE_TRAINING,
                            .holds = true,
                            .loss = 3,
                            .accuracy = 0.25,
                            .drift = 5,
                            .relative_drift = 6,
                            .drift_round = 7,
                            .drift_age = 8,
                            .bytes_sent = 9,
                            .bytes_received = 10,
                            .n_live = 11,
                            .n_strangers = 12,
                            .n_violations = 13,
                            .rounds_done = 14,
                            .rounds_skipped = 15,
                            .joined_round = 16,
                            .age_s = 17,
                            .codec = "fp16"};
    static const struct
    {
        const char *name;
        double value;
    } row[] = {{"round", 1},        {"rounds", 2},          {"loss", 3},
               {"accuracy", 0.25},  {"drift", 5},           {"holds", 1},
               {"drift_round", 7},  {"relative_drift", 6},  {"drift_age", 8},
               {"bytes_sent", 9},   {"live", 11},           {"bytes_received", 10},
               {"strangers", 12},   {"age_s", 17},          {"violations", 13},
               {"rounds_done", 14}, {"rounds_skipped", 15}, {"joined_round", 16}};
    figure_of_status(&values, &s);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_true(figure_named(row[i].name)->place[FIGURE_STATUS] > 0);
        if (!(figure_number(figure_named(row[i].name), &values) == row[i].value))
            fail_msg("%s is %g, expected %g", row[i].name,
                     figure_number(figure_named(row[i].name), &values), row[i].value);
    }
    assert_string_equal(get("phase", FIGURE_STATUS).text, "no-quorum");
    assert_string_equal(get("codec", FIGURE_STATUS).text, "fp16");
    s.phase = 77; /* A peer may send any number as its phase. */
    figure_of_status(&values, &s);
    assert_string_equal(get("phase", FIGURE_STATUS).text, "unknown");
}

/* A figure without a field in struct wire_status is sent by name, if its value is known. A figure
 * that the peer did not send is not known, and a value of another type is ignored. */
static void test_status_by_name(void **state)
{
    (void)state;
    static const char *const name[] = {"exchanges", "local_steps", "own_distance", "holds"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        struct figure f = *figure_named(name[i]);
        struct wire_status s = {.n_figures = 0};
        struct figure_values received;
        /* A figure at place 200 has no field of its own in the message. */
        f.place[FIGURE_STATUS] = 200;
        figure_init(&values);
        figure_of_status(&received, &s);
        assert_int_equal(figure_get(&f, &received, FIGURE_STATUS).is, FIGURE_IS_UNKNOWN);
        double want = put(&f, 7);
        figure_send(&s, &f, &values);
        assert_int_equal(s.n_figures, 1);
        assert_string_equal(s.figures[0].name, name[i]);
        struct figure_value x = figure_get(&f, &received, FIGURE_STATUS);
        assert_int_equal(x.is, figure_get(&f, &values, FIGURE_STATUS).is);
        assert_true(x.whole == (x.is == FIGURE_IS_WHOLE ? (uint64_t)want : 0));
        assert_true(x.is != FIGURE_IS_REAL || x.real == want);
        assert_true(x.is != FIGURE_IS_BOOL || x.yes);
        s.figures[0].is_real = !s.figures[0].is_real;
        assert_int_equal(figure_get(&f, &received, FIGURE_STATUS).is, FIGURE_IS_UNKNOWN);
    }
    struct wire_status s = {.n_figures = 0};
    figure_init(&values);
    figure_send(&s, figure_named("own_distance"), &values);
    assert_int_equal(s.n_figures, 0);
}

/* The rows that are sent by name must fit in the message: they must be numbers and have short
 * names. The other rows of the output are the fields of the message, which test_status() checks. */
static void test_rows_by_name(void **state)
{
    (void)state;
    struct wire_status s = {.n_figures = 0};
    const struct figure *f;
    for (f = figure_all; f->name != NULL; f++) {
        figure_init(&values);
        values.has_run = values.has_disk_free = true;
        values.node.drift = values.node.accuracy = 1;
        (void)put(f, 200);
        s.n_figures = 0;
        figure_to_status(&s, &values);
        for (uint32_t i = 0; i < s.n_figures; i++)
            assert_true(figure_named(s.figures[i].name)->place[FIGURE_STATUS] > 0);
        assert_true(f->place[FIGURE_STATUS] == 0 || strlen(f->name) <= WIRE_FIGURE_NAME);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),         cmocka_unit_test(test_rows),
        cmocka_unit_test(test_metrics),        cmocka_unit_test(test_each_field),
        cmocka_unit_test(test_evaluation),     cmocka_unit_test(test_nothing_is_known),
        cmocka_unit_test(test_rounds),         cmocka_unit_test(test_status),
        cmocka_unit_test(test_status_by_name), cmocka_unit_test(test_rows_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
