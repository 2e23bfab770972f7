/* peer/trace/message_text.h -- describes a message of the wire protocol in one line. */
#ifndef PEER_TRACE_MESSAGE_TEXT_H
#define PEER_TRACE_MESSAGE_TEXT_H

#include "gossip/wire/wire.h"

enum { MESSAGE_TEXT_SIZE = 4096 };

/* Describes the message. number_epoch() returns the number k of an edge's epoch, which is described
 * as "ek". Returns false if the message is of a type that peers repeat, such as a heartbeat; a
 * trace leaves these messages out. Returns true for a DELTA. */
bool message_text(const struct wire_message *m,
                  uint64_t (*number_epoch)(void *self, uint64_t epoch), void *self,
                  char out[MESSAGE_TEXT_SIZE]);

#endif
