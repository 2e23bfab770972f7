#include "nn/data/lines.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A set's files lie in memory whole; more than this cannot, with the arrays
 * made from them. */
#define FILE_LIMIT (SIZE_MAX / (2 * DATA_MEMORY_FACTOR))

int lines_no_memory(char error[DATA_ERROR_MAX], const char *path)
{
    file_error(error, path, "cannot read: no memory");
    return -ENOMEM;
}

void lines_free(struct lines_file *files, size_t n)
{
    for (size_t i = 0; files != NULL && i < n; i++)
        free((uint8_t *)files[i].bytes);
    free(files);
}

int lines_load(const struct reader *r, struct lines_file **files, char error[DATA_ERROR_MAX])
{
    assert(r->n_paths >= 1 && r->n_paths <= READER_FILES_MAX);
    int err = 0;
    struct lines_file *f = calloc(r->n_paths, sizeof *f);
    *files = NULL;
    if (f == NULL)
        return lines_no_memory(error, r->paths[0]);
    for (size_t i = 0; i < r->n_paths && err == 0; i++) {
        uint8_t *bytes = NULL;
        f[i].path = r->paths[i];
        err = file_read(f[i].path, FILE_LIMIT, &r->progress, &bytes, &f[i].n, error);
        f[i].bytes = bytes;
    }
    if (err == 0)
        *files = f;
    else
        lines_free(f, r->n_paths);
    return err;
}

struct lines_quote lines_quote(const uint8_t *bytes, size_t n)
{
    if (n == 0)
        return (struct lines_quote){"nothing"};
    struct lines_quote q = {"\""};
    size_t at = 1, i = 0;
    for (; i < n && at + 4 <= LINES_SHOWN + 1; i++) {
        if (bytes[i] >= 0x20 && bytes[i] < 0x7f)
            q.text[at++] = (char)bytes[i];
        else
            at += (size_t)snprintf(q.text + at, 5, "\\x%02x", bytes[i]);
    }
    snprintf(q.text + at, sizeof q.text - at, "\"%s", i < n ? "..." : "");
    return q;
}

int lines_refuse(const struct lines_spot *spot, const char *where, const uint8_t *found, size_t n,
                 const char *wanted)
{
    return file_error(spot->error, spot->path, "line %llu, %s: found %s, expected %s",
                      (unsigned long long)spot->line, where, lines_quote(found, n).text, wanted);
}

int lines_mark_files(struct dataset *d, const size_t *rows, size_t n_files)
{
    d->n_files = (uint32_t)n_files;
    if (n_files > 1 && d->file == NULL && (d->file = malloc(d->n * sizeof *d->file)) == NULL)
        return -ENOMEM;
    size_t at = 0;
    for (size_t i = 0; d->file != NULL && i < n_files; i++)
        for (size_t k = 0; k < rows[i]; k++)
            d->file[at++] = (uint32_t)i;
    assert(!d->file || at == d->n);
    return 0;
}

/* ---- The kind of rows. ---- */

static bool equal(double a, double b)
{
    return a >= b && a <= b;
}

int lines_kind(const struct reader *r, const char *format, const char *path,
               struct labels_kind *kind, char error[DATA_ERROR_MAX])
{
    bool known = labels_kind_parse(r->kind, format, kind);
    assert(known && r->divide > 0 && isfinite(r->divide) && r->n_paths >= 1);
    if (!kind->fixed)
        kind->divide = r->divide;
    else if (r->features != 0 && r->features != kind->features)
        return file_error(error, path, "found features=%u, expected %u (%s)", r->features,
                          kind->features, r->kind);
    else if (!equal(r->divide, 1) && !equal(r->divide, kind->divide))
        return file_error(error, path, "found divide=%g, expected %g (%s)", r->divide, kind->divide,
                          r->kind);
    return 0;
}

int lines_settle(struct labels *l, struct labels_kind *kind, size_t n_rows,
                 const struct lines_spot *spot)
{
    char why[LABELS_WHY_MAX];
    int err = labels_settle(l, kind, why);
    if (err == -ENOMEM)
        return lines_no_memory(spot->error, spot->path);
    if (err < 0)
        return file_error(spot->error, spot->path, "labels: %s", why);
    if (n_rows >= UINT32_MAX)
        return file_error(spot->error, spot->path, "found %zu rows, expected at most %u", n_rows,
                          UINT32_MAX - 1);
    return 0;
}

int lines_kind_text(const struct labels_kind *kind, const char *format,
                    const struct lines_spot *spot, char text[DATA_KIND_MAX])
{
    if (labels_kind_print(kind, format, text))
        return 0;
    return file_error(spot->error, spot->path, "found divide=%g, expected one of fewer digits",
                      kind->divide);
}

/* ---- Numbers. ---- */

enum {
    DIGITS_EXACT = 18, /* So many digits fit in 64 bits for certain. */
    POWER_EXACT = 22   /* 10^22 is the largest power that a double holds. */
};

/* A number taken apart: mantissa * 10^power, with its sign. */
struct decimal
{
    uint64_t mantissa;
    int power;
    bool minus;
    bool whole; /* No digit was left out of the mantissa. */
};

static bool is_digit(const uint8_t *p, const uint8_t *end)
{
    return p < end && (uint8_t)(*p - '0') <= 9;
}

static bool is_sign(const uint8_t *p, const uint8_t *end)
{
    return p < end && (*p == '+' || *p == '-');
}

/* Digits into the mantissa; `point` says that they are behind the point. */
static const uint8_t *digits(struct decimal *d, const uint8_t *p, const uint8_t *end, bool point)
{
    const uint64_t most = 100000000000000000u; /* 10^(DIGITS_EXACT - 1) */
    for (; is_digit(p, end); p++) {
        if (d->mantissa < most) {
            d->mantissa = d->mantissa * 10 + (uint64_t)(*p - '0');
            d->power -= point;
        } else
            d->whole = false;
    }
    return p;
}

/* "e-5", where it is one: an e that no digit follows is not of the number. */
static const uint8_t *exponent(struct decimal *d, const uint8_t *p, const uint8_t *end)
{
    if (p == end || (*p != 'e' && *p != 'E'))
        return p;
    const uint8_t *at = p + 1;
    bool minus = at < end && *at == '-';
    at += is_sign(at, end);
    if (!is_digit(at, end))
        return p;
    int e = 0;
    for (; is_digit(at, end); at++)
        e = e < 100000 ? e * 10 + (*at - '0') : e;
    d->power += minus ? -e : e;
    return at;
}

/* Clinger (1990): a mantissa and a power of ten that are both exact in double
 * need one rounding. */
static bool exact(const struct decimal *d, double *v)
{
    static const double power[POWER_EXACT + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (!d->whole || d->mantissa > (UINT64_C(1) << 53) || d->power < -POWER_EXACT
        || d->power > POWER_EXACT)
        return false;
    double m = (double)d->mantissa;
    m = d->power < 0 ? m / power[-d->power] : m * power[d->power];
    *v = d->minus ? -m : m;
    return true;
}

/* The rest is the library's. The program never calls setlocale(), so that the
 * point is a point. */
static bool library(const uint8_t *p, size_t n, double *v)
{
    char copy[LINES_NUMBER_MAX + 1];
    memcpy(copy, p, n);
    copy[n] = '\0';
    char *behind;
    *v = strtod(copy, &behind);
    return behind == copy + n;
}

const uint8_t *lines_number(const uint8_t *p, const uint8_t *end, double *v)
{
    struct decimal d = {.minus = p < end && *p == '-', .whole = true};
    const uint8_t *begin = p + is_sign(p, end);
    const uint8_t *at = digits(&d, begin, end, false);
    size_t n_digits = (size_t)(at - begin);
    if (at < end && *at == '.') {
        const uint8_t *point = at + 1;
        at = digits(&d, point, end, true);
        n_digits += (size_t)(at - point);
    }
    if (n_digits == 0)
        return NULL;
    at = exponent(&d, at, end);
    size_t n = (size_t)(at - p);
    if (n > LINES_NUMBER_MAX)
        return NULL;
    return exact(&d, v) || library(p, n, v) ? at : NULL;
}

bool lines_is_number(const uint8_t *p, size_t n, double *v)
{
    return n > 0 && lines_number(p, p + n, v) == p + n;
}

bool lines_to_float(double v, double divide, float *x)
{
    double q = v / divide;
    if (!(fabs(q) <= (double)FLT_MAX))
        return false;
    *x = (float)q;
    return true;
}
