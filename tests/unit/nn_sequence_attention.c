/* tests/unit/nn_sequence_attention.c -- attention is compared with its definition in double
 * precision, with sizes around blocks of 32 rows and vectors of 16 floats, and with heads of any
 * size. */
#include "nn_sequence.h"

/* Queries, keys and values of one head: d doubles in each row of `stride` doubles. */
struct head
{
    const double *q, *k, *v;
    size_t stride, d;
};

/* Computes out[d], the output at time t: its query sees the keys of times 0 to t. */
static void attend(const struct head *h, size_t t, double *out)
{
    double *p = sequence_alloc(t + 1, sizeof *p);
    double most = -INFINITY, sum = 0;
    for (size_t j = 0; j <= t; j++) {
        p[j] = 0;
        for (size_t i = 0; i < h->d; i++)
            p[j] += h->q[t * h->stride + i] * h->k[j * h->stride + i] / sqrt((double)h->d);
        most = fmax(most, p[j]);
    }
    for (size_t j = 0; j <= t; j++) {
        p[j] = exp(p[j] - most);
        sum += p[j];
    }
    for (size_t i = 0; i < h->d; i++) {
        out[i] = 0;
        for (size_t j = 0; j <= t; j++)
            out[i] += p[j] / sum * h->v[j * h->stride + i];
    }
    free(p);
}

static void attention_ref(const struct layer *l, size_t n, const double *x, const double *in,
                          double *out)
{
    (void)x;
    size_t c = l->out.c, times = l->in.h, d = c / l->groups;
    for (size_t s = 0; s < n; s++)
        for (size_t g = 0; g < l->groups; g++) {
            const double *q = in + s * times * 3 * c + g * d;
            struct head h = {q, q + c, q + 2 * c, 3 * c, d};
            for (size_t t = 0; t < times; t++)
                attend(&h, t, out + (s * times + t) * c + g * d);
        }
}

static struct layer attention(uint32_t heads, uint32_t d, uint32_t times)
{
    return (struct layer){.kind = LAYER_ATTENTION,
                          .groups = heads,
                          .in = {3 * heads * d, times, 1},
                          .out = {heads * d, times, 1}};
}

static void does_it_match_the_reference(void **state)
{
    (void)state;
    const uint32_t times[] = {1, 2, 5, 16, 31, 32, 33, 65};
    const uint32_t heads[] = {1, 2, 4}, sizes[] = {1, 3, 16, 17};
    for (size_t t = 0; t < 8; t++)
        for (size_t h = 0; h < 3; h++) {
            uint32_t d = sizes[(t + h) % 4], n = t < 4 ? 3 : 1;
            sequence_check(attention(heads[h], d, times[t]), n, attention_ref);
        }
}

static void can_d_in_be_added_to(void **state)
{
    (void)state;
    sequence_check_adds(attention(2, 3, 5), 2);
    sequence_check_adds(attention(2, 3, 70), 1);
}

static void is_evaluation_the_same(void **state)
{
    (void)state;
    sequence_check_evaluation(attention(2, 3, 1), 2);
    sequence_check_evaluation(attention(2, 5, 70), 2);
}

static void is_it_causal(void **state)
{
    (void)state;
    sequence_check_causal(attention(2, 3, 2), 2, 0);
    sequence_check_causal(attention(2, 3, 70), 2, 16);
    sequence_check_causal(attention(4, 4, 70), 1, 63);
}

static void does_memory_grow_with_the_batch(void **state)
{
    (void)state;
    sequence_check_memory(attention(2, 3, 33));
}

/* If scores are far beyond the range of exp, every output is still a mean of values, and gradients
 * are finite. */
static void are_large_scores_harmless(void **state)
{
    (void)state;
    struct sequence b;
    sequence_open(&b, attention(2, 4, 40), 2);
    for (size_t i = 0; i < b.n_in; i++)
        /* All value vectors consist of ones, and queries and keys are large. */
        b.inf[i] = i / 8 % 3 == 2 ? 1.0f : 1e4f * b.inf[i];
    sequence_forward(&b);
    for (size_t i = 0; i < b.n_out; i++)
        sequence_near("out", i, b.p.out[i], 1);
    sequence_backward(&b);
    assert_true(vec_finite(b.p.d_in, b.n_in));
    sequence_close(&b);
}

/* A NaN in the query of one head makes the output of this head at this time NaN, and nothing
 * else. */
static void does_nan_stay_in_its_place(void **state)
{
    (void)state;
    struct sequence b;
    sequence_open(&b, attention(2, 4, 40), 1);
    b.inf[35 * 24 + 1] = NAN;
    sequence_forward(&b);
    for (size_t i = 0; i < b.n_out; i++)
        assert_true(!!isnan(b.p.out[i]) == (i >= 35 * 8 && i < 35 * 8 + 4));
    sequence_close(&b);
}

static void are_products_half_of_a_square(void **state)
{
    (void)state;
    struct layer l = attention(2, 3, 5);
    /* Number of multiplications for 5 time steps: time t has t pairs of a query and a visible key,
     * so there are 1 + 2 + 3 + 4 + 5. Each pair has two products (score and value) in each of 6
     * channels. */
    assert_true(layer_attention.products(&l) == 15.0 * 2 * 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_it_match_the_reference),
        cmocka_unit_test(can_d_in_be_added_to),
        cmocka_unit_test(is_evaluation_the_same),
        cmocka_unit_test(is_it_causal),
        cmocka_unit_test(does_memory_grow_with_the_batch),
        cmocka_unit_test(are_large_scores_harmless),
        cmocka_unit_test(does_nan_stay_in_its_place),
        cmocka_unit_test(are_products_half_of_a_square),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
