/* nn/math/dirichlet.h -- gamma and Dirichlet draws with the same bits on every machine. Peers must
 * agree on the owner of each sample, and log() and exp() of C libraries differ in the last bits.
 * The functions use only + - * / and sqrt of doubles, in a fixed order. */
#ifndef NN_MATH_DIRICHLET_H
#define NN_MATH_DIRICHLET_H

#include "nn/math/rng.h"

/* dirichlet_log() returns the natural logarithm of a positive, finite x. dirichlet_exp() returns
 * e^x for
 * |x| <= 700. The relative error is under 1e-15. */
double dirichlet_log(double x);
double dirichlet_exp(double x);

/* Returns a normal deviate with mean 0 and variance 1, by Marsaglia's polar method. */
double dirichlet_normal(struct rng *r);

/* Returns the logarithm of a Gamma(alpha, 1) draw, for alpha > 0. (For small alpha the draw itself
 * can be too small for a double.) Several draws, divided by their sum, are a Dirichlet draw.
 * Method: Marsaglia, Tsang, "A simple method for generating gamma variables", 2000. */
double dirichlet_log_gamma(struct rng *r, double alpha);

#endif
