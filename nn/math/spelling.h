/* nn/math/spelling.h -- suggests a name for a misspelt one.
 *
 * The edit distance counts two swapped neighbours as one mistake, because this is a common typing
 * error ("loacl"). In a name of n letters, up to 1 + (n + 2) / 4 mistakes (rounded down) are
 * allowed, but fewer than n.
 *
 *   struct spelling near = {.found = "rign"};
 *   spelling_try(&near, "ring");
 *   spelling_try(&near, "star");
 *   spelling_meant(&near)           "ring"
 */
#ifndef NN_MATH_SPELLING_H
#define NN_MATH_SPELLING_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the edit distance between a and b, in which a swap of two neighbouring letters counts as
 * one edit (optimal string alignment). Upper and lower case are equal. If a text has more than 63
 * bytes, returns the sum of both lengths. */
size_t spelling_distance(const char *a, const char *b);

/* Returns whether b is similar enough to a to be suggested. */
bool spelling_enough(const char *a, const char *b);

/* A search for the most similar of many names. All texts are borrowed. */
struct spelling
{
    /* The misspelt name. Set by the caller before the first name is tried. */
    const char *found;
    const char *best; /* The most similar name so far. NULL: no name has been tried yet. */
    size_t distance;  /* Edit distance between `found` and `best`. */
};

/* Compares a valid name with the misspelt one. Of two names at the same distance, the one that was
 * tried first is kept. */
void spelling_try(struct spelling *n, const char *name);

/* Tries each of the choices in a list "a|b|c" as a name. A choice "word:N" is compared as it is,
 * including the ":N". Only the first SPELLING_CHOICES_MAX - 1 bytes of the list are used. `room`
 * holds copies of the names and must live as long as the result of spelling_meant() is used. */
enum { SPELLING_CHOICES_MAX = 128 };
void spelling_try_choices(struct spelling *n, const char *choices, char room[SPELLING_CHOICES_MAX]);

/* Returns the most similar name that was tried if it is similar enough, else NULL. */
const char *spelling_meant(const struct spelling *n);

/* Writes the end of an error message to out[0..cap): ", did you mean ring?", or "" if no name is
 * similar enough. Returns out. */
const char *spelling_question(const struct spelling *n, char *out, size_t cap);

/* Suggests a spec "NAME" or "NAME:VALUE". For "tpok:0.1" and for "topk0.1" the text is ", did you
 * mean topk:0.1?". */
struct spelling_specs
{
    /* Returns name number i of the list of valid names, from 0, or NULL if there are no more
     * names. */
    const char *(*name)(size_t i);
    /* Returns whether a spec is valid. NULL: specs are not checked. If the suggested name together
     * with the user's value is not a valid spec, the name is suggested without a value. */
    bool (*valid)(const char *spec);
};
enum { SPELLING_QUESTION_MAX = 96 };
const char *spelling_spec(const struct spelling_specs *s, const char *found,
                          char out[SPELLING_QUESTION_MAX]);

#endif
