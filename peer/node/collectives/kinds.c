/* peer/node/collectives/kinds.c -- which mixer needs which round protocol. */
#include "peer/node/collectives/allreduce.h"
#include "peer/node/collectives/parameter_server.h"

const struct round_protocol_kind *round_protocol_kind_of(const struct mixer *m)
{
    return m->serves ? &parameter_server_protocol : m->collects ? &allreduce_protocol : NULL;
}
