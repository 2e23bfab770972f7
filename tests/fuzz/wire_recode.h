/* tests/fuzz/wire_recode.h -- decode a message and encode it again, for any type.
 *
 * What a decoder accepts must come out of the encoder as a message that means
 * the same: encoding what was decoded is a fixed point after one step.
 */
#ifndef TESTS_WIRE_RECODE_H
#define TESTS_WIRE_RECODE_H

#include "gossip/wire/wire.h"

#include <assert.h>
#include <string.h>

/* The length of the message written to out[0..cap), 0 where p is refused. cap
 * is enough for any re-encoding: n and a little. */
typedef size_t recode_function(const uint8_t *p, size_t n, uint8_t *out, size_t cap);

/* The payload goes behind the head. */
static size_t recode_with_payload(uint8_t *out, size_t cap, size_t head, struct bytes payload)
{
    assert(head > 0 && payload.n <= cap - head);
    if (payload.n > 0)
        memcpy(out + head, payload.p, payload.n);
    return head + payload.n;
}

static size_t recode_hello(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    struct wire_hello m;
    return wire_get_hello(p, n, &m) ? wire_put_hello(out, cap, &m) : 0;
}

static size_t recode_members(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    static struct record records[WIRE_BATCH_MAX];
    static struct accusation accusations[WIRE_BATCH_MAX];
    struct wire_members m = {.records = records, .accusations = accusations};
    return wire_get_members(p, n, &m) ? wire_put_members(out, cap, &m) : 0;
}

static size_t recode_ping(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    struct wire_ping m;
    return wire_get_ping(p, n, &m) ? wire_put_ping(out, cap, &m) : 0;
}

static size_t recode_edge(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    struct wire_edge m;
    return wire_get_edge(p, n, &m) ? wire_put_edge(out, cap, &m) : 0;
}

static size_t recode_edge_close(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    return wire_get_edge_close(p, n) ? wire_put_edge_close(out, cap) : 0;
}

static size_t recode_delta(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    struct wire_delta m;
    if (!wire_get_delta(p, n, &m))
        return 0;
    return recode_with_payload(out, cap, wire_put_delta(out, cap, &m), m.payload);
}

static size_t recode_model_req(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    struct wire_model_req m;
    return wire_get_model_req(p, n, &m) ? wire_put_model_req(out, cap, &m) : 0;
}

static size_t recode_model(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    struct wire_model m;
    if (!wire_get_model(p, n, &m))
        return 0;
    return recode_with_payload(out, cap, wire_put_model(out, cap, &m), m.payload);
}

static size_t recode_status_req(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    return wire_get_status_req(p, n) ? wire_put_status_req(out, cap) : 0;
}

static size_t recode_status(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    struct wire_status m;
    return wire_get_status(p, n, &m) ? wire_put_status(out, cap, &m) : 0;
}

static recode_function *const recode_of[WIRE_TYPE_END] = {[WIRE_HELLO] = recode_hello,
                                                          [WIRE_MEMBERS] = recode_members,
                                                          [WIRE_PING] = recode_ping,
                                                          [WIRE_EDGE] = recode_edge,
                                                          [WIRE_EDGE_CLOSE] = recode_edge_close,
                                                          [WIRE_DELTA] = recode_delta,
                                                          [WIRE_MODEL_REQ] = recode_model_req,
                                                          [WIRE_MODEL] = recode_model,
                                                          [WIRE_STATUS_REQ] = recode_status_req,
                                                          [WIRE_STATUS] = recode_status};

#endif
