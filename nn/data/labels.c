/* nn/data/labels.c -- records and checks labels, and converts them to classes.
 *
 * While the scheme is open (not determined yet), labels may be whole numbers or names. The first
 * label decides which of the two the following labels must be, and labels_settle() derives the
 * scheme. The list of names is always sorted, so classes do not depend on the order of the rows.
 */
#include "nn/data/labels.h"

#include "nn/data/quote.h"
#include "nn/math/number.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAMES_SHOWN = 96, /* Size of the list of label names in a message, in bytes with the NUL. */
    LABEL_MAX = DATA_CLASSES_MAX /* Largest label that is a whole number. The smallest is -1. */
};

struct labels
{
    enum labels_scheme scheme;
    /* Number of classes. Not used while the scheme is open (not determined yet). */
    uint32_t n_classes;
    /* With LABELS_NAMES: hash of the names. Not used while the scheme is open (not determined
     * yet). */
    uint64_t hash;
    char list[LABEL_SET_MAX]; /* With LABELS_LIST: text of the labels that are set in `seen`. */
    uint16_t place[LABEL_MAX + 1]; /* With LABELS_LIST: class of each label. */
    bool words;    /* True: while the scheme is not determined, the labels may be names. */
    bool complete; /* True: `name` has the names of all classes, so any other name is refused. */
    /* seen[v + 1], for v from -1 on: true if label v was found in the files or is in the list of
     * labels of the data's kind. */
    bool seen[LABEL_MAX + 2];
    uint32_t n_seen, n_names;
    char *name[DATA_CLASSES_MAX]; /* Names of the classes, in byte order. Owned. */
};

/* ---- Labels that are names ---- */

/* Returns the index of the first name that is not less than the name bytes[0..n). Sets *found to
 * true if the two names are equal. */
static uint32_t find_name(const struct labels *l, const uint8_t *bytes, size_t n, bool *found)
{
    uint32_t low = 0, high = l->n_names;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        size_t len = strlen(l->name[middle]);
        int order = memcmp(l->name[middle], bytes, len < n ? len : n);
        if (order < 0 || (order == 0 && len < n))
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < l->n_names && strlen(l->name[low]) == n && memcmp(l->name[low], bytes, n) == 0;
    return low;
}

/* Inserts a name at position `at` of the sorted list, which has at most DATA_CLASSES_MAX names. */
static int add_name(struct labels *l, uint32_t at, const uint8_t *bytes, size_t n)
{
    char *copy = malloc(n + 1);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    memmove(l->name + at + 1, l->name + at, (l->n_names - at) * sizeof *l->name);
    l->name[at] = copy;
    l->n_names++;
    return 0;
}

/* Returns whether the bytes may be a name. Control characters are not allowed: names are hashed
 * with newlines between them, and names are shown on terminals. */
static bool is_name(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] < 0x20 || bytes[i] == 0x7f)
            return false;
    return n >= 1 && n <= LABELS_NAME_MAX;
}

/* Records a name. A new name is added to the list, unless the list is complete (held-out files) or
 * full. Bytes that cannot be a name are refused first, because names are shown on terminals and
 * hashed. */
static int note_name(struct labels *l, const uint8_t *bytes, size_t n,
                     char expected[LABELS_WHY_MAX])
{
    bool found;
    uint32_t at = find_name(l, bytes, n, &found);
    if (found)
        return 0;
    if (l->complete)
        snprintf(expected, LABELS_WHY_MAX, "one of the %" PRIu32 " names of the training set",
                 l->n_names);
    else if (!is_name(bytes, n))
        snprintf(expected, LABELS_WHY_MAX, "a name of 1 to %d printable bytes", LABELS_NAME_MAX);
    else if (l->n_names == DATA_CLASSES_MAX)
        snprintf(expected, LABELS_WHY_MAX, "at most %d different labels", DATA_CLASSES_MAX);
    else
        return add_name(l, at, bytes, n);
    return -EINVAL;
}

char *labels_join(const struct labels *l)
{
    size_t n = 0, at = 0;
    for (uint32_t i = 0; i < l->n_names; i++)
        n += strlen(l->name[i]) + 1;
    char *joined = malloc(n + 1);
    for (uint32_t i = 0; i < l->n_names && joined != NULL; i++) {
        size_t len = strlen(l->name[i]);
        memcpy(joined + at, l->name[i], len);
        joined[at + len] = '\n';
        at += len + 1;
    }
    if (joined != NULL)
        joined[at > 0 ? at - 1 : 0] = '\0'; /* Removes the newline after the last name. */
    return joined;
}

/* Computes the hash that represents the names in a kind (text that describes the data): the hash of
 * all names, sorted, with newlines between. The names are sorted so that the kind does not depend
 * on the order of rows in a file. */
static int hash_names(const struct labels *l, uint64_t *hash)
{
    char *joined = labels_join(l);
    if (joined == NULL)
        return -ENOMEM;
    *hash = rng_hash(joined, strlen(joined));
    free(joined);
    return 0;
}

/* ---- Labels that are whole numbers ---- */

/* Parses a number without a fraction in any spelling: 1, +1, 1.0, 1.000e+00. Returns false for any
 * other text. *v gets the number, limited to the range from -LABEL_MAX - 1 to LABEL_MAX + 1. */
static bool is_whole(const uint8_t *p, size_t n, int *v)
{
    double d;
    *v = 0;
    if (!number_is(p, n, &d) || fabs(d - nearbyint(d)) > 0)
        return false;
    *v = (int)fmin(fmax(d, -LABEL_MAX - 1), LABEL_MAX + 1);
    return true;
}

/* Returns whether the whole number v, from -1 on, has been recorded. */
static bool has(const struct labels *l, int v)
{
    return l->seen[v + 1];
}

/* Records a label that is a whole number, before the scheme of the labels is determined. -1 is
 * accepted only together with +1. A set of -1, 0 and 1 is therefore refused, and not trained with
 * only two of its classes. */
static int note_whole(struct labels *l, int v, char expected[LABELS_WHY_MAX])
{
    bool pm = v == -1 || v == 1;
    bool others = l->n_seen > (uint32_t)has(l, -1) + (uint32_t)has(l, 1);
    if (v < -1 || v > LABEL_MAX)
        snprintf(expected, LABELS_WHY_MAX, "-1, or 0 to %d", LABEL_MAX);
    else if (v == -1 && others)
        snprintf(expected, LABELS_WHY_MAX,
                 "0 to %d as in the lines before: -1 is allowed only if all labels are -1 or +1",
                 LABEL_MAX);
    else if (!pm && has(l, -1))
        snprintf(expected, LABELS_WHY_MAX,
                 "-1 or +1: -1 is allowed only if all labels are -1 or +1");
    else {
        l->n_seen += !has(l, v);
        l->seen[v + 1] = true;
        return 0;
    }
    return -EINVAL;
}

/* Sets `place`, the class of each label, from `seen`, the labels that occur. */
static void take_list(struct labels *l)
{
    uint16_t n = 0;
    for (int v = 0; v <= LABEL_MAX; v++) {
        l->place[v] = n;
        n = (uint16_t)(n + has(l, v));
    }
}

/* Checks a label, if the kind of the data says which numbers are labels. Returns 0, or -EINVAL with
 * the expected labels. */
static int note_fixed(const struct labels *l, bool whole, int v, char expected[LABELS_WHY_MAX])
{
    if (l->scheme == LABELS_LIST) {
        snprintf(expected, LABELS_WHY_MAX, "one of the %" PRIu32 " labels %.100s%s", l->n_classes,
                 l->list, strlen(l->list) > 100 ? "..." : "");
        return whole && v >= 0 && v <= LABEL_MAX && has(l, v) ? 0 : -EINVAL;
    }
    int low = l->scheme == LABELS_ZERO ? 0 : l->scheme == LABELS_ONE ? 1 : -1;
    int high = l->scheme == LABELS_PM ? 1 : low + (int)l->n_classes - 1;
    if (whole && v >= low && v <= high && (l->scheme != LABELS_PM || v != 0))
        return 0;
    if (l->scheme == LABELS_PM)
        snprintf(expected, LABELS_WHY_MAX, "-1 or +1");
    else
        snprintf(expected, LABELS_WHY_MAX, "a whole number from %d to %d", low, high);
    return -EINVAL;
}

/* ---- Labels of any kind ---- */

/* A fixed scheme determines which labels are allowed. While the scheme is not determined, the first
 * label decides between numbers and names, and later labels of the other type are refused. */
int labels_note(struct labels *l, const uint8_t *bytes, size_t n, char expected[LABELS_WHY_MAX])
{
    if (l->scheme == LABELS_NAMES)
        return note_name(l, bytes, n, expected);
    int v;
    double real;
    bool whole = is_whole(bytes, n, &v);
    if (l->scheme != LABELS_OPEN)
        return note_fixed(l, whole, v, expected);
    if (whole && l->n_names == 0)
        return note_whole(l, v, expected);
    bool word = l->words && !number_is(bytes, n, &real);
    if (word && l->n_seen == 0)
        return note_name(l, bytes, n, expected);
    snprintf(expected, LABELS_WHY_MAX, "%s%s",
             l->n_names > 0               ? "a name"
             : l->words && l->n_seen == 0 ? "a whole number or a name"
                                          : "a whole number",
             l->n_names > 0 || (word && l->n_seen > 0) ? " as in the lines before" : "");
    return -EINVAL;
}

/* Derives the scheme of the labels (numbers from 0, numbers from 1, names, ...) and the number of
 * classes from the labels that were recorded. */
static int settle_open(struct labels *l, char why[LABELS_WHY_MAX])
{
    int high = LABEL_MAX;
    while (high > 0 && !has(l, high))
        high--;
    if (l->n_seen + l->n_names < 2) {
        snprintf(why, LABELS_WHY_MAX, "found one class, expected at least 2");
        return -EINVAL;
    }
    l->scheme = l->n_names > 0 ? LABELS_NAMES
                : has(l, -1)   ? LABELS_PM
                : has(l, 0)    ? LABELS_ZERO
                               : LABELS_ONE;
    l->n_classes = l->n_names > 0           ? l->n_names
                   : l->scheme == LABELS_PM ? 2
                                            : (uint32_t)high + has(l, 0);
    /* With the schemes ZERO and ONE (labels from 0, labels from 1), every whole number up to the
     * largest label is a class. If some of these numbers are no label of any row, the scheme LIST
     * is used instead, which lists the labels that occur. If the list is too long for the
     * description of the data (kind.h), ZERO or ONE is kept. */
    if ((l->scheme == LABELS_ZERO || l->scheme == LABELS_ONE) && l->n_seen < l->n_classes) {
        struct label_set set;
        memcpy(set.has, l->seen + 1, sizeof set.has);
        if (label_set_print(&set, l->list)) {
            l->scheme = LABELS_LIST;
            l->n_classes = l->n_seen;
            take_list(l);
        }
    }
    if (l->n_classes > DATA_CLASSES_MAX) {
        snprintf(why, LABELS_WHY_MAX, "found labels 0 to %d, expected at most %d classes", high,
                 DATA_CLASSES_MAX);
        return -EINVAL;
    }
    return l->scheme == LABELS_NAMES ? hash_names(l, &l->hash) : 0;
}

/* Checks that the names that were found have the hash that the kind of the data (nn/data/kind.h)
 * requires. */
static int settle_names(struct labels *l, char why[LABELS_WHY_MAX])
{
    uint64_t hash;
    int err = hash_names(l, &hash);
    if (err < 0 || (hash == l->hash && l->n_names == l->n_classes))
        return err;
    char list[NAMES_SHOWN] = "";
    uint32_t n_shown = 0;
    for (size_t at = 0; n_shown < l->n_names; n_shown++) {
        struct quote q = quote_string(l->name[n_shown]);
        if (at + strlen(q.text) + 2 >= sizeof list)
            break;
        at +=
            (size_t)snprintf(list + at, sizeof list - at, "%s%s", n_shown > 0 ? ", " : "", q.text);
    }
    snprintf(why, LABELS_WHY_MAX,
             "found %" PRIu32 " label name%s (%s%s), expected exactly the %" PRIu32
             " names that the run started with: every file must have all of them (the run stores "
             "only their hash)",
             l->n_names, number_plural(l->n_names), list, n_shown < l->n_names ? ", ..." : "",
             l->n_classes);
    return -EINVAL;
}

/* Stores the scheme of the labels (numbers from 0, names, ...) and the number of classes in *k. If
 * the caller gave the complete list of names, nothing has to be derived. */
int labels_settle(struct labels *l, struct kind_rows *k, char why[LABELS_WHY_MAX])
{
    int err = 0;
    if (l->scheme == LABELS_OPEN)
        err = settle_open(l, why);
    else if (l->scheme == LABELS_NAMES && !l->complete)
        err = settle_names(l, why);
    if (err < 0)
        return err;
    l->complete = true;
    k->scheme = l->scheme;
    k->n_classes = l->n_classes;
    k->hash = l->hash;
    memset(k->list, 0, sizeof k->list);
    if (l->scheme == LABELS_LIST)
        memcpy(k->list, l->list, sizeof k->list);
    return 0;
}

/* labels_note() must have recorded the label. An unknown label is therefore a bug of the calling
 * reader, which the assertion reports. */
uint16_t labels_class(const struct labels *l, const uint8_t *bytes, size_t n)
{
    int v = 0;
    bool found = true;
    if (l->scheme == LABELS_NAMES)
        v = (int)find_name(l, bytes, n, &found);
    else
        found = is_whole(bytes, n, &v);
    if (l->scheme == LABELS_PM)
        v = v > 0;
    else if (l->scheme == LABELS_ONE)
        v--;
    else if (l->scheme == LABELS_LIST)
        v = l->place[v];
    assert(found && l->scheme != LABELS_OPEN && v >= 0 && v < (int)l->n_classes);
    return (uint16_t)v;
}

/* The list of names is copied, so each set can free its own list. */
struct labels *labels_open(const struct kind_rows *k, const struct labels *names, bool words)
{
    struct labels *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->words = words;
    if (k == NULL || !k->fixed)
        return l;
    l->scheme = k->scheme;
    l->n_classes = k->n_classes;
    l->hash = k->hash;
    if (k->scheme == LABELS_LIST) {
        struct label_set set;
        uint32_t n = label_set_parse(&set, k->list, strlen(k->list));
        assert(n == k->n_classes);
        memcpy(l->list, k->list, sizeof l->list);
        memcpy(l->seen + 1, set.has, sizeof set.has);
        take_list(l);
    }
    if (k->scheme != LABELS_NAMES || names == NULL)
        return l;
    assert(names->complete && names->hash == k->hash && names->n_names == k->n_classes);
    l->complete = true;
    for (uint32_t i = 0; i < names->n_names; i++)
        if (add_name(l, i, (const uint8_t *)names->name[i], strlen(names->name[i])) < 0) {
            labels_close(l);
            return NULL;
        }
    return l;
}

static bool is_counted(enum labels_scheme s)
{
    return s == LABELS_ZERO || s == LABELS_ONE || s == LABELS_LIST;
}

/* Returns the label of a class. Only for the schemes ZERO, ONE and LIST, in which labels are
 * numbers. */
static uint32_t label_of(const struct kind_rows *k, uint32_t class)
{
    return k->scheme == LABELS_LIST ? label_set_label(k->list, class)
                                    : class + (k->scheme == LABELS_ONE);
}

void labels_more(struct labels *l)
{
    if (!is_counted(l->scheme))
        return;
    uint32_t first = l->scheme == LABELS_ONE;
    for (uint32_t v = 0; l->scheme != LABELS_LIST && v < l->n_classes; v++)
        l->seen[v + first + 1] = true;
    l->n_seen = l->n_classes;
    l->scheme = LABELS_OPEN;
    l->words = false;
}

void labels_move(const struct kind_rows *from, const struct kind_rows *to, uint16_t *labels,
                 size_t n)
{
    assert(is_counted(from->scheme) && is_counted(to->scheme));
    uint16_t place[DATA_CLASSES_MAX], to_class = 0;
    for (uint32_t class = 0; class < from->n_classes; class ++) {
        while (to_class + 1u < to->n_classes && label_of(to, to_class) < label_of(from, class))
            to_class++;
        place[class] = to_class;
    }
    for (size_t i = 0; i < n; i++)
        labels[i] = place[labels[i]];
}

/* The text may come from an untrusted peer, which can choose names freely and compute their hash.
 * Therefore each name is checked as strictly as a name in a file. */
struct labels *labels_split(const struct kind_rows *k, const char *text)
{
    struct labels *l = k->fixed && k->scheme == LABELS_NAMES ? labels_open(k, NULL, true) : NULL;
    bool good = l != NULL;
    uint64_t hash = 0;
    for (const char *p = text; good && *p != '\0';) {
        size_t n = strcspn(p, "\n");
        const uint8_t *name = (const uint8_t *)p;
        bool found = false;
        uint32_t at = find_name(l, name, n, &found);
        good = is_name(name, n) && !found && at == l->n_names && at < k->n_classes
               && add_name(l, at, name, n) == 0;
        p += n + (p[n] == '\n');
    }
    good = good && l->n_names == k->n_classes && hash_names(l, &hash) == 0 && hash == k->hash;
    if (good) {
        l->complete = true;
        return l;
    }
    labels_close(l);
    return NULL;
}

/* labels_close() does nothing if `l` is NULL. */
void labels_close(struct labels *l)
{
    for (uint32_t i = 0; l != NULL && i < l->n_names; i++)
        free(l->name[i]);
    free(l);
}

const char *labels_text(const struct kind_rows *k, const struct labels *names, uint16_t class,
                        char out[8])
{
    if (k->scheme == LABELS_NAMES) {
        assert(names != NULL && class < names->n_names);
        return names->name[class];
    }
    if (k->scheme == LABELS_LIST) {
        snprintf(out, 8, "%u", (unsigned)label_set_label(k->list, class));
        return out;
    }
    if (k->scheme == LABELS_PM)
        return class > 0 ? "+1" : "-1";
    snprintf(out, 8, "%u", (unsigned)class + (k->scheme == LABELS_ONE));
    return out;
}
