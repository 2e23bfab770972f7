/* peer/run/codec_precision.h -- decides whether a codec is precise enough for a run, before the
 * model is known.
 *
 * A run description may come from another peer and does not describe the model's tensors. Therefore
 * each codec is tried on one square tensor of a fixed size. The results depend only on the codec's
 * name, so that all peers make the same decisions about a run. */
#ifndef PEER_RUN_CODEC_PRECISION_H
#define PEER_RUN_CODEC_PRECISION_H

#include <stdbool.h>

/* Decides whether a codec is precise enough for the consensus phase: its messages must have at
 * least 0.6 bytes per parameter. With a coarser codec the consensus distance hardly decreases in
 * this phase. Returns 0 and sets `*fine`, or returns a negative errno and leaves `*fine`
 * unchanged. */
__attribute__((warn_unused_result)) int codec_precise_for_consensus(const char *codec, bool *fine);

/* Decides whether a codec is precise enough for a topology that changes by round. On such a
 * topology two partners meet only once in many rounds. A value that one delta leaves out is
 * therefore outdated at their next meeting. The codec may leave out at most 10 % of |x|^2 of a
 * vector x with values spread evenly over [-1, 1). Returns 0 and sets `*keeps`, or returns a
 * negative errno and leaves `*keeps` unchanged. */
__attribute__((warn_unused_result)) int codec_precise_for_rounds(const char *codec, bool *keeps);

/* Decides whether a codec is precise enough for a momentum that needs constant mixing
 * (nn/train/decentlam.h). What a delta leaves out changes the momentum, and the models diverge
 * if this feedback is too strong. The codec may leave out at most 0.6 % of |x|^2 of a vector x
 * with values spread evenly over [-1, 1). In a simulation qsgd:4 (0.5 %) is stable, and topk:0.8
 * (0.8 %) and qsgd:3 (2.6 %) are not. Returns 0 and sets `*keeps`, or returns a negative errno
 * and leaves `*keeps` unchanged. */
__attribute__((warn_unused_result)) int codec_precise_for_momentum(const char *codec, bool *keeps);

#endif
