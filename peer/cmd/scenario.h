/* peer/cmd/scenario.h -- the file of `hearsay sim --scenario`: a network that is not the same everywhere,
 * and what goes wrong when.
 *
 *   link = "0-3 4-7 latency-us=50000 bandwidth=1e6"  # every link between one of these and one of those
 *   peer = "5 uplink=125000 slow=4"                  # of its host: bytes/s of all its sessions together
 *   at   = "30 cut 0-3 4-7"                          # simulated seconds
 *   at   = "60 heal 0-3 4-7"
 *   at   = "70 kill 2"
 *   at   = "75.5 restart 2"
 *
 * Who is meant: 3 or 0,7 or 5-14 or * for all. Later lines win over earlier ones, and lines of `link`
 * over the flags of `sim`. What is due at the same moment happens in the order of the file, after
 * anything else of that moment, but at 0 before anything: who is killed then comes late. It keeps
 * nothing of the file's text.
 */
#ifndef PEER_CMD_SCENARIO_H
#define PEER_CMD_SCENARIO_H

#include "peer/sim/world.h"

#include <stdbool.h>
#include <stdint.h>

enum { SCENARIO_ERROR_MAX = 512, SCENARIO_FILE_MAX = 1 << 20, SCENARIO_LINES_MAX = 1000 };

struct scenario; /* Opaque. */

/* The scenario of this text, NUL-terminated and written to, among n_peers. 0; -EINVAL with "line 3: ..."
 * that says what was found and expected; -ENOMEM with a sentence. */
__attribute__((warn_unused_result)) int scenario_read(struct scenario **s, char *text,
                                                      uint32_t n_peers,
                                                      char error[SCENARIO_ERROR_MAX]);
void scenario_close(struct scenario *s); /* NULL: nothing happens. */

/* Change what it says of this way. O(lines). */
void scenario_path(const struct scenario *s, uint32_t from, uint32_t to, struct sim_path *path);

/* The next thing that happens, in the world or to it. 1; 0: nobody lives, and nobody will be started;
 * or an error of sim_restart(). */
__attribute__((warn_unused_result)) int scenario_step(struct scenario *s, struct sim_world *w);

/* Is there still to come what brings a peer to the others: one is started or goes on, a path heals? */
bool scenario_brings(const struct scenario *s);

#endif
