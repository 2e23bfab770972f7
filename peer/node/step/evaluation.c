/* peer/node/step/evaluation.c -- computes from the length of a run after which rounds a model is
 * evaluated. */
#include "peer/node/step/evaluation.h"

struct evaluation evaluation_plan(uint64_t rounds, uint64_t samples_a_round)
{
    double trained = (double)rounds * (double)samples_a_round;
    double budget = EVALUATION_COST * EVALUATION_SPEED * trained;
    double each = budget / (EVALUATION_PARTS - 1);
    struct evaluation e = {.parts = EVALUATION_PARTS, .samples = EVALUATION_SAMPLES};
    if (each >= EVALUATION_SAMPLES)
        return e;
    e.samples = each >= EVALUATION_LEAST ? (uint64_t)each : EVALUATION_LEAST;
    if (each < EVALUATION_LEAST)
        e.parts = (uint32_t)(budget / EVALUATION_LEAST) + 1;
    return e;
}

/* The run is divided into e->parts equal parts. Returns the index, from 0, of the part that
 * contains the round `done`. */
static uint64_t part_of(const struct evaluation *e, uint64_t rounds, uint64_t done)
{
    return done * e->parts / rounds;
}

bool evaluation_passed(const struct evaluation *e, uint64_t rounds, uint64_t from, uint64_t done)
{
    return e->parts > 1 && done < rounds && part_of(e, rounds, done) > part_of(e, rounds, from);
}

bool evaluation_due(const struct evaluation *e, uint64_t rounds, uint64_t done)
{
    if (done == 0)
        return false;
    return e->every > 0 ? done % e->every == 0 : evaluation_passed(e, rounds, done - 1, done);
}
