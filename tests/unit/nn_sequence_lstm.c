/* tests/unit/nn_sequence_lstm.c -- the LSTM layer is compared with its textbook form in double
 * precision, with sizes around its panels, its vectors and its chunks of time steps. */
#include "nn_sequence.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Returns gate k of one sample before its activation function. in: input at this time. h: output
 * at the previous time, or NULL if this is the first time. */
static double gate(const struct layer *l, const double *x, size_t k, const double *in,
                   const double *h)
{
    double sum = x[l->at[2] + k] + x[l->at[3] + k];
    for (size_t j = 0; j < l->in.c; j++)
        sum += x[l->at[0] + k * l->in.c + j] * in[j];
    for (size_t j = 0; h != NULL && j < l->out.c; j++)
        sum += x[l->at[1] + k * l->out.c + j] * h[j];
    return sum;
}

static void lstm_ref(const struct layer *l, size_t n, const double *x, const double *in,
                     double *out)
{
    size_t wide = l->out.c, times = l->in.h;
    double *c = sequence_alloc(wide, sizeof *c);
    for (size_t s = 0; s < n; s++)
        for (size_t t = 0; t < times; t++) {
            const double *x_t = in + (s * times + t) * l->in.c;
            double *h = out + (s * times + t) * wide;
            const double *before = t > 0 ? h - wide : NULL;
            for (size_t j = 0; j < wide; j++) {
                double i = sigmoid(gate(l, x, j, x_t, before));
                double f = sigmoid(gate(l, x, wide + j, x_t, before));
                double g = tanh(gate(l, x, 2 * wide + j, x_t, before));
                double o = sigmoid(gate(l, x, 3 * wide + j, x_t, before));
                c[j] = (t > 0 ? f * c[j] : 0) + i * g;
                h[j] = o * tanh(c[j]);
            }
        }
    free(c);
}

static struct layer lstm(uint32_t in, uint32_t wide, uint32_t times)
{
    return (struct layer){.kind = LAYER_LSTM, .in = {in, times, 1}, .out = {wide, times, 1}};
}

static void does_it_match_the_reference(void **state)
{
    (void)state;
    const struct
    {
        uint32_t in, wide, times, n;
    } cases[] = {{1, 1, 1, 1},   {1, 1, 5, 2},   {3, 3, 1, 1},  {5, 3, 7, 3}, {2, 16, 4, 1},
                 {16, 16, 3, 5}, {17, 17, 6, 4}, {4, 33, 3, 2}, {3, 2, 40, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        sequence_check(lstm(cases[i].in, cases[i].wide, cases[i].times), cases[i].n, lstm_ref);
}

/* The LSTM layer computes time steps in chunks of about 512 rows. Cases: several time steps in a
 * chunk, one time step in a chunk, and a last chunk that is not full. */
static void do_chunks_fit_together(void **state)
{
    (void)state;
    sequence_check(lstm(2, 3, 5), 200, lstm_ref);
    sequence_check(lstm(2, 2, 3), 1100, lstm_ref);
    sequence_check(lstm(1, 2, 700), 1, lstm_ref);
}

static void can_d_in_be_added_to(void **state)
{
    (void)state;
    sequence_check_adds(lstm(5, 4, 6), 3);
    sequence_check_adds(lstm(2, 3, 5), 200);
}

static void is_evaluation_the_same(void **state)
{
    (void)state;
    sequence_check_evaluation(lstm(5, 17, 1), 3);
    sequence_check_evaluation(lstm(5, 17, 6), 3);
    sequence_check_evaluation(lstm(2, 3, 5), 200);
}

static void is_it_causal(void **state)
{
    (void)state;
    sequence_check_causal(lstm(3, 5, 9), 2, 0);
    sequence_check_causal(lstm(3, 5, 9), 2, 6);
}

static void does_memory_grow_with_the_batch(void **state)
{
    (void)state;
    sequence_check_memory(lstm(2, 3, 1));
    sequence_check_memory(lstm(7, 5, 128));
}

static void are_parameters_pytorchs(void **state)
{
    (void)state;
    struct layer l = lstm(6, 4, 3);
    struct layer_param p[LAYER_PARAMS_MAX];
    for (l.depth = 0; l.depth < 8; l.depth++) {
        char name[32];
        const char *parts[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
        assert_int_equal(layer_lstm.params(&l, p), 4);
        for (size_t i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "%s_l%u", parts[i], l.depth);
            assert_string_equal(p[i].of, name);
            assert_int_equal(p[i].n_dims, i < 2 ? 2 : 1);
            assert_int_equal(p[i].dims[0], 16);
            assert_true(p[i].trained && p[i].decays == (i < 2));
            assert_true(p[i].bound == 0.5f && p[i].value == 0.0f);
        }
        assert_int_equal(p[0].dims[1], 6);
        assert_int_equal(p[1].dims[1], 4);
    }
    l.depth = 0;
    assert_true(layer_lstm.products(&l) == 3.0 * 16 * (6 + 4));
}

/* A NaN passes every gate, so that it reaches the loss. */
static void does_nan_reach_the_end(void **state)
{
    (void)state;
    struct sequence b;
    sequence_open(&b, lstm(3, 5, 4), 2);
    b.inf[1 * 3] = NAN; /* Index of the first input of sample 0 at time 1. */
    sequence_forward(&b);
    for (size_t i = 0; i < b.n_out; i++)
        assert_true(!!isnan(b.p.out[i]) == (i >= 5 && i < 20));
    sequence_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_it_match_the_reference),
        cmocka_unit_test(do_chunks_fit_together),
        cmocka_unit_test(can_d_in_be_added_to),
        cmocka_unit_test(is_evaluation_the_same),
        cmocka_unit_test(is_it_causal),
        cmocka_unit_test(does_memory_grow_with_the_batch),
        cmocka_unit_test(are_parameters_pytorchs),
        cmocka_unit_test(does_nan_reach_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
