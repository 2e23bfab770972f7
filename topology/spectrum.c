/* topology/spectrum.c -- extreme eigenvalues of the mixing matrix W, by Lanczos iteration.
 *
 * W is symmetric and has the eigenvalue 1 with the vector of all ones as eigenvector. Lanczos
 * iteration on the vectors orthogonal to it (vectors with mean 0) builds a tridiagonal matrix T.
 * Its extreme eigenvalues converge to the second largest and the smallest eigenvalue of W, lambda_2
 * and lambda_n. With alpha on the diagonal of T and beta next to it, step k is:
 *
 *   beta_{k+1} q_{k+1} = W q_k - alpha_k q_k - beta_k q_{k-1}
 *
 * The vectors q are not orthogonalised again, so they lose orthogonality by rounding. This only
 * adds copies of eigenvalues already found, never a wrong extreme eigenvalue (Paige 1980). Memory
 * therefore stays O(n + k). Only the mean must be removed in each step, because the eigenvalue of
 * the vector of ones is the largest. The extreme eigenvalues of T are found by bisection: T has as
 * many eigenvalues below x as T - x has negative pivots.
 *
 * T grows by half its size until neither extreme eigenvalue changes. The eigenvalues of a ring are
 * dense near 1, so a ring needs about n steps. Most graphs need a few dozen steps.
 */
#include "nn/math/rng.h"
#include "nn/math/vec.h"
#include "topology/round_schedule.h"
#include "topology/topology.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPREAD_ROUNDS = 4096, /* Largest number of terms of the sum in graph_spread(). */
    /* Number of Lanczos steps before the eigenvalues of the tridiagonal matrix T are first
     * computed. */
    STEPS_FIRST = 24,
    STEPS_EXTRA = 64 /* The number of Lanczos steps is at most 4 n + STEPS_EXTRA. */
};

/* The sum in graph_spread() ends when a term is smaller than this fraction of the sum. */
static const double spread_enough = 1e-4;
/* An eigenvalue has converged if it changes by at most this amount. */
static const double settled = 1e-13;
/* The Lanczos iteration ends if beta, the length of the next vector q before it is scaled to 1, is
 * at most this number. No vector orthogonal to the previous ones is then left. */
static const double breakdown = 1e-13;

/* A symmetric n x n matrix M that does not change the mean of a vector. multiply() computes y = M
 * x, where x and y must be different vectors. */
struct matrix
{
    uint32_t n;
    /* The graph or round schedule that defines the matrix. It is passed to multiply(). */
    const void *of;
    void (*multiply)(const void *of, const double *x, double *y);
};

/* State of a Lanczos iteration. */
struct lanczos
{
    const struct matrix *m;
    /* The vectors q_k and q_(k-1) of the iteration, and memory for q_(k+1). n elements each. */
    double *q, *q_before, *next;
    /* The tridiagonal matrix T: alpha[0..k) is its diagonal, and beta[i] is the off-diagonal
     * element between alpha[i - 1] and alpha[i]. */
    double *alpha, *beta;
    /* Number of rows of the tridiagonal matrix T at present, and largest number of rows. */
    size_t k, cap;
    /* True: the iteration has no further vector q, so T cannot grow. The eigenvalues of T are then
     * eigenvalues of the matrix to which the iteration is applied. */
    bool exhausted;
};

/* Computes y = W x, where W is the Metropolis-Hastings matrix of the graph. */
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

/* A pass of a round schedule, and the vectors that are multiplied: `x`, and `next` for the result.
 * n elements each. */
struct turns
{
    const struct round_schedule *r;
    double *x, *next;
};

/* Multiplies the vector t->x by the mixing matrix of one round. */
static void multiply_by_round(struct turns *t, uint32_t round)
{
    memcpy(t->next, t->x, t->r->n * sizeof *t->x);
    for (size_t i = t->r->first[round]; i < t->r->first[round + 1]; i++) {
        const struct round_schedule_edge *e = &t->r->edge[i];
        double by = round_schedule_weight(e) * (t->x[e->b] - t->x[e->a]);
        t->next[e->a] += by;
        t->next[e->b] -= by;
    }
    double *spare = t->x;
    t->x = t->next;
    t->next = spare;
}

/* Computes y = P' P x, where P is the product of the matrices of a pass and P' its transpose. The
 * matrix of each round is symmetric, so P' applies the rounds in reverse order. */
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

/* Subtracts the mean from the elements of x. */
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

/* Sets q, the first vector of the iteration, to a random unit vector with mean 0. */
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

/* Does one step of the Lanczos iteration, which adds one row and column to the tridiagonal matrix
 * T. */
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

/* Returns the number of eigenvalues of the tridiagonal matrix T below x. It equals the number of
 * negative pivots in the elimination of T - x. */
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

/* Returns the eigenvalue of the tridiagonal matrix T that has `rank` eigenvalues below it. It is
 * found by bisection in [-1, 1], which contains all eigenvalues of a mixing matrix. */
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

/* Does Lanczos steps, which add rows to the tridiagonal matrix T, until the extreme eigenvalues of
 * T have converged. Stores these two eigenvalues in `s`. */
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

/* Computes the second largest and the smallest eigenvalue of a matrix that has the eigenvalue 1
 * with the vector of ones as eigenvector. Returns 0 or -ENOMEM. */
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
        /* lambda_2 of a disconnected graph is exactly 1. Lanczos iteration finds this number only
         * up to rounding. */
        s->lambda_2 = 1.0;
    s->gap = 1.0 - fmax(fabs(s->lambda_2), fabs(s->lambda_n));
    return 0;
}

int round_schedule_share(const struct round_schedule *r, double *share)
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

/* Returns the smallest momentum m with which the component of an eigenvector with eigenvalue lambda
 * shrinks by sqrt(m) per round. The component evolves by the roots of z^2 - (lambda + m) z + m.
 * Complex roots have the absolute value sqrt(m), and the roots are complex from m = (1 - sqrt(1 -
 * lambda))^2 on. */
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

/* ---- Spread of the models ---- */

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
