/* tests/fuzz/fuzz_data_gzip.c -- fuzzes the file reader, mostly with gzip files. Each input is read
 * in three ways: as a whole, in small pieces, and with a size limit. */
#include "tests/fuzz/data_target.h"

#include "nn/files/file.h"

enum { PIECE = 7, LIMIT = 1 << 10, DEFLATE_MOST = 1032 };

/* Reads the file in small pieces. The pieces together must equal bytes[0..n), the result of reading
 * the whole file at once. */
static void check_pieces(const char *path, const uint8_t *bytes, size_t n, bool good)
{
    struct file *f;
    char error[DATA_ERROR_MAX];
    int err = file_open(&f, path, error);
    demand(err == 0 || !good);
    if (err < 0)
        return;
    size_t at = 0, got = 1;
    while (err == 0 && got > 0) {
        uint8_t piece[PIECE];
        err = file_get(f, piece, sizeof piece, &got, error);
        demand(err < 0 || !good || (at + got <= n && memcmp(bytes + at, piece, got) == 0));
        at += err < 0 ? 0 : got;
    }
    demand(good ? err == 0 && at == n : err < 0);
    file_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static struct memory_file file;
    const char *path = memory_file_put(&file, p, n);
    bool gzip = n >= 2 && p[0] == 0x1f && p[1] == 0x8b;
    uint8_t *bytes, *again;
    size_t got, n_again;
    char error[DATA_ERROR_MAX] = "";
    int err = file_read(path, SIZE_MAX / 2, NULL, &bytes, &got, error);
    demand(err == 0 ? bytes != NULL || got == 0 : !bytes && strlen(error) > 8);
    if (err == 0)
        demand(gzip ? got <= DEFLATE_MOST * n : got == n && memcmp(bytes, p, n) == 0);
    else
        demand(gzip);
    check_pieces(path, bytes, got, err == 0);
    int limited = file_read(path, LIMIT, NULL, &again, &n_again, error);
    if (err == 0)
        demand((limited == 0) == (got <= LIMIT));
    demand(limited < 0 || (n_again == got && memcmp(again, bytes, got) == 0));
    if (limited == 0)
        free(again);
    free(bytes);
    return 0;
}
