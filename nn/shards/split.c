#include "nn/shards/split.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands behind a prefix; NULL where the text begins otherwise. */
static const char *behind(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static bool parse_alpha(const char *number, double *alpha)
{
    char *end = NULL;
    /* Digits only: strtod would take "inf", hex and spaces, too. */
    if (strspn(number, "0123456789.e-+") == strlen(number)
        && ((*number >= '0' && *number <= '9') || *number == '.'))
        *alpha = strtod(number, &end);
    return end && *end == '\0' && *alpha >= SHARD_ALPHA_MIN && *alpha <= SHARD_ALPHA_MAX;
}

/* A whole decimal number from 1 on, without a leading zero. */
static bool parse_per_part(const char *number, uint32_t *k)
{
    size_t n = strlen(number);
    if (n == 0 || n > 3 || strspn(number, "0123456789") != n || *number == '0')
        return false;
    *k = (uint32_t)strtoul(number, NULL, 10);
    return *k <= SHARD_PER_PART_MAX;
}

int shard_split_parse(struct shard_split *s, const char *text, char error[DATA_ERROR_MAX])
{
    *s = (struct shard_split){.fall = SHARD_IID};
    if (strcmp(text, "iid") == 0)
        return 0;
    s->fall = SHARD_FILE;
    if (strcmp(text, "file") == 0)
        return 0;
    s->fall = SHARD_LABEL;
    const char *number = behind(text, "label:");
    if (number && parse_per_part(number, &s->per_part))
        return 0;
    s->fall = SHARD_DIRICHLET;
    number = behind(text, "dirichlet:");
    if (number && parse_alpha(number, &s->alpha))
        return 0;
    snprintf(error, DATA_ERROR_MAX,
             "found \"%.60s\", expected iid, dirichlet:ALPHA with ALPHA from %g "
             "to %g, label:K with K from 1 to %d, or file",
             text, SHARD_ALPHA_MIN, SHARD_ALPHA_MAX, SHARD_PER_PART_MAX);
    return -EINVAL;
}

static void print_alpha(double alpha, char text[SHARD_SPLIT_MAX])
{
    const char *number = text + sizeof "dirichlet:" - 1;
    double back = -1;
    for (int digits = 1; digits <= 17 && back != alpha; digits++) {
        snprintf(text, SHARD_SPLIT_MAX, "dirichlet:%.*g", digits, alpha);
        back = strchr(number, 'e') ? -1 : strtod(number, NULL); /* Not 1e+02. */
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
