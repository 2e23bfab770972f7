/* topology/base.c -- the family base:K: rounds after which any number of peers hold their exact
 * mean.
 *
 * Source: the Base-(k+1) graph of Takezawa, Sato, Bao, Niwa and Yamada, "Beyond Exponential Graph:
 * Communication-Efficient Topologies for Decentralized Learning via Finite-time Convergence"
 * (2023). A pass is a sequence of rounds that is repeated during the run. In a round each peer has
 * at most K neighbours. A pass has at most 2 log n / log (K+1) + 2 rounds. Each element of the
 * product of its mixing matrices is 1/n, so a pass averages exactly. There are three methods to
 * build a pass:
 *
 * 1. Hyper-hypercube (algorithm 1 of the paper), for n = f_1 f_2 ... f_L with all factors at most
 * K + 1. Peer numbers are written with L digits, where digit l is in 0..f_l - 1. In round l, peers
 * that differ only in digit l average with weight 1 / f_l.
 *
 * 2. Simple base (algorithm 2). n is written in base K + 1: n = sum of a_l (K+1)^p_l with
 * descending p_l and 1 <= a_l <= K. For digit l of this number there is a block of peers, which has
 * a_l parts of (K+1)^p_l peers each:
 *
 *   block 1 [ part | part | ... ]   block 2 [ part | ... ]   ...   block L
 *   (i)   Each block averages by its own hyper-hypercube, repeatedly, until the first block is
 *         done.
 *   (ii)  In one round for each l = 1 ... L-1, every peer after block l exchanges with one peer
 *         of each part of block l. No peer of block l has two partners. The weight is
 *         |part| / (peers of blocks l ... L). Then each part of block l, and the peers after it,
 *         have the mean of blocks l ... L.
 *   (iii) Each block except the last averages inside each of its parts, until the first block is
 *         done.
 *
 * 3. Base (algorithm 3), for n = p q, where all prime factors of p are at most K + 1, and no prime
 * factor of q is. First each of p groups of q peers averages by method 2. Then, for each i, the
 * i-th peers of all p groups average by method 1.
 *
 * The shorter pass of methods 2 and 3 is used. With K = 1 and n = 2^m the result is
 * one-peer-exponential (matching.c).
 */
#include "topology/family.h"

#include <errno.h>
#include <stdio.h>

/* Largest number of digits of a 32-bit number in any base. A 32-bit number also has at most this
 * many prime factors. */
enum { DIGITS_MAX = 32 };

/* A set of n peers, whose numbers are equally spaced: first, first + stride, first + 2 * stride,
 * ... */
struct set
{
    uint32_t first, stride, n;
};

/* A block of peers, which stands for one digit of n in base K + 1 (method 2 at the top of this
 * file). The block has `a` parts of `part` peers each and begins at peer `first`. */
struct block
{
    uint32_t first, a, part;
};

/* ---- Factors of the number of peers ---- */

/* Writes n as a product of `len` factors f[i], each at most `most`, in descending order. Returns
 * false if this is impossible. */
static bool find_factors(uint32_t n, uint32_t most, uint32_t len, uint32_t *f)
{
    if (len <= 1) {
        f[0] = n;
        return n <= most;
    }
    for (uint32_t d = most < n ? most : n; d >= 2; d--) {
        /* If the largest of the `len` remaining factors is d, their product is at most d^len. If
         * d^len is less than n, neither d nor any smaller number can be the largest factor. */
        double greatest = 1;
        for (uint32_t i = 0; i < len && greatest < n; i++)
            greatest *= d;
        if (greatest < n)
            return false;
        f[0] = d;
        if (n % d == 0 && find_factors(n / d, d, len - 1, f + 1))
            return true;
    }
    return false;
}

/* Writes n as a product of as few factors as possible, each at most `most`. All prime factors of n
 * must be at most `most`. Returns the number of factors. */
static uint32_t factors(uint32_t n, uint32_t most, uint32_t f[DIGITS_MAX])
{
    uint32_t len = n > 1;
    while (n > 1 && len < DIGITS_MAX && !find_factors(n, most, len, f))
        len++;
    return len;
}

/* Returns the largest divisor of n whose prime factors are all at most `most`. */
static uint32_t smooth_part(uint32_t n, uint32_t most)
{
    uint32_t left = n;
    for (uint32_t f = 2; f <= most && f <= left; f++)
        while (left % f == 0)
            left /= f;
    return n / left;
}

/* Writes n in base k + 1 as blocks, one for each digit that is not 0, the highest digit first.
 * Returns the number of blocks. */
static uint32_t blocks_of(uint32_t n, uint32_t k, struct block block[DIGITS_MAX])
{
    uint32_t len = 0, first = 0;
    uint64_t part = 1;
    while (part * (k + 1) <= n)
        part *= k + 1;
    for (uint32_t left = n; left > 0; part /= k + 1) {
        uint32_t a = (uint32_t)(left / part);
        if (a == 0)
            continue;
        block[len++] = (struct block){.first = first, .a = a, .part = (uint32_t)part};
        first += a * (uint32_t)part;
        left -= a * (uint32_t)part;
    }
    return len;
}

/* ---- Adding rounds ---- */

/* cube_rounds() returns the number of rounds of a hyper-hypercube of n peers (method 1 at the top
 * of this file), simple_rounds() the number of rounds of a simple base (method 2). */
static uint32_t cube_rounds(uint32_t n, uint32_t k)
{
    uint32_t f[DIGITS_MAX];
    return factors(n, k + 1, f);
}

static uint32_t simple_rounds(uint32_t n, uint32_t k)
{
    struct block b[DIGITS_MAX] = {{0}};
    uint32_t len = blocks_of(n, k, b);
    uint32_t all = cube_rounds(b[0].a * b[0].part, k);
    return len == 1 ? all : all + 1 + cube_rounds(b[0].part, k);
}

/* Adds one round of a hyper-hypercube of the peers in `s`. In this round, two peers exchange with
 * the weight 1/f if their indices in `s` differ only in one digit. That digit has the base f and
 * the place value `worth`. Returns 0 or -ENOMEM. */
static int average_digit(struct topology_turns *t, struct set s, uint32_t round, uint32_t f,
                         uint32_t worth)
{
    for (uint32_t i = 0; i < s.n; i++)
        for (uint32_t up = 1; i / worth % f + up < f; up++) {
            struct round_schedule_edge e = {.round = round,
                                            .a = s.first + i * s.stride,
                                            .b = s.first + (i + up * worth) * s.stride,
                                            .over = 1,
                                            .under = f};
            if (topology_turns_add(t, e) != 0)
                return -ENOMEM;
        }
    return 0;
}

/* Adds the hyper-hypercube (method 1 at the top of this file) of the peers in `s`. Its rounds are
 * repeated until they fill the rounds [begin, end). Returns 0 or -ENOMEM. */
static int add_cube(struct topology_turns *t, struct set s, uint32_t k, uint32_t begin,
                    uint32_t end)
{
    uint32_t f[DIGITS_MAX], len = factors(s.n, k + 1, f), worth = 1;
    int err = 0;
    for (uint32_t round = begin; len > 0 && round < end && err == 0; round++) {
        uint32_t l = (round - begin) % len;
        worth = l == 0 ? 1 : worth * f[l - 1];
        err = average_digit(t, s, round, f[l], worth);
    }
    return err;
}

/* Adds the edges of one round, step (ii) of method 2 at the top of this file. Each of the `behind`
 * peers after block b exchanges with one peer of each part of block b. Returns 0 or -ENOMEM. */
static int add_meeting(struct topology_turns *t, const struct block *b, uint32_t behind,
                       uint32_t round)
{
    uint32_t size = b->a * b->part;
    for (uint32_t i = 0; i < behind; i++)
        for (uint32_t part = 0; part < b->a; part++) {
            struct round_schedule_edge e = {.round = round,
                                            .a = b->first + part * b->part + i,
                                            .b = b->first + size + i,
                                            .over = b->part,
                                            .under = size + behind};
            if (topology_turns_add(t, e) != 0)
                return -ENOMEM;
        }
    return 0;
}

/* Adds the simple base (method 2 at the top of this file) of the n peers from peer `first` on, in
 * the rounds [0, simple_rounds(n, k)). Returns 0 or -ENOMEM. */
static int add_simple(struct topology_turns *t, uint32_t first, uint32_t n, uint32_t k)
{
    struct block b[DIGITS_MAX] = {{0}};
    uint32_t len = blocks_of(n, k, b), end = simple_rounds(n, k);
    /* The round in which the peers after block 1 exchange with the peers of block 1 (step (ii) of
     * method 2 at the top of this file). Before this round, each block averages by itself. */
    uint32_t met = cube_rounds(b[0].a * b[0].part, k);
    uint32_t behind = n;
    int err = 0;
    for (uint32_t l = 0; l < len && err == 0; l++) {
        uint32_t size = b[l].a * b[l].part;
        b[l].first += first;
        behind -= size;
        err = add_cube(t, (struct set){b[l].first, 1, size}, k, 0, met);
        if (err == 0 && behind > 0)
            err = add_meeting(t, &b[l], behind, met + l);
        for (uint32_t part = 0; part < b[l].a && behind > 0 && err == 0; part++)
            err = add_cube(t, (struct set){b[l].first + part * b[l].part, 1, b[l].part}, k,
                           met + l + 1, end);
    }
    return err;
}

/* ---- Functions of the family ---- */

static int base_rounds(struct topology_turns *t, uint32_t *n_rounds, const char *arg, uint32_t n,
                       uint64_t seed)
{
    (void)seed;
    uint32_t k = 0;
    if (!topology_number(&arg, &k))
        return -EINVAL;
    k = k < n - 1 ? k : n - 1;
    uint32_t groups = smooth_part(n, k + 1), q = n / groups;
    uint32_t simple = simple_rounds(n, k), inside = simple_rounds(q, k);
    uint32_t base = inside + cube_rounds(groups, k);
    *n_rounds = simple < base ? simple : base;
    if ((uint64_t)n * k > UINT32_MAX / *n_rounds)
        /* The topology would have too many edges: the sum of all degrees must fit into the 32 bits
         * of graph.first. */
        return -EINVAL;
    if (simple < base)
        return add_simple(t, 0, n, k);
    int err = 0;
    for (uint32_t g = 0; g < groups && err == 0; g++)
        err = add_simple(t, g * q, q, k);
    for (uint32_t i = 0; i < q && err == 0; i++)
        err = add_cube(t, (struct set){i, q, groups}, k, inside, base);
    return err;
}

static int base_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    static const struct topology_one one = {"base", 1, TOPOLOGY_NUMBER_MAX,
                                            "K neighbours a round, 1 or more, as in base:1"};
    return topology_one_number(&one, arg, out, cap, error);
}

static bool base_exact(uint32_t n)
{
    return n >= 2;
}

const struct topology topology_base = {
    .name = "base",
    .help = "base:K -- at most K neighbours per round, other neighbours in the next round; after "
            "a pass of several rounds all peers hold the exact mean",
    .canonical = base_canonical,
    .rounds = base_rounds,
    .exact = base_exact,
};
