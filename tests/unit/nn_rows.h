/* tests/unit/nn_rows.h -- helpers for the tests of readers of text formats: they parse files in
 * memory, and check properties of every data set that a reader accepts. */
#ifndef TESTS_UNIT_NN_ROWS_H
#define TESTS_UNIT_NN_ROWS_H

#include "nn/data/lines.h"
#include "nn/math/rng.h"

#include "nn_ref.h"
#include "nn_scratch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

/* One text format: its data kind and its readers, from memory and from files. */
struct rows_format
{
    const char *kind; /* Data kind of the format without a shape, such as "csv". */
    int (*parse)(struct dataset *d, const struct reader *r, const struct lines_file *files,
                 char error[DATA_ERROR_MAX]);
    int (*read)(struct dataset *d, const struct reader *r, char error[DATA_ERROR_MAX]);
};

/* A test case of format recognition: the first bytes of a file, whether they are the whole file,
 * and whether they must be recognised as the format. */
struct rows_look
{
    const char *text;
    bool whole, looks;
};

static inline void rows_check_looks(bool (*looks)(const uint8_t *, size_t, bool),
                                    const struct rows_look *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = cases[i].text;
        if (looks((const uint8_t *)text, strlen(text), cases[i].whole) != cases[i].looks)
            fail_msg("looks wrong: \"%s\"", text);
    }
}

static inline struct reader rows_reader(const struct rows_format *f)
{
    return (struct reader){
        .n_paths = 1, .kind = f->kind, .header = "auto", .divide = 1, .context = 4};
}

/* Parses n files called f0, f1, ... Each is in a block of exactly its size, so that a sanitizer
 * detects a read beyond it. */
static inline int rows_parse(const struct rows_format *f, struct reader r, struct dataset *d,
                             const char *const *text, const size_t *n, char *error)
{
    static const char *const names[] = {"f0", "f1", "f2", "f3"};
    struct lines_file files[4];
    assert(r.n_paths <= 4);
    for (size_t i = 0; i < r.n_paths; i++) {
        uint8_t *copy = n[i] ? malloc(n[i]) : NULL;
        if (n[i])
            memcpy(copy, text[i], n[i]);
        files[i] = (struct lines_file){names[i], copy, n[i]};
    }
    /* Readers must set all of *d, so it is filled with other bytes first. */
    memset(d, 0xa5, sizeof *d);
    int err = f->parse(d, &r, files, error);
    for (size_t i = 0; i < r.n_paths; i++)
        free((uint8_t *)files[i].bytes);
    return err;
}

/* Parses one file, which is given as a string. */
static inline int rows_parse_text(const struct rows_format *f, struct reader r, struct dataset *d,
                                  const char *text, char *error)
{
    size_t n = strlen(text);
    return rows_parse(f, r, d, &text, &n, error);
}

static inline struct dataset rows_take(const struct rows_format *f, struct reader r,
                                       const char *text)
{
    struct dataset d;
    char error[DATA_ERROR_MAX] = "";
    int err = rows_parse_text(f, r, &d, text, error);
    if (err < 0)
        print_error("%s\n", error);
    assert_int_equal(err, 0);
    return d;
}

static inline void rows_is_empty(const struct dataset *d)
{
    static const struct dataset empty;
    assert_memory_equal(d, &empty, sizeof empty);
}

/* The text must be refused with exactly this error message. */
static inline void rows_refuse(const struct rows_format *f, struct reader r, const char *text,
                               const char *sentence)
{
    struct dataset d;
    char error[DATA_ERROR_MAX] = "";
    int err = rows_parse_text(f, r, &d, text, error);
    if (err == 0)
        print_error("taken: %s\n", text);
    assert_int_equal(err, -EINVAL);
    assert_string_equal(error, sentence);
    rows_is_empty(&d);
}

static inline void rows_check_sparse(const struct dataset *d)
{
    size_t longest = 0;
    assert_int_equal(d->start[0], 0);
    for (size_t i = 0; i < d->n; i++) {
        assert_true(d->start[i] <= d->start[i + 1]);
        size_t n = d->start[i + 1] - d->start[i];
        longest = n > longest ? n : longest;
        for (size_t k = d->start[i]; k < d->start[i + 1]; k++) {
            assert_true(d->column[k] < d->shape.channels);
            assert_true(k == d->start[i] || d->column[k] > d->column[k - 1]);
            assert_true(isfinite(d->entry[k]));
        }
    }
    assert_int_equal(longest, d->longest);
}

/* Checks the properties that every data set has which a reader has accepted. */
static inline void rows_check(const struct dataset *d)
{
    assert_true(d->n >= 1 && d->n_files >= 1);
    for (size_t i = 0; d->labels && i < d->n; i++)
        assert_true(d->labels[i] < d->shape.n_classes);
    for (size_t i = 0; d->file && i < d->n; i++)
        assert_true(d->file[i] < d->n_files);
    switch (d->shape.form) {
    case DATA_SPARSE:
        rows_check_sparse(d);
        break;
    case DATA_ROWS:
        for (size_t i = 0; i < d->n * d->shape.channels; i++)
            assert_true(isfinite(d->rows[i]));
        break;
    case DATA_TEXT:
        assert_null(d->labels);
        assert_non_null(d->text);
        break;
    case DATA_IMAGES:
        fail();
    }
}

/* Parses bytes that may be invalid. They must be refused with one line that begins with the file
 * name, or give a valid data set. Returns whether they were accepted. */
static inline bool rows_holds(const struct rows_format *f, struct reader r, const char *text,
                              size_t n)
{
    struct dataset d;
    char error[DATA_ERROR_MAX] = "";
    int err = rows_parse(f, r, &d, &text, &n, error);
    if (err < 0) {
        assert_int_equal(err, -EINVAL);
        assert_memory_equal(error, "f0: ", 4);
        assert_true(strlen(error) > 12);
        for (const char *p = error; *p; p++)
            assert_true(*p >= 0x20 && *p < 0x7f);
        rows_is_empty(&d);
        return false;
    }
    rows_check(&d);
    dataset_close(&d);
    return true;
}

/* Parses every truncation of a text. Returns the number of accepted ones. */
static inline size_t rows_truncate(const struct rows_format *f, struct reader r, const char *text)
{
    size_t taken = 0;
    for (size_t n = 0; n <= strlen(text); n++)
        taken += rows_holds(f, r, text, n);
    return taken;
}

/* Parses `times` mutations of a text. In each, one to four bytes are changed, inserted or
 * removed, and half of the new bytes have a meaning in text formats. Returns the number of
 * accepted ones. */
static inline size_t rows_mutate(const struct rows_format *f, struct reader r, const char *text,
                                 size_t times, uint64_t seed)
{
    static const char meaning[] = "0123456789+-.eE:,;\t\" \r\n#x";
    struct rng g = rng_stream(rng_key(seed, RNG_TEST, strlen(text), 0));
    char m[4096];
    size_t taken = 0;
    for (size_t t = 0; t < times; t++) {
        size_t n = strlen(text);
        memcpy(m, text, n);
        for (uint64_t c = rng_below(&g, 4) + 1; c > 0 && n > 0; c--) {
            size_t at = rng_below(&g, n), how = rng_below(&g, 3);
            uint8_t any = (uint8_t)rng_u64(&g);
            char byte = any < 128 ? (char)(2 * any) : meaning[any % (sizeof meaning - 1)];
            if (how == 0)
                m[at] = byte;
            else if (how == 1 && n < sizeof m) {
                memmove(m + at + 1, m + at, n++ - at);
                m[at] = byte;
            } else
                memmove(m + at, m + at + 1, --n - at);
        }
        taken += rows_holds(f, r, m, n);
    }
    return taken;
}

/* A plain file and a gzip file of the same text give equal data sets. */
static inline void rows_read_both(const struct rows_format *f, struct reader r,
                                  const struct scratch *s, const char *text, struct dataset *plain)
{
    char error[DATA_ERROR_MAX] = "";
    struct dataset packed;
    scratch_put(s, "plain", text, strlen(text));
    scratch_put_gz(s, "packed.gz", text, strlen(text));
    const char *paths[] = {scratch_path(s, "plain"), scratch_path(s, "packed.gz")};
    r.paths = paths;
    assert_int_equal(f->read(plain, &r, error), 0);
    r.paths = paths + 1;
    assert_int_equal(f->read(&packed, &r, error), 0);
    rows_check(plain);
    assert_string_equal(plain->kind, packed.kind);
    assert_int_equal(plain->n, packed.n);
    if (plain->labels)
        assert_memory_equal(plain->labels, packed.labels, plain->n * sizeof *plain->labels);
    dataset_close(&packed);
}

/* Every truncation of a gzip file is refused with an error message that contains its name. */
static inline void rows_truncate_gz(const struct rows_format *f, struct reader r,
                                    const struct scratch *s, const char *text)
{
    char error[DATA_ERROR_MAX], packed[4096];
    scratch_put_gz(s, "cut.gz", text, strlen(text));
    size_t n = scratch_get(s, "cut.gz", packed, sizeof packed);
    const char *path = scratch_path(s, "cut.gz");
    r.paths = &path;
    for (size_t i = 0; i < n; i++) {
        struct dataset d;
        scratch_put(s, "cut.gz", packed, i);
        assert_true(f->read(&d, &r, error) < 0);
        assert_memory_equal(error, path, strlen(path));
        rows_is_empty(&d);
    }
}

#endif
