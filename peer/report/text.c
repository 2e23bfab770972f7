/* peer/report/text.c -- a growing text; HTML, CSV and numbers in it. */
#include "peer/report/text.h"

#include "nn/math/number.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAP_FIRST = 4096, PRINTED_MAX = 1024 };

void report_text_close(struct report_text *t)
{
    free(t->bytes);
    *t = (struct report_text){0};
}

/* Room for n more bytes and the NUL. */
static bool make_room(struct report_text *t, size_t n)
{
    if (t->broken || n >= SIZE_MAX / 2 - t->n) {
        t->broken = true;
        return false;
    }
    size_t need = t->n + n + 1, cap = t->cap > 0 ? t->cap : CAP_FIRST;
    while (cap < need)
        cap *= 2;
    if (cap == t->cap)
        return true;
    char *bytes = realloc(t->bytes, cap);
    if (bytes == NULL) {
        t->broken = true;
        return false;
    }
    t->bytes = bytes;
    t->cap = cap;
    return true;
}

void report_text_bytes(struct report_text *t, const void *bytes, size_t n)
{
    if (!make_room(t, n))
        return;
    if (n > 0)
        memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    t->bytes[t->n] = '\0';
}

void report_text_put(struct report_text *t, const char *text)
{
    report_text_bytes(t, text, strlen(text));
}

void report_text_print(struct report_text *t, const char *format, ...)
{
    char text[PRINTED_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert(n >= 0 && n < PRINTED_MAX);
    report_text_bytes(t, text, (size_t)n);
}

/* ---- HTML ---- */

/* How many bytes the character at p takes, 0 where it is no valid UTF-8 (RFC 3629: no overlong
 * forms, no surrogates, nothing above U+10FFFF). */
static size_t character(const unsigned char *p)
{
    static const struct
    {
        unsigned char from, to, second_from, second_to;
        size_t n;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (p[0] < forms[i].from || p[0] > forms[i].to)
            continue;
        if (forms[i].n > 1 && (p[1] < forms[i].second_from || p[1] > forms[i].second_to))
            return 0;
        for (size_t k = 2; k < forms[i].n; k++)
            if (p[k] < 0x80 || p[k] > 0xbf)
                return 0;
        return forms[i].n;
    }
    return 0;
}

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    }
    return NULL;
}

void report_text_html(struct report_text *t, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p != '\0') {
        size_t n = character(p);
        const char *escaped = entity((char)*p);
        bool control = *p < 0x20 || *p == 0x7f || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0);
        if (escaped != NULL)
            report_text_put(t, escaped);
        else if (n == 0 || control)
            report_text_put(t, "?");
        else
            report_text_bytes(t, p, n);
        p += n > 0 ? n : 1;
    }
}

/* ---- CSV ---- */

void report_text_csv(struct report_text *t, const char *text)
{
    double x;
    bool formula = text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL && !number_real(text, &x);
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted)
        report_text_put(t, "\"");
    if (formula)
        report_text_put(t, "'");
    for (const char *p = text; *p != '\0'; p++)
        report_text_bytes(t, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    if (quoted)
        report_text_put(t, "\"");
}

void report_text_number(struct report_text *t, double x)
{
    char text[NUMBER_TEXT_MAX];
    if (!isfinite(x))
        return;
    number_real_text(x, text);
    report_text_put(t, text);
}
