/* tests/unit/nn_tables.h -- helpers for the tests of tables: write and open files, check error
 * messages and inputs. */
#ifndef NN_TABLES_H
#define NN_TABLES_H

#include "nn/data/data.h"

#include "nn_scratch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static struct scratch s; /* Directory of the table files that a test writes. */
static char error[DATA_ERROR_MAX];

static inline void put(const char *name, const char *text)
{
    scratch_put(&s, name, text, strlen(text));
}

/* Opens "KIND:DIR/NAME,test=DIR/test[rest]". */
static inline int open_table(struct data *d, const char *format, const char *name, const char *rest,
                             const char *kind)
{
    char spec[2000];
    error[0] = '\0';
    snprintf(spec, sizeof spec, "%s:%s/%s,test=%s/test%s", format, s.dir, name, s.dir, rest);
    return data_open(d, &(struct data_request){.spec = spec, .kind = kind}, error);
}

static inline void opened(struct data *d, const char *name, const char *rest, const char *kind)
{
    int err = open_table(d, "csv", name, rest, kind);
    if (err < 0)
        fail_msg("%s%s: %s", name, rest, error);
}

static inline void refused(const char *name, const char *rest, const char *kind,
                           const char *sentence)
{
    struct data d;
    int err = open_table(&d, "csv", name, rest, kind);
    if (err == 0 || strstr(error, sentence) == NULL)
        fail_msg("%s%s: %d, \"%s\", expected \"%s\"", name, rest, err, error, sentence);
    assert_null(d.train.rows);
    assert_null(d.train.columns);
}

/* Checks the inputs of sample i. */
static inline void check_sample(const struct dataset *d, size_t i, const float *want, size_t n)
{
    float out[32];
    assert_true(dataset_dim(d) == n && n <= 32);
    dataset_sample(d, i, out);
    for (size_t k = 0; k < n; k++)
        if (!(fabsf(out[k] - want[k]) <= 1e-6f))
            fail_msg("sample %zu, input %zu: found %g, expected %g", i, k, (double)out[k],
                     (double)want[k]);
}

static inline int setup(void **state)
{
    (void)state;
    scratch_open(&s);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    scratch_close(&s);
    return 0;
}

#endif
