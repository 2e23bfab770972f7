/* nn/data/columns.c -- computes the scales of columns, converts rows to inputs, and writes and
 * parses the text of columns. */
#include "nn/data/columns.h"

#include "nn/math/number.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 3 }; /* Number of base64 letters that encode the hash of one category. */

/* If the standard deviation is at most this fraction of the mean, all numbers of the column count
 * as equal, because the rounding of doubles alone can cause such a deviation. */
#define SAME 1e-14

const char *const columns_scale_name[COLUMNS_SCALES] = {
    [COLUMNS_SCALE_AUTO] = "auto",
    [COLUMNS_SCALE_NONE] = "none",
    [COLUMNS_SCALE_STANDARD] = "standard",
    [COLUMNS_SCALE_MAX] = "max",
};

const char columns_base64[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- Allocating, copying and freeing ---- */

int columns_open(struct columns *c, size_t n)
{
    assert(n <= COLUMNS_MAX_N);
    *c = (struct columns){.n = (uint32_t)n, .at = calloc(n > 0 ? n : 1, sizeof *c->at)};
    for (size_t i = 0; c->at != NULL && i < n; i++)
        c->at[i].scale = 1;
    if (c->at == NULL)
        c->n = 0;
    return c->at != NULL ? 0 : -ENOMEM;
}

void columns_close(struct columns *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->at[i].category);
    free(c->at);
    *c = (struct columns){0};
}

int columns_copy(struct columns *to, const struct columns *from)
{
    int err = columns_open(to, from->n);
    for (size_t i = 0; err == 0 && i < from->n; i++) {
        const struct column *f = &from->at[i];
        to->at[i] = *f;
        to->at[i].category = NULL;
        if (f->category == NULL)
            continue;
        size_t n_bytes = f->n_categories * sizeof *f->category;
        to->at[i].category = malloc(n_bytes > 0 ? n_bytes : 1);
        if (to->at[i].category == NULL)
            err = -ENOMEM;
        else
            memcpy(to->at[i].category, f->category, n_bytes);
    }
    to->scale = from->scale;
    to->label = from->label;
    to->settled = from->settled;
    if (err < 0)
        columns_close(to);
    return err;
}

/* ---- Converting columns to inputs of a model ---- */

static size_t inputs_of(const struct column *c)
{
    return c->form != COLUMN_CATEGORIES ? 1 : c->hashed ? COLUMNS_BUCKETS : c->n_categories;
}

size_t columns_inputs(const struct columns *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += inputs_of(&c->at[i]);
    return n;
}

bool columns_have_categories(const struct columns *c)
{
    bool have = false;
    for (size_t i = 0; i < c->n; i++)
        have |= c->at[i].form == COLUMN_CATEGORIES;
    return have;
}

size_t columns_gaps(const struct columns *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->at[i].n_gaps;
    return n;
}

void columns_round(double *mean, double *deviation)
{
    char text[64];
    snprintf(text, sizeof text, "%.1e", *deviation);
    *deviation = strtod(text, NULL);
    /* `last` is the decimal place of the deviation's second significant digit. The mean is rounded
     * to this place, too. */
    int last = atoi(strchr(text, 'e') + 1) - 1;
    snprintf(text, sizeof text, "%.0e", *mean);
    int digits = atoi(strchr(text, 'e') + 1) - last;
    if (fabs(*mean) * 2 < pow(10, last))
        *mean = 0;
    else {
        snprintf(text, sizeof text, "%.*e", digits < 0 ? 0 : digits > 16 ? 16 : digits, *mean);
        *mean = strtod(text, NULL);
    }
}

/* Returns the shortest decimal number that rounds to the same float as v. More digits of a mean
 * would have no effect on rows stored as floats. */
static double shortest(double v)
{
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        float x = strtof(text, NULL);
        if (x >= (float)v && x <= (float)v)
            break;
    }
    return strtod(text, NULL);
}

/* Computes mean and scale of one column from its moments. If all numbers are equal, standardisation
 * makes their inputs 0 with any scale. But other peers may have different numbers in this column.
 * The scale is therefore the largest absolute value, and at least 1, so that this column does not
 * dominate the other columns of these peers. */
static void settle_scale(struct column *c, enum columns_scale scale, const struct column_moments *s)
{
    double deviation = s->n > 0 ? sqrt(s->m2 / s->n) : 0;
    bool same = !(deviation > SAME * fabs(s->mean)) || deviation < (double)FLT_MIN;
    c->constant = same && s->n > 0;
    c->mean = scale == COLUMNS_SCALE_STANDARD ? s->mean : shortest(s->mean);
    c->scale = 1;
    double most = fmax(fabs(s->low), fabs(s->high)), none = 0;
    if (!same)
        columns_round(&c->mean, &deviation);
    if (scale == COLUMNS_SCALE_STANDARD && !same)
        c->scale = deviation;
    if (scale == COLUMNS_SCALE_MAX ? most >= (double)FLT_MIN
                                   : scale == COLUMNS_SCALE_STANDARD && same && most > 1) {
        columns_round(&none, &most);
        c->scale = most;
    }
}

/* The rows are read twice. The first time gives the mean. The second time, the squared distances
 * from this mean are summed, which avoids the cancellation of digits in the formula mean(v^2) -
 * mean(v)^2. */
void columns_moments(const struct columns *c, const float *rows, size_t n,
                     struct column_moments *of)
{
    memset(of, 0, c->n * sizeof *of);
    const float *row = rows;
    for (size_t k = 0; k < n; k++, row += c->n)
        for (size_t i = 0; i < c->n; i++)
            if (!isnan(row[i]) && c->at[i].form != COLUMN_CATEGORIES) {
                double v = (double)row[i];
                of[i].low = of[i].n > 0 ? fmin(of[i].low, v) : v;
                of[i].high = of[i].n > 0 ? fmax(of[i].high, v) : v;
                /* `mean` holds the sum of the numbers until it is divided by their count. */
                of[i].mean += v;
                of[i].n++;
            }
    for (size_t i = 0; i < c->n; i++)
        of[i].mean = of[i].n > 0 ? of[i].mean / of[i].n : 0;
    row = rows;
    for (size_t k = 0; k < n; k++, row += c->n)
        for (size_t i = 0; i < c->n; i++)
            if (!isnan(row[i]) && c->at[i].form != COLUMN_CATEGORIES) {
                double apart = (double)row[i] - of[i].mean;
                of[i].m2 += apart * apart;
            }
    for (size_t i = 0; i < c->n; i++)
        if (of[i].n > 0) {
            of[i].mean += c->at[i].offset;
            of[i].low += c->at[i].offset;
            of[i].high += c->at[i].offset;
        }
}

void columns_settle(struct columns *c, const struct column_moments *of)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].form != COLUMN_CATEGORIES)
            settle_scale(&c->at[i], c->scale, &of[i]);
}

/* Converts a stored number (the cell's value minus c->offset) to a model input. The difference of
 * offset and mean is computed in double with almost no rounding error, because the two are close to
 * each other. */
static float scaled(const struct column *c, enum columns_scale scale, float kept)
{
    double mean = c->mean, v = (double)kept;
    bool gap = isnan(kept);
    if (scale == COLUMNS_SCALE_NONE)
        return gap ? (float)mean : kept;
    if (scale == COLUMNS_SCALE_STANDARD)
        v = gap ? 0 : v + (c->offset - mean);
    else
        v = gap ? mean : v;
    return (float)fmin(fmax(v / c->scale, -COLUMNS_FAR), COLUMNS_FAR);
}

void columns_apply(const struct columns *c, float *rows, size_t n)
{
    for (size_t k = 0; k < n; k++, rows += c->n)
        for (size_t i = 0; i < c->n; i++)
            if (c->at[i].form != COLUMN_CATEGORIES)
                rows[i] = scaled(&c->at[i], c->scale, rows[i]);
}

void columns_expand(const struct columns *c, const float *row, float *out)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t n = inputs_of(&c->at[i]);
        if (c->at[i].form != COLUMN_CATEGORIES)
            *out = row[i];
        else {
            memset(out, 0, n * sizeof *out);
            if (row[i] > 0)
                out[(size_t)row[i] - 1] = 1;
        }
        out += n;
    }
}

/* ---- The text of a column. ---- */

struct word
{
    char text[COLUMNS_WORD_MAX];
};

/* Returns whether strtod() reads the text as exactly v. */
static bool reads_back(const char *text, double v)
{
    double x = strtod(text, NULL);
    return x >= v && x <= v;
}

/* Writes the shortest text that strtod() reads as v. Examples: .5, 1e5 and 2960 instead of 0.5,
 * 1e+05 and 2.96e3. */
static void print_number(double v, char text[32])
{
    char full[32], plain[32];
    v = fabs(v) > 0 ? v : 0; /* Turns -0 into 0. */
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(full, sizeof full, "%.*g", digits, v);
        if (reads_back(full, v))
            break;
    }
    snprintf(plain, sizeof plain, "%.0f", fabs(v) < 1e9 ? v : 0);
    if (strlen(plain) < strlen(full) && reads_back(plain, v))
        strcpy(full, plain);
    size_t n = 0;
    for (const char *p = full; *p != '\0'; p++) {
        bool leading = *p == '0' && p[1] == '.' && (p == full || p[-1] == '-');
        bool power = p > full && (p[-1] == 'e' || (p > full + 1 && p[-2] == 'e')) && *p == '0';
        if (!leading && *p != '+' && !power)
            text[n++] = *p;
    }
    text[n] = '\0';
}

static struct word print_word(const struct column *c)
{
    struct word w = {""};
    size_t n = 0;
    char number[32];
    if (c->form == COLUMN_CATEGORIES && c->hashed) {
        w.text[0] = '#';
    } else if (c->form == COLUMN_CATEGORIES) {
        w.text[n++] = '=';
        for (uint32_t i = 0; i < c->n_categories; i++)
            for (int k = LETTERS - 1; k >= 0; k--)
                w.text[n++] = columns_base64[c->category[i] >> (6 * k) & 63];
    } else {
        bool scaled = fabs(c->scale - 1) > 0;
        if (!scaled || fabs(c->mean) > 0)
            print_number(c->mean, w.text);
        print_number(c->scale, number);
        if (scaled)
            snprintf(w.text + strlen(w.text), sizeof number + 1, "~%s", number);
    }
    return w;
}

/* Parses the categories in the text of one column ("word"). Returns false if they are invalid or
 * not ascending. */
static bool parse_categories(const char *p, size_t n, struct column *c, uint32_t *category)
{
    if (n == 0 || n % LETTERS != 0 || n / LETTERS > COLUMNS_CATEGORIES_MAX)
        return false;
    uint32_t before = 0;
    for (c->n_categories = 0; c->n_categories < n / LETTERS; c->n_categories++) {
        uint32_t h = 0;
        for (size_t k = 0; k < LETTERS; k++, p++) {
            const char *at = memchr(columns_base64, *p, 64);
            if (at == NULL)
                return false;
            h = h << 6 | (uint32_t)(at - columns_base64);
        }
        if (c->n_categories > 0 && h <= before)
            return false;
        before = category[c->n_categories] = h;
    }
    return true;
}

/* Parses a number. Returns false if it is invalid or outside a float's range. */
static bool parse_number(const char *p, size_t n, double *v)
{
    return number_is((const uint8_t *)p, n, v) && fabs(*v) <= (double)FLT_MAX;
}

/* Parses the word of one column, such as "2960~280" or "=aB3x-9". `category`: buffer of the caller
 * for c->category. Any spelling that print_word() would not write is refused. */
static bool parse_word(const char *p, size_t n, struct column *c,
                       uint32_t category[COLUMNS_CATEGORIES_MAX])
{
    *c = (struct column){.form = COLUMN_NUMBERS, .scale = 1};
    const char *tilde = memchr(p, '~', n);
    if (n >= COLUMNS_WORD_MAX || n == 0)
        return false;
    if (*p == '=' || *p == '#') {
        c->form = COLUMN_CATEGORIES;
        c->hashed = *p == '#';
        if (!(c->hashed ? n == 1 : parse_categories(p + 1, n - 1, c, category)))
            return false;
        c->category = category;
    } else if ((tilde != p && !parse_number(p, tilde != NULL ? (size_t)(tilde - p) : n, &c->mean))
               || (tilde != NULL
                   && (!parse_number(tilde + 1, n - 1 - (size_t)(tilde - p), &c->scale)
                       || c->scale < (double)FLT_MIN)))
        return false;
    struct word again = print_word(c);
    return strlen(again.text) == n && memcmp(again.text, p, n) == 0;
}

size_t columns_print(const struct columns *c, char *text, size_t cap)
{
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < c->n; i++) {
        struct word w = print_word(&c->at[i]);
        size_t at = n < cap ? n : cap - 1;
        n += (size_t)snprintf(text + at, cap - at, "%s%s", i > 0 ? "," : "", w.text);
    }
    return n;
}

/* Hashes the text of the columns word by word: each hash covers one word and the hash of the words
 * before it. The whole text of a wide table may not fit into a buffer. */
uint64_t columns_hash(const struct columns *c)
{
    struct
    {
        uint64_t before;
        struct word word;
    } link;
    memset(&link, 0, sizeof link);
    for (size_t i = 0; i < c->n; i++) {
        link.word = print_word(&c->at[i]);
        link.before = rng_hash(&link, sizeof link.before + strlen(link.word.text));
    }
    return link.before;
}

bool columns_check(const char *text, enum columns_scale scale, size_t n_inputs)
{
    size_t inputs = 0, n_columns = 0;
    for (;; n_columns++) {
        struct column c;
        uint32_t category[COLUMNS_CATEGORIES_MAX];
        size_t n = strcspn(text, ",");
        if (!parse_word(text, n, &c, category)
            || (scale == COLUMNS_SCALE_NONE && fabs(c.scale - 1) > 0))
            return false;
        inputs += inputs_of(&c);
        text += n;
        if (*text == '\0')
            return n_columns < COLUMNS_MAX_N && inputs == n_inputs;
        text++;
    }
}

int columns_parse(struct columns *c, const char *text, enum columns_scale scale)
{
    size_t n_columns = 1;
    for (const char *p = text; *p != '\0'; p++)
        n_columns += *p == ',';
    int err = columns_open(c, n_columns);
    for (size_t i = 0; err == 0 && i < n_columns; i++) {
        uint32_t category[COLUMNS_CATEGORIES_MAX], *copy = NULL;
        struct column *column = &c->at[i];
        size_t n = strcspn(text, ",");
        bool ok = parse_word(text, n, column, category);
        assert(ok);
        text += n + 1;
        size_t n_bytes = column->n_categories * sizeof *copy;
        if (column->category != NULL && (copy = malloc(n_bytes > 0 ? n_bytes : 1)) == NULL)
            err = -ENOMEM;
        else if (copy != NULL)
            memcpy(copy, category, n_bytes);
        column->category = copy;
        column->offset = scale == COLUMNS_SCALE_STANDARD ? column->mean : 0;
    }
    c->scale = scale;
    c->settled = true;
    if (err < 0)
        columns_close(c);
    return err;
}
