/* tests/fuzz/fuzz_frame.c -- fuzzes the assembly of messages from the records of a session.
 *
 *   input:   limit of control u16 | limit of bulk u16 | record, record, ...
 *   record:  kind u8 | length u16 | in place? u8       (all bytes of record i are i)
 *
 * A simple reference stores both lanes in two arrays. Each record is decrypted to the place given
 * by frame_room(), or to a block of its own. Frame and reference must then agree whether
 * the message is complete, more records are needed, or the session ends. Each complete message is
 * also split into records again, which must give the same message. */
#include "peer/secure/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { HEAD = 4, RECORD = 4, LANE_MAX = 1 << 17 };

static void demand(bool ok)
{
    if (!ok)
        abort();
}

static struct
{
    uint8_t bytes[LANE_MAX];
    size_t n, max;
} lane[FRAME_LANES];

static size_t u16(const uint8_t *p)
{
    return (size_t)p[0] | (size_t)p[1] << 8;
}

/* Returns what the reference implementation expects for a record. 1: the message is complete; 0:
 * more records are needed; -EPROTO: the record is invalid. */
static int expected(uint8_t kind, const uint8_t *data, size_t n, enum frame_lane *which)
{
    if (kind < CHANNEL_CONTROL || kind > CHANNEL_BULK_END || n == 0)
        return -EPROTO;
    *which = kind >= CHANNEL_BULK ? FRAME_BULK : FRAME_CONTROL;
    if (lane[*which].n + n > lane[*which].max)
        return -EPROTO;
    memcpy(lane[*which].bytes + lane[*which].n, data, n);
    lane[*which].n += n;
    return kind == CHANNEL_CONTROL_END || kind == CHANNEL_BULK_END;
}

/* Cuts a message into records and joins them again. The message is in two parts in memory, of
 * `head` and n - head bytes. */
static void cut_again(const uint8_t *bytes, size_t n, size_t head, enum frame_lane which)
{
    static uint8_t data[CHANNEL_OPEN_MAX];
    struct frame f;
    struct frame_cut cut;
    struct frame_record r;
    struct frame_message m = {0};
    int whole = 0;
    head = head < n ? head : n;
    frame_init(&f, n, n);
    frame_cut_init(&cut, which, bytes, head, bytes + head, n - head);
    demand(frame_left(&cut) == n);
    while (frame_next(&cut, &r)) {
        demand(whole == 0 && r.n + r.n2 >= 1 && r.n + r.n2 <= CHANNEL_PLAIN_MAX);
        if (r.n > 0)
            memcpy(data, r.data, r.n);
        if (r.n2 > 0)
            memcpy(data + r.n, r.data2, r.n2);
        whole = frame_push(&f, r.kind, data, r.n + r.n2, &m);
        demand(whole >= 0);
    }
    demand(whole == 1 && m.lane == which && m.n == n && memcmp(m.bytes, bytes, n) == 0);
    frame_close(&f);
}

/* Passes one record to the frame (assembler of messages) and to the reference, and compares their
 * results. Returns false if the session ends. */
static bool push(struct frame *f, const uint8_t *p, uint8_t number, bool deep)
{
    uint8_t kind = p[0];
    size_t n = u16(p + 1) % (CHANNEL_PLAIN_MAX + 1);
    bool in_place = p[3] & 1;
    enum frame_lane which = FRAME_CONTROL;
    struct frame_message m = {0};
    uint8_t *data = in_place ? frame_room(f) : malloc(n + (n == 0));
    demand(data != NULL);
    memset(data, number, n);
    int want = expected(kind, data, n, &which);
    int got = frame_push(f, (enum channel_kind)kind, data, n, &m);
    demand(got == want);
    if (got == 1) {
        demand(m.lane == which && m.n == lane[which].n);
        demand(memcmp(m.bytes, lane[which].bytes, m.n) == 0);
        if (deep)
            cut_again(lane[which].bytes, m.n, (size_t)(p[3] >> 1) * 64, which);
        lane[which].n = 0;
    }
    if (!in_place)
        free(data);
    return got >= 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct frame f;
    if (n < HEAD)
        return 0;
    for (int i = 0; i < FRAME_LANES; i++) {
        lane[i].n = 0;
        lane[i].max = u16(p + 2 * (size_t)i) * (i == FRAME_BULK ? 2 : 1);
    }
    frame_init(&f, lane[FRAME_CONTROL].max, lane[FRAME_BULK].max);
    uint8_t number = 1;
    /* Limit on the bytes of all records together. The fuzzer tests the order of the records, so
     * long records are not needed. */
    size_t budget = 1 << 18;
    for (size_t at = HEAD; n - at >= RECORD && number != 0; at += RECORD, number++) {
        size_t length = u16(p + at + 1);
        if (length > budget || !push(&f, p + at, number, number < 16))
            break;
        budget -= length;
    }
    frame_close(&f);
    return 0;
}
