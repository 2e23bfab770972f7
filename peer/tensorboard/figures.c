/* peer/tensorboard/figures.c -- figures under their tags. */
#include "peer/tensorboard/figures.h"

static const char *const round_tags[EVENT_FIGURES] = {
    [EVENT_LOSS] = "loss",
    [EVENT_ACCURACY] = "accuracy",
    [EVENT_TEST_LOSS] = "test_loss",
    [EVENT_BYTES_SENT] = "bytes/sent",
    [EVENT_BYTES_RECEIVED] = "bytes/received",
    [EVENT_COMPUTE_S] = "seconds/computing",
    [EVENT_WAIT_S] = "seconds/waiting",
    [EVENT_MIX_S] = "seconds/mixing",
    [EVENT_ROUNDS_SKIPPED] = "rounds_skipped",
    [EVENT_GAMMA] = "gamma",
    [EVENT_RUNG] = "codec/rung",
    [EVENT_DRIFT_EXCESS] = "codec/drift_excess",
};

static const char *const end_tags[EVENT_ENDS] = {
    [EVENT_ACCURACY_MIN] = "end/accuracy_min",
    [EVENT_ACCURACY_MAX] = "end/accuracy_max",
    [EVENT_EXACT_DRIFT] = "end/exact_drift",
    [EVENT_EXACT_RELATIVE_DRIFT] = "end/exact_relative_drift",
    [EVENT_SENT_BY_ALL] = "end/bytes_sent",
    [EVENT_RECEIVED_BY_ALL] = "end/bytes_received",
    [EVENT_SECONDS] = "end/seconds",
};

static size_t put(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step,
                  const char *const *tags, const double *figure, size_t n)
{
    struct event_scalar s[EVENT_SCALARS];
    for (size_t i = 0; i < n; i++)
        s[i] = (struct event_scalar){tags[i], figure[i]};
    return event_scalars(out, wall_s, step, s, n);
}

size_t event_round(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step,
                   const double figure[EVENT_FIGURES])
{
    return put(out, wall_s, step, round_tags, figure, EVENT_FIGURES);
}

size_t event_drift(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step, double drift,
                   double relative)
{
    static const char *const tags[] = {"drift", "relative_drift"};
    return put(out, wall_s, step, tags, (const double[]){drift, relative}, 2);
}

size_t event_end_of_run(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step,
                        const double figure[EVENT_ENDS])
{
    return put(out, wall_s, step, end_tags, figure, EVENT_ENDS);
}
