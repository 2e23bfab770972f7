/* peer/run/rate.h -- parses option values that are link rates: 800kbit, 100Mbit, 1Gbit. */
#ifndef PEER_RUN_RATE_H
#define PEER_RUN_RATE_H

#include <stdbool.h>

/* Description of a valid rate, for error messages. */
#define RATE_EXPECTED "a rate above 0 in bit, kbit, Mbit, Gbit or Tbit: 100Mbit"

/* Parses a rate, which is a number followed by its unit, such as "100Mbit". Sets `*bits_per_s`.
 * Returns false if `text` is not a rate. */
bool rate_parse(const char *text, double *bits_per_s);

#endif
