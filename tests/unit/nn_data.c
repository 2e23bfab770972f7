/* tests/unit/nn_data.c -- data sets in memory, and files of MNIST, IDX and CIFAR: valid files
 * are read, and each kind of error in a file has its own message. */
#include "nn/data/data.h"

#include "nn/files/file.h"

#include "nn_scratch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { N_TRAIN = 3, N_TEST = 2, PIXELS = 784, IMAGES_MAX = 16 + N_TRAIN * PIXELS, RECORD = 3073 };

static struct scratch s;

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Returns the byte that pixel j of image i has in the test files. */
static uint8_t pixel(size_t i, size_t j)
{
    return (uint8_t)(i * 31 + j * 7);
}

static size_t make_images(uint8_t *p, uint32_t n)
{
    put_u32(p, 0x803);
    put_u32(p + 4, n);
    put_u32(p + 8, 28);
    put_u32(p + 12, 28);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < PIXELS; j++)
            p[16 + i * PIXELS + j] = pixel(i, j);
    return 16 + n * PIXELS;
}

static size_t make_labels(uint8_t *p, uint32_t n)
{
    put_u32(p, 0x801);
    put_u32(p + 4, n);
    for (size_t i = 0; i < n; i++)
        p[8 + i] = (uint8_t)(9 - i);
    return 8 + n;
}

/* Writes the four files of a valid MNIST set. */
static void put_mnist(void)
{
    uint8_t b[IMAGES_MAX];
    scratch_count(&s, 1);
    scratch_put(&s, "train-images-idx3-ubyte", b, make_images(b, N_TRAIN));
    scratch_put_gz(&s, "train-labels-idx1-ubyte.gz", b, make_labels(b, N_TRAIN));
    scratch_put_gz(&s, "t10k-images-idx3-ubyte.gz", b, make_images(b, N_TEST));
    scratch_put(&s, "t10k-labels-idx1-ubyte", b, make_labels(b, N_TEST));
}

static size_t make_batch(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i * RECORD] = (uint8_t)(i % 10);
        for (size_t j = 1; j < RECORD; j++)
            p[i * RECORD + j] = pixel(i, j - 1);
    }
    return n * RECORD;
}

static void put_cifar(void)
{
    uint8_t b[2 * RECORD];
    scratch_count(&s, 1);
    scratch_put(&s, "data_batch_1.bin", b, make_batch(b, 2));
    scratch_put_gz(&s, "data_batch_4.bin.gz", b, make_batch(b, 1));
    scratch_put(&s, "test_batch.bin", b, make_batch(b, 1));
}

static int open_kind(struct data *d, const char *kind, char error[DATA_ERROR_MAX])
{
    char spec[600];
    snprintf(spec, sizeof spec, "%s:%s", kind, s.dir);
    return data_open(d, &(struct data_request){.spec = spec, .seed = 1}, error);
}

/* Opening must fail with one error message that contains `a` and `b`, and must leave no data
 * allocated. */
static void refused(const char *kind, const char *a, const char *b)
{
    struct data d;
    char error[DATA_ERROR_MAX] = "";
    int err = open_kind(&d, kind, error);
    if (err >= 0 || !strstr(error, a) || !strstr(error, b))
        print_error("err %d, error \"%s\", expected \"%s\" and \"%s\"\n", err, error, a, b);
    assert_true(err < 0);
    assert_non_null(strstr(error, a));
    assert_non_null(strstr(error, b));
    assert_null(strchr(error, '\n'));
    assert_null(d.train.pixels);
    assert_null(d.test.labels);
}

/* A data set of each form (images, rows, sparse rows, text) has its own arrays, and returns its
 * samples and labels. */
static void test_forms(void **state)
{
    (void)state;
    struct dataset d;
    float out[8];
    uint16_t label[4];
    assert_int_equal(dataset_init(&d, "csv/3x5/1", 2, 0), 0);
    assert_true(d.shape.form == DATA_ROWS && dataset_dim(&d) == 3 && d.shape.n_classes == 5);
    for (int j = 0; j < 6; j++)
        d.rows[j] = (float)j;
    d.labels[0] = 1;
    d.labels[1] = 4;
    dataset_sample(&d, 1, out);
    dataset_labels(&d, 1, label);
    assert_true(fabsf(out[0] - 3) <= 0 && fabsf(out[2] - 5) <= 0 && label[0] == 4);
    dataset_close(&d);
    assert_int_equal(dataset_init(&d, "text/4", 2, 0), 0);
    assert_true(d.shape.form == DATA_TEXT && dataset_dim(&d) == 4 && !d.labels);
    memcpy(d.text, "abcdefgh\xff", 9);
    dataset_sample(&d, 1, out);
    dataset_labels(&d, 1, label);
    assert_true(fabsf(out[0] - 'e') <= 0 && fabsf(out[3] - 'h') <= 0);
    assert_true(label[0] == 'f' && label[2] == 'h' && label[3] == 255);
    dataset_close(&d);
    assert_int_equal(dataset_init(&d, "libsvm/123x2/pm", 2, 0), 0);
    assert_true(d.shape.form == DATA_SPARSE && dataset_dim(&d) == 123);
    d.start[2] = 0;
    dataset_close(&d);
    assert_int_equal(dataset_init(&d, "cifar100", 1, 0), 0);
    assert_true(d.shape.channels == 3 && d.n == 1 && d.n_files == 1);
    d.pixels[3071] = 0;
    dataset_close(&d);
    assert_null(d.pixels);
}

/* Data sets that are larger than the memory of any machine are refused, and computing their sizes
 * does not overflow. */
static void test_huge(void **state)
{
    (void)state;
    static const char *const kinds[] = {"mnist", "csv/16777216x2/0", "text/4096", "libsvm/3x2/0"};
    struct dataset d;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(dataset_init(&d, kinds[i], SIZE_MAX / 3, 1), -ENOMEM);
        assert_null(d.labels);
    }
    assert_int_equal(dataset_init(&d, "libsvm/3x2/0", 1, SIZE_MAX / 3), -ENOMEM);
}

static void test_mnist(void **state)
{
    (void)state;
    put_mnist();
    struct data d;
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(open_kind(&d, "mnist", error), 0);
    assert_int_equal(d.train.n, N_TRAIN);
    assert_int_equal(d.test.n, N_TEST);
    assert_int_equal(dataset_dim(&d.train), PIXELS);
    float out[PIXELS];
    for (size_t i = 0; i < N_TRAIN; i++) {
        assert_int_equal(d.train.labels[i], 9 - i);
        dataset_sample(&d.train, i, out);
        for (size_t j = 0; j < PIXELS; j++) {
            assert_int_equal(d.train.pixels[i * PIXELS + j], pixel(i, j));
            double want = (pixel(i, j) / 255.0 - 0.1307) / 0.3081;
            assert_true(fabs((double)out[j] - want) <= 1e-6);
        }
    }
    data_close(&d);
    assert_null(d.train.pixels);
}

static void test_cifar(void **state)
{
    (void)state;
    put_cifar();
    struct data d;
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(open_kind(&d, "cifar10", error), 0);
    assert_int_equal(d.train.n, 3);
    assert_int_equal(d.test.n, 1);
    assert_int_equal(d.train.n_files, 2);
    assert_int_equal(d.train.file[1], 0);
    assert_int_equal(d.train.file[2], 1);
    assert_null(d.test.file);
    assert_int_equal(d.train.labels[1], 1);
    assert_int_equal(d.train.labels[2], 0);
    assert_int_equal(d.train.pixels[3072], pixel(1, 0));
    float out[3072]; /* The values of an image are in the order [height][width][channel]. */
    dataset_sample(&d.train, 1, out);
    double blue = (pixel(1, 2048 + 35) / 255.0 - 0.4465) / 0.2616;
    double green = (pixel(1, 1024 + 35) / 255.0 - 0.4822) / 0.2435;
    assert_true(fabs((double)out[3 * 35 + 2] - blue) <= 1e-6);
    assert_true(fabs((double)out[3 * 35 + 1] - green) <= 1e-6);
    data_close(&d);
}

static void test_cifar100(void **state)
{
    (void)state;
    enum { SIZE = RECORD + 1 };
    uint8_t b[3 * SIZE];
    scratch_count(&s, 1);
    for (size_t i = 0; i < 3; i++) {
        b[i * SIZE] = (uint8_t)(7 * i);
        b[i * SIZE + 1] = (uint8_t)(99 - i);
        for (size_t j = 0; j < RECORD - 1; j++)
            b[i * SIZE + 2 + j] = pixel(i, j);
    }
    scratch_put_gz(&s, "train.bin.gz", b, 3 * SIZE);
    scratch_put(&s, "test.bin", b, SIZE);
    struct data d;
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(open_kind(&d, "cifar100", error), 0);
    assert_true(d.train.n == 3 && d.test.n == 1 && d.train.shape.n_classes == 100);
    assert_int_equal(d.train.labels[2], 97);
    assert_int_equal(d.train.pixels[3072 + 5], pixel(1, 5));
    float out[3072];
    dataset_sample(&d.test, 0, out);
    assert_true(fabs((double)out[0] - (pixel(0, 0) / 255.0 - 0.5071) / 0.2673) <= 1e-6);
    data_close(&d);
    /* A CIFAR-100 file is opened as CIFAR-10. The size of a compressed file does not show this
     * mistake, because the size of its data is not known before it is read. An invalid label shows
     * the mistake. */
    refused("cifar10", "train.bin.gz", "label of record");
    scratch_put(&s, "train.bin", b, 3 * SIZE);
    refused("cifar10", "train.bin", "expected whole records of 3073: they are those of cifar100");
    scratch_put(&s, "train.bin", b, 3 * SIZE - 1);
    refused("cifar100", "train.bin", "found 9221 bytes, expected whole records of 3074");
    b[0] = 20;
    scratch_put(&s, "train.bin", b, 3 * SIZE);
    refused("cifar100", "train.bin", "coarse label of record 0: found 20, expected 0 to 19");
    b[0] = 0;
    b[2 * SIZE + 1] = 100;
    scratch_put(&s, "train.bin", b, 3 * SIZE);
    refused("cifar100", "train.bin", "fine label of record 2: found 100, expected 0 to 99");
}

/* The shape and the classes of an IDX set come from its files, or from the data kind that the run
 * has fixed. */
static void test_idx(void **state)
{
    (void)state;
    uint8_t b[64] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 3}, l[16];
    for (size_t i = 0; i < 24; i++)
        b[16 + i] = (uint8_t)(10 * i);
    scratch_count(&s, 1);
    scratch_put(&s, "emnist-x-train-images-idx3-ubyte", b, 40);
    scratch_put_gz(&s, "more.images.idx3-ubyte.gz", b, 40);
    scratch_put(&s, "t10k-images-idx3-ubyte", b, 40);
    scratch_put_gz(&s, "emnist-x-train-labels-idx1-ubyte.gz", l, make_labels(l, 4));
    scratch_put(&s, "more.labels.idx1-ubyte", l, make_labels(l, 4));
    scratch_put(&s, "t10k-labels-idx1-ubyte", l, make_labels(l, 4));
    struct data d;
    char error[DATA_ERROR_MAX] = "", spec[600];
    int err = open_kind(&d, "idx", error);
    assert_string_equal(error, "");
    assert_int_equal(err, 0);
    assert_string_equal(d.train.kind, "idx/1x2x3/10/0.4510~0.2715");
    assert_string_equal(d.test.kind, "idx/1x2x3/10/0.4510~0.2715");
    assert_true(d.train.n == 8 && d.test.n == 4 && d.train.n_files == 2);
    assert_true(d.train.file[3] == 0 && d.train.file[4] == 1);
    float out[6];
    dataset_sample(&d.train, 5, out);
    for (size_t j = 0; j < 6; j++)
        assert_true(fabs((double)out[j] - ((double)(10 * (6 + j)) / 255 - 0.4510) / 0.2715)
                    <= 1e-6);
    data_close(&d);
    static const char *const wrong[][2] = {
        {"idx/1x2x3/9", "label of sample 0: found 9, expected 0 to 8"},
        {"idx/1x3x2/10", "height: found 2, expected 3"},
        {"mnist", "height: found 2, expected 28"},
        {"cifar10", "found data of kind idx"},
    };
    snprintf(spec, sizeof spec, "idx:%s", s.dir);
    for (size_t i = 0; i < 4; i++) {
        struct data_request r = {.spec = spec, .kind = wrong[i][0]};
        assert_int_equal(data_open(&d, &r, error), -EINVAL);
        assert_non_null(strstr(error, wrong[i][1]));
    }
    struct data_request r = {.spec = spec, .kind = "idx/1x2x3/12"};
    assert_int_equal(data_open(&d, &r, error), 0);
    assert_int_equal(d.test.shape.n_classes, 12);
    /* A data kind without mean and deviation, as in runs of older versions, has the mean 0.5. */
    assert_float_equal(d.test.mean[0], 0.5, 0);
    data_close(&d);
    /* The mean and deviation of the data kind are used, even if those of the files differ. */
    r.kind = "idx/1x2x3/10/0.2000~0.4000";
    assert_int_equal(data_open(&d, &r, error), 0);
    assert_string_equal(d.test.kind, r.kind);
    assert_float_equal(d.train.std[0], 0.4f, 0);
    data_close(&d);
    uint8_t ascending[12] = {0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 2, 2};
    scratch_put(&s, "more.labels.idx1-ubyte", ascending, 12);
    scratch_remove(&s, "emnist-x-train-images-idx3-ubyte");
    scratch_remove(&s, "emnist-x-train-labels-idx1-ubyte.gz");
    refused("idx", "t10k-labels", "label of sample 0: found 9, expected 0 to 2");
    scratch_put_gz(&s, "emnist-x-train-labels-idx1-ubyte.gz", l, make_labels(l, 4));
    b[11] = 0;
    scratch_put(&s, "emnist-x-train-images-idx3-ubyte", b, 40);
    refused("idx", "emnist-x", "height: found 0, expected 1 to 1024");
    b[10] = 4, b[11] = 1;
    scratch_put(&s, "emnist-x-train-images-idx3-ubyte", b, 40);
    refused("idx", "emnist-x", "height: found 1025, expected 1 to 1024");
    /* The two training files get images of different sizes. */
    b[10] = 0, b[11] = 3, b[15] = 2;
    scratch_put(&s, "emnist-x-train-images-idx3-ubyte", b, 40);
    refused("idx", "more.images", "height: found 2, expected 3");
}

static void test_directories(void **state)
{
    (void)state;
    struct data d;
    char error[DATA_ERROR_MAX] = "", spec[600];
    struct data_request r = {.spec = spec};
    scratch_count(&s, 1);
    snprintf(spec, sizeof spec, "mnist:%s/none", s.dir);
    assert_int_equal(data_open(&d, &r, error), -ENOENT);
    assert_non_null(strstr(error, "/none: found no such directory"));
    scratch_put(&s, "file", "x", 1);
    snprintf(spec, sizeof spec, "mnist:%s/file", s.dir);
    assert_int_equal(data_open(&d, &r, error), -EINVAL);
    assert_non_null(strstr(error, "/file: found a file, expected a directory"));
    refused("mnist", "train-images-idx3-ubyte", "found no");
    refused("cifar10", "data_batch_1.bin", "found no");
    put_mnist();
    /* Removes the label file of the training images. */
    scratch_remove(&s, "train-labels-idx1-ubyte.gz");
    refused("mnist", "found no train-labels-idx1-ubyte in the same directory",
            "train-images-idx3-ubyte:");
    put_mnist();
    scratch_remove(&s, "t10k-images-idx3-ubyte.gz");
    refused("mnist", "found no t10k-images-idx3-ubyte in the same directory",
            "t10k-labels-idx1-ubyte:");
    assert_int_equal(mkdir(scratch_path(&s, "t10k-images-idx3-ubyte"), 0700), 0);
    refused("mnist", "t10k-images-idx3-ubyte", "found no");
    assert_int_equal(rmdir(scratch_path(&s, "t10k-images-idx3-ubyte")), 0);
    put_cifar();
    scratch_remove(&s, "data_batch_1.bin");
    assert_int_equal(mkfifo(scratch_path(&s, "data_batch_1.bin"), 0600), 0);
    refused("cifar10", "data_batch_1.bin", "found a named pipe, expected a regular file");
}

/* For each 32-bit field of a file, checks the error message for a wrong value. */
static void test_fields(void **state)
{
    (void)state;
    static const struct
    {
        bool images;
        size_t at;
        uint32_t value;
        const char *said;
    } wrong[] = {
        {true, 0, 0x801, "magic number: found 0x00000801, expected 0x00000803"},
        {true, 0, 0x1f8b0800, "gzip data are corrupt"},
        {true, 4, 0, "number of images: found 0"},
        {true, 4, N_TRAIN - 1, "number of labels: found 3, expected 2"},
        {true, 4, UINT32_MAX, "number of labels: found 3, expected 4294967295"},
        {true, 8, 27, "height: found 27, expected 28"},
        {true, 12, 0, "width: found 0, expected 28"},
        {false, 0, 0x803, "magic number: found 0x00000803, expected 0x00000801"},
        {false, 4, N_TRAIN + 1, "number of labels: found 4, expected 3"},
        {false, 8, 0x090a0000, "label of sample 1: found 10, expected 0 to 9"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_mnist();
        uint8_t b[IMAGES_MAX + 4];
        size_t n = wrong[i].images ? make_images(b, N_TRAIN) : make_labels(b, N_TRAIN);
        put_u32(b + wrong[i].at, wrong[i].value);
        scratch_remove(&s, "train-labels-idx1-ubyte.gz");
        uint8_t l[16];
        scratch_put(&s, "train-labels-idx1-ubyte", l, make_labels(l, N_TRAIN));
        const char *name = wrong[i].images ? "train-images-idx3-ubyte" : "train-labels-idx1-ubyte";
        scratch_put(&s, name, b, n);
        refused("mnist", i == 3 || i == 4 ? "train-labels" : name, wrong[i].said);
    }
}

/* The headers of the image file and the label file announce the same wrong count. The size of the
 * file reveals this before memory is allocated. */
static void test_lying_counts(void **state)
{
    (void)state;
    uint8_t b[IMAGES_MAX];
    put_mnist();
    scratch_remove(&s, "train-labels-idx1-ubyte.gz");
    size_t n = make_labels(b, N_TRAIN);
    put_u32(b + 4, UINT32_MAX);
    scratch_put(&s, "train-labels-idx1-ubyte", b, n);
    n = make_images(b, N_TRAIN);
    put_u32(b + 4, UINT32_MAX);
    scratch_put(&s, "train-images-idx3-ubyte", b, n);
    refused("mnist", "train-images-idx3-ubyte", "found 4294967295, expected no more");
    scratch_remove(&s, "train-images-idx3-ubyte");
    scratch_put_gz(&s, "train-images-idx3-ubyte.gz", b, n);
    refused("mnist", "train-images-idx3-ubyte.gz", "found 4294967295, expected no more");
}

static void test_trailing(void **state)
{
    (void)state;
    uint8_t b[IMAGES_MAX + 1] = {0};
    put_mnist();
    size_t n = make_images(b, N_TRAIN);
    scratch_put(&s, "train-images-idx3-ubyte", b, n + 1);
    refused("mnist", "train-images-idx3-ubyte", "trailing bytes");
    put_mnist();
    n = make_labels(b, N_TRAIN);
    scratch_put_gz(&s, "train-labels-idx1-ubyte.gz", b, n + 1);
    refused("mnist", "train-labels-idx1-ubyte.gz", "trailing bytes");
    put_cifar();
    uint8_t c[2 * RECORD] = {0};
    scratch_put(&s, "data_batch_1.bin", c, RECORD + 1);
    refused("cifar10", "data_batch_1.bin", "found 3074 bytes");
    scratch_put(&s, "data_batch_1.bin", c, 0);
    refused("cifar10", "data_batch_1.bin", "found 0 records");
    c[RECORD] = 10;
    scratch_put(&s, "data_batch_1.bin", c, sizeof c);
    refused("cifar10", "data_batch_1.bin", "label of record 1: found 10");
}

static void test_no_gzip(void **state)
{
    (void)state;
    uint8_t b[IMAGES_MAX];
    put_mnist();
    size_t n = make_images(b, N_TEST);
    scratch_put(&s, "t10k-images-idx3-ubyte.gz", b, n);
    refused("mnist", "t10k-images-idx3-ubyte.gz", "not a gzip file");
    scratch_put(&s, "t10k-images-idx3-ubyte.gz", b, 0);
    refused("mnist", "t10k-images-idx3-ubyte.gz", "expected gzip data");
    scratch_put_gz(&s, "t10k-images-idx3-ubyte.gz", b, n);
    uint8_t z[IMAGES_MAX];
    size_t n_z = scratch_get(&s, "t10k-images-idx3-ubyte.gz", z, sizeof z);
    z[n_z - 5] ^= 1; /* Changes a byte of the gzip checksum. */
    scratch_put(&s, "t10k-images-idx3-ubyte.gz", z, n_z);
    refused("mnist", "t10k-images-idx3-ubyte.gz", "corrupt");
    z[n_z - 5] ^= 1;
    scratch_put(&s, "t10k-images-idx3-ubyte.gz", z, n_z - 1);
    refused("mnist", "t10k-images-idx3-ubyte.gz", "truncated");
    /* A byte after the gzip data that does not begin another gzip member is an error. */
    z[n_z] = 'x';
    scratch_put(&s, "t10k-images-idx3-ubyte.gz", z, n_z + 1);
    refused("mnist", "t10k-images-idx3-ubyte.gz", "gzip data");
}

/* Without .gz in the name, gzip data are recognised by their contents. Several gzip members may
 * follow each other. */
static void test_gzip_contents(void **state)
{
    (void)state;
    uint8_t b[IMAGES_MAX], z[2 * IMAGES_MAX];
    put_mnist();
    size_t n = make_images(b, N_TRAIN);
    scratch_put_gz(&s, "part", b, 100);
    size_t n_z = scratch_get(&s, "part", z, sizeof z);
    scratch_put_gz(&s, "part", b + 100, n - 100);
    n_z += scratch_get(&s, "part", z + n_z, sizeof z - n_z);
    scratch_put(&s, "train-images-idx3-ubyte", z, n_z);
    struct data d;
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(open_kind(&d, "mnist", error), 0);
    assert_memory_equal(d.train.pixels, b + 16, n - 16);
    data_close(&d);
}

/* A small gzip file that inflates to 8 MiB is read no further than the limit. */
static void test_bomb(void **state)
{
    (void)state;
    enum { BOMB = 8 << 20 };
    uint8_t *zeros = calloc(1, BOMB), *bytes;
    assert_non_null(zeros);
    scratch_put_gz(&s, "bomb.gz", zeros, BOMB);
    size_t n;
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(file_read(scratch_path(&s, "bomb.gz"), 100000, NULL, &bytes, &n, error),
                     -EFBIG);
    assert_non_null(strstr(error, "bomb.gz: found more than 100000 bytes"));
    assert_null(bytes);
    assert_int_equal(file_read(scratch_path(&s, "bomb.gz"), BOMB, NULL, &bytes, &n, error), 0);
    assert_int_equal(n, BOMB);
    assert_memory_equal(bytes, zeros, BOMB);
    free(bytes);
    assert_int_equal(file_read(scratch_path(&s, "bomb.gz"), BOMB - 1, NULL, &bytes, &n, error),
                     -EFBIG);
    free(zeros);
}

/* Number of progress reports of file_read() and of the readers, and the values of the last
 * report. */
struct seen
{
    size_t n_calls;
    uint64_t done, total;
    char path[600];
};

static void see(void *self, const char *path, uint64_t done, uint64_t total)
{
    struct seen *seen = self;
    bool same = strcmp(seen->path, path) == 0;
    assert_true(done <= total);
    assert_true(!same || done > seen->done || done == total);
    snprintf(seen->path, sizeof seen->path, "%s", path);
    seen->n_calls++;
    seen->done = done;
    seen->total = total;
}

static void test_progress(void **state)
{
    (void)state;
    enum { SIZE = 9 << 20 };
    uint8_t *zeros = calloc(1, SIZE), *bytes;
    assert_non_null(zeros);
    scratch_count(&s, 1);
    scratch_put(&s, "plain", zeros, SIZE);
    struct seen seen = {0};
    struct file_progress progress = {see, &seen, NULL};
    size_t n;
    char error[DATA_ERROR_MAX] = "";
    int err = file_read(scratch_path(&s, "plain"), SIZE, &progress, &bytes, &n, error);
    assert_int_equal(err, 0);
    assert_memory_equal(bytes, zeros, SIZE);
    assert_true(seen.n_calls >= 3 && seen.n_calls <= 4);
    assert_true(seen.done == SIZE && seen.total == SIZE);
    free(bytes);
    free(zeros);
    put_mnist();
    char spec[600];
    snprintf(spec, sizeof spec, "mnist:%s", s.dir);
    struct data d;
    seen = (struct seen){0};
    struct data_request r = {.spec = spec, .progress = see, .self = &seen};
    assert_int_equal(data_open(&d, &r, error), 0);
    /* Reading reports progress once for each file, at its end. */
    assert_int_equal(seen.n_calls, 4);
    assert_int_equal(seen.done, seen.total);
    data_close(&d);
}

/* An error message with a long path keeps its text and the end of the path. */
static void test_long_path(void **state)
{
    (void)state;
    char path[900], error[DATA_ERROR_MAX];
    memset(path, 'd', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    memcpy(path + sizeof path - 6, "/name", 6);
    assert_int_equal(file_error(error, path, "field: found %d, expected %d", 1, 2), -EINVAL);
    assert_non_null(strstr(error, "d/name: field: found 1, expected 2"));
    assert_memory_equal(error, "...d", 4);
}

static int setup(void **state)
{
    (void)state;
    scratch_open(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_close(&s);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_mnist),        cmocka_unit_test(test_cifar),
        cmocka_unit_test(test_cifar100),     cmocka_unit_test(test_idx),
        cmocka_unit_test(test_directories),  cmocka_unit_test(test_fields),
        cmocka_unit_test(test_lying_counts), cmocka_unit_test(test_trailing),
        cmocka_unit_test(test_no_gzip),      cmocka_unit_test(test_gzip_contents),
        cmocka_unit_test(test_bomb),         cmocka_unit_test(test_progress),
        cmocka_unit_test(test_long_path),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
