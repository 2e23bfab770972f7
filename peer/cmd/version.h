/* peer/cmd/version.h -- `hearsay --version`: prints the build, and the libraries and CPU
 * instructions in use. */
#ifndef PEER_CMD_VERSION_H
#define PEER_CMD_VERSION_H

#include <stdbool.h>

/* Prints "hearsay 0.1.0" and one fact per line, or one JSON object in which unknown values are
 * null. Returns CMD_OK, or CMD_FAILED after a message if stdout could not be written. */
int version_print(bool as_json);

#endif
