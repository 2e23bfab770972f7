/* peer/cmd/column_statistics.c -- connects the node with nn/data: the node exchanges column
 * statistics between peers, and nn/data computes and combines them. */
#include "peer/cmd/column_statistics.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static_assert((int)COLUMN_STATISTICS_BYTES_MAX <= (int)WIRE_MOMENTS_MAX,
              "column statistics must fit into one message");

bool cmd_column_statistics_pooled(const struct cmd_training *t, const struct run *run)
{
    return t->has_data && t->data.moments.rows > 0 && t->shard_spec.mode == SHARD_OWN
           && run->min_peers > 1;
}

/* Checks the column statistics of another peer. Returns a text that says what is wrong with them.
 * Returns NULL if they are valid, or if there is no memory to check them; using them then fails
 * later. This is a callback of the node. */
static const char *check(void *self, struct bytes theirs)
{
    struct column_statistics m;
    const char *wrong = NULL;
    (void)self;
    if (column_statistics_parse(&m, theirs.p, theirs.n, &wrong) == 0)
        column_statistics_close(&m);
    return wrong;
}

/* Returns true if the statistics of another peer do not fit the statistics of this peer, for
 * example because the tables have different columns. `why` is then set to the reason.
 * `theirs_lead`: true if the other peer's table is the reference. This is a callback of the
 * node. */
static bool differ(void *self, struct bytes theirs, bool theirs_lead, char why[NODE_POOL_WHY])
{
    const struct cmd_column_statistics *c = self;
    struct column_statistics m;
    char in_what[COLUMN_STATISTICS_WHY_MAX];
    const char *wrong;
    if (column_statistics_parse(&m, theirs.p, theirs.n, &wrong) < 0)
        return false;
    bool differs = theirs_lead ? column_statistics_differ(&c->ours, &m, in_what)
                               : column_statistics_differ(&m, &c->ours, in_what);
    if (differs && theirs_lead)
        snprintf(why, NODE_POOL_WHY, "--data %.60s: %.300s", c->data_spec, in_what);
    else if (differs)
        snprintf(why, NODE_POOL_WHY, "%.360s", in_what);
    column_statistics_close(&m);
    return differs;
}

/* Returns the number of label names, above 32 bits of their hash. This is a callback of the node. */
static uint64_t labels(void *self, struct bytes statistics)
{
    struct column_statistics m;
    const char *wrong;
    uint64_t value = 0;
    (void)self;
    if (column_statistics_parse(&m, statistics.p, statistics.n, &wrong) < 0)
        return 0;
    if (m.scheme == LABELS_NAMES)
        value = (uint64_t)m.n_classes << 32 | (m.names & UINT32_MAX);
    column_statistics_close(&m);
    return value;
}

static int statistics_refuse(int err, const char *why, char error[RUN_ERROR_MAX])
{
    snprintf(error, RUN_ERROR_MAX, "--data: %.280s",
             err == -ENOMEM ? "out of memory for the column statistics" : why);
    return err;
}

/* Copies the run `ours` to `*run`, but with the data kind `kind`. Returns 0, or a negative errno
 * with a message in `error`. */
static int set_kind(const struct run *ours, const char *kind, struct run *run,
                    char error[RUN_ERROR_MAX])
{
    struct run_flags *flags = calloc(1, sizeof *flags);
    if (flags == NULL)
        return statistics_refuse(-ENOMEM, NULL, error);
    flags->trainer = &sgd_keys;
    int err = run_flags_set(flags, "data", kind, error);
    if (err == 0)
        err = run_with_flags(run, ours, flags, error);
    free(flags);
    return err;
}

/* Combines the column statistics of all members, with the columns in the order of this peer's
 * table. Sets `*run` to this peer's run with the data kind that results. Returns 0, or a negative
 * errno with a message in `error`. This is a callback of the node. */
static int pool(void *self, const struct node_part *part, size_t n, struct run *run,
                char error[RUN_ERROR_MAX])
{
    const struct cmd_column_statistics *c = self;
    struct column_statistics *m = calloc(n, sizeof *m), all = {0};
    const struct column_statistics **of = calloc(n, sizeof(const struct column_statistics *));
    char kind[DATA_KIND_MAX], why[COLUMN_STATISTICS_WHY_MAX];
    const char *wrong = NULL;
    size_t n_parsed = 0;
    int err = m != NULL && of != NULL ? 0 : -ENOMEM;
    for (; n_parsed < n && err == 0; n_parsed++) {
        err = column_statistics_parse(&m[n_parsed], part[n_parsed].moments.p,
                                      part[n_parsed].moments.n, &wrong);
        if (err == 0)
            err = column_statistics_reorder(&m[n_parsed], &c->ours.schema);
        of[n_parsed] = &m[n_parsed];
    }
    if (err == 0)
        err = column_statistics_pool(&all, of, n, c->node->run.tolerate);
    if (err == 0) {
        column_statistics_settle(&all);
        err = column_statistics_kind(&all, kind, why);
        wrong = why;
    }
    if (err < 0)
        (void)statistics_refuse(err, wrong, error);
    else
        err = set_kind(&c->node->run, kind, run, error);
    column_statistics_close(&all);
    for (size_t i = 0; i < n_parsed; i++)
        column_statistics_close(&m[i]);
    free(m);
    free(of);
    return err;
}

void cmd_column_statistics_open(struct cmd_column_statistics *c, struct cmd_training *t,
                                struct node_config *node, bool founds)
{
    c->data_spec = t->data_spec;
    c->node = node;
    c->ours = t->data.moments;
    t->data.moments = (struct column_statistics){0};
    size_t n = c->ours.rows > 0 ? column_statistics_print(&c->ours, c->bytes, sizeof c->bytes) : 0;
    c->pool = (struct node_pool){.self = c,
                                 .own = {c->bytes, n},
                                 .founds = founds && n > 0,
                                 .check = check,
                                 .differ = differ,
                                 .labels = labels,
                                 .pool = pool};
    node->pool = &c->pool;
}

void cmd_column_statistics_close(struct cmd_column_statistics *c)
{
    column_statistics_close(&c->ours);
}
