/* peer/sim/who.h -- peers of a simulation as people name them: "3", "0,7", "5-14". */
#ifndef PEER_SIM_WHO_H
#define PEER_SIM_WHO_H

#include <stdbool.h>
#include <stdint.h>

enum { WHO_ERROR_MAX = 128 };

/* Sets who[i], of n, for those that the text names, and leaves the others. 0, or -EINVAL with what was
 * found and expected. */
int who_read(const char *text, uint32_t n, bool *who, char error[WHO_ERROR_MAX]);

#endif
