/* peer/admission/allow_list.c -- parses an allow-list: one identity, an optional name and
 * comment per line. */
#include "peer/admission/allow_list.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEX = 2 * WIRE_ID_BYTES, SHOWN = 40 };

/* One word of a line. It points into the text and has no NUL at its end. */
struct word
{
    const char *p;
    size_t n;
};

static int allow_list_refuse(char error[ALLOW_LIST_ERROR_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int allow_list_refuse(char error[ALLOW_LIST_ERROR_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, ALLOW_LIST_ERROR_MAX, format, args);
    va_end(args);
    return -EINVAL;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Returns the next word of at[0..*n) and moves `*at` past it. At the end of the line the word is
 * empty. */
static struct word next_word(const char **at, size_t *n)
{
    struct word w;
    while (*n > 0 && is_space(**at))
        ++*at, --*n;
    w.p = *at;
    while (*n > 0 && !is_space(**at))
        ++*at, --*n;
    w.n = (size_t)(*at - w.p);
    return w;
}

/* Copies the word for an error message: at most SHOWN bytes, with unprintable bytes as '?'. */
static const char *word_shown(struct word w, char out[SHOWN + 4])
{
    size_t n = w.n < SHOWN ? w.n : SHOWN;
    for (size_t i = 0; i < n; i++)
        out[i] = w.p[i] > ' ' && w.p[i] <= '~' ? w.p[i] : '?';
    strcpy(out + n, w.n > SHOWN ? "..." : "");
    return out;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_id(struct word w, uint8_t id[WIRE_ID_BYTES])
{
    if (w.n != HEX)
        return false;
    for (size_t i = 0; i < WIRE_ID_BYTES; i++) {
        int high = digit(w.p[2 * i]), low = digit(w.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        id[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool is_name(struct word w)
{
    char name[WIRE_NAME_MAX + 1] = "";
    if (w.n > WIRE_NAME_MAX || memchr(w.p, '\0', w.n) != NULL)
        return false;
    memcpy(name, w.p, w.n);
    return wire_name_ok(name);
}

/* Parses one line without its newline. Returns 1 if the line holds an identity, 0 if it is blank,
 * or -EINVAL with a message. */
static int read_line(const char *p, size_t n, size_t number, uint8_t id[WIRE_ID_BYTES],
                     char error[ALLOW_LIST_ERROR_MAX])
{
    char text[SHOWN + 4];
    const char *comment = memchr(p, '#', n);
    if (comment != NULL)
        n = (size_t)(comment - p);
    struct word key = next_word(&p, &n), name = next_word(&p, &n), more = next_word(&p, &n);
    if (key.n == 0)
        return 0;
    if (!read_id(key, id))
        return allow_list_refuse(
            error,
            "line %zu: found '%s' (%zu characters), expected an identity of %d "
            "hexadecimal digits",
            number, word_shown(key, text), key.n, HEX);
    if (name.n > 0 && !is_name(name))
        return allow_list_refuse(
            error,
            "line %zu: found '%s' behind the identity, expected a name of 1 to %d of "
            "A-Z a-z 0-9 . _ -",
            number, word_shown(name, text), WIRE_NAME_MAX);
    if (more.n > 0)
        return allow_list_refuse(
            error, "line %zu: found '%s' behind the name, expected the end of the line", number,
            word_shown(more, text));
    return 1;
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, WIRE_ID_BYTES);
}

/* Sorts `n` identities in place, removes duplicates, and returns the number of distinct
 * identities. */
static size_t sort(uint8_t (*id)[WIRE_ID_BYTES], size_t n)
{
    size_t kept = 0;
    qsort(id, n, sizeof *id, compare);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || compare(id[kept - 1], id[i]) != 0)
            memmove(id[kept++], id[i], sizeof *id);
    return kept;
}

static int read_lines(const char *text, size_t n, uint8_t (*id)[WIRE_ID_BYTES], size_t *n_ids,
                      char error[ALLOW_LIST_ERROR_MAX])
{
    uint8_t one[WIRE_ID_BYTES];
    *n_ids = 0;
    for (size_t at = 0, number = 1; at < n; number++) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end != NULL ? (size_t)(end - (text + at)) : n - at;
        int found = read_line(text + at, length, number, one, error);
        if (found < 0)
            return found;
        if (found > 0 && *n_ids == ALLOW_LIST_IDS_MAX)
            return allow_list_refuse(
                error,
                "line %zu: found more identities than the list may have, expected at most %d",
                number, ALLOW_LIST_IDS_MAX);
        if (found > 0)
            memcpy(id[(*n_ids)++], one, sizeof one);
        at += length + 1;
    }
    return *n_ids > 0 ? 0 : allow_list_refuse(error, "found no identity, expected one per line");
}

/* Parses into a new list, and replaces *f only after the whole text was parsed, so that *f is
 * unchanged after an error. */
int allow_list_parse(struct allow_list *f, const char *text, size_t n,
                     char error[ALLOW_LIST_ERROR_MAX])
{
    size_t n_ids;
    if (n > ALLOW_LIST_BYTES_MAX)
        return allow_list_refuse(error, "found more than %d bytes, expected a list of identities",
                                 ALLOW_LIST_BYTES_MAX);
    uint8_t(*id)[WIRE_ID_BYTES] = malloc(ALLOW_LIST_IDS_MAX * sizeof *id);
    if (id == NULL) {
        snprintf(error, ALLOW_LIST_ERROR_MAX, "no memory for a list of identities");
        return -ENOMEM;
    }
    int err = read_lines(text, n, id, &n_ids, error);
    if (err < 0) {
        free(id);
        return err;
    }
    allow_list_close(f);
    *f = (struct allow_list){.n = sort(id, n_ids), .id = id};
    return 0;
}

void allow_list_close(struct allow_list *f)
{
    free(f->id);
    *f = (struct allow_list){0};
}

bool allow_list_has(const struct allow_list *f, const uint8_t id[WIRE_ID_BYTES])
{
    return f->n > 0 && bsearch(id, f->id, f->n, sizeof *f->id, compare) != NULL;
}
