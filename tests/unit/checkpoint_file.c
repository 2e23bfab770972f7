/* tests/unit/checkpoint_file.c -- tests of the checkpoint file format: files are read back, in
 * Python too, and every changed byte and every cut is detected. SEED= replays the mutations. */
#include "peer/checkpoints/checkpoint_file.h"

#include "checkpoint_small.h"
#include "nn_scratch.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { BEAT = 513, MUTATIONS = 20000 };

static char error[FILE_ERROR_MAX];

/* Parses a copy of the file in a block of memory of exactly its size, so that a sanitizer detects
 * reading too far. */
static int read_copy(struct checkpoint_file *m, const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n != 0 ? n : 1);
    assert_non_null(copy);
    if (n > 0)
        memcpy(copy, bytes, n);
    memset(m, 0xa5, sizeof *m);
    int err = checkpoint_file_read(m, copy, n, "ck", error);
    if (err < 0)
        free(copy);
    return err;
}

static uint8_t *beat_file(uint64_t beat, size_t *n)
{
    struct state s = {0};
    struct checkpoint_file_label label = small_label(beat);
    small_state(&s, beat);
    uint8_t *bytes = small_file(&s, &label, n);
    state_close(&s);
    return bytes;
}

static void test_round_trip(void **unused)
{
    (void)unused;
    for (uint64_t beat = 0; beat < 2; beat++) {
        size_t n;
        struct checkpoint_file m;
        uint64_t at = beat == 0 ? 0 : UINT64_MAX;
        uint8_t *bytes = beat_file(at, &n);
        assert_int_equal(read_copy(&m, bytes, n), 0);
        assert_int_equal(m.table.n_head % 8, 0);
        assert_true(m.label.beat == at);
        assert_string_equal(m.label.run, small_label(0).run);
        assert_string_equal(m.label.name, "a");
        assert_true(small_is(&m.state, at));
        checkpoint_file_close(&m);
        free(bytes);
    }
}

static void test_nothing_in_it(void **unused)
{
    (void)unused;
    struct state s = {0};
    struct checkpoint_file_label label = small_label(1);
    struct checkpoint_file m;
    size_t n;
    for (size_t n_sections = 0; n_sections <= 2; n_sections++) {
        state_write(&s);
        for (size_t i = 0; i < n_sections; i++)
            state_section(&s, "empty.%zu", i);
        assert_int_equal(state_end(&s), 0);
        uint8_t *bytes = small_file(&s, &label, &n);
        assert_int_equal(read_copy(&m, bytes, n), 0);
        assert_int_equal(m.state.n_sections, n_sections);
        checkpoint_file_close(&m);
        free(bytes);
    }
    state_close(&s);
}

/* Checks that the file is refused with a message of one line that begins with the name of the
 * file. */
static void refused(const uint8_t *bytes, size_t n)
{
    static const struct checkpoint_file empty;
    struct checkpoint_file m;
    strcpy(error, "");
    int err = read_copy(&m, bytes, n);
    if (err == 0)
        fail_msg("taken");
    assert_int_equal(err, -EINVAL);
    assert_memory_equal(&m, &empty, sizeof m);
    assert_memory_equal(error, "ck: ", 4);
    for (const char *c = error; *c != '\0'; c++)
        assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
}

/* Returns the name of the section that contains the byte at the offset `at` of the file. */
static const char *section_of(const struct safetensors_table *t, size_t at)
{
    if (at < t->n_head)
        return "header";
    for (size_t i = 0; i < t->n; i++)
        if (at - t->n_head - t->section[i].at < t->section[i].n)
            return t->section[i].name;
    return "nowhere";
}

static void test_every_flipped_byte_is_found(void **unused)
{
    (void)unused;
    static const uint8_t flips[] = {1, 2, 4, 8, 16, 32, 64, 128, 255};
    size_t n;
    uint8_t *bytes = beat_file(BEAT, &n);
    struct checkpoint_file m;
    char words[STATE_NAME_MAX + 8];
    assert_int_equal(read_copy(&m, bytes, n), 0);
    for (size_t at = 0; at < n; at++)
        for (size_t i = 0; i < sizeof flips; i++) {
            bytes[at] ^= flips[i];
            refused(bytes, n);
            snprintf(words, sizeof words, "ck: %s: ", section_of(&m.table, at));
            if (at >= m.table.n_head && strncmp(error, words, strlen(words)) != 0)
                fail_msg("byte %zu: %s", at, error);
            bytes[at] ^= flips[i];
        }
    checkpoint_file_close(&m);
    free(bytes);
}

static void test_every_cut_is_found(void **unused)
{
    (void)unused;
    size_t n;
    uint8_t *bytes = beat_file(BEAT, &n), *longer = calloc(1, n + 64);
    assert_non_null(longer);
    memcpy(longer, bytes, n);
    for (size_t cut = 0; cut < n; cut++)
        refused(bytes, cut);
    for (size_t more = 1; more <= 64; more++)
        refused(longer, n + more);
    free(bytes);
    free(longer);
}

/* A file whose beginning comes from one checkpoint and whose end from another is refused, wherever
 * the two parts meet. */
static void test_halves_of_two_files_are_none(void **unused)
{
    (void)unused;
    size_t n, n_other;
    uint8_t *a = beat_file(513, &n), *b = beat_file(514, &n_other), *mix = malloc(n);
    struct checkpoint_file m;
    assert_non_null(mix);
    assert_int_equal(n, n_other);
    for (size_t cut = 0; cut <= n; cut++) {
        memcpy(mix, a, cut);
        memcpy(mix + cut, b + cut, n - cut);
        if (memcmp(mix, a, n) == 0 || memcmp(mix, b, n) == 0) {
            assert_int_equal(read_copy(&m, mix, n), 0);
            checkpoint_file_close(&m);
        } else {
            refused(mix, n);
        }
    }
    free(a);
    free(b);
    free(mix);
}

/* Returns a file with this header and `n_data` bytes after it. If the header describes a valid
 * manifest, the hashes in it are correct. */
static uint8_t *forged(const char *header, size_t n_data, size_t *n)
{
    size_t len = strlen(header);
    *n = 8 + len + n_data;
    uint8_t *bytes = calloc(1, *n);
    assert_non_null(bytes);
    bytes[0] = (uint8_t)len;
    bytes[1] = (uint8_t)(len >> 8);
    memcpy(bytes + 8, header, len);
    small_seal(bytes, *n);
    return bytes;
}

#define META(version, beat)                                                                        \
    "{\"__metadata__\":{\"format\":\"hearsay checkpoint\",\"version\":\"" version                  \
    "\",\"run\":\"r\",\"name\":\"n\",\"beat\":\"" beat "\"},"
#define GOOD META("1", "7")
#define AS(dtype, shape, offsets)                                                                  \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define MANIFEST_AT(shape, offsets) "\"manifest\":" AS("U8", shape, offsets) "}"

static void test_forged_headers(void **unused)
{
    (void)unused;
    static const struct
    {
        const char *header;
        size_t n_data;
        const char *words; /* Part of the error message. NULL: the file is accepted. */
    } files[] = {
        {GOOD MANIFEST_AT("[32]", "[0,32]"), 32, NULL},
        {GOOD "\"a\":" AS("F32", "[2]", "[0,8]") "," MANIFEST_AT("[48]", "[8,56]"), 56, NULL},
        {GOOD "\"a\":" AS("F32", "[1,2]", "[0,8]") "," MANIFEST_AT("[3,16]", "[8,56]"), 56, NULL},
        {GOOD "\"a\":" AS("F64", "[1]", "[0,8]") "," MANIFEST_AT("[48]", "[8,56]"), 56,
         "dtype of a: found F64, expected F32 or U8"},
        {GOOD "\"a\":" AS("U8", "[8]", "[0,9]") "," MANIFEST_AT("[48]", "[9,57]"), 57,
         "data_offsets of a: found 9 bytes, expected 8"},
        {GOOD "\"a\":" AS("U8", "[8]", "[8,0]") "," MANIFEST_AT("[48]", "[8,56]"), 56,
         "data_offsets of a: expected [begin, end]"},
        {GOOD "\"a\":" AS("U8", "[8]", "[0,8]") "," MANIFEST_AT("[48]", "[9,57]"), 57,
         "data_offsets of manifest: found begin 9, expected 8"},
        {GOOD "\"a\":" AS("U8", "[8]", "[0,8]") "," MANIFEST_AT("[48]", "[7,55]"), 56,
         "data_offsets of manifest: found begin 7, expected 8"},
        {GOOD "\"a\":" AS("U8", "[8]", "[0,8]") "," MANIFEST_AT("[48]", "[8,56]"), 57,
         "data: found 57 bytes, expected 56"},
        {GOOD
         "\"a\":" AS("F32", "[9223372036854775807]", "[0,8]") "," MANIFEST_AT("[48]", "[8,56]"),
         56, "shape of a: found more elements than 64 bits can count"},
        {GOOD "\"a\":" AS("U8", "[-1]", "[0,8]") "," MANIFEST_AT("[48]", "[8,56]"), 56,
         "shape of a: expected whole numbers"},
        {GOOD "\"a\":" AS("U8", "[8]", "[0,8]") ",\"a\":" AS("U8", "[8]", "[8,16]") "," MANIFEST_AT(
             "[64]", "[16,80]"),
         80, "header: not valid JSON: duplicate object key"},
        {GOOD "\"\":" AS("U8", "[8]", "[0,8]") "," MANIFEST_AT("[48]", "[8,56]"), 56,
         "found a name of 0 bytes"},
        {GOOD
         "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":" AS(
             "U8", "[8]", "[0,8]") "," MANIFEST_AT("[48]", "[8,56]"),
         56, "found a name of 80 bytes, expected 1 to 79"},
        {GOOD "\"a\":" AS("U8", "[8]", "[0,8]") "}", 8,
         "header: found a as the last tensor, expected manifest"},
        {GOOD MANIFEST_AT("[32]", "[0,32]"), 33, "data: found 33 bytes"},
        {GOOD MANIFEST_AT("[33]", "[0,33]"), 33, "manifest: found 33 bytes of U8, expected 32"},
        {GOOD "\"manifest\":" AS("F32", "[8]", "[0,32]") "}", 32,
         "manifest: found 32 bytes of F32"},
        {GOOD "\"a\":" AS("U8", "[0]", "[48,48]") "," MANIFEST_AT("[48]", "[0,48]"), 48,
         "header: found a as the last tensor"},
        {META("2", "7") MANIFEST_AT("[32]", "[0,32]"), 32,
         "__metadata__.version: found 2, expected 1"},
        {META("01", "7") MANIFEST_AT("[32]", "[0,32]"), 32, "__metadata__.version: found 01"},
        {META("1", "-7") MANIFEST_AT("[32]", "[0,32]"), 32, "__metadata__.beat: found -7"},
        {META("1", "7 ") MANIFEST_AT("[32]", "[0,32]"), 32, "__metadata__.beat: found 7"},
        {META("1", "18446744073709551616") MANIFEST_AT("[32]", "[0,32]"), 32,
         "__metadata__.beat: found 18446744073709551616, expected a number"},
        {META("1", "18446744073709551615") MANIFEST_AT("[32]", "[0,32]"), 32, NULL},
        {"{" MANIFEST_AT("[32]", "[0,32]"), 32,
         "__metadata__.format: found no value, expected one"},
        {"{\"__metadata__\":{\"format\":\"pt\"}," MANIFEST_AT("[32]", "[0,32]"), 32,
         "__metadata__.format: found pt, expected hearsay checkpoint"},
        {"{\"__metadata__\":{\"format\":\"hearsay "
         "checkpoint\",\"version\":\"1\",\"beat\":\"1\"}," MANIFEST_AT("[32]", "[0,32]"),
         32, "__metadata__.run: found no value"},
        {"{}", 0, "__metadata__.format: found no value, expected one"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t n;
        struct checkpoint_file m;
        uint8_t *bytes = forged(files[i].header, files[i].n_data, &n);
        if (files[i].words == NULL) {
            int err = read_copy(&m, bytes, n);
            if (err < 0)
                fail_msg("header %zu: %s", i, error);
            checkpoint_file_close(&m);
        } else {
            refused(bytes, n);
            if (strstr(error, files[i].words) == NULL)
                fail_msg("header %zu: %s", i, error);
        }
        free(bytes);
    }
}

/* A state with a section name that a file cannot have, or with a label that is no UTF-8, is
 * refused. */
static void test_states_that_are_no_file(void **unused)
{
    (void)unused;
    struct checkpoint_file_pieces m = {0};
    struct state s = {0};
    struct checkpoint_file_label label = small_label(1);
    uint8_t byte = 0;
    static const char *const names[] = {"", "__metadata__", "manifest", "twice"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        state_write(&s);
        state_section(&s, "twice");
        state_section(&s, "%s", names[i]);
        state_bytes(&s, &byte, 1);
        assert_int_equal(state_end(&s), 0);
        assert_int_equal(checkpoint_file_build(&m, &s, &label, "ck", error), -EINVAL);
        assert_non_null(strstr(error, names[i]));
    }
    label.name = "\xff";
    small_state(&s, 1);
    assert_int_equal(checkpoint_file_build(&m, &s, &label, "ck", error), -EINVAL);
    assert_string_equal(error, "ck: metadata \"name\": expected UTF-8");
    label.name = "a";
    /* checkpoint_file_build() can use `m` again after calls with `m` that failed. */
    assert_int_equal(checkpoint_file_build(&m, &s, &label, "ck", error), 0);
    checkpoint_file_pieces_close(&m);
    state_close(&s);
}

static void test_as_many_sections_as_a_state_may_have(void **unused)
{
    (void)unused;
    struct state s = {0};
    struct checkpoint_file_label label = small_label(1);
    struct checkpoint_file m;
    size_t n;
    uint64_t v = 1;
    state_write(&s);
    for (int i = 0; i < STATE_SECTIONS_MAX; i++) {
        state_section(&s, "%075d", i);
        state_u64(&s, &v);
    }
    assert_int_equal(state_end(&s), 0);
    uint8_t *bytes = small_file(&s, &label, &n);
    assert_int_equal(read_copy(&m, bytes, n), 0);
    assert_int_equal(m.state.n_sections, STATE_SECTIONS_MAX);
    checkpoint_file_close(&m);
    free(bytes);
    struct checkpoint_file_pieces p = {0};
    for (int i = 0; i < 2; i++)
        state_section(&s, "more.%d", i);
    assert_int_equal(checkpoint_file_build(&p, &s, &label, "ck", error), -EINVAL);
    assert_non_null(strstr(error, "the state to write has 8195 sections, expected at most 8193"));
    checkpoint_file_pieces_close(&p);
    state_close(&s);
}

/* Random bytes of a file are changed. If the header is still valid, the hashes of the file are
 * corrected. A changed file that is accepted must have consistent contents. */
static void test_mutations(void **unused)
{
    (void)unused;
    const char *text = getenv("SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 1;
    struct rng r = rng_stream(seed);
    size_t n, n_taken = 0;
    uint8_t *good = beat_file(BEAT, &n), *bytes = malloc(n);
    struct checkpoint_file m;
    print_message("SEED=%" PRIu64 "\n", seed);
    assert_non_null(bytes);
    for (int k = 0; k < MUTATIONS; k++) {
        memcpy(bytes, good, n);
        for (uint64_t i = rng_below(&r, 3); i < 3; i++)
            bytes[rng_below(&r, n)] = (uint8_t)rng_below(&r, 256);
        bool sealed = small_seal(bytes, n);
        int err = read_copy(&m, bytes, n);
        if (err == 0) {
            assert_true(sealed);
            small_is(&m.state, BEAT);
            n_taken++;
            checkpoint_file_close(&m);
        }
    }
    assert_true(n_taken > 0);
    free(good);
    free(bytes);
}

/* A strict reader in Python, written from the documentation of the format alone. The reader checks
 * sizes, types, and that there are no gaps between offsets. */
static const char reader[] =
    "import hashlib, json, struct, sys\n"
    "raw = open(sys.argv[1], 'rb').read()\n"
    "n, = struct.unpack_from('<Q', raw)\n"
    "assert n % 8 == 0 and n <= 100_000_000\n"
    "header, data = raw[8:8 + n], raw[8 + n:]\n"
    "assert header[:1] == b'{'\n"
    "table = json.loads(header.decode('utf-8'))\n"
    "meta = table.pop('__metadata__')\n"
    "assert all(type(k) is str and type(v) is str for k, v in meta.items())\n"
    "assert meta['format'] == 'hearsay checkpoint' and meta['version'] == '1', meta\n"
    "assert meta['run'] == 'model=logreg\\n\"seed\" 1 \\u00e9' and meta['beat'] == '513', meta\n"
    "at, hashes = 0, [hashlib.blake2b(raw[:8 + n], digest_size=16).digest()]\n"
    "for name, t in sorted(table.items(), key=lambda i: i[1]['data_offsets']):\n"
    "    assert set(t) == {'dtype', 'shape', 'data_offsets'}, t\n"
    "    size = {'F32': 4, 'U8': 1}[t['dtype']]\n"
    "    for d in t['shape']:\n"
    "        size *= d\n"
    "    begin, end = t['data_offsets']\n"
    "    assert begin == at and end - begin == size, (name, t)\n"
    "    at, last = end, data[begin:end]\n"
    "    if name != 'manifest':\n"
    "        hashes.append(hashlib.blake2b(last, digest_size=16).digest())\n"
    "assert at == len(data) and name == 'manifest'\n"
    "hashes.append(hashlib.blake2b(b''.join(hashes), digest_size=16).digest())\n"
    "assert b''.join(hashes) == last\n"
    "b, e = table['edge.2.b']['data_offsets']\n"
    "assert struct.unpack('<11f', data[b:e]) == tuple(513. + i for i in range(11))\n";

static void test_python(void **unused)
{
    (void)unused;
    struct scratch s;
    char command[2048];
    size_t n;
    if (system("python3 -c '' >/dev/null 2>&1") != 0) {
        print_message("skipped: no python3\n");
        skip();
    }
    scratch_open(&s);
    uint8_t *bytes = beat_file(BEAT, &n);
    scratch_put(&s, "ck", bytes, n);
    scratch_put(&s, "read.py", reader, sizeof reader - 1);
    snprintf(command, sizeof command, "python3 '%s' '%s'", scratch_path(&s, "read.py"),
             scratch_path(&s, "ck"));
    assert_int_equal(system(command), 0);
    scratch_count(&s, 1);
    rmdir(s.dir);
    free(bytes);
}

static void test_hash(void **unused)
{
    (void)unused;
    /* BLAKE2b-128 of "abc" and of no bytes, computed by Python's hashlib. */
    static const uint8_t abc[HASH_BYTES] = {0xcf, 0x4a, 0xb7, 0x91, 0xc6, 0x2b, 0x8d, 0x2b,
                                            0x21, 0x09, 0xc9, 0x02, 0x75, 0x28, 0x78, 0x16};
    static const uint8_t none[HASH_BYTES] = {0xca, 0xe6, 0x69, 0x41, 0xd9, 0xef, 0xbd, 0x40,
                                             0x4e, 0x4d, 0x88, 0x75, 0x8e, 0xa6, 0x76, 0x70};
    uint8_t hash[HASH_BYTES];
    hash_128("abc", 3, hash);
    assert_memory_equal(hash, abc, sizeof hash);
    hash_128(NULL, 0, hash);
    assert_memory_equal(hash, none, sizeof hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_nothing_in_it),
        cmocka_unit_test(test_every_flipped_byte_is_found),
        cmocka_unit_test(test_every_cut_is_found),
        cmocka_unit_test(test_halves_of_two_files_are_none),
        cmocka_unit_test(test_forged_headers),
        cmocka_unit_test(test_states_that_are_no_file),
        cmocka_unit_test(test_as_many_sections_as_a_state_may_have),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
