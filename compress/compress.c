/* compress/compress.c -- the door: cuts a model into units, and hands each to its codec.
 *
 * Opening a spec sizes everything: plan_units() asks each unit's codec what it
 * needs, and one set of scratch is shared by all units, as they are encoded one
 * after the other. After that nothing is allocated. Decoding uses no scratch of
 * this struct at all, so that a worker may encode while other threads check and
 * apply messages.
 */
#include "compress/compress.h"

#include "compress/sparse.h"
#include "compress/spec.h"
#include "compress/unit.h"

#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first byte of each unit in a message. */
enum { UNIT_NOTHING, UNIT_BODY };

/* What the units of a model need of each part of the scratch, which is as long as the greediest
 * unit asks for. */
struct needs
{
    size_t floats; /* Floats of a batch of blocks; there are two such buffers. */
    size_t gather; /* Elements of the longest unit in several pieces. */
    size_t picks;  /* Coordinates a selector may take, and the room that it asks for behind. */
    size_t bytes;  /* Bytes that a selector or a body asks for by its scratch(). */
    size_t memory; /* Floats that last from message to message, for all units together. */
};

struct compress
{
    struct spec spec;
    struct units units;         /* Point into spec. */
    struct compress_stat *stat; /* By unit, in the message that is being encoded, */
    size_t n_left;              /* of which so many units, its first ones, are still to come. */
    size_t bound, nominal;
    struct sparse_scratch scratch; /* A body's is scratch.pick.scratch. */
    float *gathered;
    float *memory;
};

/* The canonical text always fits: spec_parse() refuses a spec whose own does not. */
int compress_canonical(const char *spec, char canonical[COMPRESS_SPEC_MAX],
                       char error[COMPRESS_ERROR_MAX])
{
    struct spec s;
    int err = spec_parse(&s, spec, error);
    if (err == 0)
        spec_print(&s, canonical);
    return err;
}

/* A rule that fits no segment does nothing, which is most often a misspelt name. */
static bool fits_any(const struct spec_rule *r, const struct segment *segments, size_t n_segments)
{
    for (size_t i = 0; i < n_segments; i++)
        if (spec_matches(r, &segments[i]))
            return true;
    return false;
}

bool compress_idle_rule(const char *spec, const struct segment *segments, size_t n_segments,
                        char rule[COMPRESS_SPEC_MAX])
{
    struct spec s;
    char error[COMPRESS_ERROR_MAX];
    int err = spec_parse(&s, spec, error);
    assert(err == 0);
    for (size_t i = 1; i < s.n_rules; i++) {
        if (fits_any(&s.rule[i], segments, n_segments))
            continue;
        struct spec one = {.n_rules = 1, .rule = {s.rule[i]}};
        bool whole = spec_print(&one, rule);
        assert(whole); /* All rules together fit. */
        return true;
    }
    return false;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* A selector and its coder, as the sparse driver wants them. */
static struct sparse chain_of(const struct unit *u)
{
    return (struct sparse){&u->rule->selector, &u->rule->coder, u->rule->positions};
}

/* ---- sizes ---- */

/* A body says itself how long it can get, and may ask for memory that lasts. */
static void plan_body(struct compress *c, const struct unit *u, struct needs *need)
{
    const struct codec_stage *s = &u->rule->body;
    const struct codec_body *f = s->codec->body;
    c->bound += f->bound(s->arg, &u->shape);
    c->nominal += f->nominal(s->arg, &u->shape);
    if (f->scratch != NULL)
        need->bytes = larger(need->bytes, f->scratch(s->arg, &u->shape));
    if (f->memory != NULL)
        need->memory += f->memory(s->arg, &u->shape);
}

/* A selector first, if there is one: then the coder sees at most the coordinates it may take. */
static void plan_chain(struct compress *c, const struct unit *u, struct needs *need)
{
    const struct codec_stage *s = &u->rule->selector;
    size_t n = u->shape.n;
    size_t coded = n;
    if (s->codec != NULL) {
        struct sparse chain = chain_of(u);
        coded = s->codec->selector->most(s->arg, n);
        need->picks = larger(need->picks, coded + CODEC_CHUNK);
        if (s->codec->selector->scratch != NULL)
            need->bytes = larger(need->bytes, s->codec->selector->scratch(s->arg, n));
        c->bound += sparse_bound(&chain, n);
        c->nominal += sparse_nominal(&chain, n);
    } else {
        c->bound += dense_size(&u->rule->coder, n);
        c->nominal += dense_size(&u->rule->coder, n);
    }
    need->floats = larger(need->floats, dense_scratch(&u->rule->coder, coded));
}

/* Sum up the bounds of all units, and find what the scratch must have for the greediest. */
static struct needs plan_units(struct compress *c)
{
    struct needs need = {.floats = 1, .gather = 1, .picks = 1, .bytes = 1};
    for (size_t i = 0; i < c->units.n; i++) {
        struct unit *u = &c->units.unit[i];
        c->bound++; /* The first byte. */
        c->nominal++;
        u->memory = need.memory;
        if (u->shape.n == 0)
            continue;
        if (u->n_pieces > 1)
            need.gather = larger(need.gather, u->shape.n);
        if (u->rule->body.codec != NULL)
            plan_body(c, u, &need);
        else
            plan_chain(c, u, &need);
    }
    return need;
}

/* Whole cache lines, as aligned_alloc() wants the size to be a multiple of the alignment. */
static void *allocate_lines(size_t n_bytes)
{
    return aligned_alloc(64, (n_bytes + 63) / 64 * 64);
}

/* On failure what was allocated stays: compress_close() frees it. */
static int allocate_scratch(struct compress *c, const struct needs *need)
{
    struct sparse_scratch *s = &c->scratch;
    s->dense.v = allocate_lines(need->floats * sizeof(float));
    s->dense.work = allocate_lines(need->floats * sizeof(float));
    s->pick.index = allocate_lines(need->picks * sizeof(uint32_t));
    s->pick.value = allocate_lines(need->picks * sizeof(float));
    s->pick.truth = allocate_lines(need->picks * sizeof(float));
    s->pick.scratch = allocate_lines(need->bytes);
    c->gathered = allocate_lines(need->gather * sizeof(float));
    c->memory = calloc(need->memory + 1, sizeof(float));
    c->stat = calloc(c->units.n + 1, sizeof *c->stat);
    bool full = s->dense.v != NULL && s->dense.work != NULL && s->pick.index != NULL
                && s->pick.value != NULL && s->pick.truth != NULL && s->pick.scratch != NULL
                && c->gathered != NULL && c->memory != NULL && c->stat != NULL;
    return full ? 0 : -ENOMEM;
}

/* What is one vector becomes one for each segment. */
static void cut_by_layer(struct spec *s)
{
    for (size_t i = 0; i < s->n_rules; i++)
        if (s->rule[i].scope == SPEC_MODEL)
            s->rule[i].scope = SPEC_LAYER;
}

/* Positions are 32 bits wide on the wire, which limits the model. */
static int open_spec(struct compress **out, const char *spec, bool by_layer,
                     const struct segment *segments, size_t n_segments)
{
    char error[COMPRESS_ERROR_MAX];
    *out = NULL;
    struct compress *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    int err = spec_parse(&c->spec, spec, error);
    if (err == 0 && by_layer)
        cut_by_layer(&c->spec);
    if (err == 0)
        err = units_init(&c->units, &c->spec, segments, n_segments);
    if (err == 0)
        err = c->units.dim > UINT32_MAX ? -EINVAL : 0;
    if (err == 0) {
        struct needs need = plan_units(c);
        err = allocate_scratch(c, &need);
    }
    if (err != 0) {
        compress_close(c);
        return err;
    }
    *out = c;
    return 0;
}

int compress_open(struct compress **out, const char *spec, const struct segment *segments,
                  size_t n_segments)
{
    return open_spec(out, spec, false, segments, n_segments);
}

int compress_open_layers(struct compress **out, const char *spec, const struct segment *segments,
                         size_t n_segments)
{
    return open_spec(out, spec, true, segments, n_segments);
}

void compress_close(struct compress *c)
{
    if (c == NULL)
        return;
    free(c->scratch.dense.v);
    free(c->scratch.dense.work);
    free(c->scratch.pick.index);
    free(c->scratch.pick.value);
    free(c->scratch.pick.truth);
    free(c->scratch.pick.scratch);
    free(c->gathered);
    free(c->memory);
    free(c->stat);
    units_close(&c->units);
    free(c);
}

size_t compress_bound(const struct compress *c)
{
    return c->bound;
}

/* What planning rests on: a bound would be far off for codes of varying length. */
size_t compress_nominal(const struct compress *c)
{
    return c->nominal;
}

/* ---- encoding ---- */

/* Find the unit's part of the difference: where it lies if that is one piece, or else its pieces
 * put together in c->gathered. -ERANGE if what was put together is not finite or too large. */
static int source_of(struct compress *c, const struct unit *u, const struct compress_input *in,
                     struct codec_source *s)
{
    s->n = u->shape.n;
    s->round = in->round;
    if (u->n_pieces == 1) {
        s->x = in->x + u->piece->offset;
        s->x_hat = in->x_hat + u->piece->offset;
        return 0;
    }
    uint32_t max = 0;
    for (size_t i = 0; i < u->n_pieces; i++) {
        const struct piece *p = &u->piece[i];
        uint32_t bits =
            codec_load(c->gathered + p->at, in->x + p->offset, in->x_hat + p->offset, p->n);
        max = bits > max ? bits : max;
    }
    s->x = c->gathered;
    s->x_hat = NULL;
    return max < CODEC_LIMIT_BITS ? 0 : -ERANGE;
}

/* Encode the body of one unit, without its first byte. *len is 0 where there is nothing to send. */
static int encode_body(struct compress *c, const struct unit *u, const struct codec_source *s,
                       uint8_t *dst, size_t *len, struct compress_stat *stat)
{
    const struct spec_rule *r = u->rule;
    if (r->body.codec != NULL) {
        struct codec_desk desk = {.scratch = c->scratch.pick.scratch,
                                  .memory = c->memory + u->memory};
        return r->body.codec->body->encode(r->body.arg, &u->shape, s, &desk, dst, len, stat);
    }
    if (r->selector.codec != NULL) {
        struct sparse chain = chain_of(u);
        return sparse_encode(&chain, s, &c->scratch, dst, len, stat);
    }
    int err = dense_encode(&r->coder, s, &c->scratch.dense, dst, stat);
    *len = stat->x2 > 0.0 ? dense_size(&r->coder, s->n) : 0;
    return err;
}

/* Unit i behind its first byte. *len is 0 where nothing is sent for it. */
static int encode_unit(struct compress *c, size_t i, const struct compress_input *in, bool measured,
                       uint8_t *dst, size_t *len)
{
    const struct unit *u = &c->units.unit[i];
    /* Units draw from streams of their own, or equal ones would round alike. */
    struct codec_source s = {.key = rng_at(in->draw, i), .measured = measured};
    struct compress_stat *stat = &c->stat[i];
    *stat = (struct compress_stat){0};
    *len = 0;
    if (u->shape.n > 0) {
        int err = source_of(c, u, in, &s);
        if (err == 0)
            err = encode_body(c, u, &s, dst + 1, len, stat);
        if (err != 0)
            return err;
    }
    /* A unit at rest is one byte and no error, whatever its codec wrote. */
    if (!(stat->x2 > 0.0)) {
        *len = 0;
        stat->e2 = 0.0;
    }
    dst[0] = *len > 0 ? UNIT_BODY : UNIT_NOTHING;
    return 0;
}

/* Those from `begin` to the last one that is left. On -ERANGE the bytes so far count for nothing. */
static int encode_from(struct compress *c, size_t begin, const struct compress_input *in,
                       bool measured, uint8_t *dst, size_t *len)
{
    size_t at = 0;
    for (size_t i = begin; i < c->n_left; i++) {
        size_t n_bytes;
        int err = encode_unit(c, i, in, measured, dst + at, &n_bytes);
        if (err != 0)
            return err;
        at += 1 + n_bytes;
    }
    c->n_left = begin;
    assert(at <= c->bound);
    *len = at;
    return 0;
}

void compress_begin(struct compress *c)
{
    c->n_left = c->units.n;
}

/* Units of other rules may lie anywhere, so that one which is not ready keeps back those before it. */
int compress_part(struct compress *c, const struct compress_input *in, size_t from, uint8_t *dst,
                  size_t *len)
{
    size_t begin = c->n_left;
    while (begin > 0) {
        const struct unit *u = &c->units.unit[begin - 1];
        if (u->n_pieces > 0 && u->piece->offset < from)
            break;
        begin--;
    }
    return encode_from(c, begin, in, true, dst, len);
}

/* Summed in the order of the units, whichever came first. */
int compress_rest(struct compress *c, const struct compress_input *in, uint8_t *dst, size_t *len,
                  struct compress_stat *stat)
{
    int err = encode_from(c, 0, in, stat != NULL, dst, len);
    if (err != 0 || stat == NULL)
        return err;
    *stat = (struct compress_stat){0};
    for (size_t i = 0; i < c->units.n; i++) {
        stat->x2 += c->stat[i].x2;
        stat->e2 += c->stat[i].e2;
    }
    return 0;
}

int compress_encode(struct compress *c, const struct compress_input *in, uint8_t *dst, size_t *len,
                    struct compress_stat *stat)
{
    compress_begin(c);
    return compress_rest(c, in, dst, len, stat);
}

/* ---- decoding ---- */

/* Length of the unit's body in src[0..len), or 0 if it is not proper. */
static size_t check_body(const struct unit *u, const uint8_t *src, size_t len)
{
    const struct spec_rule *r = u->rule;
    size_t n = u->shape.n;
    if (n == 0)
        return 0; /* Never anything. */
    if (r->body.codec != NULL)
        return r->body.codec->body->check(r->body.arg, &u->shape, src, len);
    if (r->selector.codec != NULL) {
        struct sparse chain = chain_of(u);
        return sparse_check(&chain, src, len, n);
    }
    size_t size = dense_size(&r->coder, n);
    return len >= size && dense_check(&r->coder, src, n) ? size : 0;
}

/* A unit that is said to be there must have a body of one byte or more, so every step of the
 * loop consumes something, and the cost is O(len). */
bool compress_validate(const struct compress *c, const uint8_t *src, size_t len)
{
    if (len > c->bound)
        return false;
    size_t at = 0;
    for (size_t i = 0; i < c->units.n; i++) {
        if (at == len || src[at] > UNIT_BODY)
            return false;
        if (src[at++] == UNIT_NOTHING)
            continue;
        size_t body = check_body(&c->units.unit[i], src + at, len - at);
        if (body == 0)
            return false;
        at += body;
    }
    return at == len;
}

/* Add one unit to the replica; returns the length of its body. */
static size_t apply_body(const struct unit *u, const uint8_t *src, size_t len, float *x_hat)
{
    const struct spec_rule *r = u->rule;
    struct target t = {.x = x_hat, .piece = u->piece};
    if (r->body.codec != NULL)
        return r->body.codec->body->apply(r->body.arg, &u->shape, src, len, &t);
    if (r->selector.codec != NULL) {
        struct sparse chain = chain_of(u);
        return sparse_apply(&chain, src, len, &t, u->shape.n);
    }
    return dense_apply(&r->coder, src, &t, u->shape.n);
}

void compress_apply(const struct compress *c, const uint8_t *src, size_t len, float *x_hat)
{
    size_t at = 0;
    for (size_t i = 0; i < c->units.n; i++) {
        assert(at < len);
        if (src[at++] == UNIT_NOTHING)
            continue;
        at += apply_body(&c->units.unit[i], src + at, len - at, x_hat);
    }
    assert(at == len);
}

/* ---- the catalogue ---- */

/* `hearsay compressors` walks it, so that no list of codecs is written twice. */
bool compress_catalogue(size_t i, struct compress_info *info)
{
    static const char *const classes[] = {
        [CODEC_CONTRACTION] = "contraction",
        [CODEC_EXPECTED] = "expected",
        [CODEC_UNBIASED] = "unbiased",
        [CODEC_NEITHER] = "neither",
    };
    const struct codec *codec = codec_all[i];
    if (codec == NULL)
        return false;
    *info = (struct compress_info){
        .name = codec->name,
        .about = codec->about,
        .role = codec->body != NULL       ? "body"
                : codec->selector != NULL ? "selector"
                                          : "values",
        .class = classes[codec->class],
        .bound = codec->bound,
        .unbiased = codec->unbiased,
        .source = codec->source,
    };
    char error[COMPRESS_ERROR_MAX];
    int err = compress_canonical(codec->name, info->preset, error);
    assert(err == 0); /* Each codec has defaults for all. */
    spec_form(codec, info->form);
    return true;
}
