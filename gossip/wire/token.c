#include "gossip/wire/token.h"

#include <assert.h>

/* msgpack-c's parser, instantiated with callbacks of our own that append to the
 * list. Its ready-made one builds a tree out of allocated memory instead. */
#include <msgpack/unpack.h> /* Its result codes. */
#include <msgpack/unpack_define.h>

struct list
{
    struct token *token;
    uint32_t n;
};

static int append(struct list *l, struct token t)
{
    assert(l->n < WIRE_ITEMS_MAX); /* The scan has counted. */
    l->token[l->n++] = t;
    return 0;
}

static int append_uint(struct list *l, uint64_t u)
{
    return append(l, (struct token){.kind = TOKEN_UINT, .u = u});
}

/* A signed encoding of a number that is not negative is that number. */
static int append_int(struct list *l, int64_t i)
{
    if (i >= 0)
        return append_uint(l, (uint64_t)i);
    return append(l, (struct token){.kind = TOKEN_OTHER});
}

static int append_bool(struct list *l, bool b)
{
    return append(l, (struct token){.kind = TOKEN_BOOL, .u = b});
}

static int append_bytes(struct list *l, enum token_kind kind, const char *p, unsigned n)
{
    return append(l, (struct token){.kind = kind, .n = n, .p = (const uint8_t *)p});
}

/* Where msgpack-c keeps the tree, we keep nothing. */
typedef int nothing;

#define CALLBACK  static inline int
#define UNUSED(x) (void)(x)

static inline nothing token_root(struct list **l)
{
    UNUSED(l);
    return 0;
}
CALLBACK token_uint8(struct list **l, uint8_t d, nothing *o)
{
    *o = 0;
    return append_uint(*l, d);
}
CALLBACK token_uint16(struct list **l, uint16_t d, nothing *o)
{
    *o = 0;
    return append_uint(*l, d);
}
CALLBACK token_uint32(struct list **l, uint32_t d, nothing *o)
{
    *o = 0;
    return append_uint(*l, d);
}
CALLBACK token_uint64(struct list **l, uint64_t d, nothing *o)
{
    *o = 0;
    return append_uint(*l, d);
}
CALLBACK token_int8(struct list **l, int8_t d, nothing *o)
{
    *o = 0;
    return append_int(*l, d);
}
CALLBACK token_int16(struct list **l, int16_t d, nothing *o)
{
    *o = 0;
    return append_int(*l, d);
}
CALLBACK token_int32(struct list **l, int32_t d, nothing *o)
{
    *o = 0;
    return append_int(*l, d);
}
CALLBACK token_int64(struct list **l, int64_t d, nothing *o)
{
    *o = 0;
    return append_int(*l, d);
}
CALLBACK token_true(struct list **l, nothing *o)
{
    *o = 0;
    return append_bool(*l, true);
}
CALLBACK token_false(struct list **l, nothing *o)
{
    *o = 0;
    return append_bool(*l, false);
}
CALLBACK token_nil(struct list **l, nothing *o)
{
    *o = 0;
    return append(*l, (struct token){.kind = TOKEN_NIL});
}
CALLBACK token_float(struct list **l, float d, nothing *o)
{
    *o = 0;
    return append(*l, (struct token){.kind = TOKEN_FLOAT, .f = d});
}
CALLBACK token_double(struct list **l, double d, nothing *o)
{
    *o = 0;
    return append(*l, (struct token){.kind = TOKEN_DOUBLE, .d = d});
}
CALLBACK token_array(struct list **l, unsigned n, nothing *o)
{
    *o = 0;
    return append(*l, (struct token){.kind = TOKEN_ARRAY, .n = n});
}
CALLBACK token_array_item(struct list **l, nothing *c, nothing o)
{
    UNUSED(l), UNUSED(c), UNUSED(o);
    return 0;
}
CALLBACK token_str(struct list **l, const char *base, const char *p, unsigned n, nothing *o)
{
    UNUSED(base);
    *o = 0;
    return append_bytes(*l, TOKEN_STR, p, n);
}
CALLBACK token_bin(struct list **l, const char *base, const char *p, unsigned n, nothing *o)
{
    UNUSED(base);
    *o = 0;
    return append_bytes(*l, TOKEN_BIN, p, n);
}

/* The scan lets none of these through; the parser wants them all the same. */
CALLBACK token_map(struct list **l, unsigned n, nothing *o)
{
    *o = 0;
    UNUSED(l), UNUSED(n);
    return -1;
}
CALLBACK token_map_item(struct list **l, nothing *c, nothing k, nothing v)
{
    UNUSED(l), UNUSED(c), UNUSED(k), UNUSED(v);
    return -1;
}
CALLBACK token_ext(struct list **l, const char *base, const char *p, unsigned n, nothing *o)
{
    UNUSED(l), UNUSED(base), UNUSED(p), UNUSED(n);
    *o = 0;
    return -1;
}

#define msgpack_unpack_struct(name)    struct token##name
#define msgpack_unpack_func(ret, name) static inline ret token##name
#define msgpack_unpack_callback(name)  token##name
#define msgpack_unpack_object          nothing
#define msgpack_unpack_user            struct list *
#include <msgpack/unpack_template.h>

bool token_split(const uint8_t *p, size_t n, struct token token[WIRE_ITEMS_MAX], uint32_t *n_tokens)
{
    if (!wire_scan(p, n))
        return false;
    struct list list = {.token = token};
    struct token_context c = {.user = &list};
    token_init(&c);
    size_t at = 0;
    int ok = token_execute(&c, (const char *)p, n, &at);
    assert(ok == 1 && at == n); /* What the scan passes, the parser passes. */
    *n_tokens = list.n;
    return true;
}
