/* peer/run/key.c -- checks the value of one run key and converts it to canonical text.
 *
 * All spellings of a value have the same canonical text, so that equal runs have equal texts. A
 * text value is checked by the module that defines it, through the function run_key.canonical. */
#include "peer/run/key.h"

#include "nn/math/number.h"
#include "nn/math/spelling.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    WORD_MAX = 24, /* Size of the buffer for the text "'auto' or ", in bytes with the NUL. */
    EXPECTED_MAX = 96 + SPELLING_QUESTION_MAX
};

/* ---- Error messages. Quoted values may come from another peer. ---- */

const char *run_quote(char out[RUN_QUOTE_MAX + 4], const char *found)
{
    size_t n = 0;
    for (; found[n] != '\0' && n < RUN_QUOTE_MAX; n++) {
        unsigned char c = (unsigned char)found[n];
        out[n] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    memcpy(out + n, found[n] != '\0' ? "..." : "", found[n] != '\0' ? 4 : 1);
    return out;
}

int run_refuse(char error[RUN_ERROR_MAX], const char *name, const char *found, const char *expected)
{
    char q[RUN_QUOTE_MAX + 4];
    snprintf(error, RUN_ERROR_MAX, "--%s: found '%s', expected %.200s", name, run_quote(q, found),
             expected);
    return -EINVAL;
}

/* `sentence` may quote bytes from another peer, so unprintable bytes are replaced by '?'. */
int run_refuse_as(char error[RUN_ERROR_MAX], const char *name, const char *sentence)
{
    int at = snprintf(error, RUN_ERROR_MAX, "--%s: ", name);
    size_t n = (size_t)at;
    for (; *sentence != '\0' && n + 1 < RUN_ERROR_MAX; sentence++) {
        unsigned char c = (unsigned char)*sentence;
        error[n++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    error[n] = '\0';
    return -EINVAL;
}

/* ---- Converting a text to its canonical text. ---- */

/* Writes "'auto' or ", for an error message, if the key also accepts a word such as "auto".
 * Otherwise writes "". */
static const char *or_word(const struct run_key *key, char out[WORD_MAX])
{
    out[0] = '\0';
    if (key->word != NULL)
        snprintf(out, WORD_MAX, "'%s' or ", key->word);
    return out;
}

/* Writes ", did you mean auto?", for an error message, if the value is similar to a word that the
 * key accepts. Otherwise writes "". */
static const char *no_word(const struct run_key *key, const char *value,
                           char out[SPELLING_QUESTION_MAX])
{
    struct spelling near = {.found = value};
    if (key->word != NULL)
        spelling_try(&near, key->word);
    return spelling_question(&near, out, SPELLING_QUESTION_MAX);
}

static int refuse_choice(const struct run_key *key, const char *value, char error[RUN_ERROR_MAX])
{
    char expected[SPELLING_CHOICES_MAX + SPELLING_QUESTION_MAX], question[SPELLING_QUESTION_MAX];
    char room[SPELLING_CHOICES_MAX];
    struct spelling near = {.found = value};
    spelling_try_choices(&near, key->choices, room);
    snprintf(expected, sizeof expected, "%s%s", key->choices,
             spelling_question(&near, question, sizeof question));
    return run_refuse(error, key->name, value, expected);
}

/* Checks a whole number. Its canonical text has no leading zeros. */
static int canonical_uint(const struct run_key *key, const char *value, char out[RUN_VALUE_MAX],
                          char error[RUN_ERROR_MAX])
{
    char expected[EXPECTED_MAX], word[WORD_MAX], question[SPELLING_QUESTION_MAX];
    uint64_t v;
    if (!number_whole(value, &v) || v < key->min || v > key->max) {
        snprintf(expected, sizeof expected, "%sa whole number from %llu to %llu%s",
                 or_word(key, word), (unsigned long long)key->min, (unsigned long long)key->max,
                 no_word(key, value, question));
        return run_refuse(error, key->name, value, expected);
    }
    snprintf(out, RUN_VALUE_MAX, "%llu", (unsigned long long)v);
    return 0;
}

/* Checks a real number. Its canonical text is the shortest one that reads back as the same double,
 * so that 5e-2 and 0.0500 give the same run. */
static int canonical_real(const struct run_key *key, const char *value, char out[RUN_VALUE_MAX],
                          char error[RUN_ERROR_MAX])
{
    char expected[EXPECTED_MAX], word[WORD_MAX], question[SPELLING_QUESTION_MAX];
    double v;
    if (!number_real(value, &v) || !(v >= key->low && v <= key->high)) {
        snprintf(expected, sizeof expected, "%sa number from %g to %g%s", or_word(key, word),
                 key->low, key->high, no_word(key, value, question));
        return run_refuse(error, key->name, value, expected);
    }
    /* Adding 0.0 turns -0 into 0, so that both have the same text. */
    number_real_text(v + 0.0, out);
    return 0;
}

int run_canonical_value(const struct run_key *key, const char *value, char out[RUN_VALUE_MAX],
                        char error[RUN_ERROR_MAX])
{
    if (key->word != NULL && strcmp(value, key->word) == 0) {
        memcpy(out, value, strlen(value) + 1);
        return 0;
    }
    switch (key->kind) {
    case RUN_TEXT:
        return key->canonical(value, out, error);
    case RUN_UINT:
        return canonical_uint(key, value, out, error);
    case RUN_REAL:
        return canonical_real(key, value, out, error);
    case RUN_CHOICE:
        if (number_choice(key->choices, value) < 0)
            return refuse_choice(key, value, error);
        memcpy(out, value, strlen(value) + 1);
        return 0;
    }
    assert(0 && "a kind of key");
    return -EINVAL;
}

/* Only a key whose value is a whole number can be without a default. Its `fallback` is then less
 * than its `min`. */
bool run_key_has_default(const struct run_key *key)
{
    uint64_t v;
    return key->kind != RUN_UINT || !number_whole(key->fallback, &v) || v >= key->min;
}
