/* nn/math/spelling.c -- edit distances between names, and the most similar of several names. */
#include "nn/math/spelling.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    DISTANCE_MAX = 63, /* Largest length in bytes of the texts that are compared. */
    WORD_MAX = DISTANCE_MAX + 1
};

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Compares two letters, ignoring case. */
static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

size_t spelling_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > DISTANCE_MAX || nb > DISTANCE_MAX)
        return na + nb;
    /* now[j] is the distance between the first i bytes of a and the first j bytes of b. A swap
     * needs the row before the previous one, so three rows of the table are kept. */
    size_t rows[3][DISTANCE_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])
                && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        /* Only the last two rows of the table of distances and the current row are kept. The memory
         * of the oldest row is used for the next row. */
        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[nb];
}

/* At most 1 + (n + 2) / 4 edits are allowed, where n is the length of b. n edits or more are never
 * allowed, because texts at such a distance may have nothing in common. */
bool spelling_enough(const char *a, const char *b)
{
    size_t n = strlen(b), d = spelling_distance(a, b);
    return d <= (n + 2) / 4 + 1 && d < n;
}

/* Keeps the better of `name` and the best name so far. A name that is similar enough to be
 * suggested is better than one that is not, even if its distance is larger. This can be, because
 * the allowed distance grows with the length of the name. Otherwise the name with the smaller
 * distance is better. */
void spelling_try(struct spelling *n, const char *name)
{
    size_t d = spelling_distance(n->found, name);
    bool near = spelling_enough(n->found, name), had = spelling_meant(n) != NULL;
    if (n->best != NULL && (near != had ? had : d >= n->distance))
        return;
    n->best = name;
    n->distance = d;
}

void spelling_try_choices(struct spelling *n, const char *choices, char room[SPELLING_CHOICES_MAX])
{
    snprintf(room, SPELLING_CHOICES_MAX, "%s", choices);
    for (char *at = room; at != NULL;) {
        char *bar = strchr(at, '|');
        if (bar != NULL)
            *bar++ = '\0';
        spelling_try(n, at);
        at = bar;
    }
}

const char *spelling_meant(const struct spelling *n)
{
    return n->best != NULL && spelling_enough(n->found, n->best) ? n->best : NULL;
}

const char *spelling_question(const struct spelling *n, char *out, size_t cap)
{
    const char *meant = spelling_meant(n);
    snprintf(out, cap, "%s%s%s", meant != NULL ? ", did you mean " : "", meant != NULL ? meant : "",
             meant != NULL ? "?" : "");
    return out;
}

/* Compares the text found[0..n) with all names. The result holds the most similar name. `word` gets
 * a NUL-terminated copy of found[0..n). */
static struct spelling nearest(const struct spelling_specs *s, char word[WORD_MAX],
                               const char *found, size_t n)
{
    struct spelling near = {.found = word};
    const char *name;
    memcpy(word, found, n);
    word[n] = '\0';
    for (size_t i = 0; (name = s->name(i)) != NULL; i++)
        spelling_try(&near, name);
    return near;
}

/* A misspelt spec can be read in two ways: the name includes digits ("fp16"), or the colon before
 * the digits was forgotten ("topk0.1"). Both are tried, and the reading with the smaller edit
 * distance is used. */
const char *spelling_spec(const struct spelling_specs *s, const char *found,
                          char out[SPELLING_QUESTION_MAX])
{
    char words[2][WORD_MAX], spec[SPELLING_QUESTION_MAX / 2] = "";
    size_t n = strcspn(found, ":"), letters = strcspn(found, ":0123456789.-");
    out[0] = '\0';
    if (n >= WORD_MAX)
        return out;
    struct spelling whole = nearest(s, words[0], found, n);
    struct spelling front = nearest(s, words[1], found, letters);
    bool cut = letters < n && spelling_meant(&front) != NULL
               && (spelling_meant(&whole) == NULL || front.distance < whole.distance);
    const char *name = spelling_meant(cut ? &front : &whole);
    /* The user wrote `name` correctly, so only the value after the name can be wrong. There is then
     * no name to suggest. */
    if (name == NULL || (!cut && strcmp(words[0], name) == 0))
        return out;
    const char *value = cut ? found + letters + (found[letters] == '-') : found + n;
    int len = snprintf(spec, sizeof spec, "%s%s%s", name, cut ? ":" : "", value);
    bool whole_fits = len < (int)sizeof spec && (s->valid == NULL || s->valid(spec));
    snprintf(out, SPELLING_QUESTION_MAX, ", did you mean %s?", whole_fits ? spec : name);
    return out;
}
