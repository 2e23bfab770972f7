/* topology/trees.c -- the families tree:K and trees (two binary trees in one graph).
 *
 * On the left is the graph tree:2 of 7 peers. On the right are the two trees of 8 peers that form
 * the graph `trees`, which has the edges of both.
 *
 *   tree:2 of 7        0              trees of 8       0             7
 *                    1   2            (edges of        4             3
 *                   3 4 5 6            both)         2   6         5   1
 *                                                   1 3 5 7       6 4 2 0
 */
#include "topology/family.h"

#include <errno.h>
#include <stdio.h>

/* ---- tree:K: the parent of peer i is peer (i - 1) / K. ---- */

static int tree_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    static const struct topology_one one = {"tree", 2, TOPOLOGY_NUMBER_MAX,
                                            "K children, 2 or more, as in tree:2"};
    return topology_one_number(&one, arg != NULL ? arg : "2", out, cap, error);
}

static int tree_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)seed;
    uint32_t k = 0;
    if (!topology_number(&arg, &k))
        return -EINVAL;
    int err = 0;
    for (uint32_t i = 1; i < n && err == 0; i++)
        err = topology_edges_add(e, (i - 1) / k, i);
    return err;
}

const struct topology topology_tree = {
    .name = "tree",
    .help = "tree[:K] -- each peer has one parent and up to K children (default 2)",
    .canonical = tree_canonical,
    .build = tree_build,
};

/* ---- trees: the double binary tree of Sanders, Speck and Traeff 2009 ("Two-tree algorithms for
 * full bandwidth broadcast, reduction and scan"). NCCL reduces on this pair of trees, and RelaySum
 * (Vogels et al. 2021) relays on it. The graph of this family has the edges of both trees.
 *
 * The first tree is numbered in-order: if b is the lowest set bit of i, the children of peer i are
 * i - b/2 and i + b/2. Odd numbers are leaves, and 0 is the root. The second tree is the first one
 * with peer i renumbered as n - 1 - i (n even) or i - 1 (n odd). The leaves of the second tree are
 * inner nodes of the first, except 0. ---- */

/* Returns the parent of peer i > 0 in the first of the two trees, for n peers. If the parent in a
 * tree of unlimited size is n or more, no such peer exists, and its next ancestor below n is
 * returned. */
static uint32_t above(uint32_t i, uint32_t n)
{
    uint32_t bit = i & (~i + 1), left = i - bit;
    uint64_t up = (uint64_t)left | 2 * (uint64_t)bit;
    return up < n ? (uint32_t)up : left;
}

/* Returns the peer of the second tree that is in the place of peer i of the first tree. Both trees
 * have the same shape. */
static uint32_t second(uint32_t i, uint32_t n)
{
    return n % 2 == 0 ? n - 1 - i : (i + 1) % n;
}

static int trees_canonical(const char *arg, char *out, size_t cap, char error[TOPOLOGY_ERROR_MAX])
{
    (void)cap;
    return topology_no_argument("trees", arg, out, error);
}

static int trees_build(struct topology_edges *e, const char *arg, uint32_t n, uint64_t seed)
{
    (void)arg, (void)seed;
    int err = 0;
    for (uint32_t i = 1; i < n && err == 0; i++) {
        uint32_t up = above(i, n);
        err = topology_edges_add(e, up, i);
        if (err == 0)
            err = topology_edges_add(e, second(up, n), second(i, n));
    }
    return err;
}

const struct topology topology_trees = {
    .name = "trees",
    .help = "trees -- two binary trees: inner peers of one are leaves of the other",
    .canonical = trees_canonical,
    .build = trees_build,
};
