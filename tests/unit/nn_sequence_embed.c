/* tests/unit/nn_sequence_embed.c -- the embedding layer gives exact results: table rows are
 * copied or added once, and gradients are sums in double precision. */
#include "nn_sequence.h"

static struct layer embed(uint32_t times, uint32_t c, bool positions)
{
    return (struct layer){
        .kind = LAYER_EMBED, .positions = positions, .in = {1, times, 1}, .out = {c, times, 1}};
}

static void embed_open(struct sequence *b, struct layer l, uint32_t n, uint32_t n_ids)
{
    sequence_open(b, l, n);
    struct rng r = rng_stream(rng_key(2, RNG_TEST, n, l.out.c));
    for (size_t i = 0; i < b->n_in; i++)
        b->inf[i] = (float)(256 - n_ids + rng_below(&r, n_ids));
    free(b->p.d_in);
    b->p.d_in = NULL;
}

static void check_forward(const struct sequence *b)
{
    size_t c = b->l.out.c;
    for (size_t i = 0; i < b->n_out; i++) {
        size_t place = i / c, id = (size_t)b->inf[place];
        float want = b->xf[b->l.at[0] + id * c + i % c];
        if (b->l.positions)
            want += b->xf[b->l.at[1] + place % b->l.in.h * c + i % c];
        assert_true(b->p.out[i] == want);
    }
}

static void check_gradient(const struct sequence *b)
{
    size_t c = b->l.out.c;
    double *want = sequence_alloc(b->n_params, sizeof *want);
    for (size_t i = 0; i < b->n_params; i++)
        want[i] = 0;
    for (size_t i = 0; i < b->n_out; i++) {
        size_t place = i / c, id = (size_t)b->inf[place];
        want[b->l.at[0] + id * c + i % c] += b->d_out[i];
        if (b->l.positions)
            want[b->l.at[1] + place % b->l.in.h * c + i % c] += b->d_out[i];
    }
    for (size_t i = 0; i < b->n_params; i++)
        assert_true(b->p.grad[i] == (float)want[i]);
    free(want);
}

static void check(struct layer l, uint32_t n, uint32_t n_ids)
{
    struct sequence b;
    embed_open(&b, l, n, n_ids);
    sequence_forward(&b);
    check_forward(&b);
    sequence_backward(&b);
    check_gradient(&b);
    sequence_close(&b);
}

static void does_it_match_the_reference(void **state)
{
    (void)state;
    const uint32_t widths[] = {1, 3, 16, 63, 64, 65, 130};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (int positions = 0; positions < 2; positions++) {
            check(embed(1, widths[i], positions), 1, 256);
            check(embed(7, widths[i], positions), 5, 256);
            check(embed(50, widths[i], positions), 9, 3);
        }
}

static void is_evaluation_the_same(void **state)
{
    (void)state;
    struct sequence b;
    struct layer l = embed(6, 17, true);
    embed_open(&b, l, 3, 256);
    b.p.training = false;
    assert_int_equal(layer_embed.scratch(&l, 3, false), 0);
    free(b.p.scratch);
    b.p.scratch = NULL;
    sequence_forward(&b);
    check_forward(&b);
    sequence_close(&b);
}

static void do_parameters_have_their_names(void **state)
{
    (void)state;
    struct layer l = embed(6, 17, false);
    struct layer_param p[LAYER_PARAMS_MAX];
    assert_int_equal(layer_embed.params(&l, p), 1);
    assert_string_equal(p[0].of, "weight");
    assert_true(p[0].n_dims == 2 && p[0].dims[0] == 256 && p[0].dims[1] == 17);
    l.positions = true;
    assert_int_equal(layer_embed.params(&l, p), 2);
    assert_string_equal(p[0].of, "wte.weight");
    assert_string_equal(p[1].of, "wpe.weight");
    assert_true(p[1].n_dims == 2 && p[1].dims[0] == 6 && p[1].dims[1] == 17);
    assert_true(p[0].trained && p[1].trained && p[0].decays && p[1].decays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_it_match_the_reference),
        cmocka_unit_test(is_evaluation_the_same),
        cmocka_unit_test(do_parameters_have_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
