/* peer/http/text.c -- a text buffer that doubles its capacity as it grows. */
#include "peer/http/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096 };

/* Makes room for n more bytes and the NUL. Returns false if memory is short. */
static bool reserve(struct text *t, size_t n)
{
    size_t cap = t->cap > 0 ? t->cap : ROOM;
    while (cap < t->n + n + 1)
        cap *= 2;
    char *p = cap > t->cap ? realloc(t->p, cap) : t->p;
    t->failed |= p == NULL;
    if (p == NULL)
        return false;
    t->p = p;
    t->cap = cap;
    return true;
}

void text_add_bytes(struct text *t, const char *p, size_t n)
{
    if (t->failed || !reserve(t, n))
        return;
    memcpy(t->p + t->n, p, n);
    t->n += n;
    t->p[t->n] = '\0';
}

void text_add(struct text *t, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    if (n >= 0 && !t->failed && reserve(t, (size_t)n)) {
        vsnprintf(t->p + t->n, (size_t)n + 1, format, again);
        t->n += (size_t)n;
    }
    va_end(again);
    va_end(list);
}

void text_clear(struct text *t)
{
    t->n = 0;
    t->failed = false;
}

void text_close(struct text *t)
{
    free(t->p);
    *t = (struct text){.p = NULL};
}
