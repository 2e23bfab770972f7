/* peer/node/finish/proposal.c -- encodes, checks and searches proposals of the finish protocol. */
#include "peer/node/finish/proposal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Number of bytes of an encoded proposal before its first member. */
enum { HEAD = 8 + FINISH_BALLOT };

uint64_t finish_key(const uint8_t id[WIRE_ID_BYTES])
{
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++)
        key = key << 8 | id[i];
    return key;
}

uint64_t finish_entry(struct bytes list, uint32_t i, uint8_t *flags)
{
    const uint8_t *p = list.p + (size_t)WIRE_FINISH_ENTRY * i;
    *flags = p[8];
    return finish_key(p);
}

void finish_put_entry(uint8_t *out, uint64_t key, uint8_t flags)
{
    for (size_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(key >> (56 - 8 * i));
    out[8] = flags;
}

uint8_t *finish_put_ballot(uint8_t *out, const struct wire_ballot *b)
{
    for (size_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(b->number >> (8 * i));
    memcpy(out + 8, b->id, WIRE_ID_BYTES);
    return out + FINISH_BALLOT;
}

const uint8_t *finish_get_ballot(const uint8_t *p, struct wire_ballot *b)
{
    b->number = 0;
    for (size_t i = 0; i < 8; i++)
        b->number |= (uint64_t)p[i] << (8 * i);
    memcpy(b->id, p + 8, WIRE_ID_BYTES);
    return p + FINISH_BALLOT;
}

static void put_float(uint8_t *out, double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    for (size_t i = 0; i < 4; i++)
        out[i] = (uint8_t)(bits >> (8 * i));
}

static double get_float(const uint8_t *p)
{
    uint32_t bits = 0;
    float f;
    for (size_t i = 0; i < 4; i++)
        bits |= (uint32_t)p[i] << (8 * i);
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

size_t finish_encode(uint8_t out[WIRE_FINISH_PROPOSAL_MAX], const struct finish_proposal *p)
{
    assert(p->n <= WIRE_MEMBERS_MAX);
    put_float(out, p->distance);
    put_float(out + 4, p->mean_norm);
    finish_put_ballot(out + 8, &p->origin);
    for (uint32_t i = 0; i < p->n; i++)
        finish_put_entry(out + HEAD + (size_t)WIRE_FINISH_ENTRY * i, p->member[i].key,
                         (uint8_t)p->member[i].status);
    return HEAD + (size_t)WIRE_FINISH_ENTRY * p->n;
}

bool finish_decode(struct finish_proposal *p, struct bytes b)
{
    if (b.n < HEAD || b.n > WIRE_FINISH_PROPOSAL_MAX || (b.n - HEAD) % WIRE_FINISH_ENTRY != 0)
        return false;
    struct bytes list = {b.p + HEAD, b.n - HEAD};
    p->distance = get_float(b.p);
    p->mean_norm = get_float(b.p + 4);
    finish_get_ballot(b.p + 8, &p->origin);
    p->n = (uint32_t)(list.n / WIRE_FINISH_ENTRY);
    bool valid = p->distance >= 0 && p->mean_norm >= 0 && p->origin.number > 0, within = false;
    for (uint32_t i = 0; i < p->n && valid; i++) {
        uint8_t flags;
        uint64_t key = finish_entry(list, i, &flags);
        valid = flags < FINISH_STATUSES && (i == 0 || key > p->member[i - 1].key);
        p->member[i] = (struct finish_member){.key = key, .status = (enum finish_status)flags};
        within |= flags == FINISH_WITHIN;
    }
    return valid && (within || p->n == 0);
}

enum finish_status finish_status_of(const struct finish_proposal *p,
                                    const uint8_t id[WIRE_ID_BYTES])
{
    uint64_t key = finish_key(id);
    uint32_t low = 0, high = p->n;
    while (low < high) {
        uint32_t at = low + (high - low) / 2;
        if (p->member[at].key == key)
            return p->member[at].status;
        if (p->member[at].key < key)
            low = at + 1;
        else
            high = at;
    }
    return FINISH_STATUSES;
}

uint32_t finish_count(const struct finish_proposal *p, enum finish_status status)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++)
        n += p->member[i].status == status;
    return n;
}
