/* nn/shards/shard_assignment.c -- assigns samples to parts or to live members. The table stores the
 * last result, but only to save time: a new table for the same members gives the same result, which
 * tests/unit/nn_shard.c checks. */
#include "nn/shards/shard_assignment.h"

#include "nn/math/dirichlet.h"
#include "nn/math/rng.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Uses of random numbers in this file. Each use has its own random stream, because this number is
 * part of the key of the stream. */
enum {
    DRAW_COST,
    DRAW_WEIGHT,
    DRAW_PART,
    DRAW_CUT,
    DRAW_ORDER,
    DRAW_PIECES,
    DRAW_FILES,
    DRAW_CLASSES
};

/* Stands for "all samples" in the key of a random stream, where other streams have the number of a
 * class. The split iid uses this value, because it has one random order for all samples. */
enum { ALL_SAMPLES = 256 };

enum holds { NOTHING, PARTS, MEMBERS };

struct shard_owners
{
    const struct dataset *set;
    struct shard_split split;
    uint64_t seed;
    enum holds holds;
    /* Used if `holds` is PARTS, that is, if the samples are assigned to fixed parts: the number of
     * parts. */
    uint32_t n_parts;
    /* Used if `holds` is MEMBERS, that is, if the samples are assigned to live members: the keys of
     * the members, sorted, without duplicates. */
    uint64_t *keys;
    size_t n_keys;
    uint64_t *owner; /* Owner of each sample: a part, or a member's key. */
    /* Used if `holds` is MEMBERS. For each sample, the cost of its owner: each member has a random
     * cost for each sample, and the member with the lowest cost owns it. INFINITY: the sample has
     * no owner. */
    double *cost;
    uint32_t *scratch; /* Scratch memory: one number per sample. */
    /* One number for each class, for the member whose costs are being computed. With dirichlet, the
     * random part of a sample's cost is multiplied by the number of the sample's class. With
     * label:K, the number is added to the random part. */
    double *by_class;
};

int shard_owners_open(struct shard_owners **out, const struct dataset *set,
                      const struct shard_split *split, uint64_t seed)
{
    *out = NULL;
    assert(set->n >= 1 && set->n <= UINT32_MAX);
    assert(set->labels != NULL || !shard_split_by_label(split));
    struct shard_owners *o = calloc(1, sizeof *o);
    if (o == NULL)
        return -ENOMEM;
    o->set = set;
    o->split = *split;
    o->seed = seed;
    o->owner = calloc(set->n, sizeof *o->owner);
    o->cost = calloc(set->n, sizeof *o->cost);
    o->scratch = calloc(set->n, sizeof *o->scratch);
    o->by_class = calloc(set->shape.n_classes, sizeof *o->by_class);
    if (o->owner == NULL || o->cost == NULL || o->scratch == NULL || o->by_class == NULL) {
        shard_owners_close(o);
        return -ENOMEM;
    }
    *out = o;
    return 0;
}

void shard_owners_close(struct shard_owners *o)
{
    if (o == NULL)
        return;
    free(o->keys);
    free(o->owner);
    free(o->cost);
    free(o->scratch);
    free(o->by_class);
    free(o);
}

/* ---- Dividing the samples into parts ---- */

/* Puts v[0..n) into a random order. The order depends on the run seed, on `which` (a class, or
 * ALL_SAMPLES) and on `draw` (DRAW_*: what the order is used for). */
static void shuffle(const struct shard_owners *o, uint64_t which, uint64_t draw, uint32_t *v,
                    size_t n)
{
    struct rng r = rng_stream(rng_key(o->seed, RNG_SHARD, which, draw));
    rng_shuffle(&r, v, n);
}

static void count_up(uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (uint32_t)i;
}

/* Implements iid: puts all samples into random order and cuts this order into n_parts runs of
 * consecutive samples. Their lengths differ by at most one. */
static void parts_iid(struct shard_owners *o, uint32_t n_parts)
{
    size_t n = o->set->n;
    count_up(o->scratch, n);
    shuffle(o, ALL_SAMPLES, DRAW_ORDER, o->scratch, n);
    for (size_t i = 0; i < n; i++)
        o->owner[o->scratch[i]] = (uint64_t)i * n_parts / n;
}

/* Draws the proportions of one class: Dirichlet(alpha) over the parts. edge[j] is the end of part j
 * in [0, 1], the sum of the proportions up to j. */
static void class_edges(const struct shard_owners *o, uint64_t class, uint32_t n_parts,
                        double *edge)
{
    struct rng r = rng_stream(rng_key(o->seed, RNG_SHARD, class, DRAW_CUT));
    double top = -INFINITY, sum = 0;
    for (uint32_t j = 0; j < n_parts; j++) {
        edge[j] = dirichlet_log_gamma(&r, o->split.alpha);
        top = edge[j] > top ? edge[j] : top;
    }
    for (uint32_t j = 0; j < n_parts; j++) {
        sum += edge[j] - top < -700 ? 0 : dirichlet_exp(edge[j] - top);
        edge[j] = sum;
    }
    for (uint32_t j = 0; j < n_parts; j++)
        edge[j] /= sum;
}

/* Fills scratch[] with all samples, sorted by class, in random order within each class. first[c]
 * is the position of the first sample of class c; first[n_classes] = n. */
static void sort_by_class(struct shard_owners *o, size_t *first)
{
    const struct dataset *set = o->set;
    uint32_t n_classes = set->shape.n_classes;
    memset(first, 0, ((size_t)n_classes + 1) * sizeof *first);
    /* After this loop, first[c + 2] is the number of samples of class c. */
    for (size_t i = 0; i < set->n; i++)
        if (set->labels[i] + 2u <= n_classes)
            first[set->labels[i] + 2]++;
    /* After this loop, first[c + 1] is the position in scratch[] of the first sample of class c. */
    for (uint32_t c = 2; c <= n_classes; c++)
        first[c] += first[c - 1];
    /* This loop increases first[c + 1] from the position of the first sample of class c to the
     * position after its last sample, where class c + 1 starts. */
    for (size_t i = 0; i < set->n; i++)
        o->scratch[first[set->labels[i] + 1]++] = (uint32_t)i;
    for (uint32_t c = 0; c < n_classes; c++)
        shuffle(o, c, DRAW_ORDER, o->scratch + first[c], first[c + 1] - first[c]);
}

/* Assigns the samples of one class, sample[0..n), to the parts. Part j gets the samples between the
 * fractions edge[j - 1] (0 for the first part) and edge[j] of the class. */
static void parts_class(struct shard_owners *o, const uint32_t *sample, size_t n, uint32_t n_parts,
                        const double *edge)
{
    uint32_t part = 0;
    for (size_t i = 0; i < n; i++) {
        /* Sample i of n stands for the interval [i / n, (i + 1) / n]. `at` is its centre. */
        double at = ((double)i + 0.5) / (double)n;
        while (part + 1 < n_parts && at > edge[part])
            part++;
        o->owner[sample[i]] = part;
    }
}

/* Gives each part without a sample one sample of a part that has several. `count` is scratch
 * memory: n_parts zeros. */
static void fill_empty_parts(struct shard_owners *o, uint32_t n_parts, uint32_t *count)
{
    for (size_t i = 0; i < o->set->n; i++)
        count[o->owner[i]]++;
    size_t i = 0;
    for (uint32_t j = 0; j < n_parts; j++) {
        if (count[j] > 0)
            continue;
        while (count[o->owner[i]] < 2)
            /* The loop finds a part with two samples: part j has no sample, and there are at least
             * as many samples as parts. */
            i++;
        count[o->owner[i]]--;
        o->owner[i] = j;
        count[j]++;
    }
}

static int parts_dirichlet(struct shard_owners *o, uint32_t n_parts)
{
    uint32_t n_classes = o->set->shape.n_classes;
    double *edge = calloc(n_parts, sizeof *edge);
    size_t *first = calloc((size_t)n_classes + 1, sizeof *first);
    int err = edge != NULL && first != NULL ? 0 : -ENOMEM;
    if (err == 0) {
        sort_by_class(o, first);
        for (uint32_t c = 0; c < n_classes; c++) {
            class_edges(o, c, n_parts, edge);
            parts_class(o, o->scratch + first[c], first[c + 1] - first[c], n_parts, edge);
        }
    }
    free(edge);
    free(first);
    return err;
}

/* Implements label:K. The samples, sorted by class, are cut into n_pieces = n_parts * K equal
 * pieces: piece p has the samples from `n * p / n_pieces` to `n * (p + 1) / n_pieces`. The pieces
 * are put into random order, and each part gets K consecutive pieces of this order. */
static int parts_label(struct shard_owners *o, uint32_t n_parts)
{
    size_t n = o->set->n, n_pieces = (size_t)n_parts * o->split.per_part;
    uint32_t *piece = calloc(n_pieces, sizeof *piece);
    size_t *first = calloc((size_t)o->set->shape.n_classes + 1, sizeof *first);
    int err = piece != NULL && first != NULL ? 0 : -ENOMEM;
    if (err == 0) {
        sort_by_class(o, first);
        count_up(piece, n_pieces);
        shuffle(o, 0, DRAW_PIECES, piece, n_pieces);
        for (size_t q = 0; q < n_pieces; q++)
            for (size_t i = n * piece[q] / n_pieces; i < n * ((size_t)piece[q] + 1) / n_pieces; i++)
                o->owner[o->scratch[i]] = q / o->split.per_part;
    }
    free(piece);
    free(first);
    return err;
}

static uint32_t file_of(const struct dataset *set, size_t sample)
{
    return set->file != NULL ? set->file[sample] : 0;
}

/* Implements the split by file: deals out the files to the parts in turn. The numbers of files of
 * two parts differ by at most one, whatever the sizes of the files. */
static int parts_file(struct shard_owners *o, uint32_t n_parts)
{
    size_t n_files = o->set->file != NULL ? o->set->n_files : 1;
    uint32_t *order = calloc(n_files, sizeof *order);
    uint32_t *place = calloc(n_files, sizeof *place);
    int err = order != NULL && place != NULL ? 0 : -ENOMEM;
    if (err == 0) {
        count_up(order, n_files);
        shuffle(o, 0, DRAW_FILES, order, n_files);
        for (size_t q = 0; q < n_files; q++)
            place[order[q]] = (uint32_t)q;
        for (size_t i = 0; i < o->set->n; i++)
            o->owner[i] = place[file_of(o->set, i)] % n_parts;
    }
    free(order);
    free(place);
    return err;
}

static int share_out(struct shard_owners *o, uint32_t n_parts)
{
    switch (o->split.fall) {
    case SHARD_IID:
        parts_iid(o, n_parts);
        return 0;
    case SHARD_DIRICHLET:
        return parts_dirichlet(o, n_parts);
    case SHARD_LABEL:
        return parts_label(o, n_parts);
    case SHARD_FILE:
        return parts_file(o, n_parts);
    }
    assert(false);
    return -EINVAL;
}

int shard_owners_parts(struct shard_owners *o, uint32_t n_parts)
{
    assert(n_parts >= 1 && n_parts <= o->set->n);
    if (o->holds == PARTS && o->n_parts == n_parts)
        return 0;
    uint32_t *count = calloc(n_parts, sizeof *count);
    int err = count != NULL ? share_out(o, n_parts) : -ENOMEM;
    if (err == 0) {
        fill_empty_parts(o, n_parts, count);
        o->holds = PARTS;
        o->n_parts = n_parts;
    }
    free(count);
    return err;
}

/* ---- Assigning the samples to live members ---- */

/* The member whose costs for the samples are being computed. With the splits dirichlet and label:K,
 * by_class[] of the table belongs to this member, too. */
struct bidder
{
    uint64_t key;    /* 64-bit key that identifies the member. */
    uint64_t stream; /* Random stream from which the member's costs are drawn. */
};

/* Sets by_class[c] to 1 / (weight of class c), where the member draws each weight from
 * Gamma(alpha). */
static void draw_weights(const struct shard_owners *o, uint64_t key)
{
    struct rng r = rng_stream(rng_key(o->seed, RNG_SHARD, key, DRAW_WEIGHT));
    for (uint32_t c = 0; c < o->set->shape.n_classes; c++) {
        double log_w = dirichlet_log_gamma(&r, o->split.alpha);
        /* The cost of a sample is a random number divided by the member's weight of its class. 1 /
         * weight is limited to exp(690), because a double cannot hold much larger numbers. Weights
         * below exp(-690) therefore count as equal. This seldom matters, because a member with such
         * a weight hardly ever has the lowest cost. */
        o->by_class[c] = dirichlet_exp(log_w < -690 ? 690 : -log_w);
    }
}

/* Selects K random classes of the member (Knuth, volume 2, 3.4.2, algorithm S). by_class[c] becomes
 * 0 for these classes. For the other classes it becomes 2^52, which exceeds the random part of
 * every cost. */
static void draw_classes(const struct shard_owners *o, uint64_t key)
{
    struct rng r = rng_stream(rng_key(o->seed, RNG_SHARD, key, DRAW_CLASSES));
    uint32_t n = o->set->shape.n_classes, wanted = o->split.per_part;
    for (uint32_t c = 0; c < n; c++) {
        bool picked = rng_below(&r, n - c) < wanted;
        wanted -= picked;
        o->by_class[c] = picked ? 0 : 0x1p52;
    }
}

static struct bidder bidder_of(const struct shard_owners *o, uint64_t key)
{
    switch (o->split.fall) {
    case SHARD_DIRICHLET:
        draw_weights(o, key);
        break;
    case SHARD_LABEL:
        draw_classes(o, key);
        break;
    case SHARD_IID:
    case SHARD_FILE:
        break;
    }
    return (struct bidder){key, rng_key(o->seed, RNG_SHARD, key, DRAW_COST)};
}

/* Returns the cost of a sample for a member. The member with the lowest cost gets the sample. */
static double bid(const struct bidder *b, const struct shard_owners *o, uint32_t sample)
{
    uint64_t at = o->split.fall == SHARD_FILE ? file_of(o->set, sample) : sample;
    uint64_t bits = rng_at(b->stream, at) >> 12;
    if (o->split.fall == SHARD_LABEL)
        return (double)bits + o->by_class[o->set->labels[sample]];
    if (o->split.fall != SHARD_DIRICHLET)
        return (double)bits;
    double u = ((double)bits + 0.5) * 0x1p-52;
    return -dirichlet_log(u) * o->by_class[o->set->labels[sample]];
}

/* Makes the member `key` the owner of sample i if `cost` is lower than the cost of the present
 * owner. With equal costs the smaller key wins, so the order of the calls does not matter. */
static void take_if_cheaper(struct shard_owners *o, uint32_t i, double cost, uint64_t key)
{
    if (cost < o->cost[i] || (cost == o->cost[i] && key < o->owner[i])) {
        o->cost[i] = cost;
        o->owner[i] = key;
    }
}

/* Computes the costs of one member for the n samples in `list` (NULL: for all samples). Makes the
 * member the owner of each sample for which its cost is the lowest so far. */
static void claim(struct shard_owners *o, uint64_t key, const uint32_t *list, size_t n)
{
    struct bidder b = bidder_of(o, key);
    for (size_t i = 0; i < n; i++) {
        uint32_t sample = list != NULL ? list[i] : (uint32_t)i;
        take_if_cheaper(o, sample, bid(&b, o, sample), key);
    }
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool has_key(const uint64_t *keys, size_t n, uint64_t key)
{
    return n > 0 && bsearch(&key, keys, n, sizeof key, compare_keys) != NULL;
}

/* Returns keys[0..n) and `own`, sorted and without duplicates. NULL: no memory. The caller frees
 * the result. */
static uint64_t *sorted_keys(const uint64_t *keys, size_t n, uint64_t own, size_t *n_out)
{
    uint64_t *v = calloc(n + 1, sizeof *v);
    if (v == NULL)
        return NULL;
    if (n > 0)
        memcpy(v, keys, n * sizeof *v);
    v[n] = own;
    qsort(v, n + 1, sizeof *v, compare_keys);
    *n_out = 1;
    for (size_t i = 1; i <= n; i++)
        if (v[i] != v[*n_out - 1])
            v[(*n_out)++] = v[i];
    return v;
}

/* Removes the owners that are not in keys[], the live members. Lists the samples that thereby lose
 * their owner in scratch[], and returns the number of these samples. */
static size_t orphan(struct shard_owners *o, const uint64_t *keys, size_t n_keys)
{
    size_t n = 0;
    for (size_t i = 0; i < o->set->n; i++)
        if (o->holds != MEMBERS || !has_key(keys, n_keys, o->owner[i])) {
            o->cost[i] = INFINITY;
            o->owner[i] = UINT64_MAX;
            o->scratch[n++] = (uint32_t)i;
        }
    return n;
}

/* Replaces the previous members by the live members keys[]. Members that stay compete only for
 * samples that have lost their owner. New members compete for all samples. */
static void change_members(struct shard_owners *o, const uint64_t *keys, size_t n)
{
    size_t n_before = o->holds == MEMBERS ? o->n_keys : 0, kept = 0;
    for (size_t i = 0; i < n_before; i++)
        kept += has_key(keys, n, o->keys[i]);
    size_t n_orphans = kept < n_before || n_before == 0 ? orphan(o, keys, n) : 0;
    for (size_t i = 0; i < n; i++) {
        bool old = has_key(o->keys, n_before, keys[i]);
        if (!old)
            claim(o, keys[i], NULL, o->set->n);
        else if (n_orphans > 0)
            claim(o, keys[i], o->scratch, n_orphans);
    }
}

/* If the members are the same as before, shard_owners_members() returns after one comparison. This
 * matters in a simulator, where every peer calls it. */
int shard_owners_members(struct shard_owners *o, const uint64_t *keys, size_t n, uint64_t own)
{
    size_t n_keys;
    uint64_t *sorted = sorted_keys(keys, n, own, &n_keys);
    if (sorted == NULL)
        return -ENOMEM;
    if (o->holds == MEMBERS && o->n_keys == n_keys
        && memcmp(o->keys, sorted, n_keys * sizeof *sorted) == 0) {
        free(sorted);
        return 0;
    }
    change_members(o, sorted, n_keys);
    free(o->keys);
    o->keys = sorted;
    o->n_keys = n_keys;
    o->holds = MEMBERS;
    return 0;
}

/* ---- Reading the assignment ---- */

VEC_CLONES static size_t count_equal(const uint64_t *v, size_t n, uint64_t x)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += v[i] == x;
    return (size_t)count;
}

size_t shard_owners_count(const struct shard_owners *o, uint64_t owner)
{
    assert(o->holds != NOTHING);
    return count_equal(o->owner, o->set->n, owner);
}

void shard_owners_samples(const struct shard_owners *o, uint64_t owner, uint32_t *sample)
{
    assert(o->holds != NOTHING);
    for (size_t i = 0; i < o->set->n; i++)
        if (o->owner[i] == owner)
            *sample++ = (uint32_t)i;
}
