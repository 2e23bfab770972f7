/* tests/unit/gossip_companion.c -- messages that contain a companion vector: the model and its
 * companion arrive, and a damaged message is refused. */
#include "gossip/mixers/companion.h"
#include "nn/math/rng.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { DIM = 37, BYTES_MAX = 4096 };

static const struct segment segment = {
    .name = "x", .n = DIM, .rows = 1, .cols = DIM, .n_dims = 1, .decays = true, .trained = true};
static float companion[DIM];

static void open_mixing(struct mixing *m, const char *spec)
{
    struct mixing_config config = {
        .segments = &segment,
        .n_segments = 1,
        .spec = {[DELTA_RUN] = spec, [DELTA_FINAL] = "none", [DELTA_CATCHUP] = "fp16"},
        .companion = companion};
    assert_int_equal(mixing_init(m, &config), 0);
    for (size_t k = 0; k < DIM; k++) {
        companion[k] = rng_unit_at(rng_key(1, RNG_TEST, 41, 0), k) - 0.5f;
        m->x[k] = 100 + (float)k;
    }
}

/* Encodes the model and its companion vector relative to a replica of zeros. Returns the length of
 * the message. */
static size_t encode(const struct mixing *m, uint32_t codec, uint8_t message[BYTES_MAX])
{
    float zeros[2 * DIM] = {0};
    struct compress_input in = {.draw = 5, .x = m->x, .x_hat = zeros};
    size_t head, len;
    assert_true(m->cap <= BYTES_MAX);
    assert_int_equal(companion_put(m, codec, &in, message, &head), 0);
    assert_int_equal(compress_encode(m->codec[codec], &in, message + head, &len, NULL), 0);
    assert_true(head + len <= m->cap);
    return head + len;
}

/* Exact codecs return the model and its companion vector unchanged. A message of the consensus
 * phase contains the model only. */
static void both_vectors_arrive(void **state)
{
    struct mixing m;
    uint8_t message[BYTES_MAX];
    (void)state;
    open_mixing(&m, "none");
    for (uint32_t codec = DELTA_RUN; codec <= DELTA_FINAL; codec++) {
        float replica[2 * DIM] = {0};
        size_t n = encode(&m, codec, message);
        assert_true(mixing_decodes(&m, codec, message, n));
        mixing_add(&m, codec, message, n, replica);
        assert_memory_equal(replica, m.x, sizeof companion);
        for (size_t k = 0; k < DIM; k++)
            assert_true(replica[DIM + k] == (codec == DELTA_FINAL ? 0 : companion[k]));
        assert_true(codec == DELTA_FINAL ? n < 5 * DIM : n >= 8 * DIM + COMPANION_HEAD);
    }
    assert_true(mixing_nominal(&m, DELTA_RUN)
                == 2 * compress_nominal(m.codec[DELTA_RUN]) + COMPANION_HEAD);
    assert_true(mixing_nominal(&m, DELTA_FINAL) == compress_nominal(m.codec[DELTA_FINAL]));
    mixing_close(&m);
}

/* A value that is not finite cannot be encoded, not even one that the codec would not send. */
static void refuses_values_that_are_not_finite(void **state)
{
    static const char *const spec[] = {"none", "qsgd:4", "topk:0.1", "randk:0.1"};
    (void)state;
    for (size_t i = 0; i < sizeof spec / sizeof spec[0]; i++)
        for (size_t k = 0; k < DIM; k++) {
            struct mixing m;
            uint8_t message[BYTES_MAX];
            float zeros[2 * DIM] = {0};
            size_t n;
            open_mixing(&m, spec[i]);
            companion[k] = (float)INFINITY;
            struct compress_input in = {.draw = 5, .x = m.x, .x_hat = zeros};
            assert_int_equal(companion_put(&m, DELTA_RUN, &in, message, &n), -ERANGE);
            mixing_close(&m);
        }
}

/* Each shorter or longer message, and each other length of the companion's part, is refused. A
 * message with a changed byte is refused or decodes to finite values. */
static void refuses_damaged_messages(void **state)
{
    static const char *const spec[] = {"none", "qsgd:4", "topk:0.1"};
    (void)state;
    for (size_t i = 0; i < sizeof spec / sizeof spec[0]; i++) {
        struct mixing m;
        uint8_t message[BYTES_MAX] = {0};
        open_mixing(&m, spec[i]);
        size_t n = encode(&m, DELTA_RUN, message);
        for (size_t len = 0; len < n; len++)
            assert_false(mixing_decodes(&m, DELTA_RUN, message, len));
        assert_false(mixing_decodes(&m, DELTA_RUN, message, n + 1));
        uint32_t right = (uint32_t)message[0] | (uint32_t)message[1] << 8;
        for (uint32_t claimed = 0; claimed < 2 * n; claimed++) {
            message[0] = (uint8_t)claimed;
            message[1] = (uint8_t)(claimed >> 8);
            assert_true(mixing_decodes(&m, DELTA_RUN, message, n) == (claimed == right));
        }
        message[0] = (uint8_t)right;
        message[1] = (uint8_t)(right >> 8);
        for (int byte = 2; byte < COMPANION_HEAD; byte++) {
            message[byte] = 0xff;
            assert_false(mixing_decodes(&m, DELTA_RUN, message, n));
            message[byte] = 0;
        }
        for (size_t at = 0; at < n; at++) {
            float replica[2 * DIM] = {0};
            uint8_t was = message[at];
            message[at] = (uint8_t)~was;
            if (mixing_decodes(&m, DELTA_RUN, message, n)) {
                mixing_add(&m, DELTA_RUN, message, n, replica);
                assert_true(vec_finite(replica, 2 * DIM));
            }
            message[at] = was;
        }
        mixing_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_vectors_arrive),
                                       cmocka_unit_test(refuses_values_that_are_not_finite),
                                       cmocka_unit_test(refuses_damaged_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
