/* peer/node/join.h -- the model that this peer begins with: the run's own, or its neighbours'.
 *
 * Owned here, and written by join.c only: whether there is a model. Where all others have finished
 * it is theirs to the last bit, and final (phases.h).
 *
 *    the workshop lacks the run's own: first that is had (initial.h) --> has_model (the initial one)
 *
 *    without --somebody has begun--> fetching (fetch.h) --all of it--> has_model
 *       |  ^                             |
 *       |  +---- all of those are gone --+
 *       +-- nobody has begun, and bootstrap had time to answer --> has_model (the initial one)
 */
#ifndef PEER_NODE_JOIN_H
#define PEER_NODE_JOIN_H

#include "peer/node/initial.h"
#include "peer/node/state_transfer.h"

struct join
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    bool has_model;
    uint64_t round; /* The round that a fetched model counts as. */
    double apart;   /* It is so far from the models of those that gave it (fetch.h). */
    struct state_transfer fetch;
    struct initial initial;
    int64_t begun_us;
};

void join_init(struct join *j, struct env *env, struct sessions *s, struct run_context *w);
void join_start(struct join *j);

/* There is no model any more: another run, or the others are in the middle of it. */
void join_again(struct join *j);

/* Without a model: get one, or ask for it. True: others' is ours now, and of j->round. */
bool join_update(struct join *j);

/* While the workshop lacks the run's initial model: get it. Once it is here it is our model; whether the
 * run has gone on meanwhile is seen then. */
enum initial_said join_initial(struct join *j);

/* For whom the first round has to wait, as that one lacks the run's initial model; NULL: for nobody. */
const struct link *join_awaits(const struct join *j);

/* A MODEL came. True: with it ours is whole, as above. */
bool join_model(struct join *j, const struct link *l, const struct wire_model *model);

/* Does somebody live who has begun with a checkpoint? Who has none does not begin without it, but
 * for --quorum-timeout. */
bool join_others_resume(const struct join *j);

/* Who is furthest in the run; NULL: nobody has begun. */
const struct link *join_donor(const struct join *j);

#endif
