/* topology/spectrum.c -- the extreme eigenvalues of the mixing matrix.
 *
 * W is symmetric and has the eigenvector 1 with eigenvalue 1. Lanczos'
 * iteration on its complement builds a tridiagonal T whose extreme
 * eigenvalues tend to lambda_2 and lambda_n:
 *
 *   beta_{k+1} q_{k+1} = W q_k - alpha_k q_k - beta_k q_{k-1}
 *
 * Without reorthogonalisation the q lose their orthogonality; what that costs
 * is copies of eigenvalues already found, never a wrong extreme one (Paige
 * 1980), so memory stays O(n + k). Only the direction of 1 must be taken out
 * in each step, as its eigenvalue is the largest of all. The extremes of T
 * come from bisection on the number of negative pivots of T - x.
 *
 * T grows by half until neither extreme moves: a ring's eigenvalues crowd
 * at 1, so that its Lanczos takes about n steps, most graphs' a few dozen.
 */
#include "nn/math/rng.h"
#include "nn/math/vec.h"
#include "topology/rota.h"
#include "topology/topology.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPREAD_ROUNDS = 4096,
    STEPS_FIRST = 24, /* Before the first look at T. */
    STEPS_EXTRA = 64  /* Limit: 4 n + STEPS_EXTRA. */
};

static const double spread_enough = 1e-4; /* A term of less than this part of the sum ends it. */
static const double settled = 1e-13;      /* Change of an extreme that is none. */
static const double breakdown = 1e-13;    /* beta of an exhausted space. */

/* A symmetric matrix with n rows that keeps the mean: y = M x, where y is another vector than x. */
struct matrix
{
    uint32_t n;
    const void *of;
    void (*multiply)(const void *of, const double *x, double *y);
};

struct lanczos
{
    const struct matrix *m;
    double *q, *q_before, *next;
    double *alpha,
        *beta; /* T: alpha[0..k) on the diagonal, beta[i] beside alpha[i - 1] and alpha[i]. */
    size_t k, cap;
    bool exhausted; /* No direction is left: T's eigenvalues are W's. */
};

/* y = W x, with W the Metropolis-Hastings matrix of the graph. */
static void multiply_by_w(const void *graph, const double *x, double *y)
{
    const struct graph *g = graph;
    for (uint32_t v = 0; v < g->n; v++) {
        uint32_t d = graph_degree(g, v);
        double sum = x[v];
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
            uint32_t w = g->neighbour[i];
            sum += topology_weight(d, graph_degree(g, w)) * (x[w] - x[v]);
        }
        y[v] = sum;
    }
}

/* A pass, with scratch of n each. */
struct turns
{
    const struct rota *r;
    double *x, *next;
};

/* t->x = W t->x, with the matrix of one round. */
static void multiply_by_round(struct turns *t, uint32_t round)
{
    memcpy(t->next, t->x, t->r->n * sizeof *t->x);
    for (size_t i = t->r->first[round]; i < t->r->first[round + 1]; i++) {
        const struct rota_edge *e = &t->r->edge[i];
        double by = rota_weight(e) * (t->x[e->b] - t->x[e->a]);
        t->next[e->a] += by;
        t->next[e->b] -= by;
    }
    double *spare = t->x;
    t->x = t->next;
    t->next = spare;
}

/* y = P' P x for the product P of a pass: its rounds there and back, as each is symmetric. */
static void multiply_by_pass(const void *turns, const double *x, double *y)
{
    struct turns t = *(const struct turns *)turns;
    memcpy(t.x, x, t.r->n * sizeof *x);
    for (uint32_t k = 0; k < t.r->n_rounds; k++)
        multiply_by_round(&t, k);
    for (uint32_t k = t.r->n_rounds; k > 0; k--)
        multiply_by_round(&t, k - 1);
    memcpy(y, t.x, t.r->n * sizeof *x);
}

static double dot(const double *a, const double *b, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Take the mean out, which projects onto the complement of the vector 1. */
static void centre(double *x, uint32_t n)
{
    double mean = 0.0;
    for (uint32_t i = 0; i < n; i++)
        mean += x[i];
    mean /= n;
    for (uint32_t i = 0; i < n; i++)
        x[i] -= mean;
}

static void scale(double *x, double s, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] *= s;
}

static void lanczos_start(struct lanczos *l)
{
    uint32_t n = l->m->n;
    struct rng r = rng_stream(rng_key(n, RNG_TOPOLOGY, 0, 0));
    for (uint32_t i = 0; i < n; i++) {
        l->q[i] = rng_normal(&r);
        l->q_before[i] = 0.0;
    }
    centre(l->q, n);
    scale(l->q, 1.0 / sqrt(dot(l->q, l->q, n)), n);
}

/* One step of Lanczos' iteration: one column more of T. */
static void lanczos_step(struct lanczos *l)
{
    uint32_t n = l->m->n;
    double beta = l->k > 0 ? l->beta[l->k] : 0.0;
    l->m->multiply(l->m->of, l->q, l->next);
    double alpha = dot(l->q, l->next, n);
    for (uint32_t i = 0; i < n; i++)
        l->next[i] -= alpha * l->q[i] + beta * l->q_before[i];
    centre(l->next, n);
    double norm = sqrt(dot(l->next, l->next, n));
    l->alpha[l->k++] = alpha;
    l->beta[l->k] = norm;
    l->exhausted = !(norm > breakdown);
    if (l->exhausted)
        return;
    scale(l->next, 1.0 / norm, n);
    double *spare = l->q_before;
    l->q_before = l->q;
    l->q = l->next;
    l->next = spare;
}

/* How many eigenvalues of T are less than x: the negative pivots of T - x. */
static size_t count_below(const struct lanczos *l, double x)
{
    size_t n = 0;
    double pivot = 1.0;
    for (size_t i = 0; i < l->k; i++) {
        double b = i > 0 ? l->beta[i] : 0.0;
        pivot = l->alpha[i] - x - b * b / pivot;
        if (pivot == 0.0)
            pivot = -1e-300;
        n += pivot < 0.0;
    }
    return n;
}

/* The eigenvalue of T that has `rank` others below it. W's lie in [-1, 1]. */
static double eigenvalue(const struct lanczos *l, size_t rank)
{
    double low = -1.0 - 1e-9, high = 1.0 + 1e-9;
    while (high - low > 1e-15) {
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high)
            break;
        if (count_below(l, middle) > rank)
            high = middle;
        else
            low = middle;
    }
    return 0.5 * (low + high);
}

static void lanczos_run(struct lanczos *l, struct spectrum *s)
{
    lanczos_start(l);
    bool done = false;
    for (size_t goal = STEPS_FIRST; !done; goal += goal / 2) {
        while (l->k < goal && l->k < l->cap && !l->exhausted)
            lanczos_step(l);
        double top = eigenvalue(l, l->k - 1), bottom = eigenvalue(l, 0);
        done = l->exhausted || l->k == l->cap
               || (fabs(top - s->lambda_2) <= settled && fabs(bottom - s->lambda_n) <= settled);
        s->lambda_2 = top;
        s->lambda_n = bottom;
    }
}

/* The second largest eigenvalue and the smallest of a matrix whose eigenvector 1 has the eigenvalue 1.
 * 0 or -ENOMEM. */
static int extremes(const struct matrix *m, struct spectrum *s)
{
    *s = (struct spectrum){.lambda_2 = 0.0, .lambda_n = 0.0, .gap = 1.0};
    if (m->n < 2)
        return 0;
    size_t n = m->n, cap = 4 * n + STEPS_EXTRA;
    double *scratch = malloc((3 * n + 2 * cap + 1) * sizeof *scratch);
    if (scratch == NULL)
        return -ENOMEM;
    struct lanczos l = {
        .m = m,
        .q = scratch,
        .q_before = scratch + n,
        .next = scratch + 2 * n,
        .alpha = scratch + 3 * n,
        .beta = scratch + 3 * n + cap,
        .cap = cap,
    };
    lanczos_run(&l, s);
    free(scratch);
    return 0;
}

int graph_spectrum(const struct graph *g, struct spectrum *s)
{
    struct matrix w = {.n = g->n, .of = g, .multiply = multiply_by_w};
    int err = extremes(&w, s);
    if (err != 0 || g->n < 2)
        return err;
    if (!graph_connected(g))
        s->lambda_2 = 1.0; /* What Lanczos found but for its last bits. */
    s->gap = 1.0 - fmax(fabs(s->lambda_2), fabs(s->lambda_n));
    return 0;
}

int rota_share(const struct rota *r, double *share)
{
    struct spectrum s;
    *share = 0.0;
    if (r->exact || r->n < 2)
        return 0;
    double *scratch = malloc(2 * (size_t)r->n * sizeof *scratch);
    if (scratch == NULL)
        return -ENOMEM;
    struct turns t = {.r = r, .x = scratch, .next = scratch + r->n};
    struct matrix m = {.n = r->n, .of = &t, .multiply = multiply_by_pass};
    int err = extremes(&m, &s);
    free(scratch);
    *share = sqrt(fmax(s.lambda_2, 0.0));
    return err;
}

/* Each eigenvector moves by itself, by the roots of z^2 - (lambda + m) z + m. While they are
 * complex both have the absolute value sqrt(m), and that is from m = (1 - sqrt(1 - lambda))^2 on. */
static double critical_momentum(double lambda)
{
    double root = 1.0 - sqrt(fmax(1.0 - lambda, 0.0));
    return root * root;
}

double spectrum_momentum(const struct spectrum *s)
{
    double m = fmax(critical_momentum(s->lambda_2), critical_momentum(s->lambda_n));
    return s->lambda_2 < 1.0 ? m : 0.0;
}

/* ---- spread ---- */

double graph_spread(const struct graph *g, uint32_t v)
{
    double *x = calloc(2 * (size_t)g->n, sizeof *x), *y = x + g->n, sum = 0;
    if (x == NULL)
        return -1.0;
    x[v] = 1;
    centre(x, g->n);
    sum = dot(x, x, g->n);
    for (int round = 0; round < SPREAD_ROUNDS; round++) {
        multiply_by_w(g, x, y);
        double term = dot(y, y, g->n);
        memcpy(x, y, g->n * sizeof *x);
        sum += term;
        if (!(term > spread_enough * sum))
            break;
    }
    free(x);
    return sqrt(sum);
}
