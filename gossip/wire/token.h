/* gossip/wire/token.h -- a message as a flat list of values, for wire_get.c.
 *
 *   [3, 17, [true]]  ->  ARRAY(3) UINT(3) UINT(17) ARRAY(1) BOOL(1)
 *
 * An array's token comes before those of its elements, so that a decoder reads
 * the list from left to right and needs no tree.
 */
#ifndef GOSSIP_WIRE_TOKEN_H
#define GOSSIP_WIRE_TOKEN_H

#include "gossip/wire/wire.h"

enum token_kind {
    TOKEN_ARRAY,
    TOKEN_UINT,
    TOKEN_BOOL,
    TOKEN_NIL,
    TOKEN_FLOAT,
    TOKEN_DOUBLE,
    TOKEN_STR,
    TOKEN_BIN,
    TOKEN_OTHER /* Nothing a field can be: a negative integer. */
};

struct token
{
    enum token_kind kind;
    uint32_t n; /* ARRAY: elements. STR, BIN: bytes. */
    union
    {
        uint64_t u; /* UINT, BOOL. */
        float f;
        double d;
        const uint8_t *p; /* STR, BIN: inside the message. */
    };
};

/* Scan p[0..n) and split it. False where it does not pass wire_scan(). */
bool token_split(const uint8_t *p, size_t n, struct token token[WIRE_ITEMS_MAX],
                 uint32_t *n_tokens);

#endif
