/* nn/data/number.c -- decimal text to doubles: fast where one rounding does, else the library's.
 *
 *   digits -> mantissa (64 bits) and power of ten
 *     both exact in a double    one multiply or divide rounds once (Clinger 1990)
 *     else                      a copy with a NUL goes to strtod()
 *
 * Nearly all numbers of data files take the first way, which needs no copy.
 */
#include "nn/data/number.h"

#include "nn/math/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A number may begin with either sign, and so may its exponent. */
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
    char copy[NUMBER_MAX + 1];
    memcpy(copy, p, n);
    copy[n] = '\0';
    char *behind;
    *v = strtod(copy, &behind);
    return behind == copy + n;
}

const uint8_t *number_read(const uint8_t *p, const uint8_t *end, double *v)
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
    if (n > NUMBER_MAX)
        return NULL;
    return exact(&d, v) || library(p, n, v) ? at : NULL;
}

bool number_is(const uint8_t *p, size_t n, double *v)
{
    return n > 0 && number_read(p, p + n, v) == p + n;
}

bool number_to_float(double v, double divide, float *x)
{
    double q = v / divide;
    if (!(fabs(q) <= (double)FLT_MAX))
        return false;
    *x = (float)q;
    return true;
}

void number_wanted(double divide, char text[NUMBER_WANTED_MAX])
{
    snprintf(text, NUMBER_WANTED_MAX, "a value in a float's range");
    if (divide < 1)
        snprintf(text, NUMBER_WANTED_MAX, "a value in a float's range after divide=%g", divide);
}

const char *number_count(const char *p, uint32_t most, uint32_t *v)
{
    return p != NULL && *p != '0' ? number_plain(p, most, v) : NULL;
}
