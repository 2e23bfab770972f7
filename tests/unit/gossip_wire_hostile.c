/* tests/unit/gossip_wire_hostile.c -- feeds hostile bytes to the message reader.
 *
 * The reader must refuse the bytes, or return a message that is valid in itself. */
#include "tests/unit/gossip_samples.h"

static void test_truncations(void **state)
{
    (void)state;
    for (uint32_t t = 1; t < WIRE_TYPE_END; t++) {
        size_t n = sample((enum wire_type)t, false);
        for (size_t cut = 0; cut < n; cut++)
            assert_refused(buffer, cut);
        memset(buffer + n, 0, 8);
        for (size_t more = 1; more < 8; more++)
            assert_refused(buffer, n + more);
    }
}

/* Sets each byte of a small message of each type to each value. */
static void test_mutations(void **state)
{
    (void)state;
    size_t n_taken = 0, n_all = 0;
    for (uint32_t t = 1; t < WIRE_TYPE_END; t++) {
        size_t n = sample((enum wire_type)t, false);
        for (size_t i = 0; i < n; i++) {
            uint8_t was = buffer[i];
            for (uint32_t v = 0; v < 256; v++) {
                buffer[i] = (uint8_t)v;
                n_taken += check_sound(buffer, n);
                n_all++;
            }
            buffer[i] = was;
        }
    }
    /* Most bytes belong to ids, signatures and numbers, in which any value is valid. */
    assert_true(n_taken > n_all / 2);
    assert_true(n_taken < n_all - n_all / 20);
}

/* Writes [3, value, 0, false] to the buffer, a PING if the n bytes encode a number. Returns its
 * length. */
static size_t ping_of(const uint8_t *value, size_t n)
{
    assert(n <= CAP - 8);
    memcpy(buffer, (const uint8_t[]){0x94, WIRE_PING}, 2);
    memcpy(buffer + 2, value, n);
    memcpy(buffer + 2 + n, (const uint8_t[]){0x00, 0xc2}, 2);
    return n + 4;
}

/* Asserts that the reader refuses p[0..n), bytes that encode no value of the protocol: as a whole
 * message, and in place of a field, of the message type and of an array element. */
static void assert_hostile(const uint8_t *p, size_t n)
{
    assert(n <= CAP - 8);
    assert_refused(p, n);
    assert_refused(buffer, ping_of(p, n));
    buffer[0] = 0x91;
    memcpy(buffer + 1, p, n);
    assert_refused(buffer, 1 + n);
    memcpy(buffer, (const uint8_t[]){0x93, WIRE_MEMBERS, 0x91}, 3);
    memcpy(buffer + 3, p, n);
    buffer[3 + n] = 0x90;
    assert_refused(buffer, 4 + n);
}

static void test_hostile_values(void **state)
{
    (void)state;
    static const struct
    {
        size_t n;
        uint8_t p[12];
    } bad[] = {{0, {0}},
               {1, {0xc1}}, /* A byte that msgpack never uses. */
               /* The header of an array of 2^32 - 1 elements, which do not follow. */
               {5, {0xdd, 0xff, 0xff, 0xff, 0xff}},
               /* The header of a map of 2^32 - 1 entries, which do not follow. */
               {5, {0xdf, 0xff, 0xff, 0xff, 0xff}},
               /* An array of 64 Mi elements, for which msgpack-c would allocate more than 1 GiB. */
               {5, {0xdd, 0x04, 0x00, 0x00, 0x00}},
               {3, {0xdc, 0xff, 0xff}},
               {1, {0x9f}}, /* The header of an array of 15 elements, which do not follow. */
               {2, {0x91, 0xdc}},
               /* Strings whose length exceeds the message. */
               {5, {0xdb, 0xff, 0xff, 0xff, 0xff}},
               {6, {0xc6, 0x00, 0x00, 0x00, 0x02, 0x61}},
               {4, {0xc5, 0x00, 0x02, 0x61}},
               {2, {0xa2, 0x61}},
               {3, {0x91, 0xd9, 0x01}},
               {2, {0xc4, 0x01}},
               {1, {0xcf}}, /* Refused: numbers that are cut short. */
               {8, {0xcb, 1, 2, 3, 4, 5, 6, 7}},
               {1, {0x80}}, /* Maps are refused: the protocol does not use them. */
               {3, {0x81, 0x01, 0x01}},
               {3, {0xde, 0x00, 0x00}},
               {3, {0xd4, 0x01, 0x01}}, /* Extension types of msgpack are refused, too. */
               /* Refused: a timestamp, which is an extension type of msgpack. */
               {6, {0xd6, 0xff, 1, 2, 3, 4}},
               {4, {0xc7, 0x01, 0x05, 0x00}},
               {3, {0x91, 0xc7, 0x00}},
               {2, {0x01, 0x01}}, /* Refused: bytes after the end of a value. */
               {3, {0x91, 0x01, 0x01}},
               {2, {0x90, 0x90}},
               {4, {0x92, 0x91, 0x01, 0xc1}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_hostile(bad[i].p, bad[i].n);
    /* Values that are well-formed but cannot be a number of the protocol. */
    static const uint8_t strange[][5] = {{0x90},
                                         {0xa0},
                                         {0xff},
                                         {0xc0},
                                         {0xc3},
                                         {0xca, 1, 2, 3, 4},
                                         {0xc4, 0x00},
                                         {0xdc, 0x00, 0x00},
                                         {0xdb, 0, 0, 0, 0}};
    static const size_t size[] = {1, 1, 1, 1, 1, 5, 2, 3, 5};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        assert_refused(buffer, ping_of(strange[i], size[i]));
    assert_true(check_sound(buffer, ping_of((const uint8_t[]){0xd3, 1, 2, 3, 4, 5, 6, 7, 8}, 9)));
}

/* Each encoding that msgpack has for a value is accepted, also a longer one than necessary. */
static void test_long_forms(void **state)
{
    (void)state;
    static const struct
    {
        size_t n;
        uint8_t p[12];
    } row[] = {{4, {0x94, WIRE_PING, 0x01, 0x00}},
               {6, {0xdc, 0x00, 0x04, WIRE_PING, 0x01, 0x00}},
               {8, {0xdd, 0, 0, 0, 4, WIRE_PING, 0x01, 0x00}},
               {9, {0x94, WIRE_PING, 0xce, 0, 0, 0, 1, 0xcc, 0x00}},
               {9, {0x94, WIRE_PING, 0xd2, 0, 0, 0, 1, 0xd0, 0x00}},
               {8, {0x94, WIRE_PING, 0xcd, 0, 1, 0xd1, 0, 0}}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        memcpy(buffer, row[i].p, row[i].n);
        buffer[row[i].n] = 0xc3;
        assert_true(check_sound(buffer, row[i].n + 1));
        assert_int_equal(read_sound(buffer, row[i].n + 1)->ping.round, 1);
    }
    /* A MODEL whose payload length is encoded in 1, 2 and 4 bytes, and an observer's HELLO in which
     * the length of the empty run description is encoded in the same ways. */
    static const uint8_t bin[][5] = {{0xc4, 4}, {0xc5, 0, 4}, {0xc6, 0, 0, 0, 4}};
    static const uint8_t str[][5] = {{0xd9, 0}, {0xda, 0, 0}, {0xdb, 0, 0, 0, 0}};
    static const size_t size[] = {2, 3, 5};
    for (size_t i = 0; i < 3; i++) {
        memcpy(buffer, (const uint8_t[]){0x96, WIRE_MODEL, 0x07, 0x01, 0x00, 0xc2}, 6);
        memcpy(buffer + 6, bin[i], size[i]);
        memset(buffer + 6 + size[i], 1, 4);
        assert_true(check_sound(buffer, 10 + size[i]));
        memcpy(buffer, (const uint8_t[]){0x98, WIRE_HELLO, 1, 1, 0xc2, 0xc2}, 6);
        memcpy(buffer + 6, str[i], size[i]);
        memcpy(buffer + 6 + size[i], (const uint8_t[]){0x00, 0xc0}, 2);
        assert_true(check_sound(buffer, 8 + size[i]));
    }
}

/* Refused are messages that are nested too deeply, are too long, or claim too many elements. */
static void test_depth_and_counts(void **state)
{
    (void)state;
    /* The number 0 in nested arrays: [[[...0...]]]. */
    for (size_t depth = 1; depth <= 4000; depth += 1 + depth / 8) {
        memset(other, 0x91, depth);
        other[depth] = 0;
        uint8_t *nest = exactly(other, depth + 1);
        assert_hostile(nest, depth + 1);
        nest[depth] = 0x90;
        assert_hostile(nest, depth + 1);
        free(nest);
    }
    for (size_t n = 1; n <= 40000; n *= 2) {
        memset(buffer, 0, CAP);
        memcpy(buffer, (const uint8_t[]){0xdc, (uint8_t)(n >> 8), (uint8_t)n, WIRE_PING}, 4);
        assert_refused(buffer, 3 + n);
    }
    /* Nested arrays may not claim more elements, together, than there are bytes. */
    static const uint8_t claim[] = {0x94, 0x93, 0x01, 0x02, 0x03, 0x01, 0x01};
    assert_hostile(claim, sizeof claim);
}

static void test_type_of(void **state)
{
    (void)state;
    static const struct
    {
        size_t n;
        uint8_t p[6];
        int type;
    } row[] = {{0, {0}, 0},
               {1, {0x91}, 0},
               {2, {0x91, 0x05}, WIRE_EDGE_CLOSE},
               {1, {0x05}, 0},
               {2, {0x91, 0x00}, 0},
               {2, {0x91, WIRE_TYPE_END}, 0},
               {2, {0x91, 0xff}, 0},
               {3, {0x91, 0xcc, 0x05}, 0},
               {2, {0xdc, 0x00}, 0},
               {3, {0xdc, 0x00, 0x01}, 0},
               {4, {0xdc, 0x00, 0x01, 0x05}, WIRE_EDGE_CLOSE},
               {2, {0x90, 0x05}, 0},
               {6, {0xdd, 0, 0, 0, 1, 0x09}, WIRE_STATUS_REQ}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        enum wire_type type;
        uint8_t *copy = exactly(row[i].p, row[i].n);
        recode(copy, row[i].n, other, CAP, &type);
        assert_int_equal(type, row[i].type);
        free(copy);
    }
    /* A message of the same type in a longer encoding is accepted. */
    assert_true(check_sound(row[10].p, 4));
    assert_refused((const uint8_t *)"\x92\x05\x01", 3);
    assert_refused((const uint8_t *)"\x92\x09\x90", 3);
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const good_name[] = {"a", "peer-10", "A.b_C-9",
                                            "abcdefghijklmnopqrstuvwxyz012345"};
    static const char *const bad_name[] = {"",    " ",       "a b",
                                           "a\n", "\x1b[2J", "pe\xc3\xa9r",
                                           "a/b", "a:b",     "abcdefghijklmnopqrstuvwxyz0123456"};
    static const char *const good_address[] = {"10.0.0.1:7100",       "a:1",
                                               "a.example:65535",     "[::1]:7100",
                                               "[fe80::1%eth0]:7100", "[::ffff:10.0.0.1]:80",
                                               "my_service-1:7100"};
    static const char *const bad_address[] = {
        "",        ":",       "a",          "a:",        ":7100",       "a:0",
        "a:65536", "a:99999", "a:100000",   "a:07",      "a:+7",        "a:-7",
        "a:7 ",    "a: 7",    "a b:7",      "::1:7100",  "[::1]",       "[::1]7100",
        "[::1]:",  "[]:7",    "[:]:7",      "[::1:7100", "[::1]:70000", "[fe80::1%]:7",
        "[x]:7",   "a\x1b:7", "\xc3\xa9:7", "a:7\n",     "a/b:7",       "a:7:7",
        "[::1]]:7"};
    for (size_t i = 0; i < sizeof good_name / sizeof *good_name; i++)
        assert_true(wire_name_ok(good_name[i]));
    for (size_t i = 0; i < sizeof bad_name / sizeof *bad_name; i++)
        assert_false(wire_name_ok(bad_name[i]));
    for (size_t i = 0; i < sizeof good_address / sizeof *good_address; i++)
        if (!wire_address_ok(good_address[i]))
            fail_msg("refused: %s", good_address[i]);
    for (size_t i = 0; i < sizeof bad_address / sizeof *bad_address; i++)
        if (wire_address_ok(bad_address[i]))
            fail_msg("taken: %s", bad_address[i]);
    char longest[WIRE_ADDRESS_MAX + 2];
    memset(longest, 'a', sizeof longest);
    strcpy(longest + WIRE_ADDRESS_MAX - 2, ":1");
    assert_true(wire_address_ok(longest));
    strcpy(longest + WIRE_ADDRESS_MAX - 2, ":12");
    assert_false(wire_address_ok(longest));
}

static void check_bad_record(struct record r)
{
    struct wire_members m = {.n_records = 1, .records = &r};
    assert_refused(buffer, wire_put_members(buffer, CAP, &m));
    struct wire_hello h = sample_hello(false);
    h.record = r;
    assert_refused(buffer, wire_put_hello(buffer, CAP, &h));
}

static void test_bad_records(void **state)
{
    (void)state;
    struct record r = small_record(1);
    r.name[0] = '\0';
    check_bad_record(r);
    r = small_record(1);
    strcpy(r.name, "a\x1b[2J");
    check_bad_record(r);
    r = small_record(1);
    strcpy(r.address[0], "10.0.0.1:0");
    check_bad_record(r);
    r = small_record(1);
    r.n_addresses = 2; /* The record claims two addresses, but the second is empty. */
    check_bad_record(r);
    r = small_record(1);
    r.state = (enum record_state)(RECORD_LEFT + 1);
    check_bad_record(r);

    /* A NUL inside a name is refused. */
    size_t n = sample(WIRE_MEMBERS, false);
    uint8_t *name = memchr(buffer, 'p', n);
    while (memcmp(name, "peer-1", 6) != 0)
        name = memchr(name + 1, 'p', n - (size_t)(name + 1 - buffer));
    name[4] = '\0';
    assert_refused(buffer, n);
}

/* Builds MEMBERS messages with 64 and 65 records, 64 and 65 accusations, and 24 and 25
 * endorsements. The longer ones must be refused. */
static void test_too_many(void **state)
{
    (void)state;
    struct wire_members m = sample_members(false);
    m.n_accusations = m.n_vouches = 0;
    size_t n = wire_put_members(buffer, CAP, &m);
    /* Five bytes of the message are around the record: 94 02 91 before it, and 90 90 after it. */
    size_t n_record = n - 5;
    for (uint32_t count = WIRE_BATCH_MAX; count <= WIRE_BATCH_MAX + 1; count++) {
        uint8_t *p = other;
        *p++ = 0x94, *p++ = 0x02, *p++ = 0xdc, *p++ = 0x00, *p++ = (uint8_t)count;
        for (uint32_t i = 0; i < count; i++, p += n_record)
            memcpy(p, buffer + 3, n_record);
        *p++ = 0x90, *p++ = 0x90;
        size_t n_all = (size_t)(p - other);
        uint8_t *copy = exactly(other, n_all);
        assert_int_equal(check_sound(copy, n_all), count <= WIRE_BATCH_MAX);
        free(copy);
    }
    m = sample_members(false);
    m.n_records = m.n_vouches = 0;
    n = wire_put_members(buffer, CAP, &m);
    /* Five bytes of the message are around the accusation: 94 02 90 91 before it, and 90 after
     * it. */
    size_t n_accusation = n - 5;
    for (uint32_t count = WIRE_BATCH_MAX; count <= WIRE_BATCH_MAX + 1; count++) {
        uint8_t *p = other;
        *p++ = 0x94, *p++ = 0x02, *p++ = 0x90, *p++ = 0xdc, *p++ = 0x00, *p++ = (uint8_t)count;
        for (uint32_t i = 0; i < count; i++, p += n_accusation)
            memcpy(p, buffer + 4, n_accusation);
        *p++ = 0x90;
        size_t n_all = (size_t)(p - other);
        uint8_t *copy = exactly(other, n_all);
        assert_int_equal(check_sound(copy, n_all), count <= WIRE_BATCH_MAX);
        free(copy);
    }
    m = sample_members(false);
    m.n_records = m.n_accusations = 0;
    n = wire_put_members(buffer, CAP, &m);
    /* Five bytes of the message, 94 02 90 90 91, are before the endorsement. */
    size_t n_vouch = n - 5;
    for (uint32_t count = WIRE_VOUCHES_MAX; count <= WIRE_VOUCHES_MAX + 1; count++) {
        uint8_t *p = other;
        *p++ = 0x94, *p++ = 0x02, *p++ = 0x90, *p++ = 0x90;
        *p++ = 0xdc, *p++ = 0x00, *p++ = (uint8_t)count;
        for (uint32_t i = 0; i < count; i++, p += n_vouch)
            memcpy(p, buffer + 5, n_vouch);
        size_t n_all = (size_t)(p - other);
        uint8_t *copy = exactly(other, n_all);
        assert_int_equal(check_sound(copy, n_all), count <= WIRE_VOUCHES_MAX);
        free(copy);
    }
    /* The large sample of a STATUS has 64 edges. One edge is appended, and the array header is set
     * to 65. */
    struct wire_status *s = sample_status(true);
    s->n_figures = 0;
    n = wire_put_status(buffer, CAP, s);
    size_t n_edge = 1 + 34 + 1 + 9 + 5 + 9;
    n--; /* The last byte is the empty list of figures. */
    uint8_t figures = buffer[n];
    memcpy(buffer + n, buffer + n - n_edge, n_edge);
    uint8_t *count = buffer + n - WIRE_EDGES_MAX * n_edge - 1;
    buffer[n++ + n_edge] = figures;
    assert_int_equal(*count, WIRE_EDGES_MAX);
    *count = WIRE_EDGES_MAX + 1;
    assert_msgpack(buffer, n + n_edge);
    assert_refused(buffer, n + n_edge);
}

static void test_bad_hello(void **state)
{
    (void)state;
    struct wire_hello h = sample_hello(false);
    /* The HELLO of an observer contains no member record, and is accepted. */
    h.role = WIRE_OBSERVER;
    assert_true(check_sound(buffer, wire_put_hello(buffer, CAP, &h)));
    h.role = (enum wire_role)2;
    assert_refused(buffer, wire_put_hello(buffer, CAP, &h));
    h = sample_hello(false);
    run_text[3] = '\x1b';
    assert_refused(buffer, wire_put_hello(buffer, CAP, &h));
    h = sample_hello(false);
    run_text[3] = '\xc3';
    assert_refused(buffer, wire_put_hello(buffer, CAP, &h));
    h = sample_hello(false);
    h.has_run = false;
    h.run.n = 0;
    assert_true(check_sound(buffer, wire_put_hello(buffer, CAP, &h)));
    h.has_started = true; /* A HELLO without a run cannot say that the run has started. */
    assert_refused(buffer, wire_put_hello(buffer, CAP, &h));
    h = sample_hello(false);
    size_t n = wire_put_hello(buffer, CAP, &h);
    assert_int_equal(buffer[4], 0xc3); /* The byte 0xc3 encodes true, the value of has_run. */
    buffer[4] = 0xc2;
    assert_refused(buffer, n);
}

static void test_bad_delta(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, -1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int field = 0; field < 4; field++) {
            struct wire_delta d = sample_delta(false);
            d.payload.n = 0;
            float *at[] = {&d.x2, &d.e2, &d.mean_dist2, &d.mean_norm2};
            *at[field] = bad[i];
            size_t n = wire_put_delta(buffer, CAP, &d);
            /* mean_dist2 and mean_norm2 (fields 2 and 3) are averages, which may be negative. */
            bool fine = field >= 2 && isfinite(bad[i]);
            assert_int_equal(check_sound(buffer, n), fine);
        }
    struct wire_delta d = {.degree = WIRE_MEMBERS_MAX + 1};
    assert_refused(buffer, wire_put_delta(buffer, CAP, &d));
    d = (struct wire_delta){.degree = 3, .more = 3}; /* Refused: the mixing weight would be 1. */
    assert_refused(buffer, wire_put_delta(buffer, CAP, &d));
    d = (struct wire_delta){.codec = WIRE_CODE_MAX + 1};
    assert_refused(buffer, wire_put_delta(buffer, CAP, &d));
    d = (struct wire_delta){.sketch = {raw, 8}};
    assert_refused(buffer, wire_put_delta(buffer, CAP, &d));
    d.sketch_generation = 1;
    assert_true(check_sound(buffer, wire_put_delta(buffer, CAP, &d)));
    struct wire_model m = {.round = 1, .payload = {raw, 5}};
    assert_refused(buffer,
                   recode_with_payload(buffer, CAP, wire_put_model(buffer, CAP, &m), m.payload));
    /* Refused: a request for the sketches of piece 0 alone, because sketches are always of all
     * pieces. */
    m = (struct wire_model){.round = 1, .key = 1, .payload = {raw, 4}};
    assert_refused(buffer,
                   recode_with_payload(buffer, CAP, wire_put_model(buffer, CAP, &m), m.payload));
    struct wire_callback callback = {.why = WIRE_CODE_MAX + 1, .address = "h:7100"};
    assert_refused(buffer, wire_put_callback(buffer, CAP, &callback));
    callback = (struct wire_callback){.address = "no port"};
    assert_refused(buffer, wire_put_callback(buffer, CAP, &callback));
    struct wire_finish finish = {.word = WIRE_FINISH_END};
    assert_refused(buffer, wire_put_finish(buffer, CAP, &finish));
    finish = (struct wire_finish){.members = {raw, WIRE_FINISH_ENTRY + 1}};
    assert_refused(buffer, wire_put_finish(buffer, CAP, &finish));
    finish = (struct wire_finish){.n_models = WIRE_MEMBERS_MAX + 1};
    assert_refused(buffer, wire_put_finish(buffer, CAP, &finish));
    struct wire_model_req ask = {1, 0, 1};
    assert_refused(buffer, wire_put_model_req(buffer, CAP, &ask));
    ask = (struct wire_model_req){1, WIRE_PIECE_LAYERS, 1};
    assert_true(check_sound(buffer, wire_put_model_req(buffer, CAP, &ask)));
    /* A request for sketches must have a key other than 0, with which the sketches are drawn. */
    ask.key = 0;
    assert_refused(buffer, wire_put_model_req(buffer, CAP, &ask));
    m = (struct wire_model){.round = 1, .piece = WIRE_PIECE_LAYERS, .payload = {raw, 4}};
    assert_refused(buffer,
                   recode_with_payload(buffer, CAP, wire_put_model(buffer, CAP, &m), m.payload));
    m.key = 1;
    assert_true(check_sound(
        buffer, recode_with_payload(buffer, CAP, wire_put_model(buffer, CAP, &m), m.payload)));
}

static void test_bad_status(void **state)
{
    (void)state;
    struct wire_status *s = sample_status(false);
    s->accuracy = 1.5;
    assert_refused(buffer, wire_put_status(buffer, CAP, s));
    s = sample_status(false);
    s->drift = -1;
    assert_refused(buffer, wire_put_status(buffer, CAP, s));
    s = sample_status(false);
    s->age_s = -1;
    assert_refused(buffer, wire_put_status(buffer, CAP, s));
    s = sample_status(false);
    /* Refused: the name of the codec contains an escape sequence. */
    strcpy(s->codec, "qsgd\x1b[2J");
    assert_refused(buffer, wire_put_status(buffer, CAP, s));
    s = sample_status(false);
    s->phase = WIRE_CODE_MAX + 1;
    assert_refused(buffer, wire_put_status(buffer, CAP, s));
    s = sample_status(false);
    s->edges[0].state = WIRE_CODE_MAX + 1;
    assert_refused(buffer, wire_put_status(buffer, CAP, s));
    s = sample_status(false);
    s->edges[0].gamma = -0.5f;
    assert_refused(buffer, wire_put_status(buffer, CAP, s));
}

/* The list of figures by name: its length, and the names and values that a receiver accepts. */
static void test_status_figures(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "A", "a b", "a-b", "\x1b[2J", "\xc3\xa9"};
    struct wire_status *s = sample_status(false);
    assert_true(check_sound(buffer, wire_put_status(buffer, CAP, s)));
    s->n_figures = 1;
    s->figures[0] = (struct wire_status_figure){.name = "a_1", .whole = 3};
    assert_true(check_sound(buffer, wire_put_status(buffer, CAP, s)));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        strcpy(s->figures[0].name, bad[i]);
        assert_refused(buffer, wire_put_status(buffer, CAP, s));
    }
    static const double real[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        s->figures[0] = (struct wire_status_figure){.name = "a", .is_real = true, .real = real[i]};
        assert_refused(buffer, wire_put_status(buffer, CAP, s));
    }
    /* The large sample has WIRE_FIGURES_MAX figures. Each figure is an array of a name (33
     * bytes) and a value (9 bytes). The test appends one more figure. */
    size_t n = sample(WIRE_STATUS, true), n_figure = 1 + 1 + WIRE_FIGURE_NAME + 9;
    memcpy(buffer + n, buffer + n - n_figure, n_figure);
    uint8_t *count = buffer + n - WIRE_FIGURES_MAX * n_figure - 1;
    assert_int_equal(*count, WIRE_FIGURES_MAX);
    *count = WIRE_FIGURES_MAX + 1;
    assert_msgpack(buffer, n + n_figure);
    assert_refused(buffer, n + n_figure);
}

/* Tests PING messages like [3, 9, 9, false], in which a value has another type or encoding, or in
 * which a value is missing or too many. */
static void test_wrong_types(void **state)
{
    (void)state;
    static const struct
    {
        size_t n;
        uint8_t p[14];
        bool ok;
    } row[] = {{5, {0x94, 0x03, 0x09, 0x09, 0xc2}, true},
               /* Refused: the last value is 0 instead of false. */
               {5, {0x94, 0x03, 0x09, 0x09, 0x00}, false},
               /* Refused: the first number is -1 instead of 9. */
               {5, {0x94, 0x03, 0xff, 0x09, 0xc2}, false},
               /* Refused: the first number is nil instead of 9. */
               {5, {0x94, 0x03, 0xc0, 0x09, 0xc2}, false},
               {5, {0x94, 0x03, 0x90, 0x09, 0xc2}, false},
               {5, {0x94, 0x03, 0xa0, 0x09, 0xc2}, false},
               /* Accepted: 9 in a longer encoding than necessary. */
               {6, {0x94, 0x03, 0xcc, 0x09, 0x09, 0xc2}, true},
               /* Accepted: 9 is encoded as a signed integer. */
               {6, {0x94, 0x03, 0xd0, 0x09, 0x09, 0xc2}, true},
               {6, {0x94, 0x03, 0xd0, 0x89, 0x09, 0xc2}, false},
               /* Refused: the float 9.0 instead of the integer 9. */
               {9, {0x94, 0x03, 0x09, 0xca, 0x41, 0x10, 0, 0, 0xc2}, false},
               /* Refused: 2^32 does not fit into 32 bits. */
               {13, {0x94, 0x03, 0x09, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0, 0xc2}, false},
               /* Refused: the message has one value too many. */
               {6, {0x95, 0x03, 0x09, 0x09, 0xc2, 0x00}, false},
               {4, {0x93, 0x03, 0x09, 0x09}, false},
               /* Refused: the values are in a nested array. */
               {6, {0x92, 0x03, 0x93, 0x09, 0x09, 0xc2}, false}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (check_sound(row[i].p, row[i].n) != row[i].ok)
            fail_msg("row[%zu] is %s", i, row[i].ok ? "refused" : "taken");
    assert_int_equal(read_sound(row[7].p, row[7].n)->ping.round, 9);
}

/* Feeds random bytes, random bytes that look like msgpack, and messages with parts copied over each
 * other. */
static void test_random(void **state)
{
    (void)state;
    struct rng r = rng_stream(rng_key(1, RNG_TEST, 1, 0));
    static const uint8_t heads[] = {0x90, 0x91, 0x93, 0x94, 0x97, 0x9f, 0xdc, 0xdd,
                                    0xc2, 0xc3, 0xc0, 0xc4, 0xc5, 0xc6, 0xca, 0xcb,
                                    0xcc, 0xcf, 0xd0, 0xd9, 0xa3, 0x81};
    for (int i = 0; i < 30000; i++) {
        size_t n = (size_t)rng_below(&r, 80);
        for (size_t k = 0; k < n; k++)
            buffer[k] = i % 2 ? heads[rng_below(&r, sizeof heads)] : (uint8_t)rng_u64(&r);
        if (n > 1 && i % 3 == 0)
            buffer[1] = (uint8_t)(1 + rng_below(&r, WIRE_TYPE_END));
        check_sound(buffer, n);
    }
    for (int i = 0; i < 3000; i++) {
        size_t n = sample((enum wire_type)(1 + rng_below(&r, WIRE_TYPE_END - 1)), i % 16 == 0);
        for (uint64_t k = rng_below(&r, 4); k < 4; k++) {
            size_t from = (size_t)rng_below(&r, n), to = (size_t)rng_below(&r, n);
            size_t len = (size_t)rng_below(&r, 1 + n - (from > to ? from : to));
            memmove(buffer + to, buffer + from, len);
        }
        check_sound(buffer, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncations),    cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_hostile_values), cmocka_unit_test(test_depth_and_counts),
        cmocka_unit_test(test_long_forms),     cmocka_unit_test(test_type_of),
        cmocka_unit_test(test_texts),          cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_too_many),       cmocka_unit_test(test_bad_hello),
        cmocka_unit_test(test_bad_delta),      cmocka_unit_test(test_bad_status),
        cmocka_unit_test(test_status_figures), cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
