/* peer/node/session/connection_diagnostics.h -- warns if no session with a bootstrap address can be
 * opened.
 *
 * For each bootstrap name this module counts the failed dials and stores the last reason. Names
 * that fail for the same reason share one warning. The warning is repeated after 10 s, 20 s, 40 s,
 * and so on up to 10 min. The state of this peer determines which failures are printed:
 *
 *   - If this peer has a session: only failures that a user must fix (another cluster key, another
 *     protocol version, a program that is not hearsay).
 *   - If this peer has no session: all failures.
 *   - If other peers refuse this peer: all failures, except sessions that a peer ends at once. The
 *     refusing peer has sent the reason, which was printed (admit.c).
 *
 * A wrong key or program is printed after two consecutive failures, because a correct peer also
 * closes the connection if it is ending or has no free session. The failures that only a peer
 * without a session prints are printed after 3 s without a session, or after 30 s if this peer had
 * one before.
 *
 * If the bootstrap list contains only addresses of this peer, a message says so once. No decision
 * of the protocol depends on this module.
 */
#ifndef PEER_NODE_SESSION_CONNECTION_DIAGNOSTICS_H
#define PEER_NODE_SESSION_CONNECTION_DIAGNOSTICS_H

#include "peer/node/node.h"

struct sessions;
struct link;

/* Counts a failed dial (event NODE_DIAL_FAILED). Must be called before dial_over(). */
void connection_diagnostics_failed(struct sessions *s, const struct node_event *ev);
/* Counts a failure of bootstrap name number `seed`, because it does not resolve. The caller has
 * printed a warning. */
void connection_diagnostics_unresolved(struct sessions *s, uint32_t seed);
/* Handles the end of a session. Counts a failure if this peer dialled the other end, which ended
 * the session without a HELLO. */
void connection_diagnostics_unwelcome(struct sessions *s, const struct link *l);
/* Handles the first HELLO on a session: clears the failures of the bootstrap name. */
void connection_diagnostics_met(struct sessions *s, const struct link *l);
/* Prints the warnings that are due. `has_run`: this peer has a run or prepares one. */
void connection_diagnostics_tick(struct sessions *s, bool has_run);

/* Capacity of the text of connection_diagnostics_names(), in bytes. */
enum { CONNECTION_DIAGNOSTICS_NAMES = 100 };
/* Writes the bootstrap names at which other peers are expected, for example "one:7100, two:7100 and
 * 3 more". Names of which all addresses belong to this peer are left out. The text may be empty. */
void connection_diagnostics_names(const struct sessions *s, char out[CONNECTION_DIAGNOSTICS_NAMES]);

/* Returns whether the bootstrap list names other peers, and this process has never had a session
 * with any peer. */
bool connection_diagnostics_lonely(const struct sessions *s);

/* Returns the reason of a failed dial as a clause for a message, such as "no route to the host". */
const char *connection_diagnostics_why(enum node_why why);

#endif
