/* peer/cmd/version.h -- `hearsay --version`: prints how the program was built, and which libraries
 * and CPU instructions it uses. */
#ifndef PEER_CMD_VERSION_H
#define PEER_CMD_VERSION_H

#include <stdbool.h>

/* Prints "hearsay 0.1.0" and one fact per line, or with `as_json` one JSON object. A fact that is
 * not known is null there. Returns CMD_OK, or CMD_FAILED after a message on stderr if stdout could
 * not be written. */
int version_print(bool as_json);

#endif
