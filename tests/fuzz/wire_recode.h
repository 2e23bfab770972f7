/* tests/fuzz/wire_recode.h -- reads a message and writes it again.
 *
 * A message that the reader accepts must be written as a message of the same meaning. Reading
 * and writing that message again gives the same bytes. */
#ifndef TESTS_WIRE_RECODE_H
#define TESTS_WIRE_RECODE_H

#include "gossip/wire/wire.h"

#include <assert.h>
#include <string.h>

/* Appends the payload to a message head of `head` bytes. Returns the length of head and payload
 * together. */
static inline size_t recode_with_payload(uint8_t *out, size_t cap, size_t head,
                                         struct bytes payload)
{
    assert(head > 0 && payload.n <= cap - head);
    if (payload.n > 0)
        memcpy(out + head, payload.p, payload.n);
    return head + payload.n;
}

/* Encodes a message into out[0..cap). Returns its length. */
static inline size_t recode_write(uint8_t *out, size_t cap, const struct wire_message *m)
{
    switch (m->type) {
    case WIRE_HELLO:
        return wire_put_hello(out, cap, &m->hello);
    case WIRE_MEMBERS:
        return wire_put_members(out, cap, &m->members);
    case WIRE_PING:
        return wire_put_ping(out, cap, &m->ping);
    case WIRE_BEAT:
        return wire_put_beat(out, cap, &m->beat);
    case WIRE_PROBE:
        return wire_put_probe(out, cap, &m->probe);
    case WIRE_HEARD:
        return wire_put_heard(out, cap, &m->heard);
    case WIRE_REFUSED:
        return wire_put_refused(out, cap, &m->refused);
    case WIRE_CALLBACK:
        return wire_put_callback(out, cap, &m->callback);
    case WIRE_FINISH:
        return wire_put_finish(out, cap, &m->finish);
    case WIRE_EDGE:
        return wire_put_edge(out, cap, &m->edge);
    case WIRE_EDGE_CLOSE:
        return wire_put_edge_close(out, cap);
    case WIRE_DELTA:
        return recode_with_payload(out, cap, wire_put_delta(out, cap, &m->delta), m->delta.payload);
    case WIRE_PART:
        return recode_with_payload(out, cap, wire_put_part(out, cap, &m->part), m->part.payload);
    case WIRE_ROUND_PROTOCOL:
        return recode_with_payload(out, cap, wire_put_round_protocol(out, cap, &m->round_protocol),
                                   m->round_protocol.payload);
    case WIRE_MOMENTS:
        return wire_put_moments(out, cap, &m->moments);
    case WIRE_MODEL_REQ:
        return wire_put_model_req(out, cap, &m->model_req);
    case WIRE_MODEL:
        return recode_with_payload(out, cap, wire_put_model(out, cap, &m->model), m->model.payload);
    case WIRE_STATUS_REQ:
        return wire_put_status_req(out, cap);
    case WIRE_STATUS:
        return wire_put_status(out, cap, &m->status);
    case WIRE_NONE:
    case WIRE_TYPE_END:
        break;
    }
    assert(false);
    return 0;
}

/* Reads p[0..n) and encodes it into out[0..cap). Returns the length, or 0 if the message is
 * refused. `cap` must be a little larger than `n`. *type receives the message type in p, also if
 * the message is refused. */
static inline size_t recode(const uint8_t *p, size_t n, uint8_t *out, size_t cap,
                            enum wire_type *type)
{
    static struct wire_batch batch;
    struct wire_message m;
    bool taken = wire_read(p, n, &batch, &m);
    *type = m.type;
    return taken ? recode_write(out, cap, &m) : 0;
}

#endif
