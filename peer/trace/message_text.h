/* peer/trace/message_text.h -- describes a message of the wire protocol in one line. */
#ifndef PEER_TRACE_MESSAGE_TEXT_H
#define PEER_TRACE_MESSAGE_TEXT_H

#include "gossip/wire/wire.h"

enum { MESSAGE_TEXT_SIZE = 4096 };

/* Describes the message. number_epoch() returns the number k of an epoch, which is described as
 * "ek". Returns false if such a message is sent again and again without news, so that a trace of
 * the protocol leaves it out. A DELTA counts as news. */
bool message_text(const struct wire_message *m,
                  uint64_t (*number_epoch)(void *self, uint64_t epoch), void *self,
                  char out[MESSAGE_TEXT_SIZE]);

#endif
