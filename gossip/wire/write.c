/* gossip/wire/write.c -- encodes messages and signed bytes. The only user of msgpack-c.
 *
 * msgpack-c encodes each value in its shortest form and passes the bytes to append(), which
 * writes them to the caller's buffer as long as they fit.
 */
#include "gossip/wire/wire.h"

#include "gossip/wire/fields.h"

#include <assert.h>
#include <string.h>

#include <msgpack/pack.h>
#include <msgpack/version.h>

/* An output buffer of the caller. */
struct out
{
    uint8_t *p;
    size_t n, cap;
    bool full; /* True: a value did not fit, and nothing more is written. */
    msgpack_packer packer;
};

static int append(void *self, const char *bytes, size_t n)
{
    struct out *o = self;
    if (o->full || n > o->cap - o->n) {
        o->full = true;
        return -1;
    }
    if (n > 0)
        memcpy(o->p + o->n, bytes, n);
    o->n += n;
    return 0;
}

static void begin(struct out *o, uint8_t *p, size_t cap)
{
    *o = (struct out){.p = p, .cap = cap};
    msgpack_packer_init(&o->packer, o, append);
}

/* Returns the length of the encoded message, or 0 if it did not fit. */
static size_t end(const struct out *o)
{
    return o->full ? 0 : o->n;
}

static void put_array(struct out *o, size_t n)
{
    msgpack_pack_array(&o->packer, n);
}

/* Writes a number in its shortest encoding: a number below 128 takes one byte. */
static void put_uint(struct out *o, uint64_t v)
{
    msgpack_pack_uint64(&o->packer, v);
}

static void put_bool(struct out *o, bool v)
{
    if (v)
        msgpack_pack_true(&o->packer);
    else
        msgpack_pack_false(&o->packer);
}

static void put_float(struct out *o, float v)
{
    msgpack_pack_float(&o->packer, v);
}

static void put_double(struct out *o, double v)
{
    msgpack_pack_double(&o->packer, v);
}

static void put_str(struct out *o, const void *s, size_t n)
{
    msgpack_pack_str_with_body(&o->packer, s, n);
}

static void put_bin(struct out *o, const void *p, size_t n)
{
    msgpack_pack_bin_with_body(&o->packer, p, n);
}

/* Writes the header of a bin without its bytes. A payload is never copied here; the caller sends
 * it directly after the message's head. */
static void put_bulk(struct out *o, struct bytes payload)
{
    assert(payload.n <= UINT32_MAX);
    msgpack_pack_bin(&o->packer, payload.n);
}

static void put_type(struct out *o, enum wire_type type)
{
    put_array(o, 1 + fields_of[type]);
    put_uint(o, (uint64_t)type);
}

/* Writes an empty array if the record has no certificate. */
static void put_certificate(struct out *o, const struct record *r)
{
    const struct certificate *c = &r->certificate;
    put_array(o, r->invited ? FIELDS_CERTIFICATE : 0);
    if (!r->invited)
        return;
    put_bin(o, c->issuer, sizeof c->issuer);
    put_uint(o, c->expires_ms);
    put_bin(o, c->key, sizeof c->key);
    put_bin(o, c->issued, sizeof c->issued);
    put_bin(o, c->presented, sizeof c->presented);
}

/* Writes all fields of a record except the signature, for a message and for the signed bytes. */
static void put_record_fields(struct out *o, const struct record *r)
{
    assert(r->n_addresses <= WIRE_ADDRESSES_MAX);
    put_bin(o, r->id, sizeof r->id);
    put_str(o, r->name, strlen(r->name));
    put_array(o, r->n_addresses);
    for (uint32_t i = 0; i < r->n_addresses; i++)
        put_str(o, r->address[i], strlen(r->address[i]));
    put_uint(o, r->incarnation);
    put_uint(o, r->boot);
    put_uint(o, (uint64_t)r->state);
    put_bool(o, r->initial);
    put_uint(o, r->beat[0]);
    put_uint(o, r->beat[1]);
    put_uint(o, r->over);
    put_uint(o, r->age_ms);
    put_certificate(o, r);
}

static void put_record(struct out *o, const struct record *r)
{
    put_array(o, FIELDS_RECORD);
    put_record_fields(o, r);
    put_bin(o, r->signature, sizeof r->signature);
}

/* Writes all fields of an accusation except the signature. */
static void put_accusation_fields(struct out *o, const struct accusation *a)
{
    put_bin(o, a->accused, sizeof a->accused);
    put_bin(o, a->accuser, sizeof a->accuser);
    put_uint(o, a->incarnation);
}

static void put_accusation(struct out *o, const struct accusation *a)
{
    put_array(o, FIELDS_ACCUSATION);
    put_accusation_fields(o, a);
    put_bin(o, a->signature, sizeof a->signature);
}

/* Writes all fields of an endorsement (vouch) except the signature. */
static void put_vouch_fields(struct out *o, const struct vouch *v)
{
    put_bin(o, v->member, sizeof v->member);
    put_bin(o, v->voucher, sizeof v->voucher);
}

static void put_vouch(struct out *o, const struct vouch *v)
{
    put_array(o, FIELDS_VOUCH);
    put_vouch_fields(o, v);
    put_bin(o, v->signature, sizeof v->signature);
}

/* An observer has no record, so a msgpack nil takes its place. */
size_t wire_put_hello(uint8_t *out, size_t cap, const struct wire_hello *m)
{
    assert(m->run.n <= WIRE_RUN_MAX && m->has_run == (m->run.n > 0));
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_HELLO);
    put_uint(&o, m->version);
    put_uint(&o, (uint64_t)m->role);
    put_bool(&o, m->has_run);
    put_bool(&o, m->has_started);
    put_str(&o, m->run.p, m->run.n);
    put_uint(&o, m->round);
    if (m->role == WIRE_PEER)
        put_record(&o, &m->record);
    else
        msgpack_pack_nil(&o.packer);
    return end(&o);
}

static bool leaves_out(const struct wire_members *m, uint32_t i)
{
    return m->without >> i & 1;
}

static uint32_t n_told(const struct wire_members *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_records; i++)
        n += !leaves_out(m, i);
    return n;
}

size_t wire_put_members(uint8_t *out, size_t cap, const struct wire_members *m)
{
    assert(m->n_records <= WIRE_BATCH_MAX && m->n_accusations <= WIRE_BATCH_MAX
           && m->n_vouches <= WIRE_VOUCHES_MAX);
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_MEMBERS);
    put_array(&o, n_told(m));
    for (uint32_t i = 0; i < m->n_records; i++)
        if (!leaves_out(m, i))
            put_record(&o, &m->records[i]);
    put_array(&o, m->n_accusations);
    for (uint32_t i = 0; i < m->n_accusations; i++)
        put_accusation(&o, &m->accusations[i]);
    put_array(&o, m->n_vouches);
    for (uint32_t i = 0; i < m->n_vouches; i++)
        put_vouch(&o, &m->vouches[i]);
    return end(&o);
}

size_t wire_put_ping(uint8_t *out, size_t cap, const struct wire_ping *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_PING);
    put_uint(&o, m->round);
    put_uint(&o, m->busy_ms);
    put_bool(&o, m->finished);
    return end(&o);
}

size_t wire_put_beat(uint8_t *out, size_t cap, const struct wire_beat *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_BEAT);
    put_uint(&o, m->run_round);
    put_uint(&o, m->checkpoint);
    put_uint(&o, m->settled);
    return end(&o);
}

size_t wire_put_probe(uint8_t *out, size_t cap, const struct wire_probe *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_PROBE);
    put_bin(&o, m->id, sizeof m->id);
    return end(&o);
}

size_t wire_put_heard(uint8_t *out, size_t cap, const struct wire_heard *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_HEARD);
    put_bin(&o, m->id, sizeof m->id);
    put_uint(&o, m->age_ms);
    return end(&o);
}

size_t wire_put_refused(uint8_t *out, size_t cap, const struct wire_refused *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_REFUSED);
    put_uint(&o, (uint64_t)m->why);
    put_str(&o, m->name, strlen(m->name));
    put_bin(&o, m->other, sizeof m->other);
    return end(&o);
}

size_t wire_put_callback(uint8_t *out, size_t cap, const struct wire_callback *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_CALLBACK);
    put_uint(&o, m->why);
    put_str(&o, m->address, strlen(m->address));
    return end(&o);
}

static void put_ballot(struct out *o, const struct wire_ballot *b)
{
    put_uint(o, b->number);
    put_bin(o, b->id, sizeof b->id);
}

size_t wire_put_finish(uint8_t *out, size_t cap, const struct wire_finish *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_FINISH);
    put_uint(&o, (uint64_t)m->word);
    put_ballot(&o, &m->ballot);
    put_ballot(&o, &m->promised);
    put_ballot(&o, &m->accepted);
    put_bool(&o, m->partial);
    put_uint(&o, m->n_voters);
    put_bin(&o, m->voters.p, m->voters.n);
    put_uint(&o, m->n_mixing);
    put_uint(&o, m->n_models);
    put_float(&o, m->dist2);
    put_float(&o, m->norm2);
    put_uint(&o, m->model_hash);
    put_bin(&o, m->mean.p, m->mean.n);
    put_bin(&o, m->members.p, m->members.n);
    put_bin(&o, m->proposal.p, m->proposal.n);
    return end(&o);
}

size_t wire_put_edge(uint8_t *out, size_t cap, const struct wire_edge *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_EDGE);
    put_uint(&o, m->epoch);
    put_uint(&o, m->round);
    put_uint(&o, m->nonce);
    put_uint(&o, m->answers);
    put_uint(&o, m->boot);
    put_uint(&o, m->run_round);
    put_bool(&o, m->restored);
    put_bool(&o, m->first);
    return end(&o);
}

size_t wire_put_moments(uint8_t *out, size_t cap, const struct wire_moments *m)
{
    assert(m->payload.n <= WIRE_MOMENTS_MAX);
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_MOMENTS);
    put_record(&o, &m->record);
    put_bool(&o, m->founds);
    put_bin(&o, m->payload.p, m->payload.n);
    put_bin(&o, m->signature, sizeof m->signature);
    return end(&o);
}

/* Writes a message that has a type but no fields. */
static size_t put_bare(uint8_t *out, size_t cap, enum wire_type type)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, type);
    return end(&o);
}

size_t wire_put_edge_close(uint8_t *out, size_t cap)
{
    return put_bare(out, cap, WIRE_EDGE_CLOSE);
}

size_t wire_put_status_req(uint8_t *out, size_t cap)
{
    return put_bare(out, cap, WIRE_STATUS_REQ);
}

/* The payload is the last field, so that head and payload can be sent from two buffers. */
size_t wire_put_delta(uint8_t *out, size_t cap, const struct wire_delta *m)
{
    assert(m->sketch.n <= WIRE_SKETCH_MAX);
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_DELTA);
    put_uint(&o, m->epoch);
    put_uint(&o, m->round);
    put_uint(&o, m->run_round);
    put_uint(&o, (uint64_t)m->more << WIRE_MORE_BITS | m->degree);
    put_uint(&o, m->codec);
    put_float(&o, m->x2);
    put_float(&o, m->e2);
    put_uint(&o, m->momentum);
    put_uint(&o, m->hash);
    put_uint(&o, m->checkpoint);
    put_uint(&o, m->settled);
    put_uint(&o, m->pace);
    put_uint(&o, m->clean);
    put_uint(&o, m->sketch_generation);
    put_float(&o, m->mean_dist2);
    put_float(&o, m->mean_norm2);
    put_bin(&o, m->sketch.p, m->sketch.n);
    put_bulk(&o, m->payload);
    return end(&o);
}

size_t wire_put_part(uint8_t *out, size_t cap, const struct wire_part *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_PART);
    put_uint(&o, m->epoch);
    put_uint(&o, m->round);
    put_uint(&o, m->after);
    put_bulk(&o, m->payload);
    return end(&o);
}

size_t wire_put_round_protocol(uint8_t *out, size_t cap, const struct wire_round_protocol *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_ROUND_PROTOCOL);
    put_uint(&o, m->word);
    put_uint(&o, m->round);
    put_uint(&o, m->attempt);
    put_uint(&o, m->view);
    put_uint(&o, m->step);
    put_bulk(&o, m->payload);
    return end(&o);
}

size_t wire_put_model_req(uint8_t *out, size_t cap, const struct wire_model_req *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_MODEL_REQ);
    put_uint(&o, m->round);
    put_uint(&o, m->piece);
    put_uint(&o, m->key);
    return end(&o);
}

size_t wire_put_model(uint8_t *out, size_t cap, const struct wire_model *m)
{
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_MODEL);
    put_uint(&o, m->round);
    put_uint(&o, m->piece);
    put_uint(&o, m->key);
    put_bool(&o, m->certified);
    put_bulk(&o, m->payload);
    return end(&o);
}

static void put_status_edge(struct out *o, const struct wire_status_edge *e)
{
    put_array(o, FIELDS_STATUS_EDGE);
    put_bin(o, e->id, sizeof e->id);
    put_uint(o, e->state);
    put_uint(o, e->round);
    put_float(o, e->gamma);
    put_uint(o, e->resets);
}

static void put_status_figure(struct out *o, const struct wire_status_figure *f)
{
    put_array(o, FIELDS_STATUS_FIGURE);
    put_str(o, f->name, strlen(f->name));
    if (f->is_real)
        put_double(o, f->real);
    else
        put_uint(o, f->whole);
}

size_t wire_put_status(uint8_t *out, size_t cap, const struct wire_status *m)
{
    assert(m->n_edges <= WIRE_EDGES_MAX && m->n_figures <= WIRE_FIGURES_MAX);
    struct out o;
    begin(&o, out, cap);
    put_type(&o, WIRE_STATUS);
    put_uint(&o, m->round);
    put_uint(&o, m->n_rounds);
    put_uint(&o, m->phase);
    put_double(&o, m->loss);
    put_double(&o, m->accuracy);
    put_double(&o, m->drift);
    put_double(&o, m->relative_drift);
    put_uint(&o, m->drift_round);
    put_uint(&o, m->drift_age);
    put_uint(&o, m->bytes_sent);
    put_uint(&o, m->bytes_received);
    put_uint(&o, m->n_strangers);
    put_uint(&o, m->n_violations);
    put_uint(&o, m->n_live);
    put_uint(&o, m->rounds_done);
    put_uint(&o, m->rounds_skipped);
    put_uint(&o, m->joined_round);
    put_double(&o, m->age_s);
    put_bool(&o, m->holds);
    put_uint(&o, m->clock_ms);
    put_str(&o, m->codec, strlen(m->codec));
    put_array(&o, m->n_edges);
    for (uint32_t i = 0; i < m->n_edges; i++)
        put_status_edge(&o, &m->edges[i]);
    put_array(&o, m->n_figures);
    for (uint32_t i = 0; i < m->n_figures; i++)
        put_status_figure(&o, &m->figures[i]);
    return end(&o);
}

/* Writes the signature domain, the text that names this kind of statement, with its NUL. The NUL
 * ensures that no domain is a prefix of another. The bytes after the domain equal those in a
 * message. */
size_t wire_record_signed(uint8_t *out, size_t cap, const struct record *r)
{
    static const char domain[] = "hearsay record 1";
    struct out o;
    begin(&o, out, cap);
    append(&o, domain, sizeof domain);
    put_array(&o, FIELDS_RECORD - 1);
    put_record_fields(&o, r);
    return end(&o);
}

size_t wire_accusation_signed(uint8_t *out, size_t cap, const struct accusation *a)
{
    static const char domain[] = "hearsay accusation 1";
    struct out o;
    begin(&o, out, cap);
    append(&o, domain, sizeof domain);
    put_array(&o, FIELDS_ACCUSATION - 1);
    put_accusation_fields(&o, a);
    return end(&o);
}

size_t wire_token_signed(uint8_t *out, size_t cap, const struct certificate *c)
{
    static const char domain[] = "hearsay token 1";
    struct out o;
    begin(&o, out, cap);
    append(&o, domain, sizeof domain);
    put_array(&o, 2);
    put_uint(&o, c->expires_ms);
    put_bin(&o, c->key, sizeof c->key);
    return end(&o);
}

size_t wire_presented_signed(uint8_t *out, size_t cap, const uint8_t id[WIRE_ID_BYTES])
{
    static const char domain[] = "hearsay presented token 1";
    struct out o;
    begin(&o, out, cap);
    append(&o, domain, sizeof domain);
    put_array(&o, 1);
    put_bin(&o, id, WIRE_ID_BYTES);
    return end(&o);
}

size_t wire_vouch_signed(uint8_t *out, size_t cap, const struct vouch *v)
{
    static const char domain[] = "hearsay vouch 1";
    struct out o;
    begin(&o, out, cap);
    append(&o, domain, sizeof domain);
    put_array(&o, FIELDS_VOUCH - 1);
    put_vouch_fields(&o, v);
    return end(&o);
}

/* The boot id of the process is signed, too, so that statistics from an earlier process of the
 * member are not accepted. */
size_t wire_moments_signed(uint8_t *out, size_t cap, const struct wire_moments *m)
{
    static const char domain[] = "hearsay moments 1";
    struct out o;
    begin(&o, out, cap);
    append(&o, domain, sizeof domain);
    put_array(&o, 4);
    put_bin(&o, m->record.id, sizeof m->record.id);
    put_uint(&o, m->record.boot);
    put_bool(&o, m->founds);
    put_bin(&o, m->payload.p, m->payload.n);
    return end(&o);
}

const char *wire_msgpack_version(void)
{
    return msgpack_version();
}
