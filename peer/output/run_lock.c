/* peer/output/run_lock.c -- writes and compares the text that says to which run an output directory
 * belongs. */
#include "peer/output/run_lock.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_SHOWN = 48 /* Largest number of bytes of a value that a message shows. */ };

static const char command_key[] = "command";

/* One key=value line of an identity text. Key and value point into the text and have no NUL at
 * their end. */
struct line
{
    const char *key, *value;
    size_t n_key, n_value;
};

/* ---- Writing an identity text. ---- */

static bool is_plain(char c)
{
    return c >= ' ' && c <= '~';
}

/* Appends a key=value line. Bytes that are not printable ASCII become '?', so that a value cannot
 * add lines. */
static void put(char out[RUN_IDENTITY_TEXT_MAX], const char *dashes, const char *key,
                const char *value)
{
    size_t at = strlen(out), line = at;
    int n = snprintf(out + at, RUN_IDENTITY_TEXT_MAX - at, "%s%s=%.*s\n", dashes, key,
                     RUN_IDENTITY_VALUE_MAX, value);
    assert(n > 0 && (size_t)n < RUN_IDENTITY_TEXT_MAX - at);
    for (at += (size_t)n - 1; line < at; line++)
        if (!is_plain(out[line]))
            out[line] = '?';
}

void run_identity_write(char out[RUN_IDENTITY_TEXT_MAX], const char *command,
                        const struct run_identity_flag *flags, const char *run_text)
{
    out[0] = '\0';
    put(out, "", command_key, command);
    for (; flags != NULL && flags->name != NULL; flags++)
        if (flags->value != NULL)
            put(out, "--", flags->name, flags->value);
    size_t at = strlen(out), n = strlen(run_text);
    assert(at + n < RUN_IDENTITY_TEXT_MAX);
    memcpy(out + at, run_text, n + 1);
}

/* ---- Reading an identity text. ---- */

/* Reads the line at `*at` and moves `*at` past it. Returns false at the end of the text. A line
 * without '=' becomes a key with an empty value. */
static bool next_line(const char **at, struct line *l)
{
    if (**at == '\0')
        return false;
    size_t n = strcspn(*at, "\n");
    const char *equals = memchr(*at, '=', n);
    l->key = *at;
    l->n_key = equals != NULL ? (size_t)(equals - *at) : n;
    l->value = *at + l->n_key + (equals != NULL);
    l->n_value = n - l->n_key - (equals != NULL);
    *at += n + ((*at)[n] == '\n');
    return true;
}

static bool find(const char *text, const struct line *wanted, struct line *l)
{
    while (next_line(&text, l))
        if (l->n_key == wanted->n_key && memcmp(l->key, wanted->key, l->n_key) == 0)
            return true;
    return false;
}

static bool same_value(const struct line *a, const struct line *b)
{
    return a->n_value == b->n_value && memcmp(a->value, b->value, a->n_value) == 0;
}

static bool is_command(const struct line *l)
{
    return l->n_key == sizeof command_key - 1 && memcmp(l->key, command_key, l->n_key) == 0;
}

const char *run_identity_run_text(const char *text)
{
    for (const char *at = text; *at != '\0'; text = at) {
        struct line l;
        next_line(&at, &l);
        bool own = l.n_key >= 2 && memcmp(l.key, "--", 2) == 0;
        if (!own && !is_command(&l))
            return text;
    }
    return text;
}

/* ---- Listing the keys that differ. ---- */

static void add(char why[RUN_IDENTITY_WHY_MAX], const char *text, size_t n)
{
    size_t at = strlen(why);
    for (size_t i = 0; i < n && at + 1 < RUN_IDENTITY_WHY_MAX; i++)
        why[at++] = is_plain(text[i]) ? text[i] : '?';
    why[at] = '\0';
}

static void add_text(char why[RUN_IDENTITY_WHY_MAX], const char *text)
{
    add(why, text, strlen(text));
}

/* Returns the offset from which two different values are shown in an error message. At most
 * VALUE_SHOWN bytes of each value are shown, and the first difference is among them. */
static size_t shown_from(const struct line *there, const struct line *here)
{
    size_t i = 0;
    while (there != NULL && here != NULL && i < there->n_value && i < here->n_value
           && there->value[i] == here->value[i])
        i++;
    return i < VALUE_SHOWN * 3 / 4 ? 0 : i - VALUE_SHOWN / 4;
}

static void add_value(char why[RUN_IDENTITY_WHY_MAX], const struct line *l, size_t from)
{
    if (l == NULL) {
        add_text(why, "none");
        return;
    }
    size_t n = l->n_value - from;
    add_text(why, from > 0 ? "..." : "");
    add(why, l->value + from, n < VALUE_SHOWN ? n : VALUE_SHOWN);
    if (n > VALUE_SHOWN)
        add_text(why, "...");
}

/* Adds one differing key with its two values to `why`. `there`, `here`: the key's line in run.txt
 * and in the identity of this run. NULL: the text has no line with the key. Only the first
 * RUN_IDENTITY_KEYS_SHOWN keys are added. */
static void name_key(char why[RUN_IDENTITY_WHY_MAX], size_t n_before, const struct line *there,
                     const struct line *here)
{
    const struct line *l = there != NULL ? there : here;
    size_t from = shown_from(there, here);
    if (n_before >= RUN_IDENTITY_KEYS_SHOWN)
        return;
    if (n_before > 0)
        add_text(why, "; ");
    add(why, l->key, l->n_key < VALUE_SHOWN ? l->n_key : VALUE_SHOWN);
    add_text(why, "=");
    add_value(why, there, from);
    add_text(why, " there, ");
    add_value(why, here, from);
    add_text(why, " here");
}

size_t run_identity_differ(const char *there, const char *here, char why[RUN_IDENTITY_WHY_MAX])
{
    struct line a, b;
    size_t n = 0;
    why[0] = '\0';
    for (const char *at = there; next_line(&at, &a);) {
        bool both = find(here, &a, &b);
        if (both && same_value(&a, &b))
            continue;
        name_key(why, n++, &a, both ? &b : NULL);
        if (both && is_command(&a))
            /* If the commands differ, all keys differ, too, so only the command is listed. */
            return n;
    }
    for (const char *at = here; next_line(&at, &b);)
        if (!find(there, &b, &a))
            name_key(why, n++, NULL, &b);
    if (n > RUN_IDENTITY_KEYS_SHOWN) {
        char more[40];
        snprintf(more, sizeof more, "; and %zu more", n - RUN_IDENTITY_KEYS_SHOWN);
        add_text(why, more);
    }
    return n;
}
