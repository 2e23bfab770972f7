/* peer/cmd/skew_advice.c -- decides whether to advise settings for peers whose shards (parts of the
 * data) differ, and reports what --momentum-kind auto chose. The figures in the text are those of
 * peer/docs/skewed-data.md. */
#include "peer/cmd/skew_advice.h"

#include "nn/train/round_momentum.h"
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

static bool has_auto_momentum(const struct run_flags *flags)
{
    return strcmp(run_flags_value(flags, "momentum-kind"), "auto") == 0;
}

/* Returns whether the user gave a value for the key. --momentum-kind auto is no value, because the
 * advice may replace it. */
static bool is_given(const struct run_flags *flags, const char *key)
{
    bool leaves_choice = strcmp(key, "momentum-kind") == 0 && has_auto_momentum(flags);
    return run_flags_value(flags, key)[0] != '\0' && !leaves_choice;
}

/* Returns whether the user gave none of the keys, and the run description stays valid with the
 * advised values. */
static bool is_possible(const struct run_flags *flags, const struct advice *a)
{
    char error[RUN_ERROR_MAX];
    struct run_flags better = *flags;
    struct run run;
    for (size_t i = 0; i < SETTINGS && a->key[i] != NULL; i++)
        if (is_given(flags, a->key[i])
            || run_flags_set(&better, a->key[i], a->value[i], error) != 0)
            return false;
    return run_from_flags(&run, &better, error) == 0;
}

/* Reports the kind of momentum that --momentum-kind auto chose, and why. `cause`: the flag due to
 * which the shards may differ, "" if they are a random split. */
static void tell_momentum(const struct options *o, const struct run *run, const char *cause)
{
    static const char start[] =
        "note: --momentum-kind auto: if this peer starts the run, the run uses";
    char why[RUN_ERROR_MAX];
    if (cause[0] == '\0')
        (void)cmd_fail(o, CMD_OK, "%s local, because the shards are a random split", start);
    else if (sgd_check_auto_qg(run, why) == 0)
        (void)cmd_fail(o, CMD_OK, "%s qg, because the data of the peers may differ (%s)", start,
                       cause);
    else
        (void)cmd_fail(o, CMD_OK, "%s local, although the data of the peers may differ (%s). %s",
                       start, cause, why);
}

void cmd_skew_advice(const struct options *o, const char *shard, uint32_t n,
                     const struct run_flags *flags, const struct run *run)
{
    bool local = momentum_kind_all[sgd_values(run)->momentum_kind] == &momentum_local;
    const char *split = sgd_values(run)->skew;
    bool own = strcmp(shard, "own") == 0, differ = own || strcmp(split, "iid") != 0;
    bool uses_qg = has_auto_momentum(flags) && !local;
    char cause[RUN_SPEC_MAX + 32] = "";
    if (differ)
        snprintf(cause, sizeof cause, "%s%s", own ? "--shard own" : "--partition ",
                 own ? "" : split);
    if (has_auto_momentum(flags))
        tell_momentum(o, run, cause);
    if (!differ || (n > 0 && n <= FEW_PEERS) || (has_auto_momentum(flags) && local)
        || !is_possible(flags, &cheap))
        return;
    bool complete = n <= MANY_PEERS && is_possible(flags, &accurate);
    (void)cmd_fail(o, CMD_OK,
                   "note: %s (%s): if the peers have different classes, try --topology base:1%s%s. "
                   "In a test with 16 peers this reached 66 to 70 %%%s, and %s "
                   "(see peer/docs/skewed-data.md)",
                   own ? "the data of the peers may differ" : "the data of the peers differ", cause,
                   uses_qg ? "" : " --momentum-kind qg",
                   complete ? ", or, for at most 32 peers, --mixer average --topology complete "
                              "--compress topk:0.08+qsgd:4"
                            : "",
                   complete ? " (with --mixer average 74 to 82 %)" : "",
                   uses_qg ? "the default ring with qg 53 to 58 %" : "the defaults 41 to 43 %");
}
