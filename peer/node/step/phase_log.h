/* peer/node/step/phase_log.h -- debug notes about the phase of a peer: old state, new state,
 * reason. */
#ifndef PEER_NODE_STEP_PHASE_LOG_H
#define PEER_NODE_STEP_PHASE_LOG_H

#include "peer/node/step/phases.h"

/* Reports the change of phase to which a decision leads, such as
 * "phase TRAINING -> CONSENSUS (all 400 rounds are done)". Called before the change. `v`: the view
 * from which the schedule has made the decision. */
void phase_log_decided(const struct phases *ph, const struct schedule_view *v,
                       const struct schedule_decision *d);

/* Reports the end of the node. Called in the step in which the node ends. `asked`: the user or the
 * program has requested the end. */
void phase_log_left(const struct phases *ph, bool asked);

#endif
