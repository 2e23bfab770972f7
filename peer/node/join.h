/* peer/node/join.h -- the model that this peer begins with: the run's own, or a neighbour's.
 *
 * Owned here, and written by join.c only: whether there is a model, and whom we asked for one.
 *
 *    without --ask the furthest--> asked --MODEL--> has_model
 *       |                            |
 *       |                            +-- silent for MODEL_US, or gone: ask another
 *       +-- nobody has begun, and bootstrap had time to answer --> has_model (the initial one)
 */
#ifndef PEER_NODE_JOIN_H
#define PEER_NODE_JOIN_H

#include "peer/node/workshop.h"

enum { JOIN_ASKED = 16 };

struct join
{
    struct env *env;
    struct sessions *sessions;
    struct workshop *workshop;
    bool has_model;
    uint32_t link;              /* Whom we asked; UINT32_MAX: nobody. */
    uint32_t asked[JOIN_ASKED]; /* The links asked lately, in a ring: a late answer is no */
    uint32_t n_asked;           /* violation. */
    int64_t begun_us, asked_us;
};

void join_init(struct join *j, struct env *env, struct sessions *s, struct workshop *w);
void join_start(struct join *j);

/* There is no model any more: another run, or the others are in the middle of it. */
void join_again(struct join *j);

/* Without a model: get one, or ask for it. */
void join_update(struct join *j);

/* A MODEL came. False: it is not wanted any more, or a violation. */
bool join_model(struct join *j, const struct link *l, const struct wire_model *model);

/* Does somebody live who has begun with a checkpoint? Who has none does not begin without it, but
 * for --patience. */
bool join_others_resume(const struct join *j);

/* Who is furthest in the run, but for him whom we have asked already. */
const struct link *join_donor(const struct join *j);

#endif
