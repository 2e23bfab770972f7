/* tests/model/conform.h -- checks each step of the finish protocol against the model finish.pml.
 *
 * The checker keeps the state of finish.pml for the peers of a simulated run: promises, accepted
 * proposals, ballots with their answers. A step of the program is a promise that a peer stores, a
 * FINISH message that a peer sends, or a certificate. Each step must be a step of the model whose
 * guard holds. The table `rule` in conform.c lists the guards.
 *
 * Two worlds use the checker: the explorer (tests/explore) with whole nodes, and
 * tests/unit/node_finish.c with the finish protocol alone.
 */
#ifndef TESTS_MODEL_CONFORM_H
#define TESTS_MODEL_CONFORM_H

#include "peer/node/finish/finish.h"

/* Steps of the model. */
enum conform_step {
    CONFORM_BEGIN,  /* A coordinator begins a ballot. */
    CONFORM_ANSWER, /* A voter promises a ballot. */
    CONFORM_REPORT, /* A peer adds to the answers of a ballot that its model is within the target. */
    CONFORM_ADOPT,  /* A coordinator proposes an accepted proposal. */
    CONFORM_INVENT, /* A coordinator makes a new proposal. */
    CONFORM_ACCEPT, /* A voter accepts a proposal. */
    CONFORM_COUNT,  /* A coordinator counts a quorum of acceptances. */
    CONFORM_END,    /* A peer receives the certificate. */
    CONFORM_FORGET, /* A peer fails to store its promise. */
    CONFORM_RESUME, /* A new process has the promise of an earlier one. */
    CONFORM_LEAVE,  /* A voter leaves. */
    CONFORM_STEPS
};
extern const char *const conform_name[CONFORM_STEPS];

/* What the checker asks about the world. `self` is passed to each function. */
struct conform_world
{
    void *self;
    double quorum; /* Share of the voters that is a quorum. */
    /* True: at most one certificate is possible (peer/node/finish/README.md). */
    bool guarantees;
    /* Reports a step that the model does not allow. */
    void (*wrong)(void *self, const char *text);
    /* Lists the members as the peer sees them now, in any order. */
    void (*members)(void *self, uint32_t peer, struct finish_proposal *out);
    /* Returns the number of voters, with those that the list of `members` does not have any more. */
    uint32_t (*n_voters)(void *self, uint32_t peer);
    /* Return whether the model of the peer is frozen, and whether it is within the target. */
    bool (*is_frozen)(void *self, uint32_t peer);
    bool (*is_within)(void *self, uint32_t peer);
    uint64_t (*model)(void *self, uint32_t peer); /* Returns a hash of the model of the peer. */
    /* Returns the certificate that the peer has, or NULL. */
    const struct finish_proposal *(*certificate)(void *self, uint32_t peer);
};

struct conform; /* Defined in conform.c. */

/* *world is copied. Ends the program if memory is exhausted. */
struct conform *conform_open(const struct conform_world *world);
/* NULL is allowed. */
void conform_close(struct conform *f);

/* A process of the peer starts with a promise, which is empty if there is none. */
void conform_start(struct conform *f, uint32_t peer, const uint8_t id[WIRE_ID_BYTES],
                   struct bytes promise);
/* The peer has tried to store a promise. Called within the step that stores it. */
void conform_kept(struct conform *f, uint32_t peer, struct bytes promise, bool stored);
/* A message is about to be handled by the peer. */
void conform_received(struct conform *f, uint32_t peer, const struct wire_finish *m);
/* The peer sends a message. Called in the order of the messages, within the step or after it. */
void conform_sent(struct conform *f, uint32_t peer, const struct wire_finish *m);
/* The peer has handled an event, and all its messages have been given to conform_sent(). */
void conform_stepped(struct conform *f, uint32_t peer);
/* The peer has announced that it leaves. Later calls for the same process do nothing. */
void conform_left(struct conform *f, uint32_t peer);
/* The run is over, and the process of the peer still exists. */
void conform_end(struct conform *f, uint32_t peer);

/* Returns whether the lists of voters that the checker has read differ only by members that have
 * not promised, as the model assumes. */
bool conform_same_voters(const struct conform *f);
/* Returns the number of steps that were checked, by kind. */
const uint64_t *conform_steps(const struct conform *f);

#endif
