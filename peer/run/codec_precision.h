/* peer/run/codec_precision.h -- judges how much a codec leaves out, before the model is known.
 *
 * A run description may come from another peer and does not describe tensors. Therefore each codec
 * is tried on one square tensor of a fixed size. The answers depend on the codec's name only, so
 * that all peers resolve and refuse run descriptions alike. */
#ifndef PEER_RUN_CODEC_PRECISION_H
#define PEER_RUN_CODEC_PRECISION_H

#include <stdbool.h>

/* Decides whether a codec is precise enough for the consensus phase: its messages have at least 0.6
 * bytes per parameter. Coarser codecs drop so much that gossip without gradients makes no progress.
 * Returns 0, or a negative errno, in which case `*fine` is unchanged. */
__attribute__((warn_unused_result)) int codec_precise_for_consensus(const char *codec, bool *fine);

/* Decides whether a codec is precise enough for a topology that changes by round. Two partners meet
 * there once in many rounds, so that the part a delta leaves out would be outdated at their next
 * meeting. On a vector x of values spread evenly over [-1, 1), the codec may leave out at most 10 %
 * of |x|^2. Returns 0, or a negative errno, in which case `*keeps` is unchanged. */
__attribute__((warn_unused_result)) int codec_precise_for_rounds(const char *codec, bool *keeps);

#endif
