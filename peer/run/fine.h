/* peer/run/fine.h -- how much a codec leaves out, judged before the model is known.
 *
 * A run's text may come from a peer, and says nothing of tensors: codecs are tried on one square tensor.
 * Both answers are functions of the spec alone, so that all peers resolve and refuse alike.
 */
#ifndef PEER_RUN_FINE_H
#define PEER_RUN_FINE_H

#include <stdbool.h>

/* Has a typical message bytes enough for the last phase? Under so many a parameter a codec drops so much
 * that gossip without gradients stalls, or bears no momentum. 0 or a negative errno; then *fine is as it
 * was. */
__attribute__((warn_unused_result)) int fine_for_last(const char *codec, bool *fine);

/* Does a delta leave out little enough for partners that meet once in a pass of rounds? What it leaves
 * out is of no use any more when they meet again. On values spread evenly over [-1, 1). Returns the
 * same. */
__attribute__((warn_unused_result)) int fine_for_rota(const char *codec, bool *keeps);

#endif
