/* gossip/wire/scan.c -- what can be said of bytes before they are parsed.
 *
 * msgpack: a head byte says the kind; behind it 0, 1, 2, 4 or 8 bytes of a
 * value or of a length; behind a length that many bytes, or that many values.
 */
#include "gossip/wire/wire.h"

#include <assert.h>
#include <string.h>

/* The head of one value. */
struct head
{
    size_t n_head;    /* Bytes: the head byte, and a value or a length. */
    uint64_t n_body;  /* Bytes of a string or bin behind it. */
    uint64_t n_items; /* Values of an array behind it. */
};

static uint64_t big_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* Kinds of head 0xc0..0xdf: what follows the head byte. */
enum follow {
    REFUSED, /* Maps, ext types, and 0xc1, which msgpack never uses. */
    VALUE,
    BODY_LENGTH,
    ARRAY_LENGTH
};
struct form
{
    uint8_t follow, width;
};

static const struct form form_of[32] = {
    [0x00] = {VALUE, 0},                                  /* nil */
    [0x02] = {VALUE, 0},       [0x03] = {VALUE, 0},       /* false, true */
    [0x04] = {BODY_LENGTH, 1}, [0x05] = {BODY_LENGTH, 2}, /* bin 8, 16, 32 */
    [0x06] = {BODY_LENGTH, 4}, [0x0a] = {VALUE, 4},
    [0x0b] = {VALUE, 8},                            /* float 32, 64 */
    [0x0c] = {VALUE, 1},       [0x0d] = {VALUE, 2}, /* uint 8 .. 64 */
    [0x0e] = {VALUE, 4},       [0x0f] = {VALUE, 8},
    [0x10] = {VALUE, 1},       [0x11] = {VALUE, 2}, /* int 8 .. 64 */
    [0x12] = {VALUE, 4},       [0x13] = {VALUE, 8},
    [0x19] = {BODY_LENGTH, 1}, [0x1a] = {BODY_LENGTH, 2}, /* str 8, 16, 32 */
    [0x1b] = {BODY_LENGTH, 4}, [0x1c] = {ARRAY_LENGTH, 2},
    [0x1d] = {ARRAY_LENGTH, 4}}; /* array 16, 32 */

/* Read the head at p[0..n), n >= 1. False: refused, or cut short. */
static bool read_head(const uint8_t *p, size_t n, struct head *h)
{
    *h = (struct head){.n_head = 1};
    uint8_t b = p[0];
    if (b <= 0x7f || b >= 0xe0) /* Small integers. */
        return true;
    if (b <= 0x8f) /* Small maps. */
        return false;
    if (b <= 0x9f) {
        h->n_items = b & 0x0fu;
        return true;
    }
    if (b <= 0xbf) {
        h->n_body = b & 0x1fu;
        return true;
    }
    struct form form = form_of[b - 0xc0];
    if (form.follow == REFUSED || n - 1 < form.width)
        return false;
    h->n_head = 1u + form.width;
    if (form.follow == BODY_LENGTH)
        h->n_body = big_endian(p + 1, form.width);
    if (form.follow == ARRAY_LENGTH)
        h->n_items = big_endian(p + 1, form.width);
    return true;
}

bool wire_scan(const uint8_t *p, size_t n)
{
    uint64_t open[WIRE_DEPTH_MAX]; /* Values still to come, array by array. */
    size_t depth = 0, at = 0;
    uint64_t n_items = 1, n_due = 1; /* Announced so far; of these not yet seen. */
    do {
        struct head h;
        if (at == n || !read_head(p + at, n - at, &h))
            return false;
        at += h.n_head;
        if (h.n_body > n - at)
            return false;
        at += (size_t)h.n_body;
        n_items += h.n_items;
        n_due += h.n_items - 1;
        if (n_items > WIRE_ITEMS_MAX || n_due > n - at)
            return false;
        if (depth > 0)
            open[depth - 1]--;
        if (h.n_items > 0) {
            if (depth == WIRE_DEPTH_MAX)
                return false;
            open[depth++] = h.n_items;
        }
        while (depth > 0 && open[depth - 1] == 0)
            depth--;
    } while (n_due > 0);
    return at == n;
}

enum wire_type wire_type_of(const uint8_t *p, size_t n)
{
    struct head h;
    if (n == 0 || !read_head(p, n, &h) || h.n_items == 0 || h.n_head >= n)
        return 0;
    uint8_t type = p[h.n_head]; /* Small: its own encoding. */
    return type < WIRE_TYPE_END ? (enum wire_type)type : 0;
}

/* Longest encodings, bytes: heads included. */
enum {
    U64 = 9,
    U32 = 5,
    U16 = 3,
    F32 = 5,
    F64 = 9,
    ID = 2 + WIRE_ID_BYTES,
    SIGNATURE = 2 + WIRE_SIGNATURE_BYTES,
    RECORD = 1 + ID + 2 + WIRE_NAME_MAX + 1 + WIRE_ADDRESSES_MAX * (2 + WIRE_ADDRESS_MAX) + 2 * U64
             + 1 + SIGNATURE,
    ACCUSATION = 1 + 2 * ID + U64 + SIGNATURE,
    ARRAY = 3,
    TYPE = 1,
    BULK = 5 /* Head of a payload. */
};

static const size_t max_of[WIRE_TYPE_END] = {
    [WIRE_HELLO] = 1 + TYPE + U32 + 3 + 3 + WIRE_RUN_MAX + U64 + RECORD,
    [WIRE_MEMBERS] = 1 + TYPE + 2 * ARRAY + WIRE_BATCH_MAX * (RECORD + ACCUSATION),
    [WIRE_PING] = 1 + TYPE + U64 + U32 + 1,
    [WIRE_EDGE] = 1 + TYPE + 4 * U64,
    [WIRE_EDGE_CLOSE] = 1 + TYPE,
    [WIRE_DELTA] = 1 + TYPE + 3 * U64 + U16 + 1 + 2 * F32 + U64 + U32 + U64 + 2 * F32 + 3
                   + WIRE_SKETCH_MAX + BULK,
    [WIRE_MODEL_REQ] = 1 + TYPE + U64,
    [WIRE_MODEL] = 1 + TYPE + U64 + BULK,
    [WIRE_STATUS_REQ] = 1 + TYPE,
    [WIRE_STATUS] = 1 + TYPE + 2 * U64 + 1 + 4 * F64 + 5 * U64 + U32 + ARRAY
                    + WIRE_EDGES_MAX * (1 + ID + 1 + U64 + F32 + U64)};

size_t wire_max(enum wire_type type, size_t delta_payload_max, size_t model_bytes)
{
    assert(type > 0 && type < WIRE_TYPE_END);
    size_t max = max_of[type];
    if (type == WIRE_DELTA)
        max += delta_payload_max;
    else if (type == WIRE_MODEL)
        max += model_bytes;
    else
        assert(max <= WIRE_CONTROL_MAX);
    return max;
}

/* Characters of a name, and of a host's name. */
static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.'
           || c == '_' || c == '-';
}

bool wire_name_ok(const char *name)
{
    size_t n = 0;
    while (n <= WIRE_NAME_MAX && is_word(name[n]))
        n++;
    return n >= 1 && n <= WIRE_NAME_MAX && name[n] == '\0';
}

/* 1..65535, no sign, no leading zero. */
static bool port_ok(const char *s)
{
    uint32_t port = 0;
    size_t n = 0;
    for (; s[n] >= '0' && s[n] <= '9' && n < 5; n++)
        port = 10 * port + (uint32_t)(s[n] - '0');
    return n > 0 && s[n] == '\0' && s[0] != '0' && port <= 65535;
}

/* "[...]": digits, and a zone's name behind a percent sign. Returns the
 * character behind it, or NULL. */
static const char *bracketed(const char *s)
{
    const char *at = s + 1;
    while (*at == ':' || *at == '.' || (*at != '\0' && strchr("0123456789abcdefABCDEF", *at)))
        at++;
    if (at - s < 3) /* "::" is the shortest. */
        return NULL;
    if (*at == '%') {
        if (!is_word(*++at))
            return NULL;
        while (is_word(*at))
            at++;
    }
    return *at == ']' ? at + 1 : NULL;
}

bool wire_address_ok(const char *address)
{
    if (strnlen(address, WIRE_ADDRESS_MAX + 1) > WIRE_ADDRESS_MAX)
        return false;
    const char *at = address;
    if (*at == '[') {
        at = bracketed(at);
        if (at == NULL)
            return false;
    } else {
        while (is_word(*at))
            at++;
        if (at == address)
            return false;
    }
    return *at == ':' && port_ok(at + 1);
}
