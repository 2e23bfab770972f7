/* nn/data/notation.c -- numbers of tables with a thousands separator, a decimal comma or a unit. */
#include "nn/data/notation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 4 }; /* Number of thousands separators that can occur with each decimal mark. */

static const char point_groups[KINDS + 1] = ", '_", comma_groups[KINDS + 1] = ". '_";

/* Characters outside ASCII, such as no-break spaces, and the ASCII characters as which they are
 * read. */
static const struct
{
    char text[4];
    char ascii;
} alike[] = {
    {"\xc2\xa0", ' '},     {"\xe2\x80\xaf", ' '},  {"\xe2\x80\x89", ' '},
    {"\xe2\x80\x87", ' '}, {"\xe2\x80\x99", '\''}, {"\xe2\x88\x92", '-'},
    {"\xe2\x80\x93", '-'}, {"\xef\xbc\x8d", '-'},  {"\xef\xb9\xa3", '-'},
};

/* Units that are a sign, such as %. A space between the number and the sign is optional. */
static const char *const unit_signs[] = {"%",
                                         "$",
                                         "\xe2\x82\xac" /* Euro. */,
                                         "\xc2\xa3" /* Pound. */,
                                         "\xc2\xa5" /* Yen. */,
                                         "\xe2\x82\xb9" /* Rupee. */,
                                         "\xe2\x80\xb0" /* Per mille. */,
                                         "\xc2\xb0" /* Degree. */,
                                         "\xc2\xb0"
                                         "C",
                                         "\xc2\xb0"
                                         "F",
                                         "US$"};
static const char unit_currencies[] =
    " EUR USD GBP CHF JPY CNY INR CAD AUD NZD SEK NOK DKK PLN CZK HUF "
    "RON RUB BRL MXN ZAR KRW TRY SGD HKD ILS ";
static const char unit_words[] = " kg g mg ug t lb lbs oz m cm mm um nm km mi ft in yd s ms us ns "
                                 "sec secs min mins h hr hrs hour "
                                 "hours d day days week weeks month months year years yr yrs l ml "
                                 "cl w kw mw kwh wh v mv a ma hz khz "
                                 "mhz ghz c f k b kb mb gb tb kib mib gib bit bits byte bytes px "
                                 "pt dpi rpm mph km/h m/s bhp hp ps cc "
                                 "kmpl mpg pa kpa hpa bar psi j kj kcal cal n nm mol pct percent ";

/* Copies p to `text`, and replaces each character listed in alike[] by its ASCII form. Returns the
 * length, or SIZE_MAX if the text does not fit or has a NUL byte. */
static size_t to_ascii(const uint8_t *p, size_t n, char *text, size_t cap)
{
    size_t at = 0;
    for (size_t i = 0; i < n; at++) {
        char c = (char)p[i];
        size_t taken = 1;
        for (size_t k = 0; p[i] >= 0x80 && k < sizeof alike / sizeof *alike; k++) {
            size_t len = strlen(alike[k].text);
            if (n - i >= len && memcmp(p + i, alike[k].text, len) == 0) {
                c = alike[k].ascii;
                taken = len;
            }
        }
        if (at + 1 >= cap || c == '\0')
            return SIZE_MAX;
        text[at] = c;
        i += taken;
    }
    text[at] = '\0';
    return at;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the length of the unit at p, or 0 if there is none. n: bytes left at p. `behind`: true if
 * the unit follows the number, false if it precedes the number. `apart`: true if a space separates
 * number and unit. */
static size_t unit_at(const char *p, size_t n, bool behind, bool apart)
{
    size_t best = 0;
    for (size_t i = 0; i < sizeof unit_signs / sizeof *unit_signs; i++) {
        size_t len = strlen(unit_signs[i]);
        if (len <= n && len > best && memcmp(p, unit_signs[i], len) == 0)
            best = len;
    }
    char word[NOTATION_UNIT_MAX + 2];
    size_t len = 0;
    while (len < n && len + 1 < NOTATION_UNIT_MAX && ((p[len] | 32) >= 'a' && (p[len] | 32) <= 'z'))
        len++;
    if (behind && len + 1 < n && p[len] == '/' && (p[len + 1] | 32) >= 'a'
        && (p[len + 1] | 32) <= 'z')
        len += 2; /* Accepts units with a slash, such as km/h. */
    if (best > 0 || len == 0 || len + 1 >= NOTATION_UNIT_MAX)
        return best;
    snprintf(word, sizeof word, " %.*s ", (int)len, p);
    if (strstr(unit_currencies, word) != NULL)
        return len;
    for (char *c = word; *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c | 32);
    return behind && (len > 1 || apart) && strstr(unit_words, word) != NULL ? len : 0;
}

/* Returns the length of the number at p: its digits, separators and exponent. */
static size_t body_length(const char *p)
{
    size_t n = 0, hex = 2;
    if (p[0] == '0' && (p[1] | 32) == 'x') {
        while (digit(p[hex]) || ((p[hex] | 32) >= 'a' && (p[hex] | 32) <= 'f'))
            hex++;
        return hex > 2 ? hex : 1;
    }
    while (digit(p[n]) || (p[n] != '\0' && strchr(".,'_", p[n]) != NULL)
           || (p[n] == ' ' && n > 0 && digit(p[n + 1])))
        n++;
    if (n > 0 && (p[n] | 32) == 'e') {
        size_t e = n + 1 + (p[n + 1] == '+' || p[n + 1] == '-');
        if (digit(p[e]))
            for (n = e; digit(p[n]); n++)
                ;
    }
    return n;
}

/* Returns true if p[0..n) are digits, with or without the separator `group` between thousands.
 * Indian notation is accepted, too: there all groups but the last one have two digits
 * (12,34,567). */
static bool grouped(const char *p, size_t n, char group)
{
    size_t groups = 0, run = 0;
    bool three = true, two = group == ',';
    for (size_t i = 0; i <= n; i++) {
        if (i < n && digit(p[i])) {
            run++;
            continue;
        }
        if (i < n && p[i] != group)
            return false;
        three = three && (groups == 0 ? run >= 1 && run <= 3 : run == 3);
        two = two && (groups == 0 ? run >= 1 && run <= 2 : run == (i == n ? 3 : 2));
        groups++;
        run = 0;
    }
    return groups == 1 || ((three || two) && p[0] != '0');
}

/* Returns true if the digits of `body` can be read as a number with the decimal mark `mark` and the
 * thousands separator `group`. A number with an exponent must not have thousands separators. */
static bool reads(const char *body, char mark, char group)
{
    size_t n = strcspn(body, "eE");
    const char *point = memchr(body, mark, n);
    size_t whole = point != NULL ? (size_t)(point - body) : n, n_digits = 0;
    for (size_t i = whole + 1; i < n; i++)
        if (!digit(body[i]))
            return false;
    for (size_t i = 0; i < n; i++)
        n_digits += digit(body[i]);
    if (body[n] != '\0')
        /* A number with an exponent must have only digits before its decimal mark. With `mark` as
         * the thousands separator, grouped() accepts digits only, because `mark` does not occur
         * before the decimal mark. */
        group = mark;
    return n_digits > 0 && (whole == 0 || grouped(body, whole, group));
}

static uint32_t notations_of(const char *body)
{
    uint32_t mask = 0;
    if (body[0] == '0' && (body[1] | 32) == 'x')
        /* A text of at most 15 characters has at most 13 hexadecimal digits after 0x. A double
         * represents such a number exactly. */
        return strlen(body) <= 15 ? NOTATION_HEX : 0;
    for (int i = 0; i < KINDS; i++) {
        mask |= reads(body, '.', point_groups[i]) ? UINT32_C(1) << i : 0;
        mask |= reads(body, ',', comma_groups[i]) ? UINT32_C(1) << (KINDS + i) : 0;
    }
    return mask;
}

/* Returns true for a text that is no number but has at least one digit and otherwise only
 * characters that occur in numbers. A sign between digits means a range, a code or a telephone
 * number, so the result is then false. */
static bool looks_broken(const char *text, bool money)
{
    bool any = false;
    for (const char *p = text; *p != '\0'; p++) {
        bool sign = *p == '-' || *p == '+';
        any = any || digit(*p);
        if (sign && any && p[strcspn(p, "0123456789")] != '\0')
            return false;
        if (!digit(*p) && !sign && strchr(" .,'_()%$", *p) == NULL && !money)
            return false;
    }
    return any;
}

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " ");
}

/* Splits a text into sign, digits and unit, and stores them in *w. Accepted are sign, opening
 * parenthesis and unit in any order, then the digits, then a unit and a closing parenthesis.
 * Returns false if the text contains anything else. */
static bool take_apart(const char *p, struct notation_number *w, bool *money)
{
    bool sign = false, open = false;
    size_t n;
    for (;; p = skip_blanks(p)) {
        if (!sign && !open && (*p == '-' || *p == '+')) {
            sign = true;
            w->minus = *p++ == '-';
        } else if (!sign && !open && *p == '(') {
            open = w->minus = true;
            p++;
        } else if (w->unit[0] == '\0' && (n = unit_at(p, strlen(p), false, false)) > 0) {
            memcpy(w->unit, p, n);
            p += n;
            *money = *p == ' ' || digit(*p) || *p == '.' || *p == ',' || *p == '-' || *p == '(';
        } else
            break;
    }
    n = body_length(p);
    memcpy(w->digits, p, n);
    w->digits[n] = '\0';
    p += n;
    bool apart = *p == ' ';
    p = skip_blanks(p);
    if (n > 0 && w->unit[0] == '\0' && (n = unit_at(p, strlen(p), true, apart)) > 0) {
        memcpy(w->unit, p, n);
        p = skip_blanks(p + n);
    }
    if (open && *p == ')')
        p = skip_blanks(p + 1);
    else if (open)
        return false;
    return w->digits[0] != '\0' && *p == '\0';
}

enum notation_look notation_look(const uint8_t *p, size_t n, struct notation_number *w)
{
    char text[NUMBER_MAX + 1];
    bool money = false, digits_in = false;
    *w = (struct notation_number){0};
    for (size_t i = 0; i < n && !digits_in; i++)
        digits_in = digit((char)p[i]);
    if (!digits_in)
        return NOTATION_NONE;
    /* A cell that is too long for a number is a word, unless it has only digits and points. */
    if (to_ascii(p, n, text, sizeof text) == SIZE_MAX) {
        for (size_t i = 0; i < n; i++)
            if (p[i] != '.' && !digit((char)p[i]))
                return NOTATION_NONE;
        return NOTATION_BROKEN;
    }
    bool whole = take_apart(skip_blanks(text), w, &money);
    w->notations = whole ? notations_of(w->digits) : 0;
    w->point = strchr(w->digits, '.') != NULL;
    w->comma = strchr(w->digits, ',') != NULL;
    if (w->notations != 0)
        return NOTATION_NUMBER;
    return whole || looks_broken(text, money) ? NOTATION_BROKEN : NOTATION_NONE;
}

double notation_value(const struct notation_number *w, uint32_t notations)
{
    char plain[NUMBER_MAX + 1];
    size_t n = 0;
    double v = 0;
    const char mark = (notations & NOTATION_COMMA) != 0 ? ',' : '.';
    if ((notations & NOTATION_HEX) != 0) {
        v = (double)strtoull(w->digits, NULL, 16);
        return w->minus ? -v : v;
    }
    for (const char *p = w->digits; *p != '\0'; p++)
        if (*p == mark)
            plain[n++] = '.';
        else if (strchr(".,' _", *p) == NULL)
            plain[n++] = *p;
    bool is = number_is((const uint8_t *)plain, n, &v);
    assert(is);
    return w->minus ? -v : v;
}
