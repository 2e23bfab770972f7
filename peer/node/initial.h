/* peer/node/initial.h -- the model that a run begins with, had from somebody who has it.
 *
 * A program that brings its own model may begin with other values than the run, as who forgets to seed
 * a generator does (workshop.lacks). The founder's are the run's: its text has their hash, and every
 * member keeps them for as long as it lives, since replicas begin there. So they are asked of any
 * member of the run, piece by piece (gossip/exchange/piece.h), and believed for their hash alone:
 *
 *    lacks --MODEL_REQ(piece, INITIAL) to one member--> all pieces are here --it is the hash's--> HERE
 *      ^                                                      |
 *      |   another member is asked where nothing comes for STALL_US, or the session is gone; what
 *      |   has come stays                                     v
 *      +--of several: all anew, of one--------------- it is another model
 *      '--of one: that one is passed over for LIAR_US --------+
 *
 * Whoever lacks it says HELLO as one without a run. So nobody counts on it, whoever is asked has the
 * model, and members that have a session with one that lacks it do not begin before that one can
 * (initial_awaited()), for --quorum-timeout at most.
 *
 * Owned here, and written by initial.c only: who is asked, and how far that has come. Used by join.c.
 */
#ifndef PEER_NODE_INITIAL_H
#define PEER_NODE_INITIAL_H

#include "peer/node/run_context.h"

enum {
    INITIAL_WINDOW = 4,             /* Pieces that are on their way. */
    INITIAL_LINKS = NODE_LINKS_MAX, /* Sessions whose answers may still come; */
    INITIAL_LIARS = 16              /* members that are passed over. */
};

enum initial_said {
    INITIAL_WAITS,
    INITIAL_HERE,   /* Now: nothing is lacking any more. */
    INITIAL_NOWHERE /* Nobody is left who has it: the run has to be given up. */
};

struct initial
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    bool asks;       /* Somebody is asked: */
    uint32_t link;   /* on this one, */
    bool sole;       /* which has sent all that is here. */
    size_t n_here;   /* So many pieces, the first ones, */
    size_t n_asked;  /* and so many were asked for. */
    int64_t came_us; /* When the last one came, or that one was asked. */
    int64_t none_us; /* Nobody could be asked since; 0: somebody can. */
    struct
    {
        uint32_t link, n; /* Questions that it has not answered. */
    } open[INITIAL_LINKS];
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        int64_t until_us;
    } liar[INITIAL_LIARS];
    size_t next_liar;
};

void initial_init(struct initial *in, struct env *env, struct sessions *s, struct run_context *w);

/* The run is given up: what has come is of no use. */
void initial_forget(struct initial *in);

/* While the workshop lacks the model: ask on. */
enum initial_said initial_update(struct initial *in);

/* A MODEL of round WIRE_ROUND_INITIAL came. NULL, or what is wrong with it. */
const char *initial_take(struct initial *in, const struct link *l, const struct wire_model *m);

/* May nobody be asked now? Others may be called. */
bool initial_alone(const struct initial *in);

/* Somebody to whom we talk lacks the model, or has no run yet, where programs bring theirs: before the
 * first round it is waited for. NULL: nobody. */
const struct link *initial_awaited(const struct initial *in);

#endif
