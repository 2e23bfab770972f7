/* nn/layers/embed.c -- the embedding: looks up each token id in a table. If l->positions, it also
 * adds the row of a second table for the time step.
 *
 *   in   [n][T] ids         out  [n][T][c] = tokens[id] (+ places[t])
 *
 * Token ids have no gradient. The gradient of the token table is computed row by row. The positions
 * are sorted by id (counting sort, which keeps their order). Each row of the gradient can then be
 * summed in double over the positions of its token, without a table of doubles.
 */
#include "nn/layers/layer.h"

#include <string.h>

static_assert(sizeof(uint32_t) == sizeof(float), "a position fits into a float of scratch memory");

enum {
    RUN = 64 /* Number of channels of a row that are summed in one loop. */
};

static size_t embed_params(const struct layer *l, struct layer_param p[LAYER_PARAMS_MAX])
{
    p[0] = (struct layer_param){.of = l->positions ? "wte.weight" : "weight",
                                .n_dims = 2,
                                .dims = {LAYER_VOCABULARY, l->out.c},
                                .decays = true,
                                .trained = true};
    p[1] = (struct layer_param){.of = "wpe.weight",
                                .n_dims = 2,
                                .dims = {l->out.h, l->out.c},
                                .decays = true,
                                .trained = true};
    return l->positions ? 2 : 1;
}

/* Returns the number of floats of scratch memory, which holds the positions sorted by id. Each
 * position is a uint32_t, which has the size of a float. */
static size_t embed_scratch(const struct layer *l, uint32_t n, bool training)
{
    return training ? n * shape_places(l->out) : 0;
}

/* Converts a token id from float. Ids are small whole numbers, which a float represents exactly. */
static uint32_t token(float id)
{
    assert(id >= 0.0f && id < (float)LAYER_VOCABULARY);
    return (uint32_t)id;
}

VEC_CLONES static void add_two_rows(float *restrict out, const float *restrict a,
                                    const float *restrict b, size_t c)
{
    for (size_t j = 0; j < c; j++)
        out[j] = a[j] + b[j];
}

static void embed_forward(const struct layer *l, const struct layer_pass *p)
{
    size_t times = shape_places(l->out), c = l->out.c;
    const float *tokens = p->x + l->at[0];
    const float *places = l->positions ? p->x + l->at[1] : NULL;
    for (size_t i = 0; i < p->n * times; i++) {
        const float *row = tokens + token(p->in[i]) * c;
        if (places != NULL)
            add_two_rows(p->out + i * c, row, places + i % times * c, c);
        else
            memcpy(p->out + i * c, row, c * sizeof *row);
    }
}

/* Adds up those rows of d[][c] whose indices are in rows[0..n_rows). Writes the sum of each column
 * to sum[0..c). */
VEC_CLONES static void sum_rows(float *restrict sum, const float *restrict d, size_t c,
                                const uint32_t *rows, size_t n_rows)
{
    for (size_t from = 0; from < c; from += RUN) {
        size_t run = c - from < RUN ? c - from : RUN;
        double total[RUN] = {0};
        for (size_t r = 0; r < n_rows; r++) {
            const float *row = d + rows[r] * c + from;
            for (size_t j = 0; j < run; j++)
                total[j] += (double)row[j];
        }
        for (size_t j = 0; j < run; j++)
            sum[from + j] = (float)total[j];
    }
}

static void tokens_gradient(const struct layer *l, const struct layer_pass *p)
{
    uint32_t n = (uint32_t)(p->n * shape_places(l->out));
    size_t c = l->out.c;
    /* For each token id, the index in sorted[] after the last position of the id. */
    uint32_t end[LAYER_VOCABULARY] = {0};
    uint32_t *sorted = (uint32_t *)p->scratch;
    for (uint32_t i = 0; i < n; i++)
        end[token(p->in[i])]++;
    for (uint32_t id = 1; id < LAYER_VOCABULARY; id++)
        end[id] += end[id - 1];
    for (uint32_t i = n; i-- > 0;)
        /* Each position of an id decrements end[id]. After the loop, end[id] is the index of the
         * id's first position in sorted[]. */
        sorted[--end[token(p->in[i])]] = i;
    for (uint32_t id = 0; id < LAYER_VOCABULARY; id++) {
        uint32_t stop = id + 1 < LAYER_VOCABULARY ? end[id + 1] : n;
        sum_rows(p->grad + l->at[0] + id * c, p->d_out, c, sorted + end[id], stop - end[id]);
    }
}

static void places_gradient(const struct layer *l, const struct layer_pass *p)
{
    uint32_t times = (uint32_t)shape_places(l->out);
    uint32_t *rows = (uint32_t *)p->scratch;
    for (uint32_t t = 0; t < times; t++) {
        for (uint32_t s = 0; s < p->n; s++)
            rows[s] = s * times + t;
        sum_rows(p->grad + l->at[1] + t * l->out.c, p->d_out, l->out.c, rows, p->n);
    }
}

static void embed_backward(const struct layer *l, const struct layer_pass *p)
{
    assert(p->d_in == NULL);
    assert(p->n * shape_places(l->out) <= UINT32_MAX);
    tokens_gradient(l, p);
    if (l->positions)
        places_gradient(l, p);
}

static double embed_products(const struct layer *l)
{
    (void)l;
    return 0;
}

const struct layer_op layer_embed = {
    .name = "embed",
    .params = embed_params,
    .scratch = embed_scratch,
    .forward = embed_forward,
    .backward = embed_backward,
    .products = embed_products,
};
