/* peer/sim/who.h -- parses a list of peer numbers: "3", "0,7", "5-14". */
#ifndef PEER_SIM_WHO_H
#define PEER_SIM_WHO_H

#include <stdbool.h>
#include <stdint.h>

enum { WHO_ERROR_MAX = 128 };

/* Parses a list of peers such as "0,7" or "5-14", and sets who[i] for each listed peer i < n. All
 * other elements stay unchanged. Returns 0, or -EINVAL and writes to `error` what was found and
 * what was expected. */
int who_read(const char *text, uint32_t n, bool *who, char error[WHO_ERROR_MAX]);

#endif
