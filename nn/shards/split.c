/* nn/shards/split.c -- parses and prints partitions, such as "dirichlet:0.5": how the samples of a
 * set are divided among the shards. */
#include "nn/shards/split.h"

#include "nn/math/number.h"
#include "nn/math/spelling.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If `text` begins with the prefix, returns the rest of the text, else NULL. */
static const char *behind(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static bool parse_alpha(const char *number, double *alpha)
{
    /* Refuses a sign and an upper-case E. Otherwise number_real() would accept several spellings of
     * one number. */
    if (strchr("+-", *number) != NULL || strchr(number, 'E') != NULL || !number_real(number, alpha))
        return false;
    return *alpha >= SHARD_ALPHA_MIN && *alpha <= SHARD_ALPHA_MAX;
}

static const char *name_at(size_t i)
{
    static const char *const names[] = {"iid", "dirichlet", "label", "file"};
    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

static bool is_valid(const char *text)
{
    char error[DATA_ERROR_MAX];
    struct shard_split s;
    return shard_split_parse(&s, text, error) == 0;
}

/* Tries the four forms of a partition (iid, dirichlet, label, file) in turn. The error message
 * names all of them. */
int shard_split_parse(struct shard_split *s, const char *text, char error[DATA_ERROR_MAX])
{
    static const struct spelling_specs specs = {name_at, is_valid};
    char question[SPELLING_QUESTION_MAX];
    *s = (struct shard_split){.fall = SHARD_IID};
    if (strcmp(text, "iid") == 0)
        return 0;
    s->fall = SHARD_FILE;
    if (strcmp(text, "file") == 0)
        return 0;
    s->fall = SHARD_LABEL;
    const char *end = number_count(behind(text, "label:"), SHARD_PER_PART_MAX, &s->per_part);
    if (end != NULL && *end == '\0')
        return 0;
    s->fall = SHARD_DIRICHLET;
    const char *number = behind(text, "dirichlet:");
    if (number != NULL && parse_alpha(number, &s->alpha))
        return 0;
    snprintf(error, DATA_ERROR_MAX,
             "found \"%.60s\", expected iid, dirichlet:ALPHA with ALPHA from %g "
             "to %g, label:K with K from 1 to %d, or file%s",
             text, SHARD_ALPHA_MIN, SHARD_ALPHA_MAX, SHARD_PER_PART_MAX,
             spelling_spec(&specs, text, question));
    return -EINVAL;
}

/* Prints the fewest digits that are read back as the same number, without an exponent, so that
 * each partition has one spelling. */
static void print_alpha(double alpha, char text[SHARD_SPLIT_MAX])
{
    const char *number = text + sizeof "dirichlet:" - 1;
    double back = -1;
    for (int digits = 1; digits <= 17 && back != alpha; digits++) {
        snprintf(text, SHARD_SPLIT_MAX, "dirichlet:%.*g", digits, alpha);
        /* A number that was printed with an exponent, such as 1e+02, is not accepted: more digits
         * are tried. */
        back = strchr(number, 'e') != NULL ? -1 : strtod(number, NULL);
    }
}

void shard_split_print(const struct shard_split *s, char text[SHARD_SPLIT_MAX])
{
    switch (s->fall) {
    case SHARD_IID:
        memcpy(text, "iid", sizeof "iid");
        return;
    case SHARD_DIRICHLET:
        print_alpha(s->alpha, text);
        return;
    case SHARD_LABEL:
        snprintf(text, SHARD_SPLIT_MAX, "label:%u", (unsigned)s->per_part);
        return;
    case SHARD_FILE:
        memcpy(text, "file", sizeof "file");
        return;
    }
    assert(false);
}

bool shard_split_by_label(const struct shard_split *s)
{
    return s->fall == SHARD_DIRICHLET || s->fall == SHARD_LABEL;
}
