/* peer/secure/frame.c -- splits messages into records, and joins records to messages. */
#include "peer/secure/frame.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAME_FIRST = 4096 /* Smallest receive buffer of a lane (control or bulk messages), in bytes. */
};

void frame_init(struct frame *f, size_t max_control, size_t max_bulk)
{
    *f = (struct frame){0};
    f->lane[FRAME_CONTROL].max = max_control;
    f->lane[FRAME_BULK].max = max_bulk;
}

void frame_limit(struct frame *f, enum frame_lane lane, size_t max)
{
    assert(lane < FRAME_LANES);
    f->lane[lane].max = max;
}

/* Wipes memory before it is freed, because it held plaintext of a sealed message. */
static void wipe_and_free(uint8_t *bytes, size_t n)
{
    if (bytes != NULL)
        explicit_bzero(bytes, n);
    free(bytes);
}

void frame_close(struct frame *f)
{
    for (int i = 0; i < FRAME_LANES; i++)
        wipe_and_free(f->lane[i].bytes, f->lane[i].capacity);
    *f = (struct frame){0};
}

/* Sets *lane to the lane (control or bulk) that records of this kind belong to, and *end to whether
 * the record is the last of its message. Returns false if the kind belongs to no lane. */
static bool lane_of(enum channel_kind kind, enum frame_lane *lane, bool *end)
{
    switch (kind) {
    case CHANNEL_CONTROL:
    case CHANNEL_CONTROL_END:
        *lane = FRAME_CONTROL;
        *end = kind == CHANNEL_CONTROL_END;
        return true;
    case CHANNEL_BULK:
    case CHANNEL_BULK_END:
        *lane = FRAME_BULK;
        *end = kind == CHANNEL_BULK_END;
        return true;
    case CHANNEL_REKEY:
    case CHANNEL_CLOSE:
        break;
    }
    return false;
}

/* Makes room for n more bytes in the receive buffer of a lane (control or bulk). The capacity
 * doubles, so that the total cost of copying is linear. The capacity stays below 2 (bytes received
 * + n), apart from a minimum of FRAME_FIRST. It is also at most `most` if `most` bytes are enough.
 * realloc() is not used, because it would leave the old block unwiped. */
static int reserve(struct frame *f, enum frame_lane lane, size_t n, size_t most)
{
    size_t need = f->lane[lane].n + n;
    size_t capacity = f->lane[lane].capacity;
    if (need <= capacity)
        return 0;
    capacity = capacity < FRAME_FIRST / 2 ? FRAME_FIRST : 2 * capacity;
    capacity = capacity > most ? most : capacity;
    capacity = capacity < need ? need : capacity;
    uint8_t *bytes = malloc(capacity);
    if (bytes == NULL)
        return -ENOMEM;
    if (f->lane[lane].n > 0)
        memcpy(bytes, f->lane[lane].bytes, f->lane[lane].n);
    wipe_and_free(f->lane[lane].bytes, f->lane[lane].capacity);
    f->lane[lane].bytes = bytes;
    f->lane[lane].capacity = capacity;
    return 0;
}

uint8_t *frame_room(struct frame *f)
{
    size_t most = f->lane[FRAME_BULK].max + CHANNEL_OPEN_MAX;
    if (reserve(f, FRAME_BULK, CHANNEL_OPEN_MAX, most) != 0)
        return NULL;
    return f->lane[FRAME_BULK].bytes + f->lane[FRAME_BULK].n;
}

/* Appends data[0..n) to the incomplete message of the lane (control or bulk). If the data were
 * decrypted in place, at the end of the message, nothing is copied. */
static int append(struct frame *f, enum frame_lane lane, const uint8_t *data, size_t n)
{
    uint8_t *bytes = f->lane[lane].bytes;
    if (bytes == NULL || data != bytes + f->lane[lane].n) {
        if (reserve(f, lane, n, f->lane[lane].max) != 0)
            return -ENOMEM;
        memcpy(f->lane[lane].bytes + f->lane[lane].n, data, n);
    }
    f->lane[lane].n += n;
    return 0;
}

int frame_push(struct frame *f, enum channel_kind kind, const uint8_t *data, size_t n,
               struct frame_message *m)
{
    enum frame_lane lane;
    bool end;
    if (!lane_of(kind, &lane, &end) || n == 0)
        return -EPROTO;
    size_t before = f->lane[lane].n, max = f->lane[lane].max;
    if (before > max || n > max - before)
        return -EPROTO;
    if (end && before == 0) {
        *m = (struct frame_message){.lane = lane, .bytes = data, .n = n};
        return 1;
    }
    if (append(f, lane, data, n) != 0)
        return -ENOMEM;
    if (!end)
        return 0;
    *m = (struct frame_message){.lane = lane, .bytes = f->lane[lane].bytes, .n = f->lane[lane].n};
    /* The next record of this lane (control or bulk) begins a new message, so the lane's byte count
     * becomes 0. The bytes of the message stay valid until the next frame_room() or
     * frame_push(). */
    f->lane[lane].n = 0;
    return 1;
}

void frame_cut_init(struct frame_cut *c, enum frame_lane lane, const uint8_t *head, size_t n_head,
                    const uint8_t *body, size_t n_body)
{
    assert(lane < FRAME_LANES);
    assert(n_head + n_body >= 1);
    *c = (struct frame_cut){
        .lane = lane, .head = head, .n_head = n_head, .body = body, .n_body = n_body};
}

size_t frame_left(const struct frame_cut *c)
{
    return c->n_head + c->n_body - c->at;
}

bool frame_next(struct frame_cut *c, struct frame_record *r)
{
    size_t n = frame_left(c);
    if (n == 0)
        return false;
    bool last = n <= CHANNEL_PLAIN_MAX;
    n = last ? n : CHANNEL_PLAIN_MAX;
    *r = (struct frame_record){0};
    if (c->at < c->n_head) {
        r->n = c->n_head - c->at < n ? c->n_head - c->at : n;
        r->data = c->head + c->at;
        c->at += r->n;
    }
    if (r->n < n) {
        r->n2 = n - r->n;
        r->data2 = c->body + (c->at - c->n_head);
        c->at += r->n2;
    }
    if (c->lane == FRAME_CONTROL)
        r->kind = last ? CHANNEL_CONTROL_END : CHANNEL_CONTROL;
    else
        r->kind = last ? CHANNEL_BULK_END : CHANNEL_BULK;
    return true;
}
