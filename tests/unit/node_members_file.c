/* tests/unit/node_members_file.c -- tests of the allow-list file: valid files, and the messages
 * about invalid lines. */
#include "peer/admission/allow_list.h"

#include "nn/math/rng.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define ID_B "A0112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF"

static char why[ALLOW_LIST_ERROR_MAX];

static int parse(struct allow_list *f, const char *text)
{
    why[0] = '\0';
    return allow_list_parse(f, text, strlen(text), why);
}

static void test_sound_files(void **state)
{
    static const struct
    {
        const char *text;
        size_t n;
    } files[] = {
        {ID_A, 1},
        {ID_A "\n", 1},
        {ID_A "\r\n" ID_B "\r\n", 2},
        {"# who may\n\n" ID_B "   b # him\n\t" ID_A "\ta\n\n#", 2},
        {ID_A "#a\n" ID_A " again\n", 1}, /* An identity that is listed twice counts once. */
        {ID_A " abcdefghijklmnopqrstuvwxyz.-_9XY", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct allow_list f = {0};
        assert_int_equal(parse(&f, files[i].text), 0);
        assert_int_equal(f.n, files[i].n);
        const uint8_t a[WIRE_ID_BYTES] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                          0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
                                          0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                          0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
        uint8_t b[WIRE_ID_BYTES];
        memcpy(b, a, sizeof b);
        b[0] = 0xa0;
        assert_int_equal(allow_list_has(&f, a), strstr(files[i].text, ID_A) != NULL);
        assert_int_equal(allow_list_has(&f, b), strstr(files[i].text, ID_B) != NULL);
        allow_list_close(&f);
        assert_false(allow_list_has(&f, a));
    }
}

static void test_broken_files(void **state)
{
    static const struct
    {
        const char *text, *why;
    } files[] = {
        {"", "found no identity"},
        {"\n# nobody\n", "found no identity"},
        {"abc\n", "line 1: found 'abc' (3 characters), expected an identity of 64"},
        {ID_A "\n" ID_A "0\n", "line 2: found '"},
        {ID_A "\n\n" ID_B "x", "line 3: found '"},
        {"g" ID_A, "line 1: found 'g00112"},
        {"\n0x112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00\n",
         "line 2: found '0x1122"},
        {ID_A " " ID_B,
         "line 1: found 'A0112233445566778899AABBCCDDEEFF00112233...' behind the identity"},
        {ID_A " a/b", "line 1: found 'a/b' behind the identity, expected a name"},
        {ID_A " a b", "line 1: found 'b' behind the name"},
        {"\x01\xff", "line 1: found '?\?' (2 characters)"},
    };
    (void)state;
    struct allow_list f = {0};
    assert_int_equal(parse(&f, ID_A), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(parse(&f, files[i].text), -EINVAL);
        if (strncmp(why, files[i].why, strlen(files[i].why)) != 0)
            fail_msg("'%s' is said, and not '%s'", why, files[i].why);
        assert_int_equal(f.n, 1); /* After a refused file, the previous list is kept. */
    }
    assert_int_equal(allow_list_parse(&f, ID_A " a\0b", strlen(ID_A) + 4, why), -EINVAL);
    allow_list_close(&f);
}

/* The largest number of identities is accepted in any order, and one more is refused. A file that
 * is too large is refused, too. */
static void test_limits(void **state)
{
    enum { LINE = 2 * WIRE_ID_BYTES + 1 };
    (void)state;
    char *text = malloc(ALLOW_LIST_BYTES_MAX + 1);
    assert_non_null(text);
    uint64_t key = rng_key(3, RNG_PEER, 0, 0);
    for (size_t i = 0; i <= ALLOW_LIST_IDS_MAX; i++)
        for (size_t k = 0; k < LINE; k++)
            text[i * LINE + k] =
                k == LINE - 1 ? '\n' : "0123456789abcdef"[rng_at(key, i * LINE + k) % 16];
    struct allow_list f = {0};
    assert_int_equal(allow_list_parse(&f, text, (ALLOW_LIST_IDS_MAX + 1) * LINE, why), -EINVAL);
    assert_string_equal(
        why, "line 4097: found more identities than the list may have, expected at most 4096");
    assert_int_equal(allow_list_parse(&f, text, ALLOW_LIST_IDS_MAX * LINE, why), 0);
    assert_int_equal(f.n, ALLOW_LIST_IDS_MAX);
    for (size_t i = 1; i < f.n; i++)
        assert_true(memcmp(f.id[i - 1], f.id[i], WIRE_ID_BYTES) < 0);
    for (size_t i = 0; i < f.n; i++)
        assert_true(allow_list_has(&f, f.id[i]));
    memset(text + LINE, '\n', ALLOW_LIST_BYTES_MAX + 1 - LINE);
    assert_int_equal(allow_list_parse(&f, text, ALLOW_LIST_BYTES_MAX + 1, why), -EINVAL);
    assert_int_equal(f.n, ALLOW_LIST_IDS_MAX);
    assert_int_equal(allow_list_parse(&f, text, ALLOW_LIST_BYTES_MAX, why), 0);
    assert_int_equal(f.n, 1);
    allow_list_close(&f);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_files),
        cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
