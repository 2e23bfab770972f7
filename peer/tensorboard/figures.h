/* peer/tensorboard/figures.h -- the figures of a round, and the tags that TensorBoard shows them by.
 *
 * A file of a run that is over (peer/report/events.h) and one of a run that goes on
 * (peer/cmd/events.h) are made of the same records, so that both can be looked at side by side.
 */
#ifndef PEER_TENSORBOARD_FIGURES_H
#define PEER_TENSORBOARD_FIGURES_H

#include "peer/tensorboard/event.h"

enum event_figure {
    EVENT_LOSS,
    EVENT_ACCURACY,
    EVENT_TEST_LOSS,
    EVENT_BYTES_SENT,
    EVENT_BYTES_RECEIVED,
    EVENT_COMPUTE_S,
    EVENT_WAIT_S,
    EVENT_MIX_S,
    EVENT_ROUNDS_SKIPPED,
    EVENT_GAMMA,
    EVENT_RUNG, /* The codec of --compress auto as a number: 1 is the sparsest. */
    EVENT_DRIFT_EXCESS,
    EVENT_FIGURES
};

/* What all peers together came to at the end of a run. */
enum event_end {
    EVENT_ACCURACY_MIN,
    EVENT_ACCURACY_MAX,
    EVENT_EXACT_DRIFT,
    EVENT_EXACT_RELATIVE_DRIFT,
    EVENT_SENT_BY_ALL,
    EVENT_RECEIVED_BY_ALL,
    EVENT_SECONDS,
    EVENT_ENDS
};

/* Write the record of a round: its figures by enum event_figure, NaN where one is not known. Returns
 * its length, 0 where none is known. */
size_t event_round(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step,
                   const double figure[EVENT_FIGURES]);

/* The same of a drift, at the round that it speaks of. */
size_t event_drift(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step, double drift,
                   double relative);

/* The same of an end, by enum event_end. */
size_t event_end_of_run(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step,
                        const double figure[EVENT_ENDS]);

#endif
