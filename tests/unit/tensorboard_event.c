/* tests/unit/tensorboard_event.c -- event files: checksums, framing, fields (peer/tensorboard). */
#include "peer/tensorboard/crc32c.h"
#include "peer/tensorboard/event.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* RFC 3720, B.4 (there as bytes in the order of the wire), and the check value of the catalogues. */
static void test_vectors(void **state)
{
    (void)state;
    uint8_t bytes[32];
    static const uint8_t pdu[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
                                    0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                    0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c(bytes, 32), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(crc32c(bytes, 32), 0x46dd794e);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    assert_int_equal(crc32c(bytes, 32), 0x113fdb5c);
    assert_int_equal(crc32c(pdu, sizeof pdu), 0xd9963a56);
    assert_int_equal(crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(crc32c("", 0), 0);
    /* TFRecord's rule, worked out by hand: 0xe3069283 turned right by 15 is 0x2507c60d. */
    assert_int_equal(crc32c_masked("123456789", 9), 0xc78ab0e5);
}

/* ---- A reader of records that shares nothing with the writer. ---- */

static uint64_t fixed(const uint8_t *p, int n)
{
    uint64_t x = 0;
    while (n-- > 0)
        x = x << 8 | p[n];
    return x;
}

/* Checks the frame of a record of n bytes; returns the Event, and its length. */
static const uint8_t *unframed(const uint8_t *record, size_t n, size_t *length)
{
    *length = fixed(record, 8);
    assert_int_equal(n, *length + 16);
    assert_int_equal(fixed(record + 8, 4), crc32c_masked(record, 8));
    assert_int_equal(fixed(record + 12 + *length, 4), crc32c_masked(record + 12, *length));
    return record + 12;
}

static void test_begin(void **state)
{
    (void)state;
    uint8_t record[EVENT_RECORD_MAX];
    size_t length, n = event_begin(record, 1.5);
    const uint8_t *event = unframed(record, n, &length);
    static const uint8_t expected[] = "\x09\0\0\0\0\0\0\xf8\x3f"
                                      "\x1a\x0d"
                                      "brain.Event:2"
                                      "\x52\x09\x0a\x07"
                                      "hearsay";
    assert_int_equal(length, sizeof expected - 1);
    assert_memory_equal(event, expected, length);
}

/* A SessionLog that says START, of a step. */
static void test_again(void **state)
{
    (void)state;
    uint8_t record[EVENT_RECORD_MAX];
    size_t length, n = event_again(record, 0.0, 300);
    const uint8_t *event = unframed(record, n, &length);
    static const uint8_t expected[] = "\x09\0\0\0\0\0\0\0\0"
                                      "\x10\xac\x02"
                                      "\x3a\x02\x08\x01";
    assert_int_equal(length, sizeof expected - 1);
    assert_memory_equal(event, expected, length);
}

static void test_scalars(void **state)
{
    (void)state;
    uint8_t record[EVENT_RECORD_MAX];
    const struct event_scalar s[] = {
        {"loss", 0.5}, {"none", (double)NAN}, {"huge", 1e300}, {"b", -2.0}};
    size_t length, n = event_scalars(record, 0.0, 300, s, 4);
    const uint8_t *event = unframed(record, n, &length);
    static const uint8_t expected[] = "\x09\0\0\0\0\0\0\0\0"
                                      "\x10\xac\x02"
                                      "\x2a\x17"
                                      "\x0a\x0b\x0a\x04"
                                      "loss"
                                      "\x15\0\0\0\x3f"
                                      "\x0a\x08\x0a\x01"
                                      "b"
                                      "\x15\0\0\0\xc0";
    assert_int_equal(length, sizeof expected - 1);
    assert_memory_equal(event, expected, length);
    assert_int_equal(event_scalars(record, 0.0, 1, s + 1, 2), 0);
    assert_int_equal(event_scalars(record, 0.0, 1, NULL, 0), 0);
}

/* As many as there may be, with the longest tags and steps, fit. */
static void test_largest(void **state)
{
    (void)state;
    uint8_t record[EVENT_RECORD_MAX];
    char tag[EVENT_TAG_MAX + 1];
    struct event_scalar s[EVENT_SCALARS];
    size_t length;
    memset(tag, 't', EVENT_TAG_MAX);
    tag[EVENT_TAG_MAX] = '\0';
    for (size_t i = 0; i < EVENT_SCALARS; i++)
        s[i] = (struct event_scalar){tag, (double)FLT_MAX};
    size_t n = event_scalars(record, 1e300, INT64_MAX, s, EVENT_SCALARS);
    unframed(record, n, &length);
    assert_true(length > EVENT_SCALARS * EVENT_TAG_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors), cmocka_unit_test(test_begin),
        cmocka_unit_test(test_again),   cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
