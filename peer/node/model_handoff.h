/* peer/node/model_handoff.h -- a final model that its peer's disk does not take, handed to another's.
 *
 * Owned here, and written by hand.c only: to whom ours was offered, and whose is being stored
 * for him.
 *
 *   ours:    offered --HAND wanted--> sent --HAND stored--> over, with that member
 *               ^  |                   |
 *               |  +-- HAND refused, gone, or no word in time: the next whom we talk to; who
 *               |      was busy with another's gives no word, and is asked again while --quorum-timeout
 *               |      lasts
 *               +---- nobody is left --> over, with nobody: it is lost
 *
 *   theirs:  HAND offered --may be--> wanted --MODEL, whole--> being stored --> HAND stored
 *
 * The peer has failed all the same: its model is not where it belongs. Who takes one is at the end
 * of the same run, and takes one of a member, MODEL_HANDOFF_MOST in all, one at a time, of the very size of
 * its own and finite. A member that comes again may replace what it gave; another of its name may not.
 */
#ifndef PEER_NODE_MODEL_HANDOFF_H
#define PEER_NODE_MODEL_HANDOFF_H

#include "peer/node/run_context.h"

enum {
    MODEL_HANDOFF_MOST = 8,
    MODEL_HANDOFF_PASSES = 4,
    MODEL_HANDOFF_WORD_US = 10 * 1000 * 1000,  /* From an offer to the answer; */
    MODEL_HANDOFF_MODEL_US = 120 * 1000 * 1000 /* from that until the model is there, and stored. */
};

struct model_handoff
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;

    bool giving, sent;
    bool silent; /* Somebody let an offer go unanswered in this pass over all whom we talk to. */
    uint32_t n_passes;
    int64_t since_us; /* Ours was first offered then. */
    uint32_t to;      /* The link that it was offered on; UINT32_MAX: none now. */
    int64_t to_us;
    uint8_t (*tried)[WIRE_ID_BYTES];
    size_t n_tried, cap_tried;
    char with[WIRE_NAME_MAX + 1]; /* Who has it; "": nobody. */
    struct packet *held;          /* In this step's sends. */

    uint32_t from; /* The link that may send us one; UINT32_MAX: none. */
    int64_t from_us;
    float *taken; /* It is being stored; NULL: none is. */
    uint64_t taken_round;
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        char name[WIRE_NAME_MAX + 1];
    } giver[MODEL_HANDOFF_MOST];
    size_t n_givers;
    size_t giving_place; /* The place of the one whose model was asked for. */
};

void model_handoff_init(struct model_handoff *h, struct env *env, struct sessions *s,
                        struct run_context *w);
void model_handoff_close(struct model_handoff *h);
void model_handoff_release(struct model_handoff *h); /* The sends of the last step are out. */

/* Ours could not be stored: offer it. */
void model_handoff_begin(struct model_handoff *h);
/* While we give: false once that is over, one way or the other. */
bool model_handoff_update(struct model_handoff *h);

/* A HAND came. may_take: we are where the run ends, and our own model is well. */
void model_handoff_said(struct model_handoff *h, const struct link *l, const struct wire_hand *m,
                        bool may_take, uint64_t round);
/* A whole MODEL came, which only who was told so may send. True: it is to be stored (h->taken). */
bool model_handoff_model(struct model_handoff *h, const struct link *l, const struct wire_model *m);
/* It is, or could not be. */
void model_handoff_stored(struct model_handoff *h, bool stored);

#endif
