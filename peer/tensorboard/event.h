/* peer/tensorboard/event.h -- records of an event file, as TensorBoard reads them.
 *
 * A file is records (TFRecord), each with one Event (tensorflow/core/util/event.proto), a protobuf:
 *
 *   uint64 n            little endian, as all here
 *   uint32 crc          masked CRC-32C of these eight bytes
 *   n bytes             the Event
 *   uint32 crc          masked CRC-32C of the n bytes
 *
 *   Event    1: double wall_time   2: int64 step   3: string file_version   5: Summary
 *            7: SessionLog { 1: enum status, START = 1 }   10: SourceMetadata { 1: string writer }
 *   Summary  1: repeated Value { 1: string tag   2: float simple_value }
 *
 * The first Event of a file has file_version "brain.Event:2". Values are floats: of a number of
 * bytes above 2^24 they have the first seven digits.
 */
#ifndef PEER_TENSORBOARD_EVENT_H
#define PEER_TENSORBOARD_EVENT_H

#include <stddef.h>
#include <stdint.h>

enum {
    EVENT_SCALARS = 16, /* Values of a record, at most. */
    EVENT_TAG_MAX = 32, /* Bytes of a tag, without a NUL. */
    EVENT_RECORD_MAX = 1024
};

struct event_scalar
{
    const char *tag;
    double value; /* One that is not finite, or no float can hold, is left out. */
};

/* Write the record that begins a file; wall_s is seconds since 1970. Returns its length. */
size_t event_begin(uint8_t out[EVENT_RECORD_MAX], double wall_s);

/* Write the record by which TensorBoard forgets what files of the same directory have of this step
 * and later ones: they are done once more. Returns its length. */
size_t event_again(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step);

/* Write a record of scalars at a step. Returns its length; 0 where none of them has a value. */
size_t event_scalars(uint8_t out[EVENT_RECORD_MAX], double wall_s, int64_t step,
                     const struct event_scalar *scalars, size_t n);

#endif
