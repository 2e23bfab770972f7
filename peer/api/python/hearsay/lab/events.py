"""hearsay.lab.events: writes event files for TensorBoard.

A file is a sequence of TFRecords. Each record has one protobuf Event (tensorflow/core/util/event.proto):

    uint64 n, uint32 masked CRC-32C of n, n bytes, uint32 masked CRC-32C of the bytes       (all little endian)

The package `tensorboard` writes the files if it is installed. Otherwise python3-protobuf encodes the events, with the fields
below, and this module writes the records.
"""
import math
import struct
from typing import Any, BinaryIO, Callable, List, Sequence, Tuple

WRITER = "hearsay-lab"  # Mark in the first event of each file of hearsay-lab.
FLOAT_MAX = 3.4028234663852886e38  # Largest 32-bit float.
SESSION_START = 1  # SessionLog.START. TensorBoard then ignores the events of this step and later steps in earlier files.

Scalars = Sequence[Tuple[str, float]]

_table: List[int] = []


def crc32c(data: bytes) -> int:
    """The CRC-32C (Castagnoli, RFC 3720) of the bytes."""
    if not _table:
        for byte in range(256):
            for _ in range(8):
                byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
            _table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """The masked CRC-32C of the bytes, as in a TFRecord."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """The bytes of a TFRecord with this content."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


# Messages: name, and fields as (name, number, type, message type). Types and labels have the numbers of descriptor.proto.
_DOUBLE, _FLOAT, _INT64, _INT32, _STRING, _MESSAGE = 1, 2, 3, 5, 9, 11
_MESSAGES = (
    ("SourceMetadata", (("writer", 1, _STRING, ""),)),
    ("SessionLog", (("status", 1, _INT32, ""),)),
    ("Value", (("tag", 1, _STRING, ""), ("simple_value", 2, _FLOAT, ""))),
    ("Summary", (("value", 1, _MESSAGE, "Value"),)),
    ("Event", (("wall_time", 1, _DOUBLE, ""), ("step", 2, _INT64, ""), ("file_version", 3, _STRING, ""),
               ("summary", 5, _MESSAGE, "Summary"), ("session_log", 7, _MESSAGE, "SessionLog"),
               ("source_metadata", 10, _MESSAGE, "SourceMetadata"))))


def protobuf_event() -> Any:
    """The class Event, built by the package protobuf from _MESSAGES. ImportError: protobuf is not installed."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped,import-not-found,unused-ignore]

    file = descriptor_pb2.FileDescriptorProto(name="hearsay_lab_event.proto", package="hearsay_lab", syntax="proto3")
    for name, fields in _MESSAGES:
        message = file.message_type.add(name=name)
        for field, number, kind, of in fields:
            one = message.field.add(name=field, number=number, type=kind, label=3 if field == "value" else 1)
            if of:
                one.type_name = ".hearsay_lab." + of
            if field == "simple_value":  # The field is a member of a oneof, so protobuf writes it even if its value is 0.
                message.oneof_decl.add(name="kind")
                one.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("hearsay_lab.Event")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)  # Versions of protobuf before 4.22 have no GetMessageClass().


def _framing(file: BinaryIO) -> Callable[[bytes], Any]:
    def write(data: bytes) -> None:
        file.write(record(data))

    return write


def backend() -> Tuple[Any, Callable[[BinaryIO], Callable[[bytes], Any]]]:
    """The class Event, and a function that makes a writer of records for a file. ImportError: a package is missing."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped,import-not-found,unused-ignore]
        from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        pass
    else:
        return Event, lambda file: RecordWriter(file).write
    try:
        return protobuf_event(), _framing
    except ImportError as error:
        raise ImportError("event files need tensorboard (pip install tensorboard) or protobuf (pip install protobuf, Debian: "
                          "python3-protobuf)") from error


class Writer:
    """Writes TensorBoard events to one open file."""

    def __init__(self, file: BinaryIO, wall_time: float) -> None:
        self._file = file
        self._event, make = backend()
        self._write = make(file)
        first = self._event(wall_time=wall_time, file_version="brain.Event:2")
        first.source_metadata.writer = WRITER
        self._put(first)

    def _put(self, event: Any) -> None:
        self._write(event.SerializeToString(deterministic=True))

    def restart(self, wall_time: float, step: int) -> None:
        """Write an event after which TensorBoard drops the values of this step and later ones."""
        event = self._event(wall_time=wall_time, step=step)
        event.session_log.status = SESSION_START
        self._put(event)

    def scalars(self, wall_time: float, step: int, scalars: Scalars) -> None:
        """Write the values of a step. Values that are not finite, or too large for a 32-bit float, are left out."""
        event = self._event(wall_time=wall_time, step=step)
        for tag, value in scalars:
            if math.isfinite(value) and abs(value) <= FLOAT_MAX:
                event.summary.value.add(tag=tag, simple_value=value)
        if len(event.summary.value) > 0:
            self._put(event)

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()
