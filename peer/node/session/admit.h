/* peer/node/session/admit.h -- admission: which holders of the cluster key may be members.
 *
 * The driver provides an allow-list of identities with the event NODE_ADMIT. Before the first list,
 * every holder of the cluster key is admitted. A certificate (struct certificate) admits a member
 * that is not on the list. The first case that applies decides:
 *
 *   - The identity is on the list, or is this peer's own: admitted.
 *   - The record has no certificate: REFUSED_UNLISTED.
 *   - The issuer of the certificate is not on the list: REFUSED_ISSUER.
 *   - The table has this record's certificate already: admitted.
 *   - A signature of the certificate is invalid: REFUSED_FORGED.
 *   - The certificate has expired, and the member itself has sent it in a HELLO: REFUSED_EXPIRED.
 *   - Otherwise: admitted.
 *
 * The expiry of a certificate is therefore checked only when its owner contacts a member for the
 * first time. After that members forward the record, and its receivers do not check the expiry.
 *
 * A process that is not admitted gets the message REFUSED, and its session ends. Its record is
 * dropped, also if another member has forwarded it. A new list is applied at once to all members
 * and sessions.
 *
 * Names must be unique. A peer is refused if its name belongs to a member with a session
 * (admit_name()). Two peers with the same name may join at different members. If both are then in
 * the member table, the one that started later is refused (admit_one_of_two()).
 *
 * A peer that is refused, and has had no session for REFUSED_END_US, ends. Otherwise it would train
 * alone.
 */
#ifndef PEER_NODE_SESSION_ADMIT_H
#define PEER_NODE_SESSION_ADMIT_H

#include "peer/node/node.h"

struct admit;
struct sessions;
struct link;

void admit_close(struct admit *a);
/* Replaces the allow-list by the one in the event NODE_ADMIT and applies it to all members and
 * sessions. If memory is exhausted, the previous list stays in use. */
void admit_list(struct sessions *s, const struct node_event *ev);
/* Returns whether the allow-list or a certificate admits the sender of the first HELLO on session
 * `l`, which contains record r. Otherwise sends REFUSED, prints a warning and hangs up. */
bool admit_hello(struct sessions *s, const struct link *l, const struct record *r);
/* Returns whether the sender of record r may use the name in r: no live member that started earlier
 * has this name. Otherwise sends REFUSED, prints a warning and hangs up. Called after the sender's
 * run was accepted. */
bool admit_name(struct sessions *s, const struct link *l, const struct record *r);
/* Returns whether the observer that has sent a HELLO is admitted. Otherwise sends REFUSED, prints a
 * warning and hangs up. The HELLO of an observer contains no record. */
bool admit_observer(struct sessions *s, const struct link *l);
/* Returns whether a warning that peer `id` has another run was printed in the last ten minutes. If
 * not, remembers that the caller prints it now. */
bool admit_run_is_told(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Returns whether the allow-list or a certificate admits the member with record r. Used for records
 * that another member has forwarded. The expiry of a certificate is therefore not checked. */
bool admit_record(struct sessions *s, const struct record *r);
/* Returns whether member `id` is refused (members_refuse()) and the allow-list does not admit its
 * current record either. */
bool admit_keeps_out(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Handles the message REFUSED: the other end of session `l` refuses this peer. */
void admit_refused(struct sessions *s, const struct link *l, const struct wire_refused *m);
/* Returns whether this peer counts as refused: a peer has refused it within REFUSAL_VALID_US, and
 * no session with another peer has lasted for ADMITTED_US. */
bool admit_is_refused(const struct admit *a);
/* Returns whether this peer must not dial peer `id` now: this peer has refused `id` within the last
 * 2 s, or any peer has refused this peer within REFUSED_REDIAL_US. */
bool admit_must_wait(const struct admit *a, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);
/* Handles two live members with the same name, given by their records. The member that started
 * later is refused or, if it is this peer, ends. */
void admit_one_of_two(struct sessions *s, const struct record *a, const struct record *b);
/* Ends this peer if it has counted as refused for REFUSED_END_US. The peer stops counting as
 * refused when a session has lasted for ADMITTED_US, or when no refusal has arrived for
 * REFUSAL_VALID_US. */
void admit_tick(struct sessions *s);

#endif
