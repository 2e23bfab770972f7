/* peer/node/round_kinds.c -- which mixer needs which round protocol. */
#include "peer/node/collect.h"
#include "peer/node/serve.h"

const struct round_protocol_kind *round_protocol_kind_of(const struct mixer *m)
{
    return m->serves ? &serve_protocol : m->collects ? &collect_protocol : NULL;
}
