/* nn/math/number.c -- parses and prints decimal numbers, and finds a choice in a list "a|b|c".
 *
 *   digits -> mantissa (64 bits) and power of ten
 *     both exact in a double    one multiplication or division, which rounds once (Clinger 1990)
 *     otherwise                 strtod() on a copy with a NUL
 *
 * The first case needs no copy, and nearly all numbers of data files belong to it.
 */
#include "nn/math/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *number_digits(const char *p, uint64_t most, uint64_t *value)
{
    const char *begin = p;
    uint64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (digit > most || v > (most - digit) / 10)
            /* The limit is checked before v is multiplied and the digit is added, so that v cannot
             * overflow. */
            return NULL;
        v = 10 * v + digit;
    }
    if (p == begin)
        return NULL;
    *value = v;
    return p;
}

const char *number_plain(const char *p, uint32_t most, uint32_t *value)
{
    uint64_t v;
    const char *behind = number_digits(p, most, &v);
    if (behind == NULL || (*p == '0' && behind - p > 1))
        return NULL;
    *value = (uint32_t)v;
    return behind;
}

const char *number_count(const char *p, uint32_t most, uint32_t *value)
{
    return p != NULL && *p != '0' ? number_plain(p, most, value) : NULL;
}

bool number_whole(const char *text, uint64_t *value)
{
    uint64_t v;
    const char *behind = number_digits(text, UINT64_MAX, &v);
    if (behind == NULL || *behind != '\0')
        return false;
    *value = v;
    return true;
}

enum {
    /* Number of decimal digits that always fit in the 64 bits of the mantissa. */
    DIGITS_EXACT = 18,
    POWER_EXACT = 22 /* Largest n for which a double represents 10^n exactly. */
};

/* A parsed decimal number: mantissa * 10^power, with a minus sign if `minus` is true. */
struct decimal
{
    uint64_t mantissa;
    int power;
    bool minus;
    /* True: the mantissa contains all digits of the text. False: the mantissa was full, so later
     * digits were dropped. */
    bool whole;
};

static bool is_digit(const uint8_t *p, const uint8_t *end)
{
    return p < end && (uint8_t)(*p - '0') <= 9;
}

static bool is_sign(const uint8_t *p, const uint8_t *end)
{
    return p < end && (*p == '+' || *p == '-');
}

/* Appends the digits at p to the mantissa. If `point` is true, the digits are after the decimal
 * point, and the power of ten decreases with each digit. */
static const uint8_t *digits(struct decimal *d, const uint8_t *p, const uint8_t *end, bool point)
{
    /* 10^(DIGITS_EXACT - 1): a mantissa of this value or more has no room for another digit. */
    const uint64_t most = 100000000000000000u;
    for (; is_digit(p, end); p++) {
        if (d->mantissa < most) {
            d->mantissa = d->mantissa * 10 + (uint64_t)(*p - '0');
            d->power -= point;
        } else
            d->whole = false;
    }
    return p;
}

/* Parses an exponent such as "e-5". If no digit follows the e, the number ends before the e. */
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

/* Converts a number if mantissa and power of ten are both exact in double. One operation then
 * rounds once (Clinger 1990). Returns false otherwise. */
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

/* Converts with strtod(). Callers must be in the C locale (nn/math/c_locale.h). */
static bool convert_slowly(const uint8_t *p, size_t n, double *v)
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
    return exact(&d, v) || convert_slowly(p, n, v) ? at : NULL;
}

bool number_is(const uint8_t *p, size_t n, double *v)
{
    return n > 0 && number_read(p, p + n, v) == p + n;
}

bool number_real(const char *text, double *value)
{
    double v;
    if (!number_is((const uint8_t *)text, strlen(text), &v) || !isfinite(v))
        return false;
    *value = v;
    return true;
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
        snprintf(text, NUMBER_WANTED_MAX,
                 "a value in a float's range after division by %g (divide)", divide);
}

const char *number_said(double value, char out[NUMBER_TEXT_MAX])
{
    if (isfinite(value))
        snprintf(out, NUMBER_TEXT_MAX, "%.4g", value);
    else
        snprintf(out, NUMBER_TEXT_MAX, "%s",
                 isnan(value) ? "not a number"
                 : value > 0  ? "infinite"
                              : "minus infinite");
    return out;
}

void number_real_text(double value, char out[NUMBER_TEXT_MAX])
{
    /* Tries more and more digits until the text reads back as the same value; 17 digits are always
     * enough. Numbers from 1 to 1e15 are written without an exponent: 100, not 1e+02. */
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, NUMBER_TEXT_MAX, "%.*g", digits, value);
        bool plain = strchr(out, 'e') == NULL;
        if (strtod(out, NULL) == value && (plain || !(value >= 1 && value < 1e15)))
            return;
    }
}

/* Returns the number in `text` if `choice` has the form "word:N" and `text` is the same word with a
 * number, such as "word:3". Returns 0 otherwise. */
static uint32_t numbered(const char *choice, size_t length, const char *text)
{
    uint32_t n;
    size_t word = length - 1;
    if (length < 3 || memcmp(choice + word - 1, ":N", 2) != 0 || strncmp(choice, text, word) != 0)
        return 0;
    const char *end = number_plain(text + word, NUMBER_CHOICE_MOST, &n);
    return end != NULL && *end == '\0' ? n : 0;
}

const char *number_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

int number_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);
    for (int place = 0;; place++) {
        size_t length = strcspn(choices, "|");
        uint32_t number = numbered(choices, length, text);
        if (number > 0)
            return place + (int)number - 1;
        if (length == n && memcmp(choices, text, n) == 0 && strchr(text, ':') == NULL)
            return place;
        if (choices[length] == '\0')
            return -1;
        choices += length + 1;
    }
}

const char *number_choice_at(const char *choices, uint64_t place, size_t *length, uint32_t *number)
{
    for (; place > 0 && strchr(choices, '|') != NULL; place--)
        choices += strcspn(choices, "|") + 1;
    *length = strcspn(choices, "|");
    *number = (uint32_t)place + 1;
    return choices;
}
