/* peer/cmd/version.h -- `hearsay --version`: the build, and the libraries and instructions that it uses here. */
#ifndef PEER_CMD_VERSION_H
#define PEER_CMD_VERSION_H

#include <stdbool.h>

/* Print one fact a line behind "hearsay 0.1.0", or one JSON object in which what is not known is
 * null. Returns the exit code: CMD_OK, or CMD_FAILED with a line where stdout takes no more. */
int version_print(bool as_json);

#endif
