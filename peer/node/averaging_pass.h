/* peer/node/averaging_pass.h -- one clean pass ends the consensus phase: who goes through all rounds of base:K
 * with whole models has the mean.
 *
 * The product of a pass of base:K is 1/n in every place (topology/base.c; so is that of
 * one-peer-exponential for 2^m members), so that after it no
 * estimate is needed. That holds where every exchange was done in its own round, by all, among the
 * same members. After a pass come beats in which nothing is mixed and each says how it went:
 *
 *   beat      T       T+1 ... T+R      T+R+1 ... T+R+R+2       and so on, until it has ended
 *   exchange  as in   rounds 0 ... R-1 words: `settled`
 *             training of the pass     hop by hop (schedule.h)
 *
 * *Clean* is what a delta says with a number, drawn from the beat at which the pass began and the
 * members that the sender sees. We say it as long as
 *
 *   the pass began with no exchange half done: else one end has in its model what the other lacks
 *   in each of its rounds just those exchanges were committed whose turn it was,
 *   both of whose deltas were made for this beat, in whole floats, and said the same number
 *   no beat was skipped or done twice, no edge began anew or was distrusted, nobody came or died
 *
 * What somebody says takes the way that its model takes: both go by the same exchanges. So who is
 * clean at the end knows it of every exchange that its model is made of, and its model is the mean.
 * Of the others' models it does not know that: in the last round, say, an exchange between two
 * others may have failed, of which no message of the pass can tell it any more. Hence the words:
 * the phase is over for a peer once all of them have said that theirs are the mean, too. They cost
 * no model. They are as many as a pass has rounds, which is no less than the hops between any
 * two, and two more; then, where it is not over, the next pass begins.
 *
 * Not clean is nothing lost: the exchanges of such a pass keep the mean and bring models together
 * like any, and what is known of the drift by sketches may end the phase as elsewhere.
 *
 * All of this trusts every member, as training without --byzantine does, with which it does not go. Who
 * sends a model that is not its own, or does not pass on what it was given, leaves others with other
 * means, each of which is clean by all that was said: they end apart and take it for consensus. No
 * estimate of the drift is asked that would show it.
 *
 * Owned here: struct averaging_pass, a part of the edges, and written by pass.c only.
 */
#ifndef PEER_NODE_AVERAGING_PASS_H
#define PEER_NODE_AVERAGING_PASS_H

#include <stdbool.h>
#include <stdint.h>

struct edges;
struct neighbour;

struct averaging_pass
{
    uint64_t clean;     /* What our deltas say: the pass, as long as nothing was amiss; else 0. */
    uint64_t beat;      /* That of the next job, if none is skipped. */
    uint64_t view;      /* It began with these members, */
    uint64_t n_amiss;   /* and so many edges had begun anew, or been distrusted. */
    double norm2;       /* |x|^2 when it began. */
    bool over;          /* A clean one is: our model is the mean, */
    uint64_t over_beat; /* from this beat on, */
    uint64_t over_view; /* of these members, */
    double bound;       /* but for this, relative to its length; 0: the job is not done yet. */
};

/* Does the consensus phase go by passes of whole models that are the mean, and has it begun? Where a pass
 * is not (matching:K, one-peer-exponential but for 2^m members) estimates decide, as elsewhere. */
bool averaging_pass_counts(const struct edges *es);

/* A job of this beat is about to be planned, with the edges as they are. */
void averaging_pass_plan(struct edges *es, uint64_t beat);

/* Between jobs, at this beat: what others have said since may show that a pass was clean for all. */
void averaging_pass_look(struct edges *es, uint64_t beat);
/* The job is done. */
void averaging_pass_done(struct edges *es);

/* Lock step cannot do without this edge at this beat, if the pass is to be clean. */
bool averaging_pass_needs(const struct edges *es, const struct neighbour *b, uint64_t beat);

/* A bound on our model's distance from the mean, over its length: what the floats of a clean pass
 * were rounded by. INFINITY where none is over. */
double averaging_pass_bound(const struct edges *es);

#endif
