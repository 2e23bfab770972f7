"""Writes the state of optimizers, schedulers and random number generators as bytes, without pickle.

    b"H1" | u64 length of the header | header, JSON | raw bytes of all tensors, arrays and bytes objects

In the JSON, None, bool, int, float, str and list are themselves. Any other value is an object with one key, which names
its type: {"dict": [[key, value], ...]}, {"tensor": [dtype, shape, offset, bytes]}, ... The reader calls no function that the
bytes name, so that a checkpoint cannot run code. All versions of PyTorch read the same values.
"""
import collections
import ctypes
import io
import json
import pickle
import struct
import sys
import zipfile
from typing import Any, Callable, Dict, List, Tuple

from ._lib import UsageError

MAGIC = b"H1"
PLAIN = (type(None), bool, int, float, str)
EXPECTED = ("None, numbers, text, bytes, lists, tuples, sets, dicts, numpy arrays and torch tensors; for any other object give keep= "
            "a pair (get, set), where get() returns one of these")


class _Writer:
    def __init__(self) -> None:
        self.chunks: List[bytes] = []
        self.n = 0

    def bytes_of(self, raw: bytes) -> List[int]:
        self.chunks.append(raw)
        self.n += len(raw)
        return [self.n - len(raw), len(raw)]

    def tree(self, x: Any, path: str) -> Any:
        """Returns x as a JSON value. `path` is the position of x, for the error message."""
        kind = type(x)
        if kind in PLAIN:
            return x
        if kind is list:
            return self.all_of(x, path)
        if kind is tuple:
            return {"tuple": self.all_of(x, path)}
        if kind in (set, frozenset):
            return {kind.__name__: self.all_of(sorted(x, key=repr), path)}
        if kind in (bytes, bytearray):
            return {"bytes": self.bytes_of(bytes(x))}
        if kind is complex:
            return {"complex": [x.real, x.imag]}
        if kind in (dict, collections.OrderedDict, collections.Counter, collections.defaultdict):
            name = "dict" if kind is collections.defaultdict else kind.__name__
            return {name: [[self.tree(key, f"{path}, key {key!r}"), self.tree(value, f"{path}[{key!r}]")] for key, value in x.items()]}
        return self.of_module(x, path)

    def all_of(self, values: Any, path: str) -> List[Any]:
        return [self.tree(value, f"{path}[{i}]") for i, value in enumerate(values)]

    def of_module(self, x: Any, path: str) -> Any:
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if torch is not None and isinstance(x, torch.Tensor):
            return self.tensor(torch, x, path)
        if torch is not None and type(x) is torch.Size:
            return {"size": list(x)}
        if torch is not None and type(x) in (torch.dtype, torch.device):
            return {type(x).__name__: str(x).rpartition("torch.")[2]}
        if numpy is not None and isinstance(x, (numpy.ndarray, numpy.generic)) and x.dtype.kind in "biufcSU":
            a = numpy.asarray(x)
            return {"array" if isinstance(x, numpy.ndarray) else "scalar": [a.dtype.str, list(a.shape), *self.bytes_of(a.tobytes())]}
        what = f"an array of {x.dtype}" if hasattr(x, "dtype") else f"function {getattr(x, '__qualname__', x)}" if callable(x) and hasattr(x, "__code__") else type(x).__name__
        raise TypeError(f"keep: {path}: found {what}, expected {EXPECTED}")

    def tensor(self, torch: Any, x: Any, path: str) -> Any:
        if x.layout != torch.strided or x.is_quantized or x.device.type == "meta":
            raise TypeError(f"keep: {path}: found a tensor of layout {x.layout} on {x.device}, expected a dense one with values")
        x = x.detach().resolve_conj().resolve_neg().cpu().contiguous()
        raw = ctypes.string_at(x.data_ptr(), x.numel() * x.element_size()) if x.numel() > 0 else b""
        return {"tensor": [str(x.dtype).rpartition(".")[2], list(x.shape), *self.bytes_of(raw)]}


def dump(state: Dict[str, Any]) -> bytes:
    """Returns the state as bytes. TypeError names the value that cannot be kept, and its position."""
    writer = _Writer()
    try:
        header = json.dumps({name: writer.tree(x, name) for name, x in state.items()}).encode()
    except RecursionError:
        raise TypeError(f"keep: found a value that contains itself in {', '.join(state)}, expected a tree") from None
    return b"".join([MAGIC, struct.pack("<Q", len(header)), header, *writer.chunks])


class _Reader:
    def __init__(self, raw: memoryview) -> None:
        self.raw = raw
        self.made: Dict[str, Callable[[Any], Any]] = {
            "tuple": lambda v: tuple(self.all_of(v)), "set": lambda v: set(self.all_of(v)),
            "frozenset": lambda v: frozenset(self.all_of(v)), "bytes": lambda v: self.bytes_at(*v), "complex": lambda v: complex(*v),
            "dict": lambda v: dict(self.pairs(v)), "OrderedDict": lambda v: collections.OrderedDict(self.pairs(v)),
            "Counter": lambda v: collections.Counter(dict(self.pairs(v))), "tensor": self.tensor, "array": self.array,
            "scalar": lambda v: self.array(v)[()], "size": self.size, "dtype": self.dtype, "device": self.device}

    def tree(self, x: Any) -> Any:
        if isinstance(x, list):
            return self.all_of(x)
        if isinstance(x, dict):
            (kind, value), = x.items()
            return self.made[kind](value)
        return x

    def all_of(self, values: List[Any]) -> List[Any]:
        return [self.tree(value) for value in values]

    def pairs(self, values: List[Any]) -> List[Tuple[Any, Any]]:
        return [(self.tree(key), self.tree(value)) for key, value in values]

    def bytes_at(self, at: int, n: int) -> bytes:
        if not 0 <= at <= at + n <= len(self.raw):
            raise ValueError(f"bytes {at} to {at + n} of {len(self.raw)}")
        return bytes(self.raw[at:at + n])

    def array(self, v: Any) -> Any:
        import numpy

        dtype = numpy.dtype(str(v[0]))
        if dtype.kind not in "biufcSU":
            raise ValueError(f"an array of {dtype}")
        return numpy.frombuffer(self.bytes_at(v[2], v[3]), dtype).reshape(v[1]).copy()

    @staticmethod
    def dtype(name: str) -> Any:
        import torch

        found = getattr(torch, name)
        if not isinstance(found, torch.dtype):
            raise ValueError(f"the dtype {name}")
        return found

    @staticmethod
    def size(v: Any) -> Any:
        import torch

        return torch.Size(v)

    @staticmethod
    def device(v: Any) -> Any:
        import torch

        return torch.device(v)

    def tensor(self, v: Any) -> Any:
        import torch

        # PyTorch would crash on a quantised tensor without a scale. dump() never writes such tensors.
        if str(v[0]).startswith(("q", "bits")) or any(not isinstance(n, int) or n < 0 for n in v[1]):
            raise ValueError(f"a tensor of {v[0]} and shape {v[1]}")
        raw, dtype = bytearray(self.bytes_at(v[2], v[3])), self.dtype(v[0])
        return (torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)).reshape(v[1]).clone()


# ---- checkpoints of older versions ------------------------------------------------------


ALLOWED = {("collections", "OrderedDict"), ("collections", "Counter"), ("_codecs", "encode"), ("numpy", "ndarray"), ("numpy", "dtype"),
           *((module, name) for core in ("core", "_core") for module, name in
             ((f"numpy.{core}.multiarray", "_reconstruct"), (f"numpy.{core}.multiarray", "scalar")))}
STORAGES = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
            "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
            "BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128"}


class _Unpickler(pickle.Unpickler):
    """Reads containers, numbers and arrays. A pickle that names any other class or function is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it names {module}.{name}")


class _TorchUnpickler(_Unpickler):
    """Reads a file of torch.save(): a ZIP archive with the pickle data.pkl and the bytes of each storage.

    torch.load() has no option that reads numpy arrays safely in all versions: weights_only=True accepts them since PyTorch 2.5,
    and PyTorch 1.13 ignores pickle_module.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError(f"its archive has {len(pickles)} entries data.pkl, expected 1")
        super().__init__(io.BytesIO(archive.read(pickles[0])), encoding="utf-8")
        self.archive, self.folder = archive, pickles[0].rpartition("/")[0]

    def find_class(self, module: str, name: str) -> Any:
        import torch

        if (module, name) in (("torch", "Size"), ("torch", "device")):
            return getattr(torch, name)
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if module == "torch" and name in STORAGES:
            return getattr(torch, STORAGES[name])
        if module == "torch._utils" and name == "_rebuild_tensor_v2":
            return lambda storage, offset, size, stride, *_: torch.as_strided(storage, size, stride, offset).clone()
        if module == "torch._utils" and name == "_rebuild_parameter":
            return lambda tensor, requires_grad, *_: torch.nn.Parameter(tensor, requires_grad)
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        """Returns a storage as a tensor of one dimension. `pid`: ("storage", dtype, name, device, elements)."""
        import torch

        raw = bytearray(self.archive.read(f"{self.folder}/data/{pid[2]}"))
        return torch.frombuffer(raw, dtype=pid[1]) if raw else torch.empty(0, dtype=pid[1])


def _load_pickled(raw: bytes) -> Any:
    """Reads the state in a checkpoint of hearsay 0.1.0 or older: b"P" and a pickle, or b"T" and a file of torch.save()."""
    if raw[:1] == b"P":
        return _Unpickler(io.BytesIO(raw[1:])).load()
    with zipfile.ZipFile(io.BytesIO(raw[1:])) as archive:
        return _TorchUnpickler(archive).load()


def load(raw: bytes) -> Dict[str, Any]:
    """Returns the state that dump() has written as `raw`. UsageError if the bytes have another format."""
    try:
        if raw[:1] in (b"P", b"T"):
            state = _load_pickled(raw)
        elif raw[:2] == MAGIC and len(raw) >= 10:
            n, = struct.unpack("<Q", raw[2:10])
            reader = _Reader(memoryview(raw)[10 + n:])
            state = {name: reader.tree(x) for name, x in json.loads(raw[10:10 + n]).items()}
        else:
            raise ValueError(f"it begins with {raw[:10]!r}")
        if not isinstance(state, dict):
            raise ValueError(f"it is a {type(state).__name__}")
        return state
    except Exception as error:
        old = raw[:1] in (b"P", b"T")
        raise UsageError(f"hearsay: the state that the checkpoint keeps beside the model ({len(raw)} bytes, "
                         f"{'a pickle of an earlier version of hearsay' if old else 'format H1'}) cannot be read: {error}. "
                         "The model in it is intact. Expected a checkpoint of this version: give another out=, or move the directory "
                         "aside and begin again") from error
