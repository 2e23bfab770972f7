/* peer/node/result/certificate.h -- connects the finish protocol (finish/finish.h) to the node.
 *
 * The module decides whether the run ends with a certificate. It tells the protocol when this
 * peer's model is frozen (final and stored), passes messages between the protocol and the sessions,
 * and lists the members for the protocol. The functions are a part of the node: they read its
 * modules.
 */
#ifndef PEER_NODE_RESULT_CERTIFICATE_H
#define PEER_NODE_RESULT_CERTIFICATE_H

#include "peer/node/finish/finish.h"
#include "peer/node/node.h"

struct link;
struct wire_message;

/* State of the certificate of one node. */
struct run_certificate;

/* State of this peer's model in the current attempt of the finish protocol. */
enum certificate_model {
    CERTIFICATE_MIXING, /* The model still changes. */
    /* The model is frozen, and not known to be within the distance --final-drift. */
    CERTIFICATE_OUTSIDE,
    /* The model is frozen, and counts as within the distance --final-drift: by this peer's own
     * bound, by a report of an earlier process, or because it was fetched from members that had
     * ended. */
    CERTIFICATE_WITHIN
};

/* A distance in a certificate counts as within the target if it is at most this factor times
 * --final-drift. */
extern const double certificate_margin;

/* Creates the certificate state of a node that has no final model yet. Returns NULL if memory is
 * exhausted. */
struct run_certificate *certificate_open(void);
/* Frees *c and the state of the finish protocol. NULL is allowed. */
void certificate_close(struct run_certificate *c);
/* Frees the state of the finish protocol. Called when this peer takes another run. */
void certificate_forget(struct run_certificate *c);
/* Returns whether the run needs a certificate to end with success: the run has a consensus phase
 * and no --byzantine. With --byzantine a coordinator could lie, so there is no certificate. */
bool certificate_applies(const struct node *n);
/* Records that this peer's model is frozen, that is, final and stored. */
void certificate_freeze(struct node *n);
/* Runs the ballots that this peer coordinates. Lets the node mix again if the attempt of the finish
 * protocol was aborted. Lets the node fetch another model if the certificate does not cover its
 * final model. Called in each step. */
void certificate_update(struct node *n);
/* Handles a FINISH message. */
void certificate_heard(struct node *n, const struct link *l, const struct wire_message *m);
/* certificate_met() handles the start of a session with a peer, certificate_lost() its end. */
void certificate_met(struct node *n, const struct link *l);
void certificate_lost(struct node *n, const struct link *l);

/* Returns whether this peer, or an earlier process of it, may have voted on the end of the run. If
 * so, the peer stays a voter, and must not announce that it leaves. */
bool certificate_has_voted(const struct node *n);
/* Returns whether this peer's model is frozen in the current attempt of the finish protocol and, if
 * so, whether it is within the target --final-drift. */
enum certificate_model certificate_model(const struct node *n);
/* Returns the node time at which certificate_update() must be called again. INT64_MAX: no such time
 * is set. */
int64_t certificate_wake_us(const struct node *n);
/* List the members of the run and the voters among them, as the finish protocol sees them.
 * O(members^2) in the worst case. */
void certificate_members(const struct node *n, struct finish_proposal *out);
void certificate_voters(const struct node *n, struct finish_voters *out);
/* Returns the number of the current attempt (finish_attempt()). UINT32_MAX: this process has taken
 * no part in the finish protocol yet. */
uint32_t certificate_attempt(const struct node *n);
/* Returns the certificate of the run, or NULL if this peer does not know one. */
const struct finish_proposal *certificate_known(const struct node *n);
/* Returns whether the certificate of the run covers this peer's model: this process has reported
 * the model in the ballot of the certificate, or has fetched it from members that the certificate
 * covers. */
bool certificate_covers(const struct node *n);
/* Returns whether a certificate can still be decided: the run needs one (certificate_applies()), no
 * certificate is known, and enough voters are alive or have finished. Before --quorum-timeout has
 * passed (QUORUM_RESIGNED), voters that are dead or have left may return, so they count, too. */
bool certificate_possible(struct node *n);
/* Returns whether this peer waits for a certificate: its model is frozen within the target, a
 * certificate can still be decided, and the processes of the other members have not all ended. The
 * wait ends waits_certificate_limit_us() after the model was frozen. */
bool certificate_awaited(struct node *n);

#endif
