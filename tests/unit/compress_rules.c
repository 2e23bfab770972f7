/* tests/unit/compress_rules.c -- tests rules and scopes of compressors.
 *
 * The message of a model consists of the messages of its units, each as if the unit were compressed
 * alone. */
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The tensors of LeNet-5, 61,706 values. */
static const struct segment lenet[] = {
    {.name = "conv1.weight",
     .offset = 0,
     .n = 150,
     .rows = 6,
     .cols = 25,
     .n_dims = 4,
     .dims = {6, 1, 5, 5}},
    {.name = "conv1.bias", .offset = 150, .n = 6, .rows = 1, .cols = 6, .n_dims = 1, .dims = {6}},
    {.name = "conv2.weight",
     .offset = 156,
     .n = 2400,
     .rows = 16,
     .cols = 150,
     .n_dims = 4,
     .dims = {16, 6, 5, 5}},
    {.name = "conv2.bias",
     .offset = 2556,
     .n = 16,
     .rows = 1,
     .cols = 16,
     .n_dims = 1,
     .dims = {16}},
    {.name = "fc1.weight",
     .offset = 2572,
     .n = 48000,
     .rows = 120,
     .cols = 400,
     .n_dims = 2,
     .dims = {120, 400}},
    {.name = "fc1.bias",
     .offset = 50572,
     .n = 120,
     .rows = 1,
     .cols = 120,
     .n_dims = 1,
     .dims = {120}},
    {.name = "fc2.weight",
     .offset = 50692,
     .n = 10080,
     .rows = 84,
     .cols = 120,
     .n_dims = 2,
     .dims = {84, 120}},
    {.name = "fc2.bias",
     .offset = 60772,
     .n = 84,
     .rows = 1,
     .cols = 84,
     .n_dims = 1,
     .dims = {84}},
    {.name = "fc3.weight",
     .offset = 60856,
     .n = 840,
     .rows = 10,
     .cols = 84,
     .n_dims = 2,
     .dims = {10, 84}},
    {.name = "fc3.bias",
     .offset = 61696,
     .n = 10,
     .rows = 1,
     .cols = 10,
     .n_dims = 1,
     .dims = {10}},
};

enum { N_LAYERS = sizeof lenet / sizeof lenet[0], D = 61706, UNITS_MAX = 10 };

static float x[D], v[D], joined[D], expected[D];
static uint8_t bytes[8 * D];

/* One unit of a message, that is the tensors which one compressor encodes together: the numbers of
 * these tensors as digits, and the compressor. */
struct part
{
    const char *segments;
    const char *spec;
};

struct rules
{
    const char *spec;
    /* Units (tensors that are encoded together) in the order in which the message has them. */
    struct part part[UNITS_MAX];
};

/* Copies the tensors of the unit *p (the tensors that one compressor encodes together) from a
 * model to joined[]. Returns the number of values copied. */
static size_t gather(const struct part *p, const float *from)
{
    size_t n = 0;
    for (const char *s = p->segments; *s != '\0'; s++) {
        const struct segment *layer = &lenet[*s - '0'];
        memcpy(joined + n, from + layer->offset, layer->n * sizeof *joined);
        n += layer->n;
    }
    return n;
}

static void scatter(const struct part *p, const float *from, float *to)
{
    for (const char *s = p->segments; *s != '\0'; s++) {
        const struct segment *layer = &lenet[*s - '0'];
        memcpy(to + layer->offset, from, layer->n * sizeof *from);
        from += layer->n;
    }
}

/* Compresses one unit alone, appends its message to the expected bytes, and stores the values to
 * which the message decodes. A unit of one tensor keeps the tensor's shape. */
static void add_part(const struct part *p, size_t *len, struct compress_stat *sum)
{
    struct bench_rig r;
    size_t n = gather(p, v);
    struct segment all = {.n = n, .rows = 1, .cols = n};
    if (p->segments[1] == '\0') {
        all = lenet[*p->segments - '0'];
        all.offset = 0;
    }
    rig_open_model(&r, p->spec, &all, 1);
    assert_int_equal(rig_code(&r, 9, joined), 0);
    memcpy(bytes + *len, r.bytes, r.len);
    *len += r.len;
    sum->x2 += r.stat.x2;
    sum->e2 += r.stat.e2;
    scatter(p, r.out, expected);
    rig_close(&r);
}

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

static void check_rules(const struct rules *rules)
{
    struct bench_rig r;
    struct compress_stat sum = {0};
    size_t len = 0, units = 0;
    rig_open_model(&r, rules->spec, lenet, N_LAYERS);
    assert_int_equal(r.n, D);
    assert_int_equal(rig_code(&r, 9, v), 0);
    memset(expected, 0, sizeof expected);
    for (; units < UNITS_MAX && rules->part[units].spec != NULL; units++)
        add_part(&rules->part[units], &len, &sum);
    if (len != r.len || memcmp(bytes, r.bytes, len) != 0)
        fail_msg("%s: %zu bytes are not the parts' %zu", rules->spec, r.len, len);
    for (size_t i = 0; i < D; i++)
        if (!(expected[i] == r.out[i]))
            fail_msg("%s: element %zu is %g, alone %g", rules->spec, i, (double)r.out[i],
                     (double)expected[i]);
    assert_true(close_to(r.stat.x2, sum.x2));
    assert_true(close_to(r.stat.e2, sum.e2));
    rig_close(&r);
}

static void test_rules(void **state)
{
    (void)state;
    static const struct rules all[] = {
        {"sign", {{"0123456789", "sign"}}},
        {"default=topk:0.01;bias=fp16;<256=none",
         {{"2468", "topk:0.01"}, {"13579", "fp16"}, {"0", "none"}}},
        /* If several rules match a tensor, the first of them applies. */
        {"<256=none;bias=fp16;topk:0.01", {{"2468", "topk:0.01"}, {"013579", "none"}}},
        {"topk:0.1+qsgd:4,scope=layer;bias=none",
         {{"0", "topk:0.1+qsgd:4"},
          {"2", "topk:0.1+qsgd:4"},
          {"4", "topk:0.1+qsgd:4"},
          {"6", "topk:0.1+qsgd:4"},
          {"8", "topk:0.1+qsgd:4"},
          {"13579", "none"}}},
        {"qsgd:4;bias=none,scope=layer;conv=fp16",
         {{"468", "qsgd:4"},
          {"1", "none"},
          {"3", "none"},
          {"5", "none"},
          {"7", "none"},
          {"9", "none"},
          {"02", "fp16"}}},
        {"none;conv=sign:0;fc?.w*=topk:0.05/ef",
         {{"13579", "none"}, {"02", "sign:0"}, {"468", "topk:0.05/ef"}}},
        {"fp16;*1*=sign", {{"236789", "fp16"}, {"0145", "sign"}}},
        /* The rule `*` matches every tensor, so none is left for the default rule. */
        {"fp16;*=sign", {{"0123456789", "sign"}}},
        {"fp16;fc2.weight=sign;conv*=none", {{"45789", "fp16"}, {"6", "sign"}, {"0123", "none"}}},
        {"fp16;fc=sign;<1=none", {{"0123456789", "fp16"}}},
        {"fp16;<6=none;<7=sign", {{"023456789", "fp16"}, {"1", "sign"}}},
    };
    for (int kind = 0; kind < VECTOR_KINDS; kind++) {
        vector_fill(v, D, (enum vector_kind)kind, 1);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            check_rules(&all[i]);
    }
}

/* With scope=layer, each tensor is compressed as if it were alone. This is tested for every
 * codec. */
static void test_layer_scope(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    size_t n_specs = specs_all(list);
    vector_fill(v, D, VECTOR_LAPLACE, 2);
    /* One of the tensors consists of zeros only. */
    memset(v + lenet[2].offset, 0, 2400 * sizeof *v);
    for (size_t i = 0; i < n_specs; i++) {
        static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
        char spec[SPEC_LONG];
        struct rules rules = {.spec = spec};
        /* This loop compares the messages of rules for each tensor with scope=layer. Codecs with
         * random draws are left out, because rules give each tensor random numbers of its own and
         * scope=layer does not, so the messages differ. */
        if (strstr(list[i].spec, "scope=") != NULL || (list[i].traits & SPEC_RANDOM))
            continue;
        spec_and(spec, list[i].spec, ",scope=layer");
        for (size_t j = 0; j < N_LAYERS; j++)
            rules.part[j] = (struct part){names[j], list[i].spec};
        check_rules(&rules);
    }
}

/* With scope=block:N the tensors of a rule are joined, and then cut into blocks of N values.
 * Tensors of other rules may lie between the joined ones. */
static void test_block_scope(void **state)
{
    (void)state;
    static const size_t blocks[] = {1, 7, 150, 151, 2400, 60000, D, 2 * D};
    for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++) {
        char spec[64];
        struct bench_rig whole, part;
        const struct part rest = {"02468", "topk:0.1"};
        snprintf(spec, sizeof spec, "topk:0.1,scope=block:%zu;bias=none", blocks[b]);
        vector_fill(v, D, VECTOR_GAUSS, 3);
        rig_open_model(&whole, spec, lenet, N_LAYERS);
        assert_int_equal(rig_code(&whole, 9, v), 0);
        size_t n = gather(&rest, v);
        size_t len = 0;
        for (size_t at = 0; at < n; at += blocks[b]) {
            size_t count = n - at < blocks[b] ? n - at : blocks[b];
            rig_open(&part, "topk:0.1", count);
            assert_int_equal(rig_code(&part, 9, joined + at), 0);
            assert_true(len + part.len <= whole.len);
            assert_memory_equal(whole.bytes + len, part.bytes, part.len);
            len += part.len;
            rig_close(&part);
        }
        assert_int_equal(whole.len, len + 1 + 4 * (6 + 16 + 120 + 84 + 10));
        rig_close(&whole);
    }
}

/* A unit may consist of tensors that are not adjacent. Its message changes only these tensors,
 * whatever x_hat is. */
static void test_pieces(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    size_t n_specs = specs_all(list);
    vector_fill(x, D, VECTOR_GAUSS, 4);
    for (size_t i = 0; i < n_specs; i++) {
        char spec[SPEC_LONG];
        struct bench_rig r;
        spec_and(spec, list[i].spec, ";bias=none");
        rig_open_model(&r, spec, lenet, N_LAYERS);
        vector_fill(v, D, VECTOR_LAPLACE, 5);
        memcpy(r.out, v, sizeof v);
        /* For the biases, x equals x_hat, so their difference is 0. */
        for (size_t j = 1; j < N_LAYERS; j += 2)
            memcpy(x + lenet[j].offset, v + lenet[j].offset, lenet[j].n * sizeof *x);
        struct compress_input in = {.draw = 3, .x = x, .x_hat = v};
        assert_int_equal(compress_encode(r.c, &in, r.bytes, &r.len, &r.stat), 0);
        assert_true(compress_validate(r.c, r.bytes, r.len));
        compress_apply(r.c, r.bytes, r.len, r.out);
        for (size_t j = 1; j < N_LAYERS; j += 2)
            for (size_t e = 0; e < lenet[j].n; e++)
                if (!(r.out[lenet[j].offset + e] == v[lenet[j].offset + e]))
                    fail_msg("%s: wrote to %s", spec, lenet[j].name);
        double left = sqrt(vec_dist2(x, r.out, D));
        double slack = 1e-5 * left + 0x1p-22 * sqrt(vec_norm2(r.out, D));
        if (!(fabs(left - sqrt(r.stat.e2)) <= slack))
            fail_msg("%s: %.6g is left, e2 says %.6g", spec, left, sqrt(r.stat.e2));
        rig_close(&r);
    }
}

/* If a value in any unit is not finite, the whole vector is refused. */
static void test_refusals(void **state)
{
    (void)state;
    struct bench_rig r;
    rig_open_model(&r, "topk:0.01;bias=fp16;<256=none", lenet, N_LAYERS);
    for (size_t j = 0; j < N_LAYERS; j++) {
        vector_fill(v, D, VECTOR_GAUSS, 6);
        v[lenet[j].offset + lenet[j].n - 1] = j % 2 == 0 ? NAN : -INFINITY;
        assert_true(rig_code(&r, 1, v) < 0);
    }
    rig_close(&r);
}

/* Tests tensors without elements, and a model without elements. */
static void test_empty(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    size_t n_specs = specs_all(list);
    const struct segment s[] = {{.name = "a", .n = 0},
                                {.name = "b", .n = 5, .rows = 1, .cols = 5},
                                {.name = "c", .offset = 5, .n = 0}};
    for (size_t i = 0; i < n_specs; i++)
        for (size_t n = 0; n <= 3; n++) {
            static const char *const tails[] = {"", ";b=none", ";c=none"};
            struct bench_rig r;
            char spec[SPEC_LONG];
            spec_and(spec, list[i].spec, tails[n % 3]);
            rig_open_model(&r, spec, s, n);
            vector_fill(v, 5, VECTOR_GAUSS, 7);
            assert_int_equal(rig_code(&r, 1, v), 0);
            for (size_t unit = 0; unit < r.len && n < 2; unit++)
                assert_int_equal(r.bytes[unit], 0);
            rig_close(&r);
        }
}

/* compress_idle_rule() finds the first rule that matches no tensor of the model. */
static void test_idle_rules(void **state)
{
    (void)state;
    static const struct
    {
        /* idle: the rule that compress_idle_rule() must find. NULL: none. */
        const char *spec, *idle;
    } row[] = {{"sign", NULL},
               {"sign;bias=fp16", NULL},
               {"sign;conv=fp16;fc?.bias=none", NULL},
               {"bias=fp16;default=sign", NULL},
               {"sign;<7=none", NULL},
               {"sign;<6=none", "<6=none"},
               {"sign;fc4.*=fp16", "fc4.*=fp16"},
               {"fc4.*=fp16;sign;conv1.weigth=none", "fc4.*=fp16"},
               {"sign;bias=fp16;conv1.weigth=none", "conv1.weigth=none"},
               /* fc1.* is not idle: it matches tensors, although an earlier rule takes them. */
               {"sign;*=fp16;fc1.*=none", NULL}};
    char rule[COMPRESS_SPEC_MAX];
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        bool idle = compress_idle_rule(row[i].spec, lenet, N_LAYERS, rule);
        if (idle != (row[i].idle != NULL) || (idle && strcmp(rule, row[i].idle) != 0))
            fail_msg("%s: %s", row[i].spec, idle ? rule : "none found");
    }
    static const struct segment dense[] = {{.name = "fc.weight", .n = 9, .n_dims = 2}};
    assert_true(compress_idle_rule("sign;bias=fp16", dense, 1, rule));
    assert_string_equal(rule, "bias=fp16");
    assert_true(compress_idle_rule("sign;conv=qsgd:4,scope=layer", dense, 1, rule));
    assert_string_equal(rule, "conv=qsgd:4:512:max,scope=layer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),       cmocka_unit_test(test_layer_scope),
        cmocka_unit_test(test_block_scope), cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_empty),
        cmocka_unit_test(test_idle_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
