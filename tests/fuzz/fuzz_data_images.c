/* tests/fuzz/fuzz_data_images.c -- fuzzes the readers of IDX and CIFAR files.
 *
 *   kind | cut (2 bytes, little-endian) | bytes
 *
 * For IDX, the bytes up to `cut` are images and the rest are labels. For CIFAR, both parts are
 * files. */
#include "tests/fuzz/data_target.h"

#include "nn/data/cifar.h"
#include "nn/data/reader.h"

enum { DEFLATE_MOST = 1032 };

static const char *const kinds[] = {"mnist", "idx", "idx/1x2x3/3", "cifar10", "cifar100"};

/* A gzip file may unpack to at most DEFLATE_MOST times its size. */
static bool is_gzip(const uint8_t *p, size_t n)
{
    return n >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static struct memory_file file[2];
    if (n < 3)
        return 0;
    const char *kind = kinds[p[0] % (sizeof kinds / sizeof *kinds)];
    size_t cut = (size_t)p[1] | (size_t)p[2] << 8;
    cut = cut < n - 3 ? cut : n - 3;
    const char *paths[] = {memory_file_put(&file[0], p + 3, cut),
                           memory_file_put(&file[1], p + 3 + cut, n - 3 - cut)};
    struct reader r = {.paths = paths, .n_paths = 2, .kind = kind, .divide = 1};
    if (kind[0] == 'c' && cut == n - 3)
        r.n_paths = 1;
    struct dataset d;
    char error[DATA_ERROR_MAX];
    memset(&d, 0xa5, sizeof d);
    int err = kind[0] == 'c' ? cifar_read(&d, &r, error) : idx_read(&d, &r, error);
    if (err < 0)
        check_refused(&d, error);
    else
        check_and_close(
            &d, n * (is_gzip(p + 3, cut) || is_gzip(p + 3 + cut, n - 3 - cut) ? DEFLATE_MOST : 1));
    (void)idx_looks(p + 3, cut, true);
    (void)cifar_looks_10(p + 3, cut, true);
    (void)cifar_looks_100(p + 3, cut, true);
    return 0;
}
