/* nn/math/dirichlet.h -- gamma and Dirichlet draws with the same bits on every machine. Peers
 * must agree on the owner of each sample, and log() and exp() of C libraries differ in the last
 * bits. The functions use + - * / and sqrt of doubles only, in a fixed order. */
#ifndef NN_MATH_DIRICHLET_H
#define NN_MATH_DIRICHLET_H

#include "nn/math/rng.h"

/* Natural logarithm of a positive, finite x; e^x, for |x| <= 700. Relative
 * error under 1e-15. */
double dirichlet_log(double x);
double dirichlet_exp(double x);

/* A normal deviate of mean 0 and variance 1, by Marsaglia's polar method. */
double dirichlet_normal(struct rng *r);

/* The logarithm of a Gamma(alpha, 1) draw: for small alpha the draw itself is
 * too small for a double. Proportional to such draws, normalised, is
 * Dirichlet. Needs alpha > 0. (Marsaglia, Tsang, "A simple method for
 * generating gamma variables", 2000.) */
double dirichlet_log_gamma(struct rng *r, double alpha);

#endif
