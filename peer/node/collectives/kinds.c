/* peer/node/collectives/kinds.c -- maps each mixer to its round protocol. */
#include "gossip/collectives/allreduce.h"
#include "gossip/collectives/ps.h"
#include "gossip/collectives/sma.h"
#include "peer/node/collectives/allreduce.h"
#include "peer/node/collectives/parameter_server.h"

#include <assert.h>

const struct round_protocol_kind *round_protocol_kind_of(const struct mixer *m)
{
    static const struct
    {
        const struct mixer *mixer;
        const struct round_protocol_kind *kind;
    } kinds[] = {{&mixer_allreduce, &allreduce_protocol},
                 {&mixer_sma, &allreduce_protocol},
                 {&mixer_ps, &parameter_server_protocol}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].mixer == m)
            return kinds[i].kind;
    assert(!m->round_protocol);
    return NULL;
}
