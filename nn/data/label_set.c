/* nn/data/label_set.c -- parses and prints sets of labels. */
#include "nn/data/label_set.h"

#include "nn/math/number.h"

#include <stdio.h>
#include <string.h>

/* Parses a run of labels, such as "5" or "2-4" (2, 3 and 4), at p. Returns the rest, or NULL if p
 * does not begin with a run. */
static const char *run_at(const char *p, uint32_t *from, uint32_t *to)
{
    p = number_plain(p, LABEL_SET_LARGEST, from);
    *to = *from;
    if (p != NULL && *p == '-')
        p = number_plain(p + 1, LABEL_SET_LARGEST, to);
    return p != NULL && *to >= *from ? p : NULL;
}

uint32_t label_set_parse(struct label_set *set, const char *p, size_t n)
{
    char text[LABEL_SET_MAX], again[LABEL_SET_MAX];
    uint32_t count = 0, from = 0, to = 0;
    *set = (struct label_set){0};
    if (n == 0 || n >= sizeof text)
        return 0;
    memcpy(text, p, n);
    text[n] = '\0';
    for (const char *at = text; at != NULL; at = *at == '.' ? at + 1 : NULL) {
        at = run_at(at, &from, &to);
        if (at == NULL || (*at != '.' && *at != '\0'))
            return 0;
        for (uint32_t v = from; v <= to; v++) {
            count += !set->has[v];
            set->has[v] = true;
        }
    }
    return label_set_print(set, again) && strcmp(again, text) == 0 ? count : 0;
}

bool label_set_print(const struct label_set *set, char text[LABEL_SET_MAX])
{
    size_t n = 0;
    text[0] = '\0';
    for (uint32_t v = 0; v <= LABEL_SET_LARGEST && n < LABEL_SET_MAX; v++) {
        uint32_t from = v;
        if (!set->has[v])
            continue;
        while (v < LABEL_SET_LARGEST && set->has[v + 1])
            v++;
        n += (size_t)snprintf(text + n, LABEL_SET_MAX - n, "%s%u", n > 0 ? "." : "", from);
        if (v > from && n < LABEL_SET_MAX)
            n += (size_t)snprintf(text + n, LABEL_SET_MAX - n, "-%u", v);
    }
    return n > 0 && n < LABEL_SET_MAX;
}

uint32_t label_set_label(const char *text, uint32_t class)
{
    uint32_t from = 0, to = 0;
    for (const char *p = text; (p = run_at(p, &from, &to)) != NULL; p++) {
        if (class <= to - from)
            return from + class;
        class -= to - from + 1;
        if (*p == '\0')
            break;
    }
    return to;
}
