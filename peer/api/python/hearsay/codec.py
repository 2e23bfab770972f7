"""Codecs without a run: compress the difference of a vector to a message, and add a message to a replica."""
import ctypes
import threading
import weakref
from typing import Any, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _lib, _memory
from ._lib import lib

Shape = Sequence[int]
Layers = Union[int, Iterable[Shape], Mapping[str, Shape]]
Message = Union[bytes, bytearray, memoryview]


class CodecInfo(NamedTuple):
    """One codec of codecs(). `preset`: its spec with all defaults. `about`: a phrase that describes what the codec sends."""

    preset: str
    about: str


def codecs() -> List[CodecInfo]:
    """Returns all codecs. A codec that selects values can be combined with a codec that encodes values:
    "topk:0.01+qsgd:4".
    """
    preset, about = ctypes.c_char_p(), ctypes.c_char_p()
    all_of_them: List[CodecInfo] = []
    while lib.hearsay_codec_at(len(all_of_them), ctypes.byref(preset), ctypes.byref(about)) == _lib.OK:
        all_of_them.append(CodecInfo((preset.value or b"").decode(), (about.value or b"").decode()))
    return all_of_them


def _named(layers: Layers) -> List[Tuple[Optional[bytes], Shape]]:
    if isinstance(layers, Mapping):
        return [(_lib.encoded(name, "layer"), shape) for name, shape in layers.items()]
    if hasattr(layers, "__index__"):
        return [(None, (layers.__index__(),))]
    return [(None, shape) for shape in layers]


def _matrix(shape: Shape) -> Tuple[int, int]:
    """Returns (rows, columns) of a tensor as the library treats it: first dimension x all others. A vector is one row."""
    sizes = [int(size) for size in shape]
    if any(size < 1 or size >= 1 << 32 for size in sizes):
        raise _lib.UsageError(f"found the shape {tuple(sizes)}, expected sizes of 1 to 2^32 - 1")
    rows = sizes[0] if len(sizes) > 1 else 1
    cols = 1
    for size in sizes[1:] if len(sizes) > 1 else sizes:
        cols *= size
    if cols >= 1 << 64:
        raise _lib.UsageError(f"found the shape {tuple(sizes)}, expected 2^32 - 1 values at most")
    return rows, cols


def _word(value: int, name: str) -> int:
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{name}: found {value}, expected 0 to 2^64 - 1")
    return value


class Codec:
    """A codec for vectors of one length.

    spec     as in `hearsay --compress`, for example "topk:0.01+qsgd:4"; codecs() lists the codecs
    layers   how the vector is divided into tensors: the length of the vector; or the shapes of its tensors, in order;
             or a dict of names and shapes, for rules that refer to names ("topk:0.01;bias=fp16")

    Vectors are contiguous float32 numpy arrays or PyTorch tensors on the CPU, of any shape with `floats` values. Vectors
    are read and written in place. Sender and receiver must have equal specs and layers. Equal messages then make replicas
    that are equal bit for bit.

    Several threads may use one Codec. encode() calls run one at a time; check(), add() and decode() run in parallel.
    """

    def __init__(self, spec: str, layers: Layers) -> None:
        named = _named(layers)
        table = (_lib.Layer * max(1, len(named)))()
        for entry, (name, shape) in zip(table, named):
            entry.name = name
            entry.rows, entry.cols = _matrix(shape)
        handle, error = ctypes.c_void_p(), ctypes.create_string_buffer(_lib.CODEC_ERROR_MAX)
        code = lib.hearsay_codec_open(ctypes.byref(handle), _lib.encoded(spec, "codec"), table, len(named), error)
        _lib.check(code, error.value.decode(errors="replace"))
        self._handle = handle
        self._close = weakref.finalize(self, lib.hearsay_codec_close, handle)
        self._spec: str = lib.hearsay_codec_spec(handle).decode()
        self._floats: int = lib.hearsay_codec_floats(handle)
        self._bound: int = lib.hearsay_codec_bound(handle)
        self._lock = threading.Lock()
        self._room = ctypes.create_string_buffer(self._bound)
        self._left = 0.0

    @property
    def spec(self) -> str:
        """The spec with all defaults filled in."""
        return self._spec

    @property
    def floats(self) -> int:
        """Number of values in the vector."""
        return self._floats

    @property
    def bound(self) -> int:
        """Size of the longest possible message, in bytes."""
        return self._bound

    @property
    def left(self) -> float:
        """Relative error of the last message C of encode(): |x - x_hat - C|^2 / |x - x_hat|^2."""
        return self._left

    def encode(self, x: Any, x_hat: Any = None, seed: int = 0, round: int = 0) -> bytes:
        """Returns the message for x - x_hat, or for x if there is no x_hat. Changes neither x nor x_hat: to update
        x_hat, call add() with the message.

        Random choices are a function of seed and round, each in [0, 2^64). NotFiniteError if the difference has a NaN or
        an infinity, or if its square overflows.
        """
        at = _memory.address(x, "x", self._floats)
        hat = None if x_hat is None else _memory.address(x_hat, "x_hat", self._floats)
        n, left = ctypes.c_size_t(), ctypes.c_double()
        with self._lock:
            code = lib.hearsay_codec_encode(self._handle, at, hat, _word(seed, "seed"), _word(round, "round"),
                                            self._room, self._bound, ctypes.byref(n), ctypes.byref(left))
            _lib.check(code, "x - x_hat is not finite, or its square overflows" if code == _lib.NOT_FINITE else "")
            self._left = left.value
            return ctypes.string_at(self._room, n.value)

    def check(self, message: Message) -> bool:
        """Returns whether a message is complete and valid. The bytes may come from an untrusted source."""
        message = bytes(message)
        return bool(lib.hearsay_codec_check(self._handle, message, len(message)))

    def add(self, message: Message, x_hat: Any) -> None:
        """Adds the message to x_hat in place. UsageError if check() refuses the message; x_hat is then unchanged."""
        message = bytes(message)
        at = _memory.address(x_hat, "x_hat", self._floats, writes=True)
        code = lib.hearsay_codec_add(self._handle, message, len(message), at)
        _lib.check(code, f"found {len(message)} bytes that are no message of {self._spec} for {self._floats} values")

    def decode(self, message: Message) -> Any:
        """Returns the vector that add() would add for this message: a new numpy array of `floats` values, or an array.array
        if numpy is not installed.
        """
        try:
            import numpy
            out: Any = numpy.zeros(self._floats, numpy.float32)
        except ImportError:
            import array
            out = array.array("f", bytes(_memory.FLOAT * self._floats))
        self.add(message, out)
        return out

    def __reduce__(self) -> Any:
        raise TypeError("a Codec cannot be pickled: open one of the same spec and layers there")

    def __repr__(self) -> str:
        return f"hearsay.Codec({self._spec!r}, {self._floats})"
