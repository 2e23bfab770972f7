/* tests/fuzz/fuzz_data_csv.c -- libFuzzer entry: tables, as one file or two. The first byte
 * says how to read the rest. */
#include "tests/fuzz/data_target.h"

#include "nn/data/lines.h"

/* How to read: the first byte modulo as many as there are. */
static const struct reader readers[] = {
    {.kind = "csv", .header = "auto", .divide = 1},
    {.kind = "csv", .header = "auto", .divide = 16, .label = "y"},
    {.kind = "csv", .header = "yes", .divide = 1, .label = "1"},
    {.kind = "csv", .header = "no", .divide = 1e-30, .label = "2"},
    {.kind = "csv/2x2/pm", .header = "auto", .divide = 1},
    {.kind = "csv/2x3/0/16", .header = "auto", .divide = 1, .label = "1"},
    {.kind = "csv/2x2/names-0123456789abcdef", .header = "auto", .divide = 1},
};

/* A fixed kind reads a table of names again, with and without the list. */
static void check_again(const struct dataset *first, struct reader r,
                        const struct lines_file *files)
{
    struct dataset d;
    char error[DATA_ERROR_MAX];
    r.kind = first->kind;
    r.divide = 1;
    for (int listed = 0; listed < 2; listed++) {
        r.names = listed ? first->names : NULL;
        demand(csv_parse(&d, &r, files, error) == 0);
        demand(strcmp(d.kind, first->kind) == 0 && d.n == first->n);
        demand(memcmp(d.labels, first->labels, d.n * sizeof *d.labels) == 0);
        dataset_close(&d);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n == 0)
        return 0;
    struct reader r = readers[(p[0] & 127) % (sizeof readers / sizeof *readers)];
    size_t first = p[0] & 128 ? (n - 1) / 2 : n - 1;
    const struct lines_file files[] = {{"first", p + 1, first},
                                       {"second", p + 1 + first, n - 1 - first}};
    r.n_paths = p[0] & 128 ? 2 : 1;
    struct dataset d;
    char error[DATA_ERROR_MAX];
    memset(&d, 0xa5, sizeof d);
    if (csv_parse(&d, &r, files, error) < 0)
        check_refused(&d, error);
    else {
        check_again(&d, r, files);
        check_and_close(&d, n);
    }
    (void)csv_looks(p + 1, n - 1, true);
    (void)csv_looks(p + 1, n - 1, false);
    (void)text_looks(p + 1, n - 1, true);
    return 0;
}
