/* tests/fuzz/fuzz_moments.c -- fuzzes the column statistics of a member.
 *
 * Any bytes give either an error message, or statistics that can be pooled and make a valid
 * description of the data (nn/data/kind.h). */
#include "nn/data/column_statistics.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_kind(struct column_statistics *m)
{
    char kind[DATA_KIND_MAX], why[COLUMN_STATISTICS_WHY_MAX];
    for (size_t i = 0; i < m->columns.n; i++)
        assert(isfinite(m->of[i].mean) && isfinite(m->of[i].m2) && m->of[i].m2 >= 0);
    column_statistics_settle(m);
    if (column_statistics_kind(m, kind, why) == 0)
        assert(data_kind_fixed(kind));
}

/* The bytes are copied to blocks of exactly their size, so that a sanitizer detects a read
 * beyond them. The second half of the input is the message of another member. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static uint8_t again[COLUMN_STATISTICS_BYTES_MAX];
    struct column_statistics m[2], all;
    const struct column_statistics *of[2] = {&m[0], &m[1]};
    const char *wrong = NULL;
    size_t n_good = 0, half = n / 2;
    for (size_t i = 0; i < 2; i++) {
        size_t len = i == 0 ? half : n - half;
        uint8_t *exact = malloc(len > 0 ? len : 1);
        assert(exact != NULL);
        if (len > 0)
            memcpy(exact, data + (i == 0 ? 0 : half), len);
        int err = column_statistics_parse(&m[n_good], exact, len, &wrong);
        assert((err == 0) == (wrong == NULL));
        if (err == 0) {
            assert(column_statistics_print(&m[n_good], again, sizeof again) == len);
            assert(memcmp(again, exact, len) == 0);
            n_good++;
        }
        free(exact);
    }
    char why[COLUMN_STATISTICS_WHY_MAX];
    if (n_good == 2 && !column_statistics_differ(of[1], of[0], why)
        && column_statistics_reorder(&m[1], &m[0].schema) == 0)
        for (uint32_t liars = 0; liars < 2; liars++) {
            assert(column_statistics_pool(&all, of, 2, liars) == 0);
            check_kind(&all);
            column_statistics_close(&all);
        }
    for (size_t i = 0; i < n_good; i++) {
        check_kind(&m[i]);
        column_statistics_close(&m[i]);
    }
    return 0;
}
