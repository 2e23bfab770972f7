/* tests/unit/node_hostile_deltas.c -- tests of deltas with invalid statistics or an invalid codec
 * number, and of models with an invalid variance. */
#include "tests/unit/node_hostile_says.h"

/* Makes a valid delta and then replaces its statistic with the index `place` by `value`. */
static size_t with_value(struct world *w, uint8_t *out, size_t place, float value)
{
    static uint8_t payload[65536];
    struct wire_delta d = good_delta(w, payload);
    memcpy(payload + 1 + 4 * place, &value, sizeof value);
    return put_delta(out, &d);
}

#define VALUE_ACT(name, place, value)                                                              \
    static size_t name(struct world *w, uint8_t *out)                                              \
    {                                                                                              \
        return with_value(w, out, place, value);                                                   \
    }
VALUE_ACT(value_nan, 0, (float)NAN)
VALUE_ACT(value_infinite, 1, INFINITY)
VALUE_ACT(value_huge, 2, 0x1p65f)
VALUE_ACT(value_negative, 3, -1e-30f)
VALUE_ACT(value_last, STATISTICS - 1, -1)
VALUE_ACT(value_zero, 0, 0)
VALUE_ACT(value_large, 0, 0x1p64f)

DELTA_ACT(head_flag_2, payload[0] = 2)
DELTA_ACT(head_flag_255, payload[0] = 255)
/* The first byte of the payload, a flag, says that the delta has no statistics. The statistics
 * follow nevertheless, and are read as the compressed part of the payload. */
DELTA_ACT(head_denied, payload[0] = 0)
DELTA_ACT(head_only, d.payload.n = 1 + 4 * STATISTICS)
DELTA_ACT(head_cut, d.payload.n = 4 * STATISTICS)
DELTA_ACT(head_flag_alone, d.payload.n = 1)
DELTA_ACT(head_absent, (memmove(payload + 1, payload + 1 + 4 * STATISTICS, d.payload.n),
                        payload[0] = 0, d.payload.n -= 4 * STATISTICS))
DELTA_ACT(head_missing, (memmove(payload, payload + 1 + 4 * STATISTICS, d.payload.n),
                         d.payload.n -= 1 + 4 * STATISTICS))

static void try_all(const struct act *act, size_t n, const char *compress)
{
    const char *was = compressor;
    compressor = compress;
    struct world *w = world_in_training(100000);
    for (size_t i = 0; i < n; i++)
        try_act(w, &act[i]);
    world_close(w);
    compressor = was;
}

static void test_statistics(void **state)
{
    static const struct act act[] = {
        {"DELTA with a statistic of NaN", value_nan, true, VIOLATION},
        {"DELTA with one of infinity", value_infinite, true, VIOLATION},
        {"DELTA with one of 2^65", value_huge, true, VIOLATION},
        {"DELTA with a variance under 0", value_negative, true, VIOLATION},
        {"DELTA with the last of them", value_last, true, VIOLATION},
        {"DELTA with one of 0", value_zero, true, TAKEN},
        {"DELTA with one of 2^64", value_large, true, TAKEN},
        {"DELTA with a flag of 2", head_flag_2, true, VIOLATION},
        {"DELTA with a flag of 255", head_flag_255, true, VIOLATION},
        {"DELTA that denies its statistics", head_denied, true, VIOLATION},
        {"DELTA of statistics alone", head_only, true, VIOLATION},
        {"DELTA of half of them", head_cut, true, VIOLATION},
        {"DELTA of a flag", head_flag_alone, true, VIOLATION},
        {"DELTA without statistics", head_absent, true, TAKEN},
        {"DELTA without the byte that says so", head_missing, true, VIOLATION},
        {"DELTA, empty", delta_empty, true, VIOLATION},
        {"DELTA, a byte short", delta_short, true, VIOLATION},
        {"DELTA, a byte long", delta_long, true, VIOLATION},
        {"DELTA of garbage", delta_garbage, true, VIOLATION},
        {"DELTA", delta_good, true, TAKEN},
    };
    (void)state;
    statistics = true;
    try_all(act, sizeof act / sizeof act[0], "topk:0.25");
    try_all(act, sizeof act / sizeof act[0], RUN_AUTO);
    statistics = false;
}

/* ---- codec numbers ---- */

DELTA_ACT(rung_first, d.codec = DELTA_RUNG)
DELTA_ACT(rung_last, d.codec = DELTA_RUNG + CODEC_LEVELS_RUNGS - 1)
DELTA_ACT(code_run, d.codec = DELTA_RUN)
DELTA_ACT(code_after, d.codec = DELTA_RUNG + CODEC_LEVELS_RUNGS)

static void test_rung_without_ladder(void **state)
{
    static const struct act act[] = {
        {"DELTA of the first rung", rung_first, true, VIOLATION},
        {"DELTA of the last rung", rung_last, true, VIOLATION},
        {"DELTA", delta_good, true, TAKEN},
    };
    (void)state;
    /* The fixed codec of this run is also one of the codec levels of --compress auto. A delta that
     * names a codec level is refused nevertheless, because the run does not use levels. */
    try_all(act, sizeof act / sizeof act[0], "topk:0.01+qsgd:4");
}

static void test_ladder_without_run(void **state)
{
    static const struct act act[] = {
        {"DELTA in the run's codec, which it has not", code_run, true, VIOLATION},
        {"DELTA of a rung above the last", code_after, true, VIOLATION},
        {"DELTA of another rung than it says", rung_last, true, VIOLATION},
        {"DELTA of a rung", delta_good, true, TAKEN},
    };
    (void)state;
    try_all(act, sizeof act / sizeof act[0], RUN_AUTO);
}

/* ---- a bad donor ---- */

static size_t model_with(uint8_t *out, size_t place, float value)
{
    static float payload[FLOATS];
    struct wire_model m = {.round = 5, .payload = {(uint8_t *)payload, sizeof payload}};
    for (size_t k = 0; k < FLOATS; k++)
        payload[k] = 2;
    payload[place] = value;
    size_t n = wire_put_model(out, SCRATCH, &m);
    memcpy(out + n, payload, sizeof payload);
    return n + sizeof payload;
}

static void test_bad_donor(void **state)
{
    static uint8_t out[SCRATCH];
    static const float bad[] = {-1, (float)NAN, INFINITY, 0x1p65f};
    (void)state;
    statistics = true;
    struct world *w = world_open(1000, 3, false);
    run_for(w, SECOND / 2);
    float before[FLOATS];
    memcpy(before, model(w, OURS), sizeof before);
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        evil_is_asked(w);
        evil_says(w, out, model_with(out, FLOATS - 1, bad[k]));
        assert_true(w->violation);
        assert_memory_equal(before, model(w, OURS), sizeof before);
    }
    evil_is_asked(w);
    /* A weight of the model may be negative, unlike a variance. */
    evil_says(w, out, model_with(out, 0, -1));
    assert_false(w->hung_up);
    assert_true(model(w, OURS)[0] == -1 && model(w, OURS)[FLOATS - 1] == 2);
    world_close(w);
    statistics = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_rung_without_ladder),
        cmocka_unit_test(test_ladder_without_run),
        cmocka_unit_test(test_bad_donor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
