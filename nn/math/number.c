/* nn/math/number.c -- the one reader of decimal numbers and of choices in texts. */
#include "nn/math/number.h"

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
            return NULL; /* Asked before it is added, so that nothing wraps around. */
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

bool number_whole(const char *text, uint64_t *value)
{
    uint64_t v;
    const char *behind = number_digits(text, UINT64_MAX, &v);
    if (behind == NULL || *behind != '\0')
        return false;
    *value = v;
    return true;
}

bool number_real(const char *text, double *value)
{
    /* The alphabet keeps out what strtod would take besides: blanks,
     * hexadecimals, nan and inf. */
    if (text[0] == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0')
        return false;
    char *end;
    double v = strtod(text, &end);
    if (*end != '\0' || !isfinite(v))
        return false;
    *value = v;
    return true;
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
    /* 17 digits tell any two doubles apart, so the loop finds one. Numbers from 1
     * to 1e15 are written out: 100, not 1e+02. */
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, NUMBER_TEXT_MAX, "%.*g", digits, value);
        bool plain = strchr(out, 'e') == NULL;
        if (strtod(out, NULL) == value && (plain || !(value >= 1 && value < 1e15)))
            return;
    }
}

/* Where `text` is the choice "word:N" with a number for N: that number. Else 0. */
static uint32_t numbered(const char *choice, size_t length, const char *text)
{
    uint32_t n;
    size_t word = length - 1;
    if (length < 3 || memcmp(choice + word - 1, ":N", 2) != 0 || strncmp(choice, text, word) != 0)
        return 0;
    const char *end = number_plain(text + word, NUMBER_CHOICE_MOST, &n);
    return end != NULL && *end == '\0' ? n : 0;
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
