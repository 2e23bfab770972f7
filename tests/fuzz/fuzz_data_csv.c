/* tests/fuzz/fuzz_data_csv.c -- fuzzes the reader of tables in one or two files.
 *
 * The first byte of the input selects the reader's options. */
#include "tests/fuzz/data_target.h"

#include "nn/data/lines.h"
#include "nn/data/scale.h"

/* Options of the reader. The first byte of the input, modulo the number of entries, selects an
 * entry of this table. */
static const struct reader readers[] = {
    {.kind = "csv", .header = "auto", .divide = 1},
    {.kind = "csv", .header = "auto", .divide = 16, .label = "y"},
    {.kind = "csv", .header = "yes", .divide = 1, .label = "1"},
    {.kind = "csv", .header = "no", .divide = 1e-30, .label = "2"},
    {.kind = "csv/2x2/pm", .header = "auto", .divide = 1},
    {.kind = "csv/2x3/0/16", .header = "auto", .divide = 1, .label = "1"},
    {.kind = "csv/2x2/names-0123456789abcdef", .header = "auto", .divide = 1},
};

/* Reads a table with column names a second time, with the data kind that the first reading fixed:
 * once with the list of names, and once without. */
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

/* Reads the files again with the data kind (description of the columns) of *train, and scales both
 * data sets. The files must also be readable with the kind of the scaled data. */
static void check_scaled(struct scale *s, struct dataset *train, struct reader r,
                         const struct lines_file *files, size_t n)
{
    struct dataset test;
    struct scale again;
    char error[DATA_ERROR_MAX], note[SCALE_NOTE_MAX];
    r.kind = train->kind;
    r.names = train->names;
    /* With header=auto, the first reading may take the first line for column names. The data kind
     * that results tells the second reading which words the columns contain, so the second reading
     * may take the line for a row. */
    bool told = strcmp(r.header, "auto") != 0;
    int err = csv_parse(&test, &r, files, error);
    demand(err == 0 || !told);
    if (err < 0) {
        check_refused(&test, error);
        dataset_close(train);
        return;
    }
    demand(scale_sets(s, train, &test, &(struct schema){0}, "first", note, error) == 0);
    demand(strcmp(train->kind, test.kind) == 0 && data_kind_fixed(train->kind));
    demand(test.n == train->n || !told);
    demand(test.n != train->n
           || memcmp(train->rows, test.rows, test.n * test.stride * sizeof *test.rows) == 0);
    size_t dim = dataset_dim(train);
    float *out = malloc(dim * sizeof *out);
    for (size_t i = 0; out && i < train->n; i++) {
        dataset_sample(train, i, out);
        for (size_t k = 0; k < dim; k++)
            demand(isfinite(out[k]));
    }
    free(out);
    dataset_close(&test);
    demand(scale_open(&again, train->kind, COLUMNS_SCALE_AUTO, 1, error) == 0);
    r.columns = again.strict ? NULL : &again.columns;
    r.kind = train->kind;
    if (csv_parse(&test, &r, files, error) == 0)
        dataset_close(&test);
    else
        demand(!told);
    scale_close(&again);
    check_and_close(train, n);
}

/* Reads the files as tables with columns of every type, and scales them. */
static void run_columns(struct reader r, enum columns_scale wanted, const struct lines_file *files,
                        size_t n)
{
    struct dataset d;
    struct scale s;
    char error[DATA_ERROR_MAX];
    r.divide = 1;
    demand(scale_open(&s, "csv", wanted, 1, error) == 0);
    r.kind = "csv";
    r.columns = &s.columns;
    if (csv_parse(&d, &r, files, error) < 0)
        check_refused(&d, error);
    else
        check_scaled(&s, &d, r, files, n);
    scale_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n == 0)
        return 0;
    struct reader r = readers[(p[0] & 63) % (sizeof readers / sizeof *readers)];
    size_t first = p[0] & 128 ? (n - 1) / 2 : n - 1;
    const struct lines_file files[] = {{"first", p + 1, first},
                                       {"second", p + 1 + first, n - 1 - first}};
    r.n_paths = p[0] & 128 ? 2 : 1;
    struct dataset d;
    char error[DATA_ERROR_MAX];
    if (p[0] & 64) {
        run_columns(r, COLUMNS_SCALE_NONE + (p[0] & 63) % 3, files, n);
        return 0;
    }
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
