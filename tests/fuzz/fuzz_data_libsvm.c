/* tests/fuzz/fuzz_data_libsvm.c -- fuzzes the readers of libsvm files and of plain text, in one or
 * two files.
 *
 * The first byte of the input selects the reader's options. */
#include "tests/fuzz/data_target.h"

#include "nn/data/lines.h"

/* Options of the reader. The first byte of the input, modulo the number of entries, selects an
 * entry of this table. */
static const struct reader readers[] = {
    {.kind = "libsvm", .divide = 1},
    {.kind = "libsvm", .divide = 1e-30},
    {.kind = "libsvm", .divide = 1, .features = 123},
    {.kind = "libsvm/123x2/pm", .divide = 1},
    {.kind = "libsvm/20x3/1/16", .divide = 1},
    {.kind = "text/4", .divide = 1},
};

/* Splits the input in the middle into two files if the top bit of its first byte is set. */
static size_t cut(const uint8_t *p, size_t n, bool two, struct lines_file files[2])
{
    size_t first = two ? n / 2 : n;
    files[0] = (struct lines_file){"first", p, first};
    files[1] = (struct lines_file){"second", p + first, n - first};
    return two ? 2 : 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n == 0)
        return 0;
    struct reader r = readers[(p[0] & 127) % (sizeof readers / sizeof *readers)];
    struct lines_file files[2];
    r.n_paths = cut(p + 1, n - 1, p[0] & 128, files);
    struct dataset d;
    char error[DATA_ERROR_MAX];
    memset(&d, 0xa5, sizeof d);
    int err =
        r.kind[0] == 't' ? text_parse(&d, &r, files, error) : libsvm_parse(&d, &r, files, error);
    if (err < 0)
        check_refused(&d, error);
    else
        check_and_close(&d, n);
    bool looks = libsvm_looks(p + 1, n - 1, true);
    if (err == 0 && strcmp(r.kind, "libsvm") == 0 && r.features == 0 && r.n_paths == 1)
        /* libsvm_looks() must recognise each valid file, unless the file's first index:value entry
         * is behind the 32 bytes that libsvm_looks() inspects. */
        demand(looks || n > 32);
    (void)libsvm_looks(p + 1, n - 1, false);
    return 0;
}
