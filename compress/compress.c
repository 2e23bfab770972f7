/* compress/compress.c -- encodes and decodes whole models, unit by unit.
 *
 * compress_open() computes all sizes: plan_units() asks the codec of each unit for its needs. All
 * units share one set of buffers, because they are encoded one after the other. No later call
 * allocates memory. Decoding does not use these buffers, so other threads may validate and apply
 * messages while one thread encodes.
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

/* First byte of each unit in a message. UNIT_NOTHING: nothing is sent for the unit. UNIT_BODY: the
 * bytes of the codec follow. */
enum { UNIT_NOTHING, UNIT_BODY };

/* Buffer sizes for encoding a model. Each size except `memory` is the largest that any unit
 * needs. */
struct needs
{
    /* Number of floats in each of the two working buffers of a values codec (dense.h). */
    size_t floats;
    /* Number of elements of the longest unit that is not contiguous in the model, but has several
     * pieces. */
    size_t gather;
    /* Number of elements in the arrays for a result of a selector (struct codec_pick): the largest
     * number of elements that the selector may choose, plus CODEC_CHUNK. */
    size_t picks;
    /* Number of bytes of scratch memory: the largest need of any selector or body codec. All units
     * share it. */
    size_t bytes;
    /* Number of floats that body codecs keep between messages (codec_body.memory), summed over all
     * units. */
    size_t memory;
};

struct compress
{
    struct spec spec;
    struct units units; /* Units of the model, with pointers to the rules in `spec`. */
    /* Measured error of each unit in the current message. One entry per unit. */
    struct compress_stat *stat;
    /* Number of units that are still to be encoded in the current message, the units [0, n_left).
     * The last part of a message is encoded first. */
    size_t n_left;
    /* Size in bytes of the longest possible message, and of a typical message. */
    size_t bound, nominal;
    /* Buffers for selectors and values codecs. Body codecs use only the part
     * scratch.pick.scratch. */
    struct sparse_scratch scratch;
    /* Buffer for the difference of a unit that is not contiguous in the model, but has several
     * pieces. */
    float *gathered;
    /* Floats that body codecs keep between messages. unit.memory is the index of a unit's first
     * float. */
    float *memory;
};

/* spec_print() cannot fail here: spec_parse() has rejected every specification whose canonical text
 * is too long. */
int compress_canonical(const char *spec, char canonical[COMPRESS_SPEC_MAX],
                       char error[COMPRESS_ERROR_MAX])
{
    struct spec s;
    int err = spec_parse(&s, spec, error);
    if (err == 0)
        spec_print(&s, canonical);
    return err;
}

/* Returns true if the rule matches at least one segment. */
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
        /* The text of one rule always fits into the buffer, because the buffer is large enough for
         * the text of all rules together. */
        assert(whole);
        return true;
    }
    return false;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the description of a unit (part of the model) for the driver sparse.c: its selector, its
 * values codec, and the code of the positions. */
static struct sparse chain_of(const struct unit *u)
{
    return (struct sparse){&u->rule->selector, &u->rule->coder, u->rule->positions};
}

/* ---- Buffer sizes ---- */

/* Plans a unit with a body codec. Adds the size of its message to c->bound and c->nominal, and its
 * scratch and memory to `need`. */
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

/* Plans a unit with a selector, a values codec or both. Adds the size of its message to c->bound
 * and c->nominal, and its buffers to `need`. If there is a selector, the values codec encodes at
 * most selector.most(n) elements. */
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

/* Computes the largest and the typical size of a message, which are sums over all units. Returns
 * the buffer sizes that the largest unit needs. */
static struct needs plan_units(struct compress *c)
{
    struct needs need = {.floats = 1, .gather = 1, .picks = 1, .bytes = 1};
    for (size_t i = 0; i < c->units.n; i++) {
        struct unit *u = &c->units.unit[i];
        c->bound++; /* The first byte of each unit says whether data follows. */
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

/* Allocates n_bytes, rounded up to whole cache lines of 64 bytes, because aligned_alloc() needs a
 * size that is a multiple of the alignment. */
static void *allocate_lines(size_t n_bytes)
{
    return aligned_alloc(64, (n_bytes + 63) / 64 * 64);
}

/* Allocates all buffers. If this fails, compress_close() frees those that were allocated. */
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

/* Changes scope "model" to "layer" in every rule, so each segment (tensor) becomes a unit of its
 * own. */
static void cut_by_layer(struct spec *s)
{
    for (size_t i = 0; i < s->n_rules; i++)
        if (s->rule[i].scope == SPEC_MODEL)
            s->rule[i].scope = SPEC_LAYER;
}

/* Creates a compressor. With by_layer, each segment (tensor) is a unit of its own. Positions are
 * sent as 32-bit numbers, so a model of 2^32 or more elements is rejected with -EINVAL. */
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

/* Bandwidth is planned with the typical size, because the largest size of a variable-length code
 * can be far larger. */
size_t compress_nominal(const struct compress *c)
{
    return c->nominal;
}

/* ---- Encoding a model ---- */

/* Sets *s to the part of x and x_hat that belongs to the unit. A unit of one piece is read in
 * place. For a unit of several pieces the difference is computed here into c->gathered. Returns 0,
 * or -ERANGE if a gathered element is not finite or is too large. */
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

/* Encodes one unit, but does not write the byte UNIT_BODY that comes first. Sets *len to 0 if the
 * unit sends nothing. */
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

/* Encodes unit i into dst: the byte UNIT_NOTHING or UNIT_BODY, then *len bytes of data. */
static int encode_unit(struct compress *c, size_t i, const struct compress_input *in, bool measured,
                       uint8_t *dst, size_t *len)
{
    const struct unit *u = &c->units.unit[i];
    /* Each unit (part of the model that is encoded by itself) has its own random stream. With one
     * common stream, equal units would be rounded alike. */
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
    /* If the difference is zero, the byte UNIT_NOTHING is sent, whatever the codec wrote. */
    if (!(stat->x2 > 0.0)) {
        *len = 0;
        stat->e2 = 0.0;
    }
    dst[0] = *len > 0 ? UNIT_BODY : UNIT_NOTHING;
    return 0;
}

/* Encodes the units [begin, c->n_left) into dst and sets *len to the number of bytes written.
 * Returns 0 or -ERANGE. After -ERANGE the bytes in dst are not a valid message. */
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

/* Encodes units from the end of the message backwards, and stops at the first unit whose position in
 * the model is less than `from`. This unit and all units that precede it in the message are encoded
 * later, even those whose position is above `from`, because the encoded part of the message must be
 * contiguous. */
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

/* The errors are added up in the order of the units. The sums therefore do not depend on how the
 * message was split into parts. */
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

/* ---- Checking and decoding a message ---- */

/* Returns the length of the codec data of the unit at src, or 0 if src[0..len) does not begin with
 * valid data. */
static size_t check_body(const struct unit *u, const uint8_t *src, size_t len)
{
    const struct spec_rule *r = u->rule;
    size_t n = u->shape.n;
    if (n == 0)
        return 0; /* For a unit without elements no codec data is ever sent. */
    if (r->body.codec != NULL)
        return r->body.codec->body->check(r->body.arg, &u->shape, src, len);
    if (r->selector.codec != NULL) {
        struct sparse chain = chain_of(u);
        return sparse_check(&chain, src, len, n);
    }
    size_t size = dense_size(&r->coder, n);
    return len >= size && dense_check(&r->coder, src, n) ? size : 0;
}

/* A unit with the byte UNIT_BODY must have at least one byte of data. Each iteration thus consumes
 * input, and the cost is O(len). */
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

/* Decodes the codec data of one unit and adds it to the replica. Returns the length of the data. */
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

/* ---- The catalogue of codecs ---- */

/* The command `hearsay compressors` lists the codecs by this function, so there is no second list
 * of codecs. */
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
    /* A codec name alone is a valid specification, because every parameter has a default. */
    assert(err == 0);
    spec_form(codec, info->form);
    return true;
}
