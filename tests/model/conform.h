/* tests/model/conform.h -- checks that the program follows its Promela model of the finish
 * protocol, finish.pml.
 *
 * The protocol decides by Paxos how a run ends. The checker keeps the state of the model for the
 * peers of a simulated run: promises, accepted proposals, and ballots with their answers. A step of
 * the program is a promise that a peer stores, a FINISH message that a peer sends, or a
 * certificate. Each step must be a step of the model whose guard (condition) is true. The table
 * `rule` in conform.c lists the guards.
 *
 * The explorer (tests/explore) uses the checker with complete nodes, and tests/unit/node_finish.c
 * uses it with the finish protocol alone.
 */
#ifndef TESTS_MODEL_CONFORM_H
#define TESTS_MODEL_CONFORM_H

#include "peer/node/finish/proposal.h"

/* Steps of finish.pml, the Promela model of the finish protocol. */
enum conform_step {
    CONFORM_BEGIN,  /* A coordinator begins a ballot: a numbered vote on how the run ends. */
    CONFORM_ANSWER, /* A voter promises to accept nothing in ballots with a lower number. */
    /* A peer reports to a coordinator that its model is within the target consensus distance. */
    CONFORM_REPORT,
    CONFORM_ADOPT,  /* A coordinator proposes again what a voter accepted in an earlier ballot. */
    CONFORM_INVENT, /* A coordinator proposes a new certificate, the proof of consensus. */
    CONFORM_ABORT,  /* A coordinator proposes to abort this attempt to finish the run. */
    CONFORM_ACCEPT, /* A voter accepts the proposal of a ballot. */
    CONFORM_COUNT,  /* A coordinator has received the acceptances of a quorum of voters. */
    CONFORM_END,    /* A peer receives the certificate, the proof of consensus. */
    CONFORM_ENTER,  /* After an abort, a peer begins the next attempt to finish the run. */
    CONFORM_FORGET, /* A peer cannot read its promise (the file with its votes). */
    /* A restarted process reads the promise (stored votes) of the peer's previous process. */
    CONFORM_RESUME,
    CONFORM_LEAVE, /* A voter leaves the run. */
    CONFORM_STEPS
};
extern const char *const conform_name[CONFORM_STEPS];

/* Callbacks by which the checker queries the simulated peers and reports violations. `self` is
 * passed to each function. */
struct conform_world
{
    void *self;
    double quorum; /* Share of the voters that is needed for a quorum, 0 to 1. */
    /* True: the run can have at most one finish certificate, and the checker demands this
     * (peer/node/finish/README.md). */
    bool guarantees;
    /* Reports a step that the model does not allow. */
    void (*wrong)(void *self, const char *text);
    /* List the members that the peer knows now, and the voters that it counts now, in any order. */
    void (*members)(void *self, uint32_t peer, struct finish_proposal *out);
    void (*voters)(void *self, uint32_t peer, struct finish_voters *out);
    /* is_frozen() returns whether the model of the peer is frozen (final and stored). is_within()
     * returns whether the model is within the target consensus distance. */
    bool (*is_frozen)(void *self, uint32_t peer);
    bool (*is_within)(void *self, uint32_t peer);
    uint64_t (*model)(void *self, uint32_t peer); /* Returns a hash of the model of the peer. */
    /* Returns the number of the attempt to finish the run in which the peer takes part
     * (finish_attempt()). UINT32_MAX: the process has not opened the finish protocol yet. */
    uint32_t (*attempt)(void *self, uint32_t peer);
    /* Returns the finish certificate that the peer has, or NULL if it has none. */
    const struct finish_proposal *(*certificate)(void *self, uint32_t peer);
};

struct conform; /* State of a checker of the finish protocol. Defined in conform.c. */

/* Creates a checker. *world is copied. Ends the program if memory is exhausted. */
struct conform *conform_open(const struct conform_world *world);
/* Frees a checker. f may be NULL. */
void conform_close(struct conform *f);

/* Called when a process of the peer starts. promise: the promise (stored votes) that the process
 * read from its file. Empty: no promise was stored. */
void conform_start(struct conform *f, uint32_t peer, const uint8_t id[WIRE_ID_BYTES],
                   struct bytes promise);
/* Called in node_step() when the peer has tried to store a promise (its votes). stored: true if the
 * promise was stored. */
void conform_kept(struct conform *f, uint32_t peer, struct bytes promise, bool stored);
/* Called before the peer handles a FINISH message that it received. */
void conform_received(struct conform *f, uint32_t peer, const struct wire_finish *m);
/* Called for each FINISH message that the peer sends, in order, within node_step() or after it. */
void conform_sent(struct conform *f, uint32_t peer, const struct wire_finish *m);
/* Called when the peer has handled an event, after conform_sent() for all its messages. */
void conform_stepped(struct conform *f, uint32_t peer);
/* Called when the peer has announced that it leaves. Later calls for the same process do
 * nothing. */
void conform_left(struct conform *f, uint32_t peer);
/* Called at the end of the run for each peer that still has a process. */
void conform_end(struct conform *f, uint32_t peer);

/* Returns whether all peers have the same list of voters, as the model assumes. Members that have
 * not promised a ballot are ignored. */
bool conform_same_voters(const struct conform *f);
/* Returns the number of checked steps of the finish protocol, by kind of step. */
const uint64_t *conform_steps(const struct conform *f);

#endif
