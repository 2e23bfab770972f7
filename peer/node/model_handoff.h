/* peer/node/model_handoff.h -- hands a final model that this peer cannot store to another peer, and
 * stores the models of other peers that cannot.
 *
 * Giving this peer's own model away (enum names of HAND messages in capitals):
 *
 *   state     event                                           next state
 *   --------  ----------------------------------------------  -------------------------------------
 *   idle      model_handoff_begin()                           offered: send OFFERED to one member
 *   offered   WANTED arrives                                  sent: send the whole model
 *   offered   REFUSED, session lost, or no answer in 10 s     offered, to the next member
 *   sent      STORED arrives                                  over: `with` names the member
 *   sent      REFUSED, session lost, or no answer in 120 s    offered, to the next member
 *   offered   no member is left                               see below, or over: the model is lost
 *
 * A member that is busy with another peer's model does not answer. If a member did not answer in
 * time, all members are therefore asked again, in at most MODEL_HANDOFF_PASSES passes and until
 * --quorum-timeout has passed.
 *
 * Taking another peer's model:
 *
 *   OFFERED arrives --> send WANTED --> the whole model arrives --> the driver stores it --> send
 *   STORED, or REFUSED if that failed
 *
 * A peer that gives its model away has failed all the same, because its model is not in its own
 * directory. A peer takes a model only in the consensus phase or later, only if it has not failed
 * to store its own model, and only from a member of the same run. It takes one model at a time,
 * from at most MODEL_HANDOFF_MOST members. The model must be finite and as large as its own. A
 * member that offers its model again replaces the earlier one. Another member of the same name is
 * refused, because the file is named after the member.
 *
 * Only model_handoff.c writes struct model_handoff.
 */
#ifndef PEER_NODE_MODEL_HANDOFF_H
#define PEER_NODE_MODEL_HANDOFF_H

#include "peer/node/run_context.h"

enum {
    MODEL_HANDOFF_MOST = 8,  /* Maximum number of other members' models that this peer stores. */
    MODEL_HANDOFF_PASSES = 4 /* Maximum number of times that this peer asks all members. */
};

/* The two hand-offs of a peer: of its own model, and of another peer's model. */
struct model_handoff
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;

    /* ---- giving this peer's own model away ---- */

    /* giving: the hand-off has begun and is not over. sent: the model was sent on session `to`, and
     * the confirmation has not arrived. */
    bool giving, sent;
    /* True: in the present pass over all members, a member did not answer an offer in time. */
    bool silent;
    uint32_t n_passes; /* Number of completed passes over all members. */
    /* Node time at which the hand-off of this peer's model began, in microseconds. */
    int64_t since_us;
    /* Driver's number of the session with the member that is asked now. UINT32_MAX: none. */
    uint32_t to;
    int64_t to_us; /* Node time at which the offer or the model was sent, in microseconds. */
    /* Members that were asked in the present pass over all members. Owned. */
    uint8_t (*tried)[WIRE_ID_BYTES];
    size_t n_tried, cap_tried;    /* Number of entries in `tried`, and room for entries. */
    char with[WIRE_NAME_MAX + 1]; /* Name of the member that stored the model. "": none. */
    struct packet *held; /* Copy of the model that this step sends, released in the next step. */

    /* ---- taking another peer's model ---- */

    /* Driver's number of the session over which another peer may send its model. UINT32_MAX:
     * none. */
    uint32_t from;
    int64_t from_us;      /* Node time at which WANTED was sent on `from`, in microseconds. */
    float *taken;         /* Model that the driver is storing. Owned. NULL: none. */
    uint64_t taken_round; /* Round of the model in `taken`. */
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        char name[WIRE_NAME_MAX + 1];
    } giver[MODEL_HANDOFF_MOST]; /* Members from which this peer has accepted an offer. */
    /* Number of entries in `giver`, the members whose models this peer has accepted. */
    size_t n_givers;
    size_t giving_place; /* Index in `giver` of the last accepted offer. */
};

void model_handoff_init(struct model_handoff *h, struct env *env, struct sessions *s,
                        struct run_context *w);
/* Ends the hand-off of this peer's own model and frees all memory. */
void model_handoff_close(struct model_handoff *h);
/* Releases the copy of the model that the previous step has sent. Called at the start of each
 * step. */
void model_handoff_release(struct model_handoff *h);

/* Starts to offer this peer's final model, because it could not be stored. */
void model_handoff_begin(struct model_handoff *h);
/* Continues the hand-off of this peer's own model: offers it to the next member after a refusal or
 * a timeout. Returns true while it lasts. Returns false if it has not begun, or if it is over. */
bool model_handoff_update(struct model_handoff *h);

/* Handles a HAND message. may_take: this peer may store another peer's model, because it has
 * reached the consensus phase and has not failed to store its own model. round: round of this
 * peer's own model. */
void model_handoff_said(struct model_handoff *h, const struct link *l, const struct wire_hand *m,
                        bool may_take, uint64_t round);
/* Handles a MODEL message with a whole model. Only the member to which this peer has sent WANTED
 * may send one; otherwise the message is a protocol violation. Returns true if the driver must
 * store h->taken and then report with model_handoff_stored(). */
bool model_handoff_model(struct model_handoff *h, const struct link *l, const struct wire_model *m);
/* Called when the driver has stored h->taken, another peer's model, or could not store it. Frees it
 * and answers the member that gave it. */
void model_handoff_stored(struct model_handoff *h, bool stored);

#endif
