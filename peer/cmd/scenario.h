/* peer/cmd/scenario.h -- reads and executes the file of `hearsay sim --scenario`, which lists
 * differences between links and peers, and faults at given times.
 *
 *   link = "0-3 4-7 latency-us=50000 bandwidth=1e6"  # each link between peers 0-3 and peers 4-7
 *   peer = "5 uplink=125000 slow=4"                  # bytes/s of all sessions of peer 5 together
 *   at   = "30 cut 0-3 4-7"                          # at 30 simulated seconds
 *   at   = "60 heal 0-3 4-7"
 *   at   = "70 kill 2"
 *   at   = "75.5 restart 2"
 *
 * Peers are given as 3, as 0,7, as 5-14, or as * for all. Later lines override earlier ones, and
 * `link` lines override the flags of `sim`. Actions at the same time happen in the order of the
 * file, after all other events of that time. Actions at time 0 happen before everything else, so a
 * peer that is killed at 0 and restarted later joins late. After a scenario has been read, its text
 * is no longer needed.
 */
#ifndef PEER_CMD_SCENARIO_H
#define PEER_CMD_SCENARIO_H

#include "peer/sim/world.h"

#include <stdbool.h>
#include <stdint.h>

enum { SCENARIO_ERROR_MAX = 512, SCENARIO_FILE_MAX = 1 << 20, SCENARIO_LINES_MAX = 1000 };

struct scenario; /* A scenario that has been read from a file. */

/* Reads a scenario for n_peers peers. `text` is NUL-terminated, and is modified. Returns 0 and sets
 * `*s`; -EINVAL with a message "line 3: ..." that says what was found and what was expected; or
 * -ENOMEM with a message. */
__attribute__((warn_unused_result)) int scenario_read(struct scenario **s, char *text,
                                                      uint32_t n_peers,
                                                      char error[SCENARIO_ERROR_MAX]);
void scenario_close(struct scenario *s); /* Frees a scenario. `s` may be NULL. */

/* Changes the properties in `*path` that the scenario sets for the link from peer `from` to peer
 * `to`. Takes time proportional to the number of lines of the scenario. */
void scenario_path(const struct scenario *s, uint32_t from, uint32_t to, struct sim_path *path);

/* Executes the next event of the simulation or the next action of the scenario. Returns 1 if there
 * was one. Returns 0 if no peer is alive and no action will start one. Returns the negative errno
 * of sim_restart() if a peer could not be restarted. */
__attribute__((warn_unused_result)) int scenario_step(struct scenario *s, struct sim_world *w);

/* Returns true if the scenario still has an action that can connect peers again: `restart`, `go`
 * after a stop, or `heal`. */
bool scenario_will_reconnect(const struct scenario *s);

#endif
