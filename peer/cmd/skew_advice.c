/* peer/cmd/skew_advice.c -- decides whether to advise settings for peers whose shards (parts of the
 * data) differ. The figures in the text are those of peer/docs/skewed-data.md. */
#include "peer/cmd/skew_advice.h"

#include "peer/sgd/sgd_keys.h"

#include <stdio.h>
#include <string.h>

enum {
    FEW_PEERS = 4,   /* With so few peers or fewer, all graphs are nearly complete. */
    MANY_PEERS = 32, /* With more peers, a complete graph sends too many bytes. */
    SETTINGS = 3     /* Maximum number of run keys that a set of settings changes. */
};

/* Run keys and their advised values. An unused entry is NULL. */
struct advice
{
    const char *key[SETTINGS], *value[SETTINGS];
};

/* `cheap` sends the fewest bytes, and `accurate` is the most accurate. */
static const struct advice cheap = {{"topology", "momentum-kind"}, {"base:1", "qg"}};
static const struct advice accurate = {{"mixer", "topology", "compress"},
                                       {"average", "complete", "topk:0.08+qsgd:4"}};

/* Returns whether the user gave none of the keys, and the run description stays valid with the
 * advised values. */
static bool is_possible(const struct run_flags *flags, const struct advice *a)
{
    char error[RUN_ERROR_MAX];
    struct run_flags better = *flags;
    struct run run;
    for (size_t i = 0; i < SETTINGS && a->key[i] != NULL; i++)
        if (run_flags_value(flags, a->key[i])[0] != '\0'
            || run_flags_set(&better, a->key[i], a->value[i], error) != 0)
            return false;
    return run_from_flags(&run, &better, error) == 0;
}

void cmd_skew_advice(const struct options *o, const char *shard, uint32_t n,
                     const struct run_flags *flags, const struct run *run)
{
    const char *split = sgd_values(run)->skew;
    bool own = strcmp(shard, "own") == 0;
    char cause[RUN_SPEC_MAX + 32];
    if ((!own && strcmp(split, "iid") == 0) || (n > 0 && n <= FEW_PEERS)
        || !is_possible(flags, &cheap))
        return;
    snprintf(cause, sizeof cause, "%s%s", own ? "--shard own" : "--partition ", own ? "" : split);
    bool complete = n <= MANY_PEERS && is_possible(flags, &accurate);
    (void)cmd_fail(o, CMD_OK,
                   "note: %s (%s): if the peers have different classes, try --topology base:1 "
                   "--momentum-kind qg%s. In a test with 16 peers this reached 66 to 70 %%%s, and "
                   "the defaults 41 to 43 %% (see peer/docs/skewed-data.md)",
                   own ? "the data of the peers may differ" : "the data of the peers differ", cause,
                   complete ? ", or, for at most 32 peers, --mixer average --topology complete "
                              "--compress topk:0.08+qsgd:4"
                            : "",
                   complete ? " and 74 to 82 %" : "");
}
