/* gossip/members/records.c -- a chained hash table of records with reference counts.
 *
 * Entries are allocated one by one and never move, because member tables point to the records
 * in them.
 */
#include "gossip/members/records.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS_FIRST = 64, /* Initial number of buckets, a power of two. */
    /* Two processes whose ages differ by less than this many milliseconds count as equally old. The
     * two ages are measured at different moments, so a small difference means nothing. */
    ALIKE_MS = 2 * 1000
};

/* The record is the first field, so a pointer to it is also a pointer to its entry. */
struct entry
{
    struct record record;
    uint32_t refs;
    struct entry *next;
};

struct records
{
    struct entry **bucket; /* Hash table: the first entry of each of the n_buckets chains. */
    /* Number of buckets of the hash table (a power of two), and number of records in it. */
    size_t n_buckets, n;
};

struct records *records_open(void)
{
    struct records *s = malloc(sizeof *s);
    if (s == NULL)
        return NULL;
    *s = (struct records){.n_buckets = BUCKETS_FIRST};
    s->bucket = calloc(s->n_buckets, sizeof *s->bucket);
    if (s->bucket == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void records_close(struct records *s)
{
    if (s == NULL)
        return;
    assert(s->n == 0);
    free(s->bucket);
    free(s);
}

bool record_equal(const struct record *a, const struct record *b)
{
    if (memcmp(a->id, b->id, sizeof a->id) != 0 || a->incarnation != b->incarnation
        || a->boot != b->boot || a->over != b->over || a->age_ms != b->age_ms
        || a->initial != b->initial || a->invited != b->invited
        || memcmp(&a->certificate, &b->certificate, sizeof a->certificate) != 0
        || a->beat[0] != b->beat[0] || a->beat[1] != b->beat[1] || a->state != b->state
        || a->n_addresses != b->n_addresses || strcmp(a->name, b->name) != 0)
        return false;
    for (uint32_t i = 0; i < a->n_addresses; i++)
        if (strcmp(a->address[i], b->address[i]) != 0)
            return false;
    return true;
}

/* Returns whether r replaces `old`, a record of the same member. The record with the higher
 * incarnation wins, then the one with the later state. If both are equal, the order of the bytes
 * decides, so that all tables agree. */
bool record_supersedes(const struct record *r, const struct record *old)
{
    if (r->incarnation != old->incarnation)
        return r->incarnation > old->incarnation;
    if (r->state != old->state)
        return r->state > old->state;
    uint8_t a[SIGNED_MAX], b[SIGNED_MAX];
    size_t na = wire_record_signed(a, sizeof a, r);
    size_t nb = wire_record_signed(b, sizeof b, old);
    int c = memcmp(a, b, na < nb ? na : nb);
    return c != 0 ? c > 0 : na > nb;
}

bool record_younger(const struct record *ours, const struct record *theirs)
{
    double apart_ms = (double)ours->age_ms - (double)theirs->age_ms;
    if (apart_ms > -ALIKE_MS && apart_ms < ALIKE_MS)
        return ours->boot > theirs->boot;
    return apart_ms < 0;
}

/* Returns the chain of the hash table for record r. The low bits of its signature serve as the
 * hash. An attacker can choose these bits by signing many times, but a chain holds at most one
 * record per member (WIRE_MEMBERS_MAX), plus records that are being replaced. */
static struct entry **bucket_of(struct entry **bucket, size_t n_buckets, const struct record *r)
{
    uint64_t h;
    memcpy(&h, r->signature, sizeof h);
    return &bucket[h & (n_buckets - 1)];
}

/* Returns the entry with exactly the contents of r, or NULL. A record with the signature of a
 * stored one but other contents is forged, so all contents are compared. */
static struct entry *find(const struct records *s, const struct record *r)
{
    struct entry *e = *bucket_of(s->bucket, s->n_buckets, r);
    while (e != NULL
           && !(memcmp(e->record.signature, r->signature, sizeof r->signature) == 0
                && record_equal(&e->record, r)))
        e = e->next;
    return e;
}

const struct record *records_find(const struct records *s, const struct record *r)
{
    struct entry *e = find(s, r);
    return e == NULL ? NULL : &e->record;
}

/* Doubles the number of buckets. If memory is exhausted, the number stays, and the chains become
 * longer. */
static void grow(struct records *s)
{
    size_t n_buckets = 2 * s->n_buckets;
    struct entry **bucket = calloc(n_buckets, sizeof *bucket);
    if (bucket == NULL)
        return;
    for (size_t i = 0; i < s->n_buckets; i++) {
        struct entry *next;
        for (struct entry *e = s->bucket[i]; e != NULL; e = next) {
            struct entry **to = bucket_of(bucket, n_buckets, &e->record);
            next = e->next;
            e->next = *to;
            *to = e;
        }
    }
    free(s->bucket);
    s->bucket = bucket;
    s->n_buckets = n_buckets;
}

const struct record *records_hold(struct records *s, const struct record *r)
{
    struct entry *e = find(s, r);
    if (e != NULL) {
        e->refs++;
        return &e->record;
    }
    e = malloc(sizeof *e);
    if (e == NULL)
        return NULL;
    if (s->n >= s->n_buckets)
        grow(s);
    struct entry **head = bucket_of(s->bucket, s->n_buckets, r);
    e->record = *r;
    e->refs = 1;
    e->next = *head;
    *head = e;
    s->n++;
    return &e->record;
}

void records_release(struct records *s, const struct record *r)
{
    if (r == NULL)
        return;
    struct entry **at = bucket_of(s->bucket, s->n_buckets, r);
    while (*at != NULL && &(*at)->record != r)
        at = &(*at)->next;
    assert(*at != NULL);
    struct entry *e = *at;
    if (--e->refs > 0)
        return;
    *at = e->next;
    s->n--;
    free(e);
}
