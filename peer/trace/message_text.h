/* peer/trace/message_text.h -- describes a message of the wire protocol in one line. */
#ifndef PEER_TRACE_MESSAGE_TEXT_H
#define PEER_TRACE_MESSAGE_TEXT_H

#include "gossip/wire/wire.h"

enum { MESSAGE_TEXT_SIZE = 4096 };

/* Writes a description of the message to `out`. number_epoch() returns the number k of an edge's
 * epoch, which is described as "ek". Returns true if a trace may show messages of this type.
 * Returns false for types that peers repeat, such as heartbeats, which a trace leaves out. */
bool message_text(const struct wire_message *m,
                  uint64_t (*number_epoch)(void *self, uint64_t epoch), void *self,
                  char out[MESSAGE_TEXT_SIZE]);

#endif
