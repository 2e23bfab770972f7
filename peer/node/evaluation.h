/* peer/node/evaluation.h -- when a run that trains is evaluated on the way, and on how many samples.
 *
 * By default the run is cut into PARTS equal parts, with an evaluation between each two:
 *
 *   round  0 ---- 1/10 ---- 2/10 ---- ... ---- 9/10 ---- the end (which takes all samples)
 *
 * A sample that is evaluated costs a third of one that is trained on (it goes forward only, where that
 * one comes back, too). Evaluations may cost a fiftieth of the training: a short run has fewer samples
 * in each, and one that is too short for that has fewer evaluations, or none.
 *
 * All of it is a function of the run: peers of one run evaluate at the same rounds. An evaluation
 * changes nothing that is trained.
 */
#ifndef PEER_NODE_EVALUATION_H
#define PEER_NODE_EVALUATION_H

#include <stdbool.h>
#include <stdint.h>

enum {
    EVALUATION_PARTS = 10,     /* A run has so many. */
    EVALUATION_SAMPLES = 1000, /* One evaluation takes so many at most, */
    EVALUATION_LEAST = 100     /* and so many at least: fewer would say little. */
};

#define EVALUATION_COST 0.02 /* This share of the time of training. */
#define EVALUATION_SPEED                                                                           \
    3.0 /* Samples are evaluated so many times as fast as they are trained on. */

struct evaluation
{
    uint64_t every;   /* Rounds between two. 0: by parts. */
    uint32_t parts;   /* The run has so many, and an evaluation between them. Under 2: none. */
    uint64_t samples; /* One evaluation takes so many; 0: all. */
};

/* The default of a run of so many rounds, in each of which a peer trains on so many samples (0: not
 * known, and then there are no evaluations). */
struct evaluation evaluation_plan(uint64_t rounds, uint64_t samples_a_round);

/* So many rounds are done: is the model to be evaluated? Never at the beginning, nor by parts at the
 * end, of which others take care. A run has fewer than 2^58 rounds. */
bool evaluation_due(const struct evaluation *e, uint64_t rounds, uint64_t done);

/* The same for who looks seldom: was the model to be evaluated at some round behind `from`, up to
 * `done`? By parts only. */
bool evaluation_passed(const struct evaluation *e, uint64_t rounds, uint64_t from, uint64_t done);

#endif
