/* nn/data/column_statistics.c -- pools the column statistics of several peers, compares the
 * statistics of two peers, and writes the kind (text that describes the data) for pooled
 * statistics. */
#include "nn/data/column_statistics.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int column_statistics_open(struct column_statistics *m, const struct kind_rows *k,
                           const struct columns *columns)
{
    *m = (struct column_statistics){
        .scheme = k->scheme, .n_classes = k->n_classes, .names = k->hash};
    memcpy(m->list, k->list, sizeof m->list);
    if (columns_copy(&m->columns, columns) < 0)
        return -ENOMEM;
    m->of = calloc(columns->n > 0 ? columns->n : 1, sizeof *m->of);
    if (m->of == NULL)
        column_statistics_close(m);
    return m->of != NULL ? 0 : -ENOMEM;
}

void column_statistics_close(struct column_statistics *m)
{
    schema_close(&m->schema);
    columns_close(&m->columns);
    free(m->of);
    *m = (struct column_statistics){0};
}

/* ---- Computing means and scales ---- */

static double width_of(const struct column_moments *r)
{
    return r->high > r->low ? r->high - r->low : 0;
}

double column_statistics_apart(const struct column_moments *of, size_t n, size_t *low, size_t *high)
{
    *low = *high = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        if (!(width_of(&of[i]) > 0))
            continue;
        *low = *low == SIZE_MAX || width_of(&of[i]) < width_of(&of[*low]) ? i : *low;
        *high = *high == SIZE_MAX || width_of(&of[i]) > width_of(&of[*high]) ? i : *high;
    }
    return *low == SIZE_MAX ? 1 : width_of(&of[*high]) / width_of(&of[*low]);
}

void column_statistics_settle(struct column_statistics *m)
{
    size_t low, high;
    m->columns.scale = m->wanted;
    if (m->wanted == COLUMNS_SCALE_AUTO)
        m->columns.scale =
            column_statistics_apart(m->of, m->columns.n, &low, &high) > COLUMN_STATISTICS_WILD
                ? COLUMNS_SCALE_MAX
                : COLUMNS_SCALE_NONE;
    m->columns.settled = true;
    columns_settle(&m->columns, m->of);
}

int column_statistics_kind(const struct column_statistics *m, char kind[DATA_KIND_MAX],
                           char why[COLUMN_STATISTICS_WHY_MAX])
{
    const struct columns *c = &m->columns;
    char text[COLUMNS_TEXT_MAX];
    struct kind_rows k = {.fixed = true,
                          .features = (uint32_t)columns_inputs(c),
                          .n_classes = m->n_classes,
                          .scheme = m->scheme,
                          .hash = m->names,
                          .divide = 1,
                          .named = m->schema.named,
                          .names_hash = m->schema.hash,
                          .tags = m->schema.tags,
                          .n_tags = strlen(m->schema.tags)};
    memcpy(k.list, m->list, sizeof k.list);
    bool plain =
        c->scale == COLUMNS_SCALE_NONE && !columns_have_categories(c) && columns_gaps(c) == 0;
    size_t n = columns_print(c, text, sizeof text);
    if (!plain && n >= sizeof text) {
        snprintf(
            why, COLUMN_STATISTICS_WHY_MAX,
            "the statistics of all columns take %zu characters, and the run description has room "
            "for %d: use fewer categories or columns, or scale=none",
            n, COLUMNS_TEXT_MAX - 1);
        return -EINVAL;
    }
    k.scale = plain ? COLUMNS_SCALE_AUTO : c->scale;
    k.columns = plain ? NULL : text;
    bool fits = kind_rows_print(&k, m->sparse ? "libsvm" : "csv", kind);
    assert(fits);
    return 0;
}

/* ---- Comparing the columns of two data sets ---- */

static const char *const form_name[] = {
    [COLUMN_OPEN] = "gaps", [COLUMN_NUMBERS] = "numbers", [COLUMN_CATEGORIES] = "categories"};

/* Returns whether labels of this scheme are whole numbers. Only such labels can be pooled: one peer
 * may lack some of the numbers, and the union of all peers' numbers is still well defined. */
static bool is_counted(enum labels_scheme s)
{
    return s == LABELS_ZERO || s == LABELS_ONE || s == LABELS_LIST;
}

static const char *const scheme_name[] = {
    [LABELS_OPEN] = "none",     [LABELS_PM] = "-1 and +1", [LABELS_ZERO] = "0, 1, ...",
    [LABELS_ONE] = "1, 2, ...", [LABELS_NAMES] = "names",  [LABELS_LIST] = "whole numbers"};

static bool labels_differ(const struct column_statistics *a, const struct column_statistics *b,
                          char why[COLUMN_STATISTICS_WHY_MAX])
{
    if (is_counted(a->scheme) && is_counted(b->scheme))
        return false;
    if (a->scheme != b->scheme) {
        snprintf(why, COLUMN_STATISTICS_WHY_MAX, "labels: found %s, expected %s",
                 scheme_name[a->scheme], scheme_name[b->scheme]);
        return true;
    }
    if (a->scheme == LABELS_NAMES && (a->names != b->names || a->n_classes != b->n_classes)) {
        snprintf(why, COLUMN_STATISTICS_WHY_MAX,
                 "labels: found %" PRIu32 " label names, expected %" PRIu32
                 "%s: every file must have all label names of the run",
                 a->n_classes, b->n_classes,
                 a->n_classes == b->n_classes
                     ? ", of which at least one is spelt differently (members send only a hash of "
                       "their label names, so compare the files)"
                     : "");
        return true;
    }
    return false;
}

/* Returns true, with the reason in `why`, if the names of `found` do not include the columns of
 * `expected`. Otherwise place[i] is the column of `found` that matches column i of `expected`. */
static bool names_differ(const struct column_statistics *found,
                         const struct column_statistics *expected,
                         uint32_t place[COLUMN_STATISTICS_COLUMNS_MAX],
                         char why[COLUMN_STATISTICS_WHY_MAX])
{
    const struct schema *a = &found->schema, *b = &expected->schema;
    char list[SCHEMA_WHY_MAX];
    for (uint32_t i = 0; i < COLUMN_STATISTICS_COLUMNS_MAX; i++)
        place[i] = i;
    if (!a->named || !b->named || a->hash == b->hash)
        return false;
    bool known = a->names.n > 0 && b->names.n > 0;
    if (known && b->n <= COLUMN_STATISTICS_COLUMNS_MAX && schema_order(a, b, place, list))
        return false;
    if (known)
        snprintf(why, COLUMN_STATISTICS_WHY_MAX, "%s", list);
    else
        snprintf(why, COLUMN_STATISTICS_WHY_MAX,
                 "found different column names or another order than expected (too many names to "
                 "list here)");
    return true;
}

bool column_statistics_differ(const struct column_statistics *found,
                              const struct column_statistics *expected,
                              char why[COLUMN_STATISTICS_WHY_MAX])
{
    const struct columns *a = &found->columns, *b = &expected->columns;
    if (found->sparse != expected->sparse) {
        snprintf(why, COLUMN_STATISTICS_WHY_MAX, "found %s, expected %s",
                 found->sparse ? "libsvm" : "csv", expected->sparse ? "libsvm" : "csv");
        return true;
    }
    uint32_t place[COLUMN_STATISTICS_COLUMNS_MAX];
    if (names_differ(found, expected, place, why))
        return true;
    bool named = found->schema.named && expected->schema.named;
    if (!found->sparse && !named && (a->n != b->n || a->label != b->label)) {
        snprintf(why, COLUMN_STATISTICS_WHY_MAX,
                 "found %" PRIu32 " columns and the label in column %zu, expected %" PRIu32
                 " columns and the label in column %zu",
                 a->n + 1, a->label + 1, b->n + 1, b->label + 1);
        return true;
    }
    if (found->wanted != expected->wanted) {
        snprintf(why, COLUMN_STATISTICS_WHY_MAX, "found scale=%s, expected scale=%s",
                 columns_scale_name[found->wanted], columns_scale_name[expected->wanted]);
        return true;
    }
    for (size_t k = 0; k < b->n && place[k] < a->n; k++) {
        size_t i = place[k];
        enum column_form f = a->at[i].form, g = b->at[k].form;
        if (f == g || f == COLUMN_OPEN || g == COLUMN_OPEN)
            continue;
        char column[64];
        schema_column(&found->schema, i, column);
        if (found->schema.names.n == 0)
            snprintf(column, sizeof column, "column %zu",
                     i + 1 + (!found->sparse && i >= a->label));
        snprintf(why, COLUMN_STATISTICS_WHY_MAX, "%s: found %s, expected %s", column, form_name[f],
                 form_name[g]);
        return true;
    }
    return labels_differ(found, expected, why);
}

int column_statistics_reorder(struct column_statistics *m, const struct schema *to)
{
    char why[SCHEMA_WHY_MAX];
    uint32_t place[COLUMN_STATISTICS_COLUMNS_MAX], n = m->columns.n;
    struct schema copy;
    if (!to->named || !m->schema.named || m->schema.hash == to->hash) {
        if (!to->named)
            schema_close(&m->schema);
        return 0;
    }
    assert(n >= to->n && n <= COLUMN_STATISTICS_COLUMNS_MAX);
    bool same = schema_order(&m->schema, to, place, why);
    struct column *at = calloc(n, sizeof *at);
    struct column_moments *of = calloc(n, sizeof *of);
    int err = same && at != NULL && of != NULL ? schema_copy(&copy, to) : -ENOMEM;
    for (uint32_t i = 0; i < to->n && err == 0; i++) {
        at[i] = m->columns.at[place[i]];
        of[i] = m->of[place[i]];
        /* The list of categories belongs to the copy at[i] from now on, so m must not free it. */
        m->columns.at[place[i]].category = NULL;
    }
    if (err < 0) {
        free(at);
        free(of);
        return err;
    }
    for (uint32_t i = 0; i < n; i++)
        free(m->columns.at[i].category);
    free(m->columns.at);
    free(m->of);
    schema_close(&m->schema);
    m->columns.n = to->n;
    m->columns.at = at;
    m->of = of;
    m->schema = copy;
    return 0;
}

/* ---- Pooling the statistics of several members ---- */

/* The statistics that are pooled, one set of statistics per member. */
struct pool
{
    const struct column_statistics *const *of;
    size_t n;
    /* Number of members whose statistics may be false. Less than n, the number of all members. */
    uint32_t liars;
    double *value; /* Scratch memory for one number per member. */
};

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts the first n numbers in `value` (scratch memory), and returns the k-th smallest, counted
 * from 0. */
static double nth(struct pool *p, size_t n, size_t k)
{
    qsort(p->value, n, sizeof *p->value, compare);
    return p->value[k];
}

static double median(struct pool *p, size_t n)
{
    double upper = nth(p, n, n / 2);
    return n % 2 == 1 ? upper : (p->value[n / 2 - 1] + upper) / 2;
}

/* Returns the largest number v such that more than `liars` of the numbers in `value` are at least
 * v. `value` has one number for each member, and at most `liars` members report false numbers. At
 * least one truthful member therefore has v or more. */
static double largest(struct pool *p)
{
    return nth(p, p->n, p->n - 1 - p->liars);
}

/* Returns the largest number of rows with which one member counts in pooled statistics:
 * COLUMN_STATISTICS_WEIGHT times the median of the members' numbers of rows. With two members the
 * smaller number counts as the median, so neither member can raise the limit alone. */
static double most_rows(struct pool *p)
{
    for (size_t i = 0; i < p->n; i++)
        p->value[i] = (double)p->of[i]->rows;
    return COLUMN_STATISTICS_WEIGHT * nth(p, p->n, (p->n - 1) / 2);
}

static bool has_numbers(const struct column_statistics *m, size_t i)
{
    return i < m->columns.n && m->of[i].n > 0;
}

/* Adds the moments *b (count, mean, sum of squares, range) to the moments *a. The count of *b is
 * first multiplied by `weight`, in (0, 1]. */
static void join(struct column_moments *a, const struct column_moments *b, double weight)
{
    double nb = weight * b->n, n = a->n + nb, d = b->mean - a->mean;
    a->low = a->n > 0 ? fmin(a->low, b->low) : b->low;
    a->high = a->n > 0 ? fmax(a->high, b->high) : b->high;
    a->mean += d * (nb / n);
    a->m2 += weight * b->m2 + d * d * (a->n * nb / n);
    a->n = n;
}

static void pool_all(struct pool *p, size_t i, double most, struct column_moments *out)
{
    for (size_t k = 0; k < p->n; k++) {
        double rows = (double)p->of[k]->rows;
        if (has_numbers(p->of[k], i))
            join(out, &p->of[k]->of[i], rows > most ? most / rows : 1);
    }
}

/* Returns one statistic of one column of one member: 0 mean, 1 deviation, 2 minimum, 3 maximum. The
 * caller takes the median over the members. */
static double figure(const struct column_moments *m, int which)
{
    return which == 0 ? m->mean : which == 1 ? sqrt(m->m2 / m->n) : which == 2 ? m->low : m->high;
}

static void pool_medians(struct pool *p, size_t i, struct column_moments *out)
{
    double f[4] = {0};
    size_t n = 0;
    for (int which = 0; which < 4; which++) {
        n = 0;
        for (size_t k = 0; k < p->n; k++)
            if (has_numbers(p->of[k], i))
                p->value[n++] = figure(&p->of[k]->of[i], which);
        f[which] = n > 0 ? median(p, n) : 0;
    }
    *out = (struct column_moments){(double)n, f[0], f[1] * f[1] * (double)n, f[2], f[3]};
}

/* Collects the categories of column i that more than `liars` members report, where `liars` members
 * may report false values. At least one of the members that report such a category tells the truth.
 * Returns 0 or -ENOMEM. */
static int pool_categories(const struct pool *p, size_t i, uint32_t liars, struct column *out)
{
    size_t n_hashed = 0, most = 0;
    for (size_t k = 0; k < p->n; k++) {
        const struct column *c = &p->of[k]->columns.at[i];
        n_hashed += c->hashed;
        most += c->n_categories;
    }
    uint32_t *all = malloc((most > 0 ? most : 1) * sizeof *all);
    size_t at[2] = {0};
    if (all == NULL)
        return -ENOMEM;
    /* Each turn of the loop finds the next larger category in the members' lists, and counts the
     * members whose lists contain it. */
    for (uint64_t next = 0;; next++) {
        uint64_t least = UINT64_MAX;
        size_t n_have = 0;
        for (size_t k = 0; k < p->n; k++) {
            const struct column *c = &p->of[k]->columns.at[i];
            for (uint32_t j = 0; j < c->n_categories; j++) {
                if (c->category[j] < next || c->category[j] > least)
                    continue;
                n_have = c->category[j] < least ? 1 : n_have + 1;
                least = c->category[j];
            }
        }
        if (least == UINT64_MAX)
            break;
        if (n_have > liars)
            all[at[0]++] = (uint32_t)least;
        at[1]++;
        next = least;
    }
    out->hashed =
        n_hashed > liars || at[0] > COLUMNS_CATEGORIES_MAX || (at[1] == 0 && n_hashed > 0);
    out->n_categories = out->hashed ? 0 : (uint32_t)at[0];
    out->category = all;
    if (!out->hashed)
        return 0;
    free(all);
    out->category = NULL;
    return 0;
}

static int pool_column(struct pool *p, size_t i, double most, struct column *c,
                       struct column_moments *of)
{
    for (size_t k = 0; k < p->n; k++) {
        const struct columns *theirs = &p->of[k]->columns;
        if (i >= theirs->n)
            continue;
        c->n_gaps += theirs->at[i].n_gaps;
        c->form = c->form == COLUMN_OPEN ? theirs->at[i].form : c->form;
    }
    if (c->form == COLUMN_CATEGORIES) {
        int err = pool_categories(p, i, p->liars, c);
        /* If no category is reported by more than `liars` members (the number that may report false
         * values), the column would have no category. The categories of all members are used
         * instead. */
        if (err == 0 && !c->hashed && c->n_categories == 0) {
            free(c->category);
            err = pool_categories(p, i, 0, c);
        }
        return err;
    }
    if (p->liars == 0)
        pool_all(p, i, most, of);
    else
        pool_medians(p, i, of);
    return 0;
}

/* Sets *set to the labels of one member. The member's labels are whole numbers. */
static void labels_of(const struct column_statistics *m, struct label_set *set)
{
    *set = (struct label_set){0};
    if (m->scheme == LABELS_LIST)
        (void)label_set_parse(set, m->list, strlen(m->list));
    for (uint32_t v = 0; m->scheme != LABELS_LIST && v < m->n_classes; v++)
        set->has[v + (m->scheme == LABELS_ONE)] = true;
}

/* Stores the pooled labels, which are whole numbers. n: how many labels there are; high: the
 * largest label. Labels without gaps are stored as the range from 0 or 1 to `high`. Labels with
 * gaps are stored as a list, or as the range if the text of the list would be too long
 * (nn/data/kind.h). */
static void take_classes(struct column_statistics *out, const struct label_set *set, uint32_t n,
                         uint32_t high)
{
    out->scheme = set->has[0] ? LABELS_ZERO : LABELS_ONE;
    out->n_classes = high + set->has[0];
    memset(out->list, 0, sizeof out->list);
    if (n >= 2 && n < out->n_classes && label_set_print(set, out->list)) {
        out->scheme = LABELS_LIST;
        out->n_classes = n;
    } else {
        memset(out->list, 0, sizeof out->list);
    }
    if (out->n_classes > DATA_CLASSES_MAX)
        out->n_classes = DATA_CLASSES_MAX;
    /* A data set must have at least two classes. One class or none may be left if, for example,
     * enough members report label 1 but too few report label 0. */
    if (out->n_classes < 2)
        out->n_classes = 2;
}

/* Pools the labels of all members, which are whole numbers. At most `liars` members may report
 * false labels. The largest label of the result is the largest number that more than `liars`
 * members reach or exceed. Label 0 is used only if more than `liars` members have it. */
static void pool_classes(struct pool *p, struct column_statistics *out)
{
    struct label_set all = {0}, one;
    size_t n_zero = 0;
    uint32_t n = 0;
    if (!is_counted(out->scheme))
        return;
    for (size_t k = 0; k < p->n; k++) {
        labels_of(p->of[k], &one);
        n_zero += one.has[0];
        p->value[k] = 0;
        for (uint32_t v = 0; v <= LABEL_SET_LARGEST; v++) {
            all.has[v] |= one.has[v];
            p->value[k] = one.has[v] ? (double)v : p->value[k];
        }
    }
    uint32_t high = (uint32_t)largest(p);
    all.has[0] = n_zero > p->liars;
    for (uint32_t v = high + 1; v <= LABEL_SET_LARGEST; v++)
        all.has[v] = false;
    for (uint32_t v = 0; v <= high; v++)
        n += all.has[v];
    take_classes(out, &all, n, high);
}

static size_t pool_width(struct pool *p)
{
    for (size_t k = 0; k < p->n; k++)
        p->value[k] = (double)p->of[k]->columns.n;
    return (size_t)largest(p);
}

int column_statistics_pool(struct column_statistics *out, const struct column_statistics *const *of,
                           size_t n, uint32_t liars)
{
    struct pool p = {.of = of,
                     .n = n,
                     .liars = liars < n ? liars : (uint32_t)n - 1,
                     .value = malloc(n * sizeof *p.value)};
    struct columns columns;
    assert(n > 0);
    *out = (struct column_statistics){0};
    if (p.value == NULL)
        return -ENOMEM;
    int err = columns_open(&columns, pool_width(&p));
    if (err == 0) {
        const struct kind_rows k = {
            .scheme = of[0]->scheme, .n_classes = of[0]->n_classes, .hash = of[0]->names};
        columns.label = of[0]->columns.label;
        err = column_statistics_open(out, &k, &columns);
        columns_close(&columns);
    }
    for (size_t i = 0; i < n && err == 0 && !out->schema.named; i++)
        err = of[i]->schema.named ? schema_copy(&out->schema, &of[i]->schema) : 0;
    out->sparse = of[0]->sparse;
    out->wanted = of[0]->wanted;
    for (size_t i = 0; i < n; i++)
        out->rows += of[i]->rows;
    double most = most_rows(&p);
    for (size_t i = 0; i < out->columns.n && err == 0; i++)
        err = pool_column(&p, i, most, &out->columns.at[i], &out->of[i]);
    if (err == 0)
        pool_classes(&p, out);
    else
        column_statistics_close(out);
    free(p.value);
    return err;
}
