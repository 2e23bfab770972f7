/* peer/node/resume.h -- going on from a checkpoint: a machine of its own.
 *
 * A process that finds checkpoints of its former life (node_config.resume) says their beats
 * in its record and waits, without a word about edges or models, until it knows which case
 * this is:
 *
 *   a member of then lives on, the same process     the cluster ran on without us
 *   all members of then have begun anew, as we      the cluster begins again, at the latest
 *                                                   beat of which all have a checkpoint
 *   some do not come                                 after RESUME_US where the run's quorum is
 *                                                   there, else after --quorum-timeout, as above
 *                                                   with those who have come
 *
 * Then it has the model, the optimizer and the counts of that beat. Where the members are
 * the same, edges are, too: both ends say epoch and round, find them equal, send their last
 * deltas again, and what follows is what would have followed, bit for bit. Where they are
 * not, edges begin anew. If the run has gone on meanwhile by more than lock step's lead,
 * the model is had from a neighbour, like anybody's who comes late (join.h). Who meets nobody
 * of a run with others goes on, but claims no consensus: they may have finished without it. And the
 * quorum is a share of all who were there when the checkpoint was taken.
 */
#ifndef PEER_NODE_RESUME_H
#define PEER_NODE_RESUME_H

#include "nn/math/state.h"
#include "peer/node/job.h"

enum { RESUME_US = 30 * 1000 * 1000 };

/* A member of the run when the checkpoint was taken. */
struct resume_member
{
    uint8_t id[WIRE_ID_BYTES];
    uint64_t boot; /* Its process of then. */
};

struct resume
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    struct edges *edges;
    struct join *join;
    struct phases *phases;
    struct job *job;

    bool resumed; /* This process began with a checkpoint, */
    bool waits;   /* and has not decided yet from which. */
    struct resume_member *member;
    uint32_t n_members;
    int64_t since_us, told_us;

    struct state copy; /* A checkpoint that the driver has to fetch, */
    uint64_t beat;     /* and its beat. */
};

void resume_init(struct resume *r, struct env *env, struct sessions *s, struct run_context *w,
                 struct edges *es, struct join *j, struct phases *ph, struct job *job);
void resume_close(struct resume *r);

/* Copy all that this peer needs to go on, before the next job touches any of it, and ask the
 * driver to write that (phases.copies). */
void resume_copy(struct resume *r);
/* At an end by request: the same, so that what was done since is not lost. Not in lock step with
 * others: they stop at other rounds, and one that nobody shares would take the place of one that
 * all have. */
void resume_copy_last(struct resume *r);
/* The copy and its beat; *s and it change places. */
uint64_t resume_take_copy(struct resume *r, struct state *s);

/* The run of the newest checkpoint into *run. 0; or -EINVAL: the node has ended. */
int resume_run(struct resume *r, struct run *run);

/* Begin to wait: that run has been taken. */
void resume_start(struct resume *r);

/* So many took part when our checkpoint was taken, ourselves included, but for those who have left
 * by their word or come under another identity; 0 without one. */
uint32_t resume_begun(const struct resume *r);
/* Went we on from a checkpoint of a run with others, and never met anybody since? */
bool resume_deserted(const struct resume *r);

/* While it waits: is it over? Then there is a model, or the node has ended. */
bool resume_look(struct resume *r);

#endif
