/* topology/matching.c -- topologies in which each peer has at most one partner per round.
 *
 * These topologies are one-peer-exponential, rotation and matching. In each exchange both partners
 * take the mean of their models. A round is therefore a matching (a set of disjoint pairs) with
 * weight 1/2.
 */
#include "nn/math/rng.h"
#include "topology/family.h"

#include <errno.h>
#include <stdlib.h>

/* Adds an edge between peers a and b in the given round, in which both take the mean of their
 * models. */
static int add_pair(struct topology_turns *t, uint32_t round, uint32_t a, uint32_t b)
{
    struct round_schedule_edge e = {
        .round = round, .a = a < b ? a : b, .b = a < b ? b : a, .over = 1, .under = 2};
    return topology_turns_add(t, e);
}

/* ---- one-peer-exponential: in round k the partners are peers i and i xor 2^k.
 *
 * In SGP (Assran et al. 2019) and in the one-peer exponential graph of Ying et al. (2021), peer i
 * sends to i + 2^k and receives from i - 2^k. Here exchanges are mutual, so half of the peers step
 * up by 2^k and the other half step down. All of these graphs have log2(n) rounds, and for n = 2^m
 * a pass averages exactly.
 *
 * If n is not a power of two, none of them is exact. In this topology a peer is idle in a round in
 * which its partner would have a number of n or more. The union of all rounds is the incomplete
 * hypercube, which is connected. (base:1 is exact for every n.) ---- */

static int exponential_canonical(const char *arg, char *out, size_t cap,
                                 char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return topology_no_argument("one-peer-exponential", arg, out, error);
}

/* Adds the rounds of the topology one-peer-exponential, about log2(n), with peer order[i] in the
 * place of peer i. The rounds get the numbers from *n_rounds on. *n_rounds is increased by the
 * number of added rounds. */
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

/* Adds the rounds of one-peer-exponential once for each of `orders` orders of the peers. The first
 * order is 0, 1, 2, ..., and the others are random. Stops before there would be more than
 * ROUND_SCHEDULE_ROUNDS_MAX rounds. */
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
    uint32_t most = ROUND_SCHEDULE_ROUNDS_MAX / *n_rounds;
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
    .help = "one-peer-exponential -- in round k, peer i exchanges with peer i xor 2^k; 2^m peers "
            "hold the exact mean after m rounds",
    .canonical = exponential_canonical,
    .rounds = exponential_rounds,
    .exact = exponential_exact,
    .pairs = true,
};

/* ---- rotation:R: the rounds of one-peer-exponential in R orders of the peers, one after the
 * other. A pass contains as many orders as ROUND_SCHEDULE_ROUNDS_MAX allows (2 for 1,024 peers).
 *
 * GossipGraD (Daily et al. 2018) renumbers the peers at random after each log2(n) steps, so that
 * all peers exchange directly in the course of a run. In hearsay each partner needs a stored
 * replica, so the number of partners must be limited. Therefore R orders are drawn once from the
 * seed. The first order is that of the peer numbers; its graph is connected for any n. ---- */

/* Smallest R in "rotation:R". R is the number of orders of the peers before the rounds repeat. */
enum { R_LEAST = 2 };

static int rotation_canonical(const char *arg, char *out, size_t cap,
                              char error[TOPOLOGY_ERROR_MAX])
{
    static const struct topology_one one = {
        "rotation", R_LEAST, ROUND_SCHEDULE_ROUNDS_MAX,
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
    .help = "rotation[:R] -- one-peer-exponential, repeated in R orders of the peers (default 4)",
    .canonical = rotation_canonical,
    .rounds = rotation_rounds,
    .exact = exponential_exact,
    .pairs = true,
};

/* ---- matching:K: a pass of K rounds, each of which is a random matching of all peers. If n is
 * odd, one peer is idle in each round, drawn at random for each matching.
 *
 * Each partner needs a stored replica, so the number of partners must be limited. Therefore the K
 * matchings are drawn once from the seed and then repeated. The first matching consists of every
 * second edge of a random cycle through all peers, the second matching of the other edges of the
 * cycle. The union of all rounds is therefore connected. Each matching by itself is uniformly
 * distributed among all matchings. ---- */

/* Smallest K in "matching:K". K is the number of rounds after which the matchings repeat. */
enum { K_LEAST = 2 };

static int matching_canonical(const char *arg, char *out, size_t cap,
                              char error[TOPOLOGY_ERROR_MAX])
{
    static const struct topology_one one = {
        "matching", K_LEAST, ROUND_SCHEDULE_ROUNDS_MAX,
        "K rounds before the pairs repeat, 2 to 24, as in matching:8"};
    return topology_one_number(&one, arg != NULL ? arg : "8", out, cap, error);
}

/* Adds a matching: pairs order[from] with order[from + 1], order[from + 2] with order[from + 3],
 * and so on, wrapping around at the end. `even` is the length of order[]. If n is odd, order[] also
 * contains the number n, and the peer that is paired with n has no partner. */
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

/* With two peers only one pair is possible, so every matching is exact: both peers then hold the
 * mean of their models. */
static bool matching_exact(uint32_t n)
{
    return n <= 2;
}

const struct topology topology_matching = {
    .name = "matching",
    .help = "matching[:K] -- random pairs in each round; repeats after K rounds (default 8)",
    .canonical = matching_canonical,
    .rounds = matching_rounds,
    .exact = matching_exact,
    .pairs = true,
};
