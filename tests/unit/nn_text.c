/* tests/unit/nn_text.c -- data sets of plain text: samples, several files, texts that are too
 * short, and recognition of text. */
#include "nn_rows.h"

static const struct rows_format text_format = {"text", text_parse, text_read};

static void test_samples(void **state)
{
    (void)state;
    static const char quick[] = "the quick brown fox";
    for (size_t n = 5; n < sizeof quick; n++) {
        struct dataset d;
        char error[DATA_ERROR_MAX];
        const char *text = quick;
        assert_int_equal(rows_parse(&text_format, rows_reader(&text_format), &d, &text, &n, error),
                         0);
        rows_check(&d);
        assert_string_equal(d.kind, "text/4");
        assert_int_equal(d.shape.form, DATA_TEXT);
        assert_int_equal(d.shape.n_classes, 256);
        assert_int_equal(d.n, (n - 1) / 4);
        assert_memory_equal(d.text, quick, d.n * 4 + 1);
        assert_int_equal(d.n_files, 1);
        assert_null(d.file);
        dataset_close(&d);
    }
}

static void test_kind_fixes_context(void **state)
{
    (void)state;
    struct reader r = rows_reader(&text_format);
    r.kind = "text/1";
    struct dataset d = rows_take(&text_format, r, "ab");
    assert_int_equal(d.n, 1);
    dataset_close(&d);
    d = rows_take(&text_format, r, "abcdef");
    assert_int_equal(d.n, 5);
    dataset_close(&d);
    r.kind = "text/128";
    rows_refuse(&text_format, r, "too short",
                "f0: found 9 bytes, expected at least 129: one sample and the byte after it");
    rows_refuse(&text_format, r, "",
                "f0: found 0 bytes, expected at least 129: one sample and the byte after it");
}

/* All files of a directory, including empty ones, form one text. A sample belongs to the file in
 * which it begins. */
static void test_files(void **state)
{
    (void)state;
    struct reader r = rows_reader(&text_format);
    r.n_paths = 4;
    r.kind = "text/3";
    const char *text[] = {"abcd", "", "e", "fghij\0lmno"};
    size_t n[] = {4, 0, 1, 10};
    struct dataset d;
    char error[DATA_ERROR_MAX];
    assert_int_equal(rows_parse(&text_format, r, &d, text, n, error), 0);
    const uint32_t file[] = {0, 0, 3, 3};
    assert_int_equal(d.n, 4);
    assert_memory_equal(d.text, "abcdefghij\0lm", 13);
    assert_memory_equal(d.file, file, sizeof file);
    assert_int_equal(d.n_files, 4);
    dataset_close(&d);
    n[0] = n[3] = 1;
    assert_int_equal(rows_parse(&text_format, r, &d, text, n, error), -EINVAL);
    assert_string_equal(error, "f0: found 3 bytes in all files, expected at least 4: one sample "
                               "and the byte after it");
    rows_is_empty(&d);
}

/* Checks which file each sample belongs to, by the definition: sample i begins at byte `i *
 * context`. */
static void test_file_of_each_sample(void **state)
{
    (void)state;
    static const char bytes[64];
    struct rng g = rng_stream(rng_key(1, RNG_TEST, 0, 0));
    for (int k = 0; k < 300; k++) {
        struct reader r = rows_reader(&text_format);
        r.n_paths = 4;
        r.context = (uint32_t)rng_below(&g, 7) + 1;
        const char *text[] = {bytes, bytes, bytes, bytes};
        size_t n[4], all = 0;
        for (int i = 0; i < 4; i++)
            all += n[i] = rng_below(&g, 13);
        struct dataset d;
        char error[DATA_ERROR_MAX];
        int err = rows_parse(&text_format, r, &d, text, n, error);
        assert_int_equal(err, all <= r.context ? -EINVAL : 0);
        for (size_t i = 0; err == 0 && i < d.n; i++) {
            size_t at = i * r.context;
            uint32_t f = 0;
            for (; at >= n[f]; f++)
                at -= n[f];
            assert_int_equal(d.file[i], f);
        }
        if (err == 0)
            dataset_close(&d);
    }
}

static void test_looks(void **state)
{
    (void)state;
    static const struct
    {
        const char *text;
        size_t n;
        bool looks;
    } cases[] = {
        {"First Citizen:\nBefore\twe\r\n", 26, true},
        {"", 0, false},
        {"nul\0inside", 10, false},
        {"Gr\xc3\xbc\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x99\x82",
         16, true},
        {"cut \xf0\x9f", 6, true},
        {"latin1 caf\xe9 and all of the rest", 31, true},
        {"\xff\xfe\xe9\xe8 binary", 11, false},
        {"\x01\x02\x03 abcdefgh", 12, false},
        {"\xc3(\xc3(\xc3(", 6, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int whole = 0; whole < 2; whole++)
            assert_int_equal(text_looks((const uint8_t *)cases[i].text, cases[i].n, whole),
                             cases[i].looks);
}

static void test_gz(void **state)
{
    (void)state;
    struct scratch s;
    struct dataset d;
    scratch_open(&s);
    rows_read_both(&text_format, rows_reader(&text_format), &s, "some words of a text", &d);
    assert_int_equal(d.n, 4);
    dataset_close(&d);
    rows_truncate_gz(&text_format, rows_reader(&text_format), &s, "some words of a text");
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples), cmocka_unit_test(test_kind_fixes_context),
        cmocka_unit_test(test_files),   cmocka_unit_test(test_file_of_each_sample),
        cmocka_unit_test(test_looks),   cmocka_unit_test(test_gz),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
