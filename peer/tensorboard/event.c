/* peer/tensorboard/event.c -- Events as protobuf, framed as TFRecords. */
#include "peer/tensorboard/event.h"

#include "peer/tensorboard/crc32c.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* The types of protobuf's fields. */
enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

enum { HEAD = 12, TAIL = 4, VALUE_MAX = EVENT_TAG_MAX + 16 };

/* Bytes being written; what does not fit is a bug of ours. */
struct bytes
{
    uint8_t *at;
    size_t n, cap;
};

static void put_byte(struct bytes *b, uint8_t byte)
{
    assert(b->n < b->cap);
    b->at[b->n++] = byte;
}

static void put_fixed(struct bytes *b, uint64_t x, int size)
{
    for (int i = 0; i < size; i++)
        put_byte(b, (uint8_t)(x >> 8 * i));
}

static void put_varint(struct bytes *b, uint64_t x)
{
    for (; x >= 0x80; x >>= 7)
        put_byte(b, (uint8_t)(x | 0x80));
    put_byte(b, (uint8_t)x);
}

static void put_field(struct bytes *b, unsigned number, enum wire type)
{
    put_varint(b, number << 3 | type);
}

static void put_bytes(struct bytes *b, unsigned field, const void *bytes, size_t n)
{
    put_field(b, field, BYTES);
    put_varint(b, n);
    for (size_t i = 0; i < n; i++)
        put_byte(b, ((const uint8_t *)bytes)[i]);
}

static void put_text(struct bytes *b, unsigned field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

static void put_double(struct bytes *b, unsigned field, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_field(b, field, FIXED64);
    put_fixed(b, bits, 8);
}

static void put_float(struct bytes *b, unsigned field, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_field(b, field, FIXED32);
    put_fixed(b, bits, 4);
}

/* An Event's place in its record, behind the head. */
static struct bytes begin(uint8_t out[EVENT_RECORD_MAX], double wall_s)
{
    struct bytes event = {.at = out + HEAD, .cap = EVENT_RECORD_MAX - HEAD - TAIL};
    put_double(&event, 1, wall_s);
    return event;
}

/* Head and tail around the Event. Returns the record's length. */
static size_t end(uint8_t out[EVENT_RECORD_MAX], const struct bytes *event)
{
    struct bytes head = {.at = out, .cap = HEAD}, tail = {.at = event->at + event->n, .cap = TAIL};
    put_fixed(&head, event->n, 8);
    put_fixed(&head, crc32c_masked(out, 8), 4);
    put_fixed(&tail, crc32c_masked(event->at, event->n), 4);
    return HEAD + event->n + TAIL;
}

size_t event_begin(uint8_t out[EVENT_RECORD_MAX], double wall_s)
{
    uint8_t room[32];
    struct bytes event = begin(out, wall_s), source = {.at = room, .cap = sizeof room};
    put_text(&event, 3, "brain.Event:2");
    put_text(&source, 1, "hearsay");
    put_bytes(&event, 10, source.at, source.n);
    return end(out, &event);
}

size_t event_again(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step)
{
    static const uint8_t start[] = {1 << 3 | VARINT, 1};
    struct bytes event = begin(out, wall_s);
    put_field(&event, 2, VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 7, start, sizeof start);
    return end(out, &event);
}

size_t event_scalars(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step,
                     const struct event_scalar *s, size_t n)
{
    uint8_t room[EVENT_SCALARS * VALUE_MAX], small[VALUE_MAX];
    struct bytes event = begin(out, wall_s), summary = {.at = room, .cap = sizeof room};
    assert(n <= EVENT_SCALARS);
    for (size_t i = 0; i < n; i++) {
        struct bytes value = {.at = small, .cap = sizeof small};
        assert(strlen(s[i].tag) <= EVENT_TAG_MAX);
        if (!(fabs(s[i].value) <= (double)FLT_MAX)) /* Nor NaN. */
            continue;
        put_text(&value, 1, s[i].tag);
        put_float(&value, 2, (float)s[i].value);
        put_bytes(&summary, 1, value.at, value.n);
    }
    if (summary.n == 0)
        return 0;
    put_field(&event, 2, VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.at, summary.n);
    return end(out, &event);
}
