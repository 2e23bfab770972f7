/* peer/node/finish/proposal.c -- encodes and decodes proposals of the finish protocol, finds
 * members in them, and computes the consensus distance. */
#include "peer/node/finish/proposal.h"

#include <assert.h>
#include <float.h>
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

void finish_put_key(uint8_t out[WIRE_FINISH_KEY], uint64_t key)
{
    for (size_t i = 0; i < WIRE_FINISH_KEY; i++)
        out[i] = (uint8_t)(key >> (56 - 8 * i));
}

void finish_put_entry(uint8_t *out, uint64_t key, uint8_t flags)
{
    finish_put_key(out, key);
    out[WIRE_FINISH_KEY] = flags;
}

uint8_t *finish_put_number(uint8_t *out, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(v >> (8 * i));
    return out + n;
}

uint64_t finish_get_number(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

void finish_put_float(uint8_t *out, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    finish_put_number(out, bits, sizeof bits);
}

float finish_get_float(const uint8_t *p)
{
    uint32_t bits = (uint32_t)finish_get_number(p, sizeof bits);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

uint8_t *finish_put_ballot(uint8_t *out, const struct wire_ballot *b)
{
    memcpy(finish_put_number(out, b->number, 8), b->id, WIRE_ID_BYTES);
    return out + FINISH_BALLOT;
}

const uint8_t *finish_get_ballot(const uint8_t *p, struct wire_ballot *b)
{
    b->number = finish_get_number(p, 8);
    memcpy(b->id, p + 8, WIRE_ID_BYTES);
    return p + FINISH_BALLOT;
}

size_t finish_encode(uint8_t out[WIRE_FINISH_PROPOSAL_MAX], const struct finish_proposal *p)
{
    assert(p->n <= WIRE_MEMBERS_MAX);
    finish_put_float(out, (float)p->distance);
    finish_put_float(out + 4, (float)p->mean_norm);
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
    p->distance = (double)finish_get_float(b.p);
    p->mean_norm = (double)finish_get_float(b.p + 4);
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

/* ---- evidence ---- */

void finish_evidence_of(struct finish_evidence *e, const float sketch[SKETCH_K], double norm2,
                        uint64_t hash)
{
    assert(hash != 0);
    *e = (struct finish_evidence){.n = 1, .norm2 = norm2, .hash = hash};
    memcpy(e->mean, sketch, sizeof e->mean);
}

/* Largest |x|^2 of one model, and largest absolute value of a component of its sketch. */
static const double norm2_max = 1e32, component_max = 1e15;

bool finish_evidence_is_valid(const struct finish_evidence *e)
{
    bool valid = e->norm2 >= 0 && (float)e->norm2 <= (float)(e->n * norm2_max) && e->dist2 >= 0
                 && e->dist2 <= (double)FLT_MAX;
    /* The comparison is false for NaN. */
    for (size_t i = 0; i < SKETCH_K; i++)
        valid &= fabsf(e->mean[i]) <= (float)component_max;
    return valid;
}

void finish_evidence_add(struct finish_evidence *a, const struct finish_evidence *b)
{
    if (b->n == 0)
        return;
    if (a->n == 0) {
        *a = *b;
        return;
    }
    double n_a = a->n, n_b = b->n, share = n_b / (n_a + n_b), between2 = 0;
    for (size_t i = 0; i < SKETCH_K; i++) {
        double d = (double)b->mean[i] - (double)a->mean[i];
        between2 += d * d;
        a->mean[i] = (float)((double)a->mean[i] + share * d);
    }
    a->hash = a->hash == b->hash ? a->hash : 0;
    a->n += b->n;
    /* Sums over valid models do not exceed these limits, so only a false REPORT can do so. With
     * dist2 at its limit, finish_evidence_distance() returns INFINITY, because dist2 exceeds
     * norm2. */
    a->dist2 = fmin(a->dist2 + b->dist2 + n_a * share * between2, (double)FLT_MAX);
    a->norm2 = fmin(a->norm2 + b->norm2, a->n * norm2_max);
}

double finish_evidence_distance(const struct finish_evidence *e, double *mean_norm)
{
    double n = e->n, xi2 = n > 0 ? e->dist2 / n : 0;
    double mean2 = n > 0 ? e->norm2 / n - xi2 : 0;
    *mean_norm = mean2 > 0 ? sqrt(mean2) : 0;
    if (e->n > 0 && e->hash != 0)
        return 0;
    double distance = sqrt(xi2 / mean2);
    return mean2 > 0 && isfinite(distance) ? distance : (double)INFINITY;
}
