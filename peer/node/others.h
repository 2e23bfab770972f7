/* peer/node/others.h -- how far the other members are, by the records that they sign. */
#ifndef PEER_NODE_OTHERS_H
#define PEER_NODE_OTHERS_H

#include "peer/node/env.h"

/* Does some other member that counts say this of itself? Uses the scratch of env.h. */
bool others_some(struct env *v, enum record_state state);

/* Has the run ended for somebody, well or not, whatever became of it since? */
bool others_ended(const struct env *v);

/* Is somebody alive in its last phase? It will say how that ended, unless it dies. */
bool others_end(const struct env *v);

/* Have those who could train with us finished, but for the dead? There has to be one. */
bool others_finished(const struct env *v);

#endif
