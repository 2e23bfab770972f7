/* peer/run/rate.h -- options whose values are rates of a link: 800kbit, 100Mbit, 1Gbit. */
#ifndef PEER_RUN_RATE_H
#define PEER_RUN_RATE_H

#include <stdbool.h>

#define RATE_EXPECTED "a rate above 0 in bit, kbit, Mbit, Gbit or Tbit: 100Mbit"

/* Reads "100Mbit" as bits a second: a number and its unit, and nothing else. */
bool rate_read(const char *text, double *bits_per_s);

#endif
