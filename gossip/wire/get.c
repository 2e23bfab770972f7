/* gossip/wire/get.c -- the decoders of gossip/wire/wire.h.
 *
 * Each reads the message's values from left to right. The first that is not
 * what its field wants makes the reader bad, and it stays bad: it yields zeros
 * from there on, and close_message() says no. So a decoder is a plain list of
 * its fields.
 */
#include "gossip/wire/token.h"
#include "gossip/wire/wire.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct reader
{
    uint32_t at, n;
    bool bad;
    struct token token[WIRE_ITEMS_MAX];
};

/* The next value, which has to be of this kind. */
static struct token next(struct reader *r, enum token_kind kind)
{
    if (!r->bad && r->at < r->n && r->token[r->at].kind == kind)
        return r->token[r->at++];
    r->bad = true;
    return (struct token){.kind = kind};
}

static void demand(struct reader *r, bool ok)
{
    if (!ok)
        r->bad = true;
}

/* Split the message and go behind its type; fields counts what must follow. */
static void open_message(struct reader *r, const uint8_t *p, size_t n, enum wire_type type,
                         uint32_t fields)
{
    r->at = 0;
    r->n = 0;
    r->bad = !token_split(p, n, r->token, &r->n) || wire_type_of(p, n) != type;
    demand(r, next(r, TOKEN_ARRAY).n == 1 + fields);
    next(r, TOKEN_UINT);
}

static bool close_message(const struct reader *r)
{
    return !r->bad && r->at == r->n;
}

static uint64_t get_uint(struct reader *r, uint64_t max)
{
    uint64_t u = next(r, TOKEN_UINT).u;
    demand(r, u <= max);
    return u;
}

static uint64_t get_u64(struct reader *r)
{
    return get_uint(r, UINT64_MAX);
}

static uint32_t get_u32(struct reader *r, uint32_t max)
{
    return (uint32_t)get_uint(r, max);
}

static bool get_bool(struct reader *r)
{
    return next(r, TOKEN_BOOL).u != 0;
}

static float get_finite(struct reader *r)
{
    float f = next(r, TOKEN_FLOAT).f;
    demand(r, isfinite(f));
    return f;
}

/* A squared norm. */
static float get_norm2(struct reader *r)
{
    float f = get_finite(r);
    demand(r, f >= 0);
    return f;
}

/* A figure of a STATUS: in [low, high], or NaN. */
static double get_figure(struct reader *r, double low, double high)
{
    double d = next(r, TOKEN_DOUBLE).d;
    demand(r, !(d < low) && !(d > high));
    return d;
}

static struct bytes get_bin(struct reader *r, size_t max)
{
    struct token t = next(r, TOKEN_BIN);
    demand(r, t.n <= max);
    return (struct bytes){.p = t.p, .n = t.n};
}

static void get_fixed(struct reader *r, uint8_t *out, size_t n)
{
    struct bytes b = get_bin(r, n);
    demand(r, b.n == n);
    if (!r->bad)
        memcpy(out, b.p, n);
}

/* A string into a zeroed array of max + 1, if it passes the rule. A NUL inside
 * it cannot: the text would end there and be shorter than its token. */
static void get_text(struct reader *r, char *out, size_t max, bool (*ok)(const char *))
{
    struct token t = next(r, TOKEN_STR);
    demand(r, t.n <= max);
    if (r->bad)
        return;
    memcpy(out, t.p, t.n);
    demand(r, strlen(out) == t.n && ok(out));
}

/* The elements of an array of at most max. */
static uint32_t get_count(struct reader *r, uint32_t max)
{
    uint32_t n = next(r, TOKEN_ARRAY).n;
    demand(r, n <= max);
    return r->bad ? 0 : n;
}

static void get_record(struct reader *r, struct record *m)
{
    memset(m, 0, sizeof *m);
    demand(r, next(r, TOKEN_ARRAY).n == 7);
    get_fixed(r, m->id, sizeof m->id);
    get_text(r, m->name, WIRE_NAME_MAX, wire_name_ok);
    m->n_addresses = get_count(r, WIRE_ADDRESSES_MAX);
    for (uint32_t i = 0; i < m->n_addresses; i++)
        get_text(r, m->address[i], WIRE_ADDRESS_MAX, wire_address_ok);
    m->incarnation = get_u64(r);
    m->boot = get_u64(r);
    m->state = (enum record_state)get_u32(r, RECORD_LEFT);
    get_fixed(r, m->signature, sizeof m->signature);
}

static void get_accusation(struct reader *r, struct accusation *m)
{
    memset(m, 0, sizeof *m);
    demand(r, next(r, TOKEN_ARRAY).n == 4);
    get_fixed(r, m->accused, sizeof m->accused);
    get_fixed(r, m->accuser, sizeof m->accuser);
    m->incarnation = get_u64(r);
    get_fixed(r, m->signature, sizeof m->signature);
}

/* A run's canonical text: lines of printable ASCII. */
static struct bytes get_run(struct reader *r)
{
    struct token t = next(r, TOKEN_STR);
    demand(r, t.n <= WIRE_RUN_MAX);
    for (uint32_t i = 0; !r->bad && i < t.n; i++)
        demand(r, t.p[i] == '\n' || (t.p[i] >= ' ' && t.p[i] <= '~'));
    return (struct bytes){.p = t.p, .n = t.n};
}

bool wire_get_hello(const uint8_t *p, size_t n, struct wire_hello *m)
{
    struct reader r;
    open_message(&r, p, n, WIRE_HELLO, 7);
    memset(m, 0, sizeof *m);
    m->version = get_u32(&r, UINT32_MAX);
    m->role = (enum wire_role)get_u32(&r, WIRE_OBSERVER);
    m->has_run = get_bool(&r);
    m->has_started = get_bool(&r);
    m->run = get_run(&r);
    m->round = get_u64(&r);
    if (m->role == WIRE_PEER)
        get_record(&r, &m->record);
    else
        next(&r, TOKEN_NIL);
    demand(&r, m->has_run == (m->run.n > 0));
    demand(&r, m->has_run || !m->has_started);
    return close_message(&r);
}

bool wire_get_members(const uint8_t *p, size_t n, struct wire_members *m)
{
    struct reader r;
    open_message(&r, p, n, WIRE_MEMBERS, 2);
    m->n_records = get_count(&r, WIRE_BATCH_MAX);
    for (uint32_t i = 0; i < m->n_records && !r.bad; i++)
        get_record(&r, &m->records[i]);
    m->n_accusations = get_count(&r, WIRE_BATCH_MAX);
    for (uint32_t i = 0; i < m->n_accusations && !r.bad; i++)
        get_accusation(&r, &m->accusations[i]);
    return close_message(&r);
}

bool wire_get_ping(const uint8_t *p, size_t n, struct wire_ping *m)
{
    struct reader r;
    open_message(&r, p, n, WIRE_PING, 3);
    memset(m, 0, sizeof *m);
    m->round = get_u64(&r);
    m->settled = get_u32(&r, UINT32_MAX);
    m->finished = get_bool(&r);
    return close_message(&r);
}

bool wire_get_edge(const uint8_t *p, size_t n, struct wire_edge *m)
{
    struct reader r;
    open_message(&r, p, n, WIRE_EDGE, 4);
    m->epoch = get_u64(&r);
    m->round = get_u64(&r);
    m->nonce = get_u64(&r);
    m->boot = get_u64(&r);
    return close_message(&r);
}

bool wire_get_edge_close(const uint8_t *p, size_t n)
{
    struct reader r;
    open_message(&r, p, n, WIRE_EDGE_CLOSE, 0);
    return close_message(&r);
}

bool wire_get_status_req(const uint8_t *p, size_t n)
{
    struct reader r;
    open_message(&r, p, n, WIRE_STATUS_REQ, 0);
    return close_message(&r);
}

bool wire_get_delta(const uint8_t *p, size_t n, struct wire_delta *m)
{
    struct reader r;
    open_message(&r, p, n, WIRE_DELTA, 14);
    memset(m, 0, sizeof *m);
    m->epoch = get_u64(&r);
    m->round = get_u64(&r);
    m->run_round = get_u64(&r);
    m->degree = get_u32(&r, WIRE_MEMBERS_MAX);
    m->codec = get_u32(&r, WIRE_CODE_MAX);
    m->x2 = get_norm2(&r);
    m->e2 = get_norm2(&r);
    m->hash = get_u64(&r);
    m->settled = get_u32(&r, UINT32_MAX);
    m->sketch_generation = get_u64(&r);
    m->mean_dist2 = get_finite(&r);
    m->mean_norm2 = get_finite(&r);
    m->sketch = get_bin(&r, WIRE_SKETCH_MAX);
    m->payload = get_bin(&r, UINT32_MAX);
    demand(&r, m->sketch_generation != 0 || m->sketch.n == 0);
    return close_message(&r);
}

bool wire_get_model_req(const uint8_t *p, size_t n, struct wire_model_req *m)
{
    struct reader r;
    open_message(&r, p, n, WIRE_MODEL_REQ, 1);
    m->round = get_u64(&r);
    return close_message(&r);
}

bool wire_get_model(const uint8_t *p, size_t n, struct wire_model *m)
{
    struct reader r;
    open_message(&r, p, n, WIRE_MODEL, 2);
    m->round = get_u64(&r);
    m->payload = get_bin(&r, UINT32_MAX);
    demand(&r, m->payload.n % sizeof(float) == 0);
    return close_message(&r);
}

static void get_status_edge(struct reader *r, struct wire_status_edge *e)
{
    demand(r, next(r, TOKEN_ARRAY).n == 5);
    get_fixed(r, e->id, sizeof e->id);
    e->state = get_u32(r, WIRE_CODE_MAX);
    e->round = get_u64(r);
    e->gamma = next(r, TOKEN_FLOAT).f;
    demand(r, !(e->gamma < 0));
    e->resets = get_u64(r);
}

bool wire_get_status(const uint8_t *p, size_t n, struct wire_status *m)
{
    struct reader r;
    open_message(&r, p, n, WIRE_STATUS, 14);
    memset(m, 0, sizeof *m);
    m->round = get_u64(&r);
    m->n_rounds = get_u64(&r);
    m->phase = get_u32(&r, WIRE_CODE_MAX);
    m->loss = get_figure(&r, -INFINITY, INFINITY);
    m->accuracy = get_figure(&r, 0, 1);
    m->drift = get_figure(&r, 0, INFINITY);
    m->relative_drift = get_figure(&r, 0, INFINITY);
    m->drift_round = get_u64(&r);
    m->bytes_sent = get_u64(&r);
    m->bytes_received = get_u64(&r);
    m->n_strangers = get_u64(&r);
    m->n_violations = get_u64(&r);
    m->n_live = get_u32(&r, UINT32_MAX);
    m->n_edges = get_count(&r, WIRE_EDGES_MAX);
    for (uint32_t i = 0; i < m->n_edges && !r.bad; i++)
        get_status_edge(&r, &m->edges[i]);
    return close_message(&r);
}
