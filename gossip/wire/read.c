/* gossip/wire/read.c -- the parser of received messages.
 *
 * A cursor reads the bytes once, from left to right. The first value that does not match its
 * field marks the cursor as bad. A bad cursor stays bad and yields zeros, and wire_read()
 * then returns false. The parser of a message is therefore a plain list of its fields.
 *
 * Encoding of a msgpack value:
 *
 *   head byte      kind of the value
 *   0..8 bytes     a number or a length (0, 1, 2, 4 or 8 bytes, big-endian)
 *   after length   that many bytes (str, bin) or that many values (array)
 */
#include "gossip/wire/wire.h"

#include "gossip/wire/fields.h"

#include <math.h>
#include <string.h>

struct cursor
{
    const uint8_t *at, *end; /* Position of the next byte to read, and end of the message. */
    bool bad;                /* True: an error was found. Never reset. */
};

/* Marks the message as invalid if `ok` is false. */
static void demand(struct cursor *c, bool ok)
{
    if (!ok)
        c->bad = true;
}

/* Returns the next n bytes, or NULL if the message has fewer. Only this function moves the
 * cursor, so only this function has to check the end of the message. */
static const uint8_t *take(struct cursor *c, size_t n)
{
    demand(c, n <= (size_t)(c->end - c->at));
    if (c->bad)
        return NULL;
    c->at += n;
    return c->at - n;
}

/* Returns the head byte of the next value, or 0xc1, which msgpack never uses, at the end. */
static uint8_t take_head(struct cursor *c)
{
    const uint8_t *p = take(c, 1);
    return p != NULL ? *p : 0xc1;
}

/* Reads a big-endian number, the byte order of msgpack. */
static uint64_t take_number(struct cursor *c, unsigned n_bytes)
{
    const uint8_t *p = take(c, n_bytes);
    uint64_t v = 0;
    for (unsigned i = 0; p != NULL && i < n_bytes; i++)
        v = v << 8 | p[i];
    return v;
}

/* Reads the number that follows head byte `head`. Head `first` announces a number of 1 byte, and
 * the next three heads announce 2, 4 and 8 bytes. */
static uint64_t take_width(struct cursor *c, uint8_t head, uint8_t first)
{
    return take_number(c, 1u << (head - first));
}

/* ---- one value ---- */

/* Reads a number in [0, max], in any of msgpack's nine integer encodings. */
static uint64_t get_uint(struct cursor *c, uint64_t max)
{
    uint8_t head = take_head(c);
    uint64_t u = head;
    if (head >= 0xcc && head <= 0xcf) {
        u = take_width(c, head, 0xcc);
    } else if (head >= 0xd0 && head <= 0xd3) {
        /* A signed encoding of a number that is not negative is accepted as that number. */
        u = take_width(c, head, 0xd0);
        demand(c, u >> ((8u << (head - 0xd0)) - 1) == 0);
    } else {
        demand(c, head <= 0x7f);
    }
    demand(c, u <= max);
    return c->bad ? 0 : u;
}

static uint64_t get_u64(struct cursor *c)
{
    return get_uint(c, UINT64_MAX);
}

static uint32_t get_u32(struct cursor *c, uint32_t max)
{
    return (uint32_t)get_uint(c, max);
}

static bool get_bool(struct cursor *c)
{
    uint8_t head = take_head(c);
    demand(c, head == 0xc2 || head == 0xc3);
    return head == 0xc3;
}

static void get_nil(struct cursor *c)
{
    demand(c, take_head(c) == 0xc0);
}

/* Reads a 32-bit float. Each field has a fixed width, so a double is rejected here, and
 * get_figure() rejects a float. All bit patterns are valid, including NaN. */
static float get_float(struct cursor *c)
{
    demand(c, take_head(c) == 0xca);
    uint32_t bits = (uint32_t)take_number(c, sizeof bits);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float get_finite(struct cursor *c)
{
    float f = get_float(c);
    demand(c, isfinite(f));
    return f;
}

/* Reads a squared norm, such as x2 and e2 of a delta. It must be finite and not negative. */
static float get_norm2(struct cursor *c)
{
    float f = get_finite(c);
    demand(c, f >= 0);
    return f;
}

/* Reads a metric of a STATUS message, which must be in [low, high] or NaN. */
static double get_figure(struct cursor *c, double low, double high)
{
    demand(c, take_head(c) == 0xcb);
    uint64_t bits = take_number(c, sizeof bits);
    double d;
    memcpy(&d, &bits, sizeof d);
    demand(c, !(d < low) && !(d > high));
    return d;
}

/* Reads the number of values in an array, at most max. Returns 0 after an error, so that a loop
 * over the values ends. */
static uint32_t get_count(struct cursor *c, uint32_t max)
{
    uint8_t head = take_head(c);
    uint64_t n = head & 0x0fu;
    if (head == 0xdc || head == 0xdd)
        n = take_number(c, head == 0xdc ? 2 : 4);
    else
        demand(c, head >= 0x90 && head <= 0x9f);
    demand(c, n <= max);
    return c->bad ? 0 : (uint32_t)n;
}

/* Returns the n bytes of a string or bin, borrowed from the message. */
static struct bytes take_body(struct cursor *c, uint64_t n, size_t max)
{
    demand(c, n <= max);
    const uint8_t *p = take(c, (size_t)n);
    return (struct bytes){.p = p, .n = p != NULL ? (size_t)n : 0};
}

static struct bytes get_bin(struct cursor *c, size_t max)
{
    uint8_t head = take_head(c);
    demand(c, head >= 0xc4 && head <= 0xc6);
    return take_body(c, c->bad ? 0 : take_width(c, head, 0xc4), max);
}

static struct bytes get_str(struct cursor *c, size_t max)
{
    uint8_t head = take_head(c);
    if (head >= 0xa0 && head <= 0xbf)
        return take_body(c, head & 0x1fu, max);
    demand(c, head >= 0xd9 && head <= 0xdb);
    return take_body(c, c->bad ? 0 : take_width(c, head, 0xd9), max);
}

/* ---- values used by several messages ---- */

/* Reads an id or a signature: a bin of exactly n bytes. */
static void get_fixed(struct cursor *c, uint8_t *out, size_t n)
{
    struct bytes b = get_bin(c, n);
    demand(c, b.n == n);
    if (!c->bad)
        memcpy(out, b.p, n);
}

/* Reads a string into a zeroed array of max + 1 characters if `ok` accepts it. A string with an
 * inner NUL is rejected. */
static void get_text(struct cursor *c, char *out, size_t max, bool (*ok)(const char *))
{
    struct bytes b = get_str(c, max);
    if (c->bad)
        return;
    memcpy(out, b.p, b.n);
    demand(c, strlen(out) == b.n && ok(out));
}

static void get_certificate(struct cursor *c, struct record *r)
{
    struct certificate *m = &r->certificate;
    uint32_t n = get_count(c, FIELDS_CERTIFICATE);
    demand(c, n == 0 || n == FIELDS_CERTIFICATE);
    if (n == 0 || c->bad)
        return;
    r->invited = true;
    get_fixed(c, m->issuer, sizeof m->issuer);
    m->expires_ms = get_u64(c);
    get_fixed(c, m->key, sizeof m->key);
    get_fixed(c, m->issued, sizeof m->issued);
    get_fixed(c, m->presented, sizeof m->presented);
}

/* Reads a record. The record is zeroed first, so that the bytes after each text are defined. */
static void get_record(struct cursor *c, struct record *m)
{
    memset(m, 0, sizeof *m);
    demand(c, get_count(c, FIELDS_RECORD) == FIELDS_RECORD);
    get_fixed(c, m->id, sizeof m->id);
    get_text(c, m->name, WIRE_NAME_MAX, wire_name_ok);
    m->n_addresses = get_count(c, WIRE_ADDRESSES_MAX);
    for (uint32_t i = 0; i < m->n_addresses; i++)
        get_text(c, m->address[i], WIRE_ADDRESS_MAX, wire_address_ok);
    m->incarnation = get_u64(c);
    m->boot = get_u64(c);
    m->state = (enum record_state)get_u32(c, RECORD_LEFT);
    m->initial = get_bool(c);
    m->beat[0] = get_u64(c);
    m->beat[1] = get_u64(c);
    m->over = get_u64(c);
    m->age_ms = get_u64(c);
    get_certificate(c, m);
    get_fixed(c, m->signature, sizeof m->signature);
}

static void get_accusation(struct cursor *c, struct accusation *m)
{
    memset(m, 0, sizeof *m);
    demand(c, get_count(c, FIELDS_ACCUSATION) == FIELDS_ACCUSATION);
    get_fixed(c, m->accused, sizeof m->accused);
    get_fixed(c, m->accuser, sizeof m->accuser);
    m->incarnation = get_u64(c);
    get_fixed(c, m->signature, sizeof m->signature);
}

static void get_vouch(struct cursor *c, struct vouch *m)
{
    memset(m, 0, sizeof *m);
    demand(c, get_count(c, FIELDS_VOUCH) == FIELDS_VOUCH);
    get_fixed(c, m->member, sizeof m->member);
    get_fixed(c, m->voucher, sizeof m->voucher);
    get_fixed(c, m->signature, sizeof m->signature);
}

/* Reads a run description in canonical form: lines of printable ASCII. */
static struct bytes get_run(struct cursor *c)
{
    struct bytes b = get_str(c, WIRE_RUN_MAX);
    for (size_t i = 0; i < b.n; i++)
        demand(c, b.p[i] == '\n' || (b.p[i] >= ' ' && b.p[i] <= '~'));
    return b;
}

static void get_status_edge(struct cursor *c, struct wire_status_edge *e)
{
    demand(c, get_count(c, FIELDS_STATUS_EDGE) == FIELDS_STATUS_EDGE);
    get_fixed(c, e->id, sizeof e->id);
    e->state = get_u32(c, WIRE_CODE_MAX);
    e->round = get_u64(c);
    e->gamma = get_float(c);
    demand(c, !(e->gamma < 0));
    e->resets = get_u64(c);
}

static bool is_figure(const char *name)
{
    return name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

static void get_status_figure(struct cursor *c, struct wire_status_figure *f)
{
    demand(c, get_count(c, FIELDS_STATUS_FIGURE) == FIELDS_STATUS_FIGURE);
    get_text(c, f->name, WIRE_FIGURE_NAME, is_figure);
    f->is_real = c->at < c->end && *c->at == 0xcb;
    if (f->is_real) {
        f->real = get_figure(c, -INFINITY, INFINITY);
        demand(c, isfinite(f->real));
    } else {
        f->whole = get_u64(c);
    }
}

/* ---- one parser per message type: the fields after the type, in the order of the encoder ---- */

static void read_hello(struct cursor *c, struct wire_message *message)
{
    struct wire_hello *m = &message->hello;
    m->version = get_u32(c, UINT32_MAX);
    m->role = (enum wire_role)get_u32(c, WIRE_OBSERVER);
    m->has_run = get_bool(c);
    m->has_started = get_bool(c);
    m->run = get_run(c);
    m->round = get_u64(c);
    if (m->role == WIRE_PEER) {
        get_record(c, &m->record);
    } else {
        get_nil(c);
        memset(&m->record, 0, sizeof m->record);
    }
    demand(c, m->has_run == (m->run.n > 0));
    demand(c, m->has_run || !m->has_started);
}

/* The lists of a MEMBERS message always fit: struct wire_batch has room for the largest counts that
 * are accepted here. */
static void read_members(struct cursor *c, struct wire_message *message)
{
    struct wire_members *m = &message->members;
    m->without = 0;
    m->records = message->batch->records;
    m->accusations = message->batch->accusations;
    m->vouches = message->batch->vouches;
    m->n_records = get_count(c, WIRE_BATCH_MAX);
    for (uint32_t i = 0; i < m->n_records && !c->bad; i++)
        get_record(c, &m->records[i]);
    m->n_accusations = get_count(c, WIRE_BATCH_MAX);
    for (uint32_t i = 0; i < m->n_accusations && !c->bad; i++)
        get_accusation(c, &m->accusations[i]);
    m->n_vouches = get_count(c, WIRE_VOUCHES_MAX);
    for (uint32_t i = 0; i < m->n_vouches && !c->bad; i++)
        get_vouch(c, &m->vouches[i]);
}

static void read_ping(struct cursor *c, struct wire_message *message)
{
    struct wire_ping *m = &message->ping;
    m->round = get_u64(c);
    m->busy_ms = get_u32(c, UINT32_MAX);
    m->finished = get_bool(c);
}

static void read_beat(struct cursor *c, struct wire_message *message)
{
    message->beat.run_round = get_u64(c);
    message->beat.checkpoint = get_u64(c);
    message->beat.settled = get_u32(c, UINT32_MAX);
}

static void read_probe(struct cursor *c, struct wire_message *message)
{
    get_fixed(c, message->probe.id, sizeof message->probe.id);
}

static void read_heard(struct cursor *c, struct wire_message *message)
{
    get_fixed(c, message->heard.id, sizeof message->heard.id);
    message->heard.age_ms = get_u32(c, UINT32_MAX);
}

static void read_refused(struct cursor *c, struct wire_message *message)
{
    struct wire_refused *m = &message->refused;
    memset(m, 0, sizeof *m);
    m->why = (enum wire_refusal)get_u32(c, REFUSED_NAME);
    get_text(c, m->name, WIRE_NAME_MAX, wire_name_ok);
    get_fixed(c, m->other, sizeof m->other);
}

static void read_callback(struct cursor *c, struct wire_message *message)
{
    struct wire_callback *m = &message->callback;
    memset(m, 0, sizeof *m);
    m->why = get_u32(c, WIRE_CODE_MAX);
    get_text(c, m->address, WIRE_ADDRESS_MAX, wire_address_ok);
}

static void read_edge(struct cursor *c, struct wire_message *message)
{
    struct wire_edge *m = &message->edge;
    m->epoch = get_u64(c);
    m->round = get_u64(c);
    m->nonce = get_u64(c);
    demand(c, m->nonce != 0);
    m->answers = get_u64(c);
    m->boot = get_u64(c);
    m->run_round = get_u64(c);
    m->restored = get_bool(c);
    m->first = get_bool(c);
}

/* The codec checks the bytes of the delta's payload later (mixing_valid()). */
static void read_delta(struct cursor *c, struct wire_message *message)
{
    struct wire_delta *m = &message->delta;
    m->epoch = get_u64(c);
    m->round = get_u64(c);
    m->run_round = get_u64(c);
    uint32_t share = get_u32(c, UINT32_MAX);
    m->degree = share & ((1u << WIRE_MORE_BITS) - 1);
    m->more = share >> WIRE_MORE_BITS;
    demand(c, m->degree <= WIRE_MEMBERS_MAX && (m->more == 0 || m->more < m->degree));
    m->codec = get_u32(c, WIRE_CODE_MAX);
    m->x2 = get_norm2(c);
    m->e2 = get_norm2(c);
    m->momentum = get_u32(c, WIRE_MOMENTUM_ONE - 1);
    m->hash = get_u64(c);
    m->checkpoint = get_u64(c);
    m->settled = get_u32(c, UINT32_MAX);
    m->pace = get_u64(c);
    m->clean = get_u64(c);
    m->sketch_generation = get_u64(c);
    m->mean_dist2 = get_finite(c);
    m->mean_norm2 = get_finite(c);
    m->sketch = get_bin(c, WIRE_SKETCH_MAX);
    m->payload = get_bin(c, UINT32_MAX);
    demand(c, m->sketch_generation != 0 || m->sketch.n == 0);
}

static void read_part(struct cursor *c, struct wire_message *message)
{
    struct wire_part *m = &message->part;
    m->epoch = get_u64(c);
    m->round = get_u64(c);
    m->after = get_u64(c);
    m->payload = get_bin(c, UINT32_MAX);
    demand(c, m->payload.n > 0);
}

static void read_round_protocol(struct cursor *c, struct wire_message *message)
{
    struct wire_round_protocol *m = &message->round_protocol;
    m->word = (enum wire_round_protocol_word)get_u32(c, WIRE_ROUND_PROTOCOL_END - 1);
    m->round = get_u64(c);
    m->attempt = get_u32(c, UINT32_MAX);
    m->view = get_u64(c);
    m->step = get_u32(c, UINT32_MAX);
    m->payload = get_bin(c, UINT32_MAX);
    bool steps = m->word == WIRE_ROUND_PROTOCOL_STEP,
         result = m->word == WIRE_ROUND_PROTOCOL_RESULT;
    bool coded = m->word == WIRE_ROUND_PROTOCOL_PUSH || m->word == WIRE_ROUND_PROTOCOL_PULL;
    demand(c, (coded || m->payload.n % sizeof(float) == 0) && (steps || m->step == 0));
    demand(c, steps || (result || coded) == (m->payload.n > 0));
}

/* Returns whether a piece number and a sketch key are a valid combination: the whole model with or
 * without a key, sketches of layers with a key, or a single piece without a key. */
static bool key_fits(uint32_t piece, uint64_t key)
{
    return piece == WIRE_PIECE_WHOLE || (key != 0) == (piece == WIRE_PIECE_LAYERS);
}

static void read_model_req(struct cursor *c, struct wire_message *message)
{
    struct wire_model_req *m = &message->model_req;
    m->round = get_u64(c);
    m->piece = get_u32(c, UINT32_MAX);
    m->key = get_u64(c);
    demand(c, key_fits(m->piece, m->key));
}

static void read_model(struct cursor *c, struct wire_message *message)
{
    struct wire_model *m = &message->model;
    m->round = get_u64(c);
    m->piece = get_u32(c, UINT32_MAX);
    m->key = get_u64(c);
    m->certified = get_bool(c);
    m->payload = get_bin(c, UINT32_MAX);
    demand(c, m->payload.n % sizeof(float) == 0);
    demand(c, key_fits(m->piece, m->key));
}

/* Returns whether a codec specification contains only printable characters and no space. It is
 * shown to users, so other characters are rejected. */
static bool is_codec(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static void read_status(struct cursor *c, struct wire_message *message)
{
    struct wire_status *m = &message->status;
    memset(m, 0, sizeof *m);
    m->round = get_u64(c);
    m->n_rounds = get_u64(c);
    m->phase = get_u32(c, WIRE_CODE_MAX);
    m->loss = get_figure(c, -INFINITY, INFINITY);
    m->accuracy = get_figure(c, 0, 1);
    m->drift = get_figure(c, 0, INFINITY);
    m->relative_drift = get_figure(c, 0, INFINITY);
    m->drift_round = get_u64(c);
    m->drift_age = get_u64(c);
    m->bytes_sent = get_u64(c);
    m->bytes_received = get_u64(c);
    m->n_strangers = get_u64(c);
    m->n_violations = get_u64(c);
    m->n_live = get_u32(c, UINT32_MAX);
    m->rounds_done = get_u64(c);
    m->rounds_skipped = get_u64(c);
    m->joined_round = get_u64(c);
    m->age_s = get_figure(c, 0, INFINITY);
    m->holds = get_bool(c);
    m->clock_ms = get_u64(c);
    get_text(c, m->codec, WIRE_CODEC_MAX, is_codec);
    m->n_edges = get_count(c, WIRE_EDGES_MAX);
    for (uint32_t i = 0; i < m->n_edges && !c->bad; i++)
        get_status_edge(c, &m->edges[i]);
    m->n_figures = get_count(c, WIRE_FIGURES_MAX);
    for (uint32_t i = 0; i < m->n_figures && !c->bad; i++)
        get_status_figure(c, &m->figures[i]);
}

/* The trainer checks the bytes of the column statistics later
 * (peer/node/join/statistics_aggregation.h). */
static void read_moments(struct cursor *c, struct wire_message *message)
{
    struct wire_moments *m = &message->moments;
    get_record(c, &m->record);
    m->founds = get_bool(c);
    m->payload = get_bin(c, WIRE_MOMENTS_MAX);
    demand(c, m->payload.n > 0);
    get_fixed(c, m->signature, sizeof m->signature);
}

static void get_ballot(struct cursor *c, struct wire_ballot *b)
{
    b->number = get_u64(c);
    get_fixed(c, b->id, sizeof b->id);
}

/* The finish protocol checks the bytes of lists and proposals later (peer/node/finish). */
static void read_finish(struct cursor *c, struct wire_message *message)
{
    struct wire_finish *m = &message->finish;
    m->word = (enum wire_finish_word)get_u32(c, WIRE_FINISH_END - 1);
    get_ballot(c, &m->ballot);
    get_ballot(c, &m->promised);
    get_ballot(c, &m->accepted);
    m->partial = get_bool(c);
    m->n_voters = get_u32(c, UINT32_MAX);
    m->voters = get_bin(c, WIRE_FINISH_VOTERS_MAX);
    m->n_mixing = get_u32(c, WIRE_MEMBERS_MAX);
    m->n_models = get_u32(c, WIRE_MEMBERS_MAX);
    m->dist2 = get_norm2(c);
    m->norm2 = get_norm2(c);
    m->model_hash = get_u64(c);
    m->mean = get_bin(c, WIRE_SKETCH_MAX);
    m->members = get_bin(c, WIRE_FINISH_MEMBERS_MAX);
    m->proposal = get_bin(c, WIRE_FINISH_PROPOSAL_MAX);
    demand(c, m->members.n % WIRE_FINISH_ENTRY == 0 && m->voters.n % WIRE_FINISH_KEY == 0);
}

/* Reader of messages without fields: EDGE_CLOSE and STATUS_REQ. */
static void read_nothing(struct cursor *c, struct wire_message *message)
{
    (void)c;
    (void)message;
}

static void (*const reader_of[WIRE_TYPE_END])(struct cursor *c, struct wire_message *message) = {
    [WIRE_HELLO] = read_hello,         [WIRE_MEMBERS] = read_members,
    [WIRE_PING] = read_ping,           [WIRE_EDGE] = read_edge,
    [WIRE_EDGE_CLOSE] = read_nothing,  [WIRE_DELTA] = read_delta,
    [WIRE_MODEL_REQ] = read_model_req, [WIRE_MODEL] = read_model,
    [WIRE_STATUS_REQ] = read_nothing,  [WIRE_STATUS] = read_status,
    [WIRE_BEAT] = read_beat,           [WIRE_PROBE] = read_probe,
    [WIRE_HEARD] = read_heard,         [WIRE_REFUSED] = read_refused,
    [WIRE_FINISH] = read_finish,       [WIRE_PART] = read_part,
    [WIRE_MOMENTS] = read_moments,     [WIRE_ROUND_PROTOCOL] = read_round_protocol,
    [WIRE_CALLBACK] = read_callback};

bool wire_read(const uint8_t *p, size_t n, struct wire_batch *batch, struct wire_message *m)
{
    struct cursor c = {.at = p, .end = p + n};
    m->type = WIRE_NONE;
    m->batch = batch;
    uint32_t n_values = get_count(&c, UINT32_MAX);
    /* The message type must be encoded in one byte, the shortest encoding. */
    uint8_t type = take_head(&c);
    if (n_values == 0 || c.bad || type == WIRE_NONE || type >= WIRE_TYPE_END)
        return false;
    m->type = (enum wire_type)type;
    demand(&c, n_values == 1u + fields_of[type]);
    reader_of[type](&c, m);
    return !c.bad && c.at == c.end;
}
