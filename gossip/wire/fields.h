/* gossip/wire/fields.h -- the number of fields after the type in each message. Encoder and
 * parser use it. */
#ifndef GOSSIP_WIRE_FIELDS_H
#define GOSSIP_WIRE_FIELDS_H

#include "gossip/wire/wire.h"

static const uint8_t fields_of[WIRE_TYPE_END] = {
    [WIRE_HELLO] = 7,      [WIRE_MEMBERS] = 3,        [WIRE_PING] = 3,      [WIRE_EDGE] = 8,
    [WIRE_EDGE_CLOSE] = 0, [WIRE_DELTA] = 18,         [WIRE_MODEL_REQ] = 3, [WIRE_MODEL] = 5,
    [WIRE_STATUS_REQ] = 0, [WIRE_STATUS] = 23,        [WIRE_BEAT] = 3,      [WIRE_PROBE] = 1,
    [WIRE_HEARD] = 2,      [WIRE_REFUSED] = 3,        [WIRE_FINISH] = 18,   [WIRE_PART] = 4,
    [WIRE_MOMENTS] = 4,    [WIRE_ROUND_PROTOCOL] = 6, [WIRE_CALLBACK] = 2};

/* Number of values in each array inside a message. A signature is the last value of its array
 * and covers the other values. */
enum {
    FIELDS_RECORD = 13,
    FIELDS_CERTIFICATE = 5,
    FIELDS_ACCUSATION = 4,
    FIELDS_VOUCH = 3,
    FIELDS_STATUS_EDGE = 5,
    FIELDS_STATUS_FIGURE = 2
};

#endif
