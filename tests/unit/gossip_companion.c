/* tests/unit/gossip_companion.c -- messages that contain one or two companion vectors: the model and
 * its companions arrive, and a damaged message is refused. */
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
static float companion[DIM], second[DIM];

/* Opens a mixing with one companion vector, or with two. */
static void open_mixing(struct mixing *m, const char *spec, bool two)
{
    struct mixing_config config = {
        .segments = &segment,
        .n_segments = 1,
        .spec = {[DELTA_RUN] = spec, [DELTA_FINAL] = "none", [DELTA_CATCHUP] = "fp16"},
        .companion = {companion, two ? second : NULL}};
    assert_int_equal(mixing_init(m, &config), 0);
    for (size_t k = 0; k < DIM; k++) {
        companion[k] = rng_unit_at(rng_key(1, RNG_TEST, 41, 0), k) - 0.5f;
        second[k] = 1e-3f * rng_unit_at(rng_key(1, RNG_TEST, 42, 0), k);
        m->x[k] = 100 + (float)k;
    }
}

/* Encodes the model and its companion vectors relative to a replica of zeros. Returns the length of
 * the message. */
static size_t encode(const struct mixing *m, uint32_t codec, uint8_t message[BYTES_MAX])
{
    float zeros[3 * DIM] = {0};
    struct compress_input in = {.draw = 5, .x = m->x, .x_hat = zeros};
    size_t head, len;
    assert_true(m->cap <= BYTES_MAX);
    assert_int_equal(companion_put(m, codec, &in, message, &head), 0);
    assert_int_equal(compress_encode(m->codec[codec], &in, message + head, &len, NULL), 0);
    assert_true(head + len <= m->cap);
    return head + len;
}

/* Exact codecs return the model and its companion vectors unchanged. A message of the consensus
 * phase contains the model only. */
static void all_vectors_arrive(void **state)
{
    struct mixing m;
    uint8_t message[BYTES_MAX];
    (void)state;
    for (size_t n_companions = 1; n_companions <= 2; n_companions++) {
        open_mixing(&m, "none", n_companions == 2);
        assert_int_equal(m.n_companions, n_companions);
        for (uint32_t codec = DELTA_RUN; codec <= DELTA_FINAL; codec++) {
            float replica[3 * DIM] = {0};
            bool final = codec == DELTA_FINAL;
            size_t n = encode(&m, codec, message);
            assert_true(mixing_decodes(&m, codec, message, n));
            mixing_add(&m, codec, message, n, replica);
            assert_memory_equal(replica, m.x, sizeof companion);
            for (size_t k = 0; k < DIM; k++) {
                assert_true(replica[DIM + k] == (final ? 0 : companion[k]));
                assert_true(replica[2 * DIM + k] == (final || n_companions == 1 ? 0 : second[k]));
            }
            assert_true(final ? n < 5 * DIM
                              : n >= 4 * DIM + n_companions * (4 * DIM + COMPANION_HEAD));
        }
        assert_true(mixing_nominal(&m, DELTA_RUN)
                    == (1 + n_companions) * compress_nominal(m.codec[DELTA_RUN])
                           + n_companions * COMPANION_HEAD);
        assert_true(mixing_nominal(&m, DELTA_FINAL) == compress_nominal(m.codec[DELTA_FINAL]));
        mixing_close(&m);
    }
}

/* The random choices of a codec for one companion vector are independent of those for the other. */
static void vectors_have_their_own_random_choices(void **state)
{
    struct mixing m;
    uint8_t message[BYTES_MAX];
    float replica[3 * DIM] = {0};
    size_t n_apart = 0, n_apart_from_model = 0;
    (void)state;
    open_mixing(&m, "randk:0.5", true);
    memcpy(second, companion, sizeof second);
    memcpy(m.x, companion, sizeof second);
    size_t n = encode(&m, DELTA_RUN, message);
    mixing_add(&m, DELTA_RUN, message, n, replica);
    for (size_t k = 0; k < DIM; k++) {
        n_apart += replica[DIM + k] != replica[2 * DIM + k];
        n_apart_from_model += replica[k] != replica[2 * DIM + k];
    }
    assert_true(n_apart > DIM / 4 && n_apart_from_model > DIM / 4);
    mixing_close(&m);
}

/* A message with a value that is not finite, in any of the vectors, is refused. */
static void refuses_received_values_that_are_not_finite(void **state)
{
    static const float bad[] = {(float)NAN, (float)INFINITY, (float)-INFINITY};
    struct mixing m;
    uint8_t message[BYTES_MAX];
    (void)state;
    open_mixing(&m, "none", true);
    size_t n = encode(&m, DELTA_RUN, message), end = 0;
    for (size_t v = 0; v < 2; v++) {
        end += COMPANION_HEAD + (size_t)message[end] + ((size_t)message[end + 1] << 8);
        for (size_t k = 0; k < DIM; k++)
            for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
                /* The values of a vector are the last bytes of its part of the message. */
                uint8_t *at = message + end - 4 * (DIM - k), was[4];
                memcpy(was, at, 4);
                memcpy(at, &bad[b], 4);
                assert_false(mixing_decodes(&m, DELTA_RUN, message, n));
                memcpy(at, was, 4);
                assert_true(mixing_decodes(&m, DELTA_RUN, message, n));
            }
    }
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
            float zeros[3 * DIM] = {0};
            size_t n;
            open_mixing(&m, spec[i], true);
            (k % 2 == 0 ? companion : second)[k] = (float)INFINITY;
            struct compress_input in = {.draw = 5, .x = m.x, .x_hat = zeros};
            assert_int_equal(companion_put(&m, DELTA_RUN, &in, message, &n), -ERANGE);
            mixing_close(&m);
        }
}

/* message + at is the length field of a companion vector. The message is refused with every value of
 * this field except the right one. */
static void refuses_other_lengths(const struct mixing *m, uint8_t *message, size_t n, size_t at)
{
    uint8_t *field = message + at;
    uint32_t right = (uint32_t)field[0] | (uint32_t)field[1] << 8;
    for (uint32_t claimed = 0; claimed < 2 * n; claimed++) {
        field[0] = (uint8_t)claimed;
        field[1] = (uint8_t)(claimed >> 8);
        assert_true(mixing_decodes(m, DELTA_RUN, message, n) == (claimed == right));
    }
    field[0] = (uint8_t)right;
    field[1] = (uint8_t)(right >> 8);
    for (int byte = 2; byte < COMPANION_HEAD; byte++) {
        field[byte] = 0xff;
        assert_false(mixing_decodes(m, DELTA_RUN, message, n));
        field[byte] = 0;
    }
}

/* Each shorter or longer message, and each other length of the companions' parts, is refused. A
 * message with a changed byte is refused or decodes to finite values. */
static void refuses_damaged_messages(void **state)
{
    static const char *const spec[] = {"none", "qsgd:4", "topk:0.1"};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof spec / sizeof spec[0]; i++) {
        struct mixing m;
        uint8_t message[BYTES_MAX] = {0};
        open_mixing(&m, spec[i / 2], i % 2 == 1);
        size_t n = encode(&m, DELTA_RUN, message);
        for (size_t len = 0; len < n; len++)
            assert_false(mixing_decodes(&m, DELTA_RUN, message, len));
        assert_false(mixing_decodes(&m, DELTA_RUN, message, n + 1));
        refuses_other_lengths(&m, message, n, 0);
        if (m.n_companions == 2)
            refuses_other_lengths(&m, message, n,
                                  COMPANION_HEAD + (size_t)message[0] + ((size_t)message[1] << 8));
        for (size_t at = 0; at < n; at++) {
            float replica[3 * DIM] = {0};
            uint8_t was = message[at];
            message[at] = (uint8_t)~was;
            if (mixing_decodes(&m, DELTA_RUN, message, n)) {
                mixing_add(&m, DELTA_RUN, message, n, replica);
                assert_true(vec_finite(replica, 3 * DIM));
            }
            message[at] = was;
        }
        mixing_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_vectors_arrive),
        cmocka_unit_test(vectors_have_their_own_random_choices),
        cmocka_unit_test(refuses_values_that_are_not_finite),
        cmocka_unit_test(refuses_received_values_that_are_not_finite),
        cmocka_unit_test(refuses_damaged_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
