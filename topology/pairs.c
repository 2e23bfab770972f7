/* topology/pairs.c -- by round one partner each: one-peer-exponential, its rotation, and random matchings.
 *
 * An exchange is mutual: both ends move half the way, so that the rounds of a pass are matchings,
 * of weight 1/2.
 */
#include "nn/math/rng.h"
#include "topology/family.h"

#include <errno.h>
#include <stdlib.h>

static int add_pair(struct topology_turns *t, uint32_t round, uint32_t a, uint32_t b)
{
    struct rota_edge e = {
        .round = round, .a = a < b ? a : b, .b = a < b ? b : a, .over = 1, .under = 2};
    return topology_turns_add(t, e);
}

/* ---- one-peer-exponential: in round k peers i and i xor 2^k.
 *
 * In SGP (Assran et al. 2019) and in the one-peer exponential graph of Ying et al. (2021) peer i
 * sends to i + 2^k and receives from i - 2^k. Here whom one sends to is whom one hears, so that the
 * step of 2^k goes up for one half of the peers and down for the other. Both have log2(n) rounds,
 * and for n = 2^m the product of a pass is 1/n in every place in both.
 *
 * Where n is no power of two neither is exact. Here who has no partner in a round, as nobody has that
 * number, waits; the partners of all rounds are the incomplete hypercube, which is connected. (A pass that
 * is exact for every n: base:1.) ---- */

static int exponential_canonical(const char *arg, char *out, size_t cap,
                                 char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return topology_no_argument("one-peer-exponential", arg, out, error);
}

/* From round *n_rounds on, log2(n) rounds of peers at the places of `order`. */
static int add_exponential(struct topology_turns *t, uint32_t *n_rounds, const uint32_t *order,
                           uint32_t n)
{
    int err = 0;
    for (uint64_t bit = 1; bit < n; bit *= 2, ++*n_rounds)
        for (uint64_t i = 0; i + bit < n && err == 0; i++)
            if ((i & bit) == 0)
                err = add_pair(t, *n_rounds, order[i], order[i + bit]);
    return err;
}

/* `orders` times log2(n) rounds: the first as peers are numbered, the others each in a random order. */
static int add_orders(struct topology_turns *t, uint32_t *n_rounds, uint32_t orders, uint32_t n,
                      uint64_t seed)
{
    uint32_t *order = malloc(n * sizeof *order);
    if (order == NULL)
        return -ENOMEM;
    struct rng rng = rng_stream(rng_key(seed, RNG_TOPOLOGY, n, rng_hash("rotation", 8)));
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    *n_rounds = 0;
    int err = add_exponential(t, n_rounds, order, n);
    uint32_t most = ROTA_ROUNDS_MAX / *n_rounds;
    for (uint32_t k = 1; k < orders && k < most && err == 0; k++) {
        rng_shuffle(&rng, order, n);
        err = add_exponential(t, n_rounds, order, n);
    }
    free(order);
    return err;
}

static int exponential_rounds(struct topology_turns *t, uint32_t *n_rounds, const char *arg,
                              uint32_t n, uint64_t seed)
{
    (void)arg;
    return add_orders(t, n_rounds, 1, n, seed);
}

static bool exponential_exact(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

const struct topology topology_one_peer = {
    .name = "one-peer-exponential",
    .help =
        "one-peer-exponential -- in round k peer i with i xor 2^k: a pass of 2^m peers is exact",
    .canonical = exponential_canonical,
    .rounds = exponential_rounds,
    .exact = exponential_exact,
    .pairs = true,
};

/* ---- rotation:R: the same log2(n) rounds in R orders of the peers, one after the other; as many as a
 * pass has room for (of 1,024 peers 2).
 *
 * GossipGraD (Daily et al. 2018) has its peers renumbered at random after each log2(n) steps, so that all
 * hear each other directly in the course of a run. As partners are kept, with a replica each, there cannot
 * be new orders for ever: R are drawn once, from the seed. The first is that of the peers' numbers, whose
 * graph is connected for any n. ---- */

enum { R_LEAST = 2 };

static int rotation_canonical(const char *arg, char *out, size_t cap,
                              char error[TOPOLOGY_ERROR_MAX])
{
    static const struct topology_one one = {
        "rotation", R_LEAST, ROTA_ROUNDS_MAX,
        "R orders of the peers, 2 to 24, each of log2(n) rounds, as in rotation:4"};
    return topology_one_number(&one, arg != NULL ? arg : "4", out, cap, error);
}

static int rotation_rounds(struct topology_turns *t, uint32_t *n_rounds, const char *arg,
                           uint32_t n, uint64_t seed)
{
    uint32_t orders;
    return topology_number(&arg, &orders) ? add_orders(t, n_rounds, orders, n, seed) : -EINVAL;
}

const struct topology topology_rotation = {
    .name = "rotation",
    .help =
        "rotation[:R] -- one-peer-exponential in R (4) orders of the peers, one after the other",
    .canonical = rotation_canonical,
    .rounds = rotation_rounds,
    .exact = exponential_exact,
    .pairs = true,
};

/* ---- matching:K: a pass of K rounds, each of them a random matching of all peers; of an odd number
 * one, another each time, waits.
 *
 * Partners are kept for the whole run, with a replica each, so that there cannot be new ones for
 * ever: the K matchings are drawn once, from the seed, and gone through again and again. The first
 * two are every second edge of one random cycle through all peers, and the others, which makes the
 * graph of all rounds connected; each by itself is uniform among all matchings. ---- */

enum { K_LEAST = 2 };

static int matching_canonical(const char *arg, char *out, size_t cap,
                              char error[TOPOLOGY_ERROR_MAX])
{
    static const struct topology_one one = {
        "matching", K_LEAST, ROTA_ROUNDS_MAX,
        "K rounds of a pass, 2 to 24, each with another partner, as in matching:8"};
    return topology_one_number(&one, arg != NULL ? arg : "8", out, cap, error);
}

/* Pair order[from] with the next, and so on, around the end. Who is paired with number n, whom an odd
 * n is made even by, waits. */
static int add_matching(struct topology_turns *t, uint32_t round, const uint32_t *order,
                        uint32_t even, uint32_t from, uint32_t n)
{
    int err = 0;
    for (uint32_t i = from; i < even && err == 0; i += 2) {
        uint32_t a = order[i], b = order[(i + 1) % even];
        if (a < n && b < n)
            err = add_pair(t, round, a, b);
    }
    return err;
}

static int matching_rounds(struct topology_turns *t, uint32_t *n_rounds, const char *arg,
                           uint32_t n, uint64_t seed)
{
    uint32_t even = n + n % 2;
    if (!topology_number(&arg, n_rounds))
        return -EINVAL;
    uint32_t *order = malloc(even * sizeof *order);
    if (order == NULL)
        return -ENOMEM;
    struct rng rng = rng_stream(rng_key(seed, RNG_TOPOLOGY, n, rng_hash("matching", 8)));
    for (uint32_t i = 0; i < even; i++)
        order[i] = i;
    int err = 0;
    for (uint32_t k = 0; k < *n_rounds && err == 0; k++) {
        if (k != 1)
            rng_shuffle(&rng, order, even);
        err = add_matching(t, k, order, even, k == 1, n);
    }
    free(order);
    return err;
}

/* Two peers have one partner. */
static bool matching_exact(uint32_t n)
{
    return n <= 2;
}

const struct topology topology_matching = {
    .name = "matching",
    .help = "matching[:K] -- in each round random pairs: a pass has K (8) matchings",
    .canonical = matching_canonical,
    .rounds = matching_rounds,
    .exact = matching_exact,
    .pairs = true,
};
