/* nn/math/spelling.h -- the name that was meant by a mistyped one.
 *
 * Distance counts swapped neighbours as one mistake, since that is how fingers err
 * ("loacl"). Short names bear one mistake, longer ones one more for each four letters.
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

/* Edit distance with swaps of neighbours (optimal string alignment), texts
 * of up to 63 bytes, capitals as small letters; longer ones count as far apart. */
size_t spelling_distance(const char *a, const char *b);

/* Returns whether b is similar enough to a to be proposed. */
bool spelling_enough(const char *a, const char *b);

/* A search for the most similar of many names. All texts are borrowed. */
struct spelling
{
    /* The text that was found. Set by the caller before the first name is tried. */
    const char *found;
    const char *best; /* The most similar name so far. NULL before the first. */
    size_t distance;  /* Distance of `best`. */
};

/* Tries a name. Of two names at the same distance the first is kept. */
void spelling_try(struct spelling *n, const char *name);

/* Try each of the choices "a|b|c"; one that ends in ":N" as it is written. Only the first
 * SPELLING_CHOICES_MAX bytes of the list are looked at. `room` holds the names, and must live as long
 * as what spelling_meant() returns is used. */
enum { SPELLING_CHOICES_MAX = 128 };
void spelling_try_choices(struct spelling *n, const char *choices, char room[SPELLING_CHOICES_MAX]);

/* Returns the most similar name that was tried if it is similar enough, else NULL. */
const char *spelling_meant(const struct spelling *n);

/* The end of a sentence that refuses a name: ", did you mean ring?" in out[0..cap), or "" where
 * nothing is near. Returns out. */
const char *spelling_question(const struct spelling *n, char *out, size_t cap);

/* Proposes a spec "NAME" or "NAME:VALUE": for "tpok:0.1" and for "topk0.1" the text is ", did
 * you mean topk:0.1?". */
struct spelling_specs
{
    const char *(*name)(size_t i); /* Returns the i-th name. NULL: no more names. */
    /* Returns whether a spec is valid. NULL: not checked. If the whole proposal is not valid,
     * only the name is proposed. */
    bool (*valid)(const char *spec);
};
enum { SPELLING_QUESTION_MAX = 96 };
const char *spelling_spec(const struct spelling_specs *s, const char *found,
                          char out[SPELLING_QUESTION_MAX]);

#endif
