/* nn/data/schema.c -- stores and hashes the names of columns, and matches headers to them. */
#include "nn/data/schema.h"

#include "nn/data/quote.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    TAG_BITS = 6 * SCHEMA_TAG,
    NOT_THERE = SCHEMA_IGNORED + 1 /* Search result: the header has no matching column. */
};

/* ---- Lists of names. ---- */

int schema_names_open(struct schema_names *l, size_t n)
{
    *l = (struct schema_names){.cap = (uint32_t)n, .at = malloc((n > 0 ? n : 1) * sizeof *l->at)};
    if (l->at == NULL)
        l->cap = 0;
    return l->at != NULL ? 0 : -ENOMEM;
}

void schema_names_close(struct schema_names *l)
{
    free(l->at);
    free(l->text);
    *l = (struct schema_names){0};
}

const char *schema_name(const struct schema_names *l, size_t i)
{
    assert(i < l->n);
    return l->text + l->at[i];
}

/* Returns the length of the UTF-8 sequence at p (RFC 3629), or 0 if it is invalid. */
static size_t utf8_length(const uint8_t *p, size_t n)
{
    size_t length = *p < 0x80   ? 1
                    : *p < 0xc2 ? 0
                    : *p < 0xe0 ? 2
                    : *p < 0xf0 ? 3
                    : *p < 0xf5 ? 4
                                : 0;
    uint8_t low = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80;
    uint8_t high = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;
    if (length > n || (length > 1 && (p[1] < low || p[1] > high)))
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

static bool is_utf8(const uint8_t *p, size_t n)
{
    size_t length = 1;
    for (size_t i = 0; i < n && length > 0; i += length)
        length = utf8_length(p + i, n - i);
    return length > 0;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

int schema_names_add(struct schema_names *l, const uint8_t *name, size_t n)
{
    while (n > 0 && is_blank(name[n - 1]))
        n--;
    for (; n > 0 && is_blank(*name); name++)
        n--;
    if (n > 0 && memchr(name, '\0', n) != NULL)
        return -EINVAL;
    assert(l->n < l->cap);
    if (l->text_cap - l->n_text < 2 * n + 1) {
        size_t cap = 2 * (l->text_cap + n) + 64;
        char *grown = realloc(l->text, cap);
        if (grown == NULL)
            return -ENOMEM;
        l->text = grown;
        l->text_cap = cap;
    }
    bool utf8 = is_utf8(name, n);
    l->at[l->n++] = l->n_text;
    for (size_t i = 0; i < n; i++) {
        if (!utf8 && name[i] >= 0x80)
            l->text[l->n_text++] = (char)(0xc0 | name[i] >> 6);
        l->text[l->n_text++] = (char)(!utf8 && name[i] >= 0x80 ? 0x80 | (name[i] & 0x3f) : name[i]);
    }
    l->text[l->n_text++] = '\0';
    return 0;
}

static int add_text(struct schema_names *l, const char *name)
{
    return schema_names_add(l, (const uint8_t *)name, strlen(name));
}

/* ---- Look-up of names by their hash. ---- */

struct key
{
    uint64_t hash;
    size_t i;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static uint64_t hash_of(const char *name)
{
    return rng_hash(name, strlen(name));
}

/* Returns one key (hash and index) for each name, sorted by hash. The caller frees the keys. NULL:
 * no memory. */
static struct key *sort_names(const struct schema_names *l)
{
    struct key *key = malloc((l->n > 0 ? l->n : 1) * sizeof *key);
    for (size_t i = 0; key != NULL && i < l->n; i++)
        key[i] = (struct key){hash_of(schema_name(l, i)), i};
    if (key != NULL)
        qsort(key, l->n, sizeof *key, compare_keys);
    return key;
}

/* Returns the index of the first of the n sorted keys that has a hash of at least `hash`, or n. */
static size_t first_key(const struct key *key, size_t n, uint64_t hash)
{
    size_t low = 0;
    while (n > low) {
        size_t middle = low + (n - low) / 2;
        if (key[middle].hash < hash)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* Returns the column with this name, or NOT_THERE if there is none. */
static size_t find_name(const struct schema_names *l, const struct key *key, const char *name)
{
    uint64_t hash = hash_of(name);
    for (size_t k = first_key(key, l->n, hash); k < l->n && key[k].hash == hash; k++)
        if (strcmp(schema_name(l, key[k].i), name) == 0)
            return key[k].i;
    return NOT_THERE;
}

int schema_names_twice(const struct schema_names *l, bool *twice, size_t column[2])
{
    struct key *key = sort_names(l);
    *twice = false;
    if (key == NULL)
        return -ENOMEM;
    for (size_t k = 1; k < l->n && !*twice; k++) {
        *twice = key[k].hash == key[k - 1].hash
                 && strcmp(schema_name(l, key[k].i), schema_name(l, key[k - 1].i)) == 0;
        column[0] = key[k - 1].i;
        column[1] = key[k].i;
    }
    free(key);
    return 0;
}

/* ---- Tags: short hashes of names ---- */

static void put_tag(const char *name, char tag[SCHEMA_TAG])
{
    uint64_t h = hash_of(name) >> (64 - TAG_BITS);
    for (int k = 0; k < SCHEMA_TAG; k++)
        tag[k] = columns_base64[h >> (6 * (SCHEMA_TAG - 1 - k)) & 63];
}

/* Returns the smallest 64-bit number that begins with the bits of this tag. A tag is the first
 * TAG_BITS bits of the hash of a name. */
static uint64_t tag_hash(const char *tag)
{
    uint64_t h = 0;
    for (int k = 0; k < SCHEMA_TAG; k++)
        h = h << 6 | (uint64_t)(strchr(columns_base64, tag[k]) - columns_base64);
    return h << (64 - TAG_BITS);
}

/* Returns the only column whose name has this tag (short hash of a name). NOT_THERE: no column or
 * several columns have it. */
static size_t find_tag(const struct schema_names *l, const struct key *key, const char *tag)
{
    uint64_t least = tag_hash(tag), most = least | (UINT64_MAX >> TAG_BITS);
    size_t k = first_key(key, l->n, least);
    bool one = k < l->n && key[k].hash <= most && (k + 1 == l->n || key[k + 1].hash > most);
    return one ? key[k].i : NOT_THERE;
}

/* Computes the hash of all names, and the tag of each name. The schema gets no tags if two names
 * have the same tag, if there are too many names, or if the label has no name. */
static void settle(struct schema *s)
{
    const struct schema_names *l = &s->names;
    size_t end = s->n < l->n ? l->at[s->n] : l->n_text;
    s->named = true;
    s->hash = rng_hash(l->text, end);
    s->tags[0] = '\0';
    if (!s->has_label || (size_t)SCHEMA_TAG * l->n >= sizeof s->tags)
        return;
    for (size_t i = 0; i < l->n; i++) {
        put_tag(schema_name(l, i), s->tags + SCHEMA_TAG * i);
        for (size_t k = 0; k < i; k++)
            if (memcmp(s->tags + SCHEMA_TAG * k, s->tags + SCHEMA_TAG * i, SCHEMA_TAG) == 0) {
                s->tags[0] = '\0';
                return;
            }
    }
    s->tags[(size_t)SCHEMA_TAG * l->n] = '\0';
}

/* ---- Making and copying schemas ---- */

void schema_close(struct schema *s)
{
    schema_names_close(&s->names);
    *s = (struct schema){0};
}

int schema_copy(struct schema *to, const struct schema *from)
{
    const struct schema_names *l = &from->names;
    *to = *from;
    to->names = (struct schema_names){0};
    int err = l->n > 0 ? schema_names_open(&to->names, l->n) : 0;
    for (size_t i = 0; i < l->n && err == 0; i++)
        err = add_text(&to->names, schema_name(l, i));
    if (err < 0)
        schema_close(to);
    return err;
}

/* Sets the names of the schema: the names of the columns order[0..n) of a header, then the label's
 * name. `order` NULL: all columns except the label's, in order. `label`: the label's column, or
 * SIZE_MAX if the header has no label. */
static int take_names(struct schema *s, const struct schema_names *header, const size_t *order,
                      size_t n, size_t label)
{
    bool has_label = label != SIZE_MAX;
    struct schema_names l;
    int err = schema_names_open(&l, n + has_label);
    for (size_t i = 0, k = 0; k < n && err == 0; i++) {
        size_t column = order != NULL ? order[k] : i;
        if (order == NULL && i == label)
            continue;
        err = add_text(&l, schema_name(header, column));
        k++;
    }
    if (err == 0 && has_label)
        err = add_text(&l, schema_name(header, label));
    if (err < 0) {
        schema_names_close(&l);
        return err;
    }
    schema_names_close(&s->names);
    s->names = l;
    s->n = (uint32_t)n;
    s->has_label = has_label;
    return 0;
}

int schema_adopt(struct schema *s, const struct schema_names *header, size_t label)
{
    *s = (struct schema){0};
    int err = take_names(s, header, NULL, header->n - (label != SIZE_MAX), label);
    if (err == 0)
        settle(s);
    return err;
}

int schema_of_kind(struct schema *s, const struct kind_rows *k, const struct schema *known)
{
    *s = (struct schema){0};
    if (!k->named)
        return k->fixed || known == NULL ? 0 : schema_copy(s, known);
    if (known != NULL && known->named && known->hash == k->names_hash)
        return schema_copy(s, known);
    s->named = true;
    s->hash = k->names_hash;
    s->has_label = k->n_tags > 0;
    s->n = s->has_label ? (uint32_t)(k->n_tags / SCHEMA_TAG) - 1 : 0;
    snprintf(s->tags, sizeof s->tags, "%.*s", (int)k->n_tags, k->tags != NULL ? k->tags : "");
    return 0;
}

/* ---- Names of columns in messages ---- */

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t cap, const char *format,
                                                         ...)
{
    size_t n = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, cap - n, format, args);
    va_end(args);
}

void schema_names_list(const struct schema_names *l, const size_t *column, size_t n, char *text,
                       size_t cap)
{
    size_t begin = strlen(text);
    for (size_t i = 0; i < n; i++) {
        struct quote q = quote_string(schema_name(l, column != NULL ? column[i] : i));
        if (i > 0 && strlen(text) - begin + strlen(q.text) + 16 > SCHEMA_LIST_MAX) {
            append(text, cap, " and %zu more", n - i);
            return;
        }
        append(text, cap, "%s%s", i > 0 ? ", " : "", q.text);
    }
}

void schema_list(const struct schema *s, char text[SCHEMA_WHY_MAX])
{
    text[0] = '\0';
    if (s->names.n == 0) {
        snprintf(text, SCHEMA_WHY_MAX, "columns with unknown names");
        return;
    }
    schema_names_list(&s->names, NULL, s->n, text, SCHEMA_WHY_MAX);
    if (s->has_label)
        append(text, SCHEMA_WHY_MAX, " and the label %s",
               quote_string(schema_name(&s->names, s->n)).text);
}

void schema_column(const struct schema *s, size_t i, char text[64])
{
    if (i < s->names.n)
        snprintf(text, 64, "column %s", quote_string(schema_name(&s->names, i)).text);
    else
        snprintf(text, 64, "column %zu", i + 1);
}

/* ---- Matching a header to the schema ---- */

/* State of matching one header to a schema. */
struct match
{
    const struct schema *s;
    const struct schema_names *header;
    const struct key *key; /* The names of the header as keys, sorted by hash. */
    size_t *column;        /* Result: for each column of the schema, its column in the header. */
    char *why;
};

/* Returns the column of the header that matches column i of the schema. Columns are matched by
 * name, or, if the schema does not know the names, by tag (a short hash of the name). */
static size_t find(const struct match *m, size_t i)
{
    return m->s->names.n > 0 ? find_name(m->header, m->key, schema_name(&m->s->names, i))
                             : find_tag(m->header, m->key, m->s->tags + SCHEMA_TAG * i);
}

/* Returns the name in the header that is equal to `name` if case is ignored, or NULL. */
static const char *other_case(const struct schema_names *header, const char *name)
{
    for (size_t i = 0; i < header->n; i++)
        if (strcasecmp(schema_name(header, i), name) == 0)
            return schema_name(header, i);
    return NULL;
}

/* Describes the place of column i of the schema: between which columns of the header it belongs.
 * Used if the schema has only a hash of the column's name. */
static void append_place(const struct match *m, size_t i)
{
    size_t before = i > 0 ? find(m, i - 1) : NOT_THERE;
    size_t after = i + 1 < m->s->n ? find(m, i + 1) : NOT_THERE;
    if (before != NOT_THERE)
        append(m->why, SCHEMA_WHY_MAX, "after %s, ",
               quote_string(schema_name(m->header, before)).text);
    if (after != NOT_THERE)
        append(m->why, SCHEMA_WHY_MAX, "before %s, ",
               quote_string(schema_name(m->header, after)).text);
}

/* Lists the columns of the header that the run does not have. One of them may be the missing column
 * under another name. */
static void append_others(const struct match *m)
{
    const char *before = "; not in the run: ";
    for (size_t i = 0; i < m->header->n; i++) {
        bool used = false;
        for (size_t k = 0; k <= m->s->n && !used; k++)
            used = (k < m->s->n || m->s->has_label) && find(m, k) == i;
        if (used)
            continue;
        append(m->why, SCHEMA_WHY_MAX, "%s%s", before,
               quote_string(schema_name(m->header, i)).text);
        before = ", ";
    }
}

/* Writes the error message for a header that lacks column i of the schema. The message lists the
 * names of the header and of the schema. */
static int refuse_missing(const struct match *m, size_t i)
{
    const struct schema *s = m->s;
    char *why = m->why;
    why[0] = '\0';
    if (s->names.n > 0) {
        const char *name = schema_name(&s->names, i);
        const char *other = other_case(m->header, name);
        append(why, SCHEMA_WHY_MAX, "no %s %s%s; found ", i == s->n ? "label" : "column",
               quote_string(name).text, other != NULL ? " (case counts)" : "");
        schema_names_list(m->header, NULL, m->header->n, why, SCHEMA_WHY_MAX);
        append(why, SCHEMA_WHY_MAX, ", expected ");
        schema_names_list(&s->names, NULL, s->names.n, why, SCHEMA_WHY_MAX);
    } else {
        bool tagged = s->tags[0] != '\0';
        if (tagged && i < s->n) {
            append(why, SCHEMA_WHY_MAX, "no column %zu of the run (", i + 1);
            append_place(m, i);
            append(why, SCHEMA_WHY_MAX, "known only by a hash of its name)");
        } else if (tagged) {
            append(why, SCHEMA_WHY_MAX, "no label column of the run");
        }
        if (tagged)
            append_others(m);
        append(why, SCHEMA_WHY_MAX, tagged ? "; found " : "found ");
        schema_names_list(m->header, NULL, m->header->n, why, SCHEMA_WHY_MAX);
        if (!tagged)
            append(why, SCHEMA_WHY_MAX,
                   ", expected different names or another order (the run has only a hash of the "
                   "names)");
    }
    return -EINVAL;
}

/* Finds, by name or tag, the column of the header for each column of the schema. */
static int match_values(const struct match *m, size_t label)
{
    for (size_t i = 0; i < m->s->n; i++) {
        m->column[i] = find(m, i);
        if (m->column[i] == NOT_THERE || m->column[i] == label)
            return refuse_missing(m, i);
    }
    return 0;
}

/* For a schema that has only a hash of its names: assumes that all columns of the header except the
 * label's are inputs, in the header's order. learn() then checks the hash. */
static void match_order(const struct match *m, size_t label)
{
    size_t n = 0;
    for (size_t i = 0; i < m->header->n; i++)
        if (i != label)
            m->column[n++] = i;
}

/* Checks that the column names found in the header, put into the schema's order, have the schema's
 * hash. If so, the schema takes these names. Exception: the schema stays unchanged if the schema
 * has a label and the rows of the file have none. */
static int learn(struct schema *s, const struct match *m, size_t n, size_t label)
{
    struct schema learnt = {0};
    int err = take_names(&learnt, m->header, m->column, n, label);
    if (err == 0)
        settle(&learnt);
    if (err == 0 && learnt.hash != s->hash)
        err = refuse_missing(m, 0);
    if (err == 0 && (label != SIZE_MAX || !s->has_label)) {
        *s = learnt;
        return 0;
    }
    schema_close(&learnt);
    return err;
}

/* Fills *f: the order of the columns, and a note about columns that differ from the schema. Returns
 * 0 or -ENOMEM. */
static int describe(const struct match *m, size_t n, struct schema_found *f)
{
    size_t n_ignored = 0;
    f->place = malloc(m->header->n * sizeof *f->place);
    size_t *ignored = malloc(m->header->n * sizeof *ignored);
    if (f->place == NULL || ignored == NULL) {
        free(f->place);
        free(ignored);
        f->place = NULL;
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->header->n; i++)
        f->place[i] = SCHEMA_IGNORED;
    for (size_t i = 0; i < n; i++) {
        f->place[m->column[i]] = (uint32_t)i;
        f->reordered |= i > 0 && m->column[i] < m->column[i - 1];
    }
    if (f->label != SIZE_MAX)
        f->place[f->label] = SCHEMA_LABEL;
    for (size_t i = 0; i < m->header->n; i++)
        if (f->place[i] == SCHEMA_IGNORED)
            ignored[n_ignored++] = i;
    if (f->reordered)
        append(f->note, sizeof f->note, "columns are in another order, and are matched by name");
    if (n_ignored > 0) {
        append(f->note, sizeof f->note, "%s%s ", f->reordered ? "; " : "",
               n_ignored > 1 ? "columns" : "column");
        schema_names_list(m->header, ignored, n_ignored, f->note, sizeof f->note);
        append(f->note, sizeof f->note, " %s ignored: not expected", n_ignored > 1 ? "are" : "is");
    }
    free(ignored);
    const struct schema *s = m->s;
    if (s->has_label && s->names.n > 0 && f->label != SIZE_MAX
        && strcmp(schema_name(m->header, f->label), schema_name(&s->names, s->n)) != 0)
        append(f->note, sizeof f->note, "%sthe label is column %s, not %s as expected",
               f->note[0] != '\0' ? "; " : "", quote_string(schema_name(m->header, f->label)).text,
               quote_string(schema_name(&s->names, s->n)).text);
    return 0;
}

/* Matches the n columns of the schema to the header. Returns the only column of the header that
 * matches none of them. SIZE_MAX: there is no such column, there are several, or memory is
 * short. */
static size_t find_left(const struct match *m, size_t n)
{
    size_t left = SIZE_MAX;
    bool *is_value = calloc(m->header->n, sizeof *is_value);
    if (is_value == NULL || m->header->n != n + 1) {
        free(is_value);
        return SIZE_MAX;
    }
    for (size_t i = 0; i < n; i++)
        is_value[m->column[i]] = true;
    for (size_t i = 0; i < m->header->n; i++)
        left = is_value[i] ? left : i;
    free(is_value);
    return left;
}

/* Matches a header to a schema that has only a hash of the column names, so the label's column
 * cannot be found by the name in the schema. If the rows have labels, the label's column is the
 * column that the option label= names, or the last column without this option. */
static int match_hash(struct schema *s, struct match *m, const struct schema_ask *ask,
                      struct schema_found *f)
{
    size_t last = m->header->n - 1;
    int err = -EINVAL;
    if (ask->label == SIZE_MAX && !ask->labelled) {
        match_order(m, SIZE_MAX);
        err = learn(s, m, m->header->n, SIZE_MAX);
    }
    if (err == -EINVAL && !ask->bare) {
        f->label = ask->label != SIZE_MAX ? ask->label : last;
        match_order(m, f->label);
        err = learn(s, m, last, f->label);
    }
    return err == 0 ? describe(m, f->label != SIZE_MAX ? last : m->header->n, f) : err;
}

static int match_names(struct schema *s, struct match *m, const struct schema_ask *ask,
                       struct schema_found *f)
{
    bool is_known = s->names.n > 0;
    f->label = ask->label;
    if (ask->label == SIZE_MAX && !ask->bare && s->has_label) {
        size_t label = find(m, s->n);
        f->label = label != NOT_THERE ? label : SIZE_MAX;
    }
    int err = match_values(m, f->label);
    if (err == 0 && f->label == SIZE_MAX && !ask->bare && !s->has_label)
        f->label = find_left(m, s->n);
    if (err == 0 && f->label == SIZE_MAX && ask->labelled)
        err = refuse_missing(m, s->n);
    if (err == 0 && !is_known)
        err = learn(s, m, s->n, f->label);
    return err == 0 ? describe(m, s->n, f) : err;
}

static int match_any(struct schema *s, struct match *m, const struct schema_ask *ask,
                     struct schema_found *f)
{
    bool by_hash = s->names.n == 0 && s->tags[0] == '\0';
    return by_hash ? match_hash(s, m, ask, f) : match_names(s, m, ask, f);
}

int schema_match(struct schema *s, const struct schema_names *header, const struct schema_ask *ask,
                 struct schema_found *found, char why[SCHEMA_WHY_MAX])
{
    struct key *key = sort_names(header);
    size_t n = s->n > header->n ? s->n : header->n;
    struct match m = {.s = s,
                      .header = header,
                      .key = key,
                      .column = malloc((n > 0 ? n : 1) * sizeof(size_t)),
                      .why = why};
    assert(s->named && header->n > 0);
    *found = (struct schema_found){.label = SIZE_MAX};
    int err = key != NULL && m.column != NULL ? match_any(s, &m, ask, found) : -ENOMEM;
    free(key);
    free(m.column);
    return err;
}

bool schema_is_in(const struct schema *s, const struct schema_names *header)
{
    struct key *key = s->names.n > 0 ? sort_names(header) : NULL;
    bool in = key != NULL;
    for (size_t i = 0; i < s->n && in; i++)
        in = find_name(header, key, schema_name(&s->names, i)) != NOT_THERE;
    free(key);
    return in;
}

bool schema_order(const struct schema *from, const struct schema *to, uint32_t *place,
                  char why[SCHEMA_WHY_MAX])
{
    struct key *key = sort_names(&from->names);
    const struct match m = {.s = to, .header = &from->names, .key = key, .why = why};
    bool same = key != NULL;
    for (size_t i = 0; i < to->n && same; i++) {
        size_t column = find_name(&from->names, key, schema_name(&to->names, i));
        same = column != NOT_THERE && column < from->n;
        if (same)
            place[i] = (uint32_t)column;
        else
            (void)refuse_missing(&m, i);
    }
    free(key);
    return same;
}
