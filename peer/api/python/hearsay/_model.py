"""A program's model as tensors of libhearsay: which tensors are mixed, and where their memory is.

    PyTorch, float32, CPU     | conv.weight | conv.bias | ... | bn.running_mean | ... |   one flat buffer
                                    ^ param.data is a view: the library works in place, nothing is copied
    PyTorch, 16 bits, CPU     in place
    PyTorch, on a GPU         a copy on the CPU, written before each exchange and read after it
    PyTorch, other buffers    not mixed: stored as floats of the flat buffer, and set once to the values of the run's
                              initial model
    numpy                     in place; packed() makes arrays that are contiguous in one buffer

Parameters stay the same objects, so optimizers and hooks keep working. The flat buffer belongs to the views and lives as
long as one of them.

Tensors that cannot be mixed are refused here, by name, before the peer joins.
"""
import ctypes
import fnmatch
import hashlib
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from . import _lib, _options
from ._lib import UsageError, lib

NAME_MAX = 95  # Longest name of a tensor in bytes, HEARSAY_NAME_MAX of hearsay.h.
ALIGN = 64  # Alignment of a buffer in bytes: the size of a cache line and of the widest vector registers.
NUMPY_TYPES = {"float32": _lib.FLOAT32, "float16": _lib.FLOAT16}
TORCH_TYPES = {"torch.float32": _lib.FLOAT32, "torch.float16": _lib.FLOAT16, "torch.bfloat16": _lib.BFLOAT16}


class Item(NamedTuple):
    """One tensor as it is described to the library. `host`: memory that the library uses. `owner`: the model's own
    tensor.
    """

    name: str
    role: int
    owner: Any
    host: Any


def _is_torch(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "torch" or hasattr(x, "data_ptr")


def _aligned(n: int) -> Any:
    """Returns a numpy array of n zeros (float32) whose address is a multiple of ALIGN bytes."""
    import numpy

    room = numpy.zeros(4 * n + ALIGN, numpy.uint8)
    skip = -room.ctypes.data % ALIGN
    return room[skip:skip + 4 * n].view(numpy.float32)


def packed(arrays: Mapping[str, Any]) -> Dict[str, Any]:
    """Copies arrays to float32 arrays that are contiguous in one buffer. The library works on such a model in place.

    Train the returned arrays: `model = hearsay.packed({"w": numpy.zeros((784, 10)), "b": numpy.zeros(10)})`.
    """
    import numpy

    flat = _aligned(sum(int(numpy.asarray(a).size) for a in arrays.values()))
    out: Dict[str, Any] = {}
    at = 0
    for name, a in arrays.items():
        a = numpy.asarray(a)
        out[name] = flat[at:at + a.size].reshape(a.shape)
        out[name][...] = a
        at += a.size
    return out


# ---- choice of tensors --------------------------------------------------------------


def _role(name: str) -> int:
    """Returns the role of a buffer: VARIANCE for a running variance, which must not become negative, else STATISTIC."""
    last = name.rpartition(".")[2]
    return _lib.VARIANCE if last == "running_var" or last.endswith("variance") else _lib.STATISTIC


def _inner(module: Any) -> Any:
    """Returns the module inside wrappers such as torch.compile(). Wrappers that average gradients are refused."""
    kind = type(module).__name__
    if kind in ("DistributedDataParallel", "FullyShardedDataParallel"):
        raise TypeError(f"model: found a {kind}, which averages gradients itself; expected the module inside "
                        "the wrapper (model.module)")
    while hasattr(module, "_orig_mod") or kind == "DataParallel":
        module = module._orig_mod if hasattr(module, "_orig_mod") else module.module
        kind = type(module).__name__
    return module


def _named_of_module(module: Any) -> List[Tuple[str, int, Any]]:
    """Returns (name, role, tensor) of each parameter, then of mixed buffers, then of other buffers. A tied tensor is in the
    list once, with its first name."""
    import torch

    state = module.state_dict()
    for name, x in state.items():
        if not isinstance(x, torch.Tensor) and not name.endswith("_extra_state"):
            raise TypeError(f"module {name.rpartition('.')[0] or 'model'}: found {type(x).__name__} as {name} in its state, expected "
                            "tensors alone (is it quantised?)")
    named = [(_plain(name), _lib.TRAINED, p) for name, p in module.named_parameters()]
    seen = {id(p) for _, _, p in named}
    opaque = []
    for name, b in module.named_buffers():
        if id(b) in seen:
            continue
        seen.add(id(b))
        if name in state and str(b.dtype) in TORCH_TYPES:
            named.append((_plain(name), _role(name), b))
        else:
            opaque.append((_plain(name), _lib.OPAQUE, b))
    return named + opaque


def _plain(name: str) -> str:
    """Returns the name of a tensor without the prefixes that torch.compile() adds."""
    return name.replace("_orig_mod.", "")


def _named(model: Any, buffers: Optional[Mapping[str, Any]]) -> List[Tuple[str, int, Any]]:
    if hasattr(model, "named_parameters"):
        if buffers is not None:
            raise TypeError("buffers: found some beside a torch module, which has its own; expected None")
        return _named_of_module(model)
    if not isinstance(model, Mapping):
        raise TypeError(f"model: found {type(model).__name__}, expected a torch.nn.Module or a dict of name -> array")
    for name in (*model, *(buffers or {})):
        if not isinstance(name, str):
            raise TypeError(f"model: found {name!r:.60} as the name of an array, expected a text")
    return ([(name, _lib.TRAINED, a) for name, a in model.items()]
            + [(name, _role(name), a) for name, a in (buffers or {}).items()])


def _check(name: str, role: int, x: Any) -> None:
    if _is_torch(x):
        if "Uninitialized" in type(x).__name__ or x.device.type == "meta":
            raise UsageError(f"tensor {name}: found one without values, expected a model that is initialised")
        if str(x.layout) != "torch.strided":
            raise TypeError(f"tensor {name}: found layout {x.layout}, expected a dense one")
        if x.is_quantized or hasattr(x, "__tensor_flatten__") or hasattr(x, "_local_tensor"):
            raise TypeError(f"tensor {name}: found a {type(x).__name__} of {x.dtype} that is made of other tensors, expected a plain tensor")
        if x.is_inference():
            raise UsageError(f"tensor {name}: found one that was made in torch.inference_mode(), expected one that can be changed (x.clone())")
        if role == _lib.OPAQUE:
            return
        if any(s == 0 and d > 1 for s, d in zip(x.stride(), x.shape)):
            raise UsageError(f"tensor {name}: found elements that share memory (strides {tuple(x.stride())} of shape {tuple(x.shape)}), "
                             "expected each to have its own (x.clone())")
        found, types = str(x.dtype), TORCH_TYPES
    else:
        if not hasattr(x, "__array_interface__") or not hasattr(x, "flags"):
            raise TypeError(f"tensor {name}: found {type(x).__name__}, expected a numpy array or a torch tensor")
        if not x.flags["C_CONTIGUOUS"] or not x.flags["WRITEABLE"]:
            raise UsageError(f"tensor {name}: found an array that is not contiguous, or is read-only, expected one that "
                             "can be trained in place (hearsay.packed())")
        found, types = str(x.dtype), NUMPY_TYPES
    if found not in types:
        raise TypeError(f"tensor {name}: found {found}, expected one of {', '.join(types)} (model.float() makes it float32)"
                        if _is_torch(x) else f"tensor {name}: found {found}, expected one of {', '.join(types)}")


def _on_gpu(x: Any) -> bool:
    return bool(x.device.type != "cpu")


def _holders(model: Any, buffers: Optional[Mapping[str, Any]],
             ids: Set[int]) -> Tuple[List[Tuple[str, Any, Any, Any]], List[Tuple[str, Any, List[str]]]]:
    """Returns two lists, by which check_place() finds replaced and new objects.

    The first list has name, holder, key and object of each tensor in `ids` and of each submodule. The second list has, for
    each module, its path, its table of submodules or parameters, and the names in that table.
    """
    if not hasattr(model, "named_parameters"):
        return [(str(key), m, key, x) for m in (model, buffers or {}) for key, x in m.items() if id(x) in ids], []
    held: List[Tuple[str, Any, Any, Any]] = []
    counted: List[Tuple[str, Any, List[str]]] = []
    for path, layer in model.named_modules():
        if not isinstance(layer._modules, dict):  # A scripted module (torch.jit) has no dict of submodules, so it is skipped.
            continue
        dot = f"{path}." if path else ""
        held += [(dot + key, layer._modules, key, child) for key, child in layer._modules.items()]
        held += [(dot + key, of, key, x) for of in (layer._parameters, layer._buffers) for key, x in of.items() if id(x) in ids]
        counted += [(path or "the model", of, list(of)) for of in (layer._modules, layer._parameters)]
    return held, counted


# ---- tensors that share memory ------------------------------------------------------


def _extent(x: Any) -> Tuple[str, int, int]:
    """Returns the memory of a tensor: device, address of the first byte, address after the last byte."""
    n = 1 + sum((d - 1) * s for d, s in zip(x.shape, x.stride()))
    return str(x.device), int(x.data_ptr()), int(x.data_ptr()) + n * int(x.element_size())


def _same_view(a: Any, b: Any) -> bool:
    return bool(a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype)


def _attributes(model: Any, ids: Set[int]) -> List[Tuple[str, Any]]:
    """Returns the tensors that are attributes of modules but neither parameters nor buffers."""
    if not hasattr(model, "named_modules"):
        return []
    return [(_plain(f"{prefix}.{key}" if prefix else key), x) for prefix, layer in model.named_modules()
            for key, x in vars(layer).items()
            if hasattr(x, "data_ptr") and id(x) not in ids and str(x.layout) == "torch.strided" and x.device.type != "meta"]


def _tie(model: Any, named: List[Tuple[str, int, Any]]) -> Tuple[List[Tuple[str, int, Any]], List[Tuple[Any, Any]]]:
    """Returns the tensors that have their own memory, and pairs (x, first) of objects with the same memory.

    An example of a pair is nn.Parameter(p.data): x stays tied to `first`. UsageError names two tensors that share only a
    part of their memory.
    """
    ids = {id(x) for _, _, x in named}
    tensors = [(name, role, x) for name, role, x in named if _is_torch(x)]
    tensors += [(name, -1, x) for name, x in _attributes(model, ids)]
    begins = sorted((_extent(x), i) for i, (_, _, x) in enumerate(tensors) if x.numel() > 0)
    first: Dict[int, Any] = {}  # id(x) -> the tensor to which x is tied.
    last: Optional[Tuple[Tuple[str, int, int], int]] = None
    for extent, i in begins:
        if last is not None and last[0][0] == extent[0] and extent[1] < last[0][2]:
            (one, role, x), (other, other_role, y) = tensors[last[1]], tensors[i]
            moves = _lib.OPAQUE not in (role, other_role) or min(role, other_role) not in (-1, _lib.OPAQUE)
            ties = min(role, other_role) >= 0 and _same_view(x, y)
            if moves and not ties and not (role == -1 and other_role == -1):
                raise UsageError(f"tensors {one} and {other}: found shared memory, expected memory of its own for each (x.clone()), "
                                 "or both to be one object")
            if ties and _lib.OPAQUE not in (role, other_role):
                first[id(y)] = first.get(id(x), x)
        if last is None or last[0][0] != extent[0] or extent[2] > last[0][2]:
            last = (extent, i)
    return ([one for one in named if id(one[2]) not in first],
            [(x, first[id(x)]) for _, _, x in named if id(x) in first])


# ---- memory of tensors --------------------------------------------------------------


class Model:
    """The tensors of a model, laid out for the library. `items` are in the order in which the library gets them."""

    def __init__(self, model: Any, buffers: Optional[Mapping[str, Any]] = None, skip: Sequence[str] = ()) -> None:
        patterns = (skip,) if isinstance(skip, str) else skip
        model = _inner(model)
        named = [one for one in _named(model, buffers)
                 if not any(fnmatch.fnmatchcase(one[0], pattern) for pattern in patterns)]
        for name, role, x in named:
            _check(name, role, x)
        self.flat: Any = None
        self._held, self._counted = _holders(model, buffers, {id(x) for _, role, x in named if role != _lib.OPAQUE})
        opaque = {id(x) for _, role, x in named if role == _lib.OPAQUE}
        self._homes = [home for home in _holders(model, buffers, opaque)[0] if id(home[3]) in opaque]
        apart, self._tied = _tie(model, named)
        self.items = self._lay([one for one in apart if self._size(one[2]) > 0])
        self._tie_again()
        self._staged = [(i.owner, i.host) for i in self.items if i.owner is not i.host and i.role != _lib.OPAQUE]
        self._versions: Dict[str, int] = {}

    @staticmethod
    def _size(x: Any) -> int:
        return int(x.numel()) if _is_torch(x) else int(x.size)

    def _lay(self, named: List[Tuple[str, int, Any]]) -> List[Item]:
        """Moves PyTorch's float32 tensors to the flat buffer, in the order of `named`. Buffers that are not mixed come last."""
        packed_ones = {name: _pack(x) for name, role, x in named if role == _lib.OPAQUE}
        n = sum(self._size(x) for _, role, x in named
                if role != _lib.OPAQUE and _is_torch(x) and str(x.dtype) == "torch.float32")
        self.flat = _aligned(n + sum(one.size for one in packed_ones.values()))
        items, at = [], 0
        for name, role, x in named:
            host = x
            if role == _lib.OPAQUE:
                host = self.flat[at:at + packed_ones[name].size]
                host[:] = packed_ones[name]
                at += host.size
            elif _is_torch(x) and str(x.dtype) == "torch.float32":
                host = self._move(x, at)
                at += self._size(x)
            elif _is_torch(x):
                host = self._keep(x)
            items.append(Item(name, role, x, host))
        return items

    def _move(self, x: Any, at: int) -> Any:
        """Copies the values of x to the flat buffer, at the offset `at` in floats. Returns the
        tensor that the library uses. For a tensor on the CPU, the result is x itself, which becomes a view of the
        buffer. For a tensor on a GPU, the result is its copy in the buffer.
        """
        import torch

        view = torch.from_numpy(self.flat[at:at + x.numel()]).view(x.shape)
        view.copy_(x.detach())
        if _on_gpu(x):
            return view
        x.data = view
        return x

    @staticmethod
    def _keep(x: Any) -> Any:
        if _on_gpu(x):
            return x.detach().cpu().contiguous()
        if not x.is_contiguous():
            x.data = x.detach().contiguous()
        return x

    def _tie_again(self) -> None:
        for x, first in self._tied:
            x.data = first.data

    def check_place(self) -> None:
        """Raises UsageError if the library would not see the current values of the model.

        Causes are model.to(...), an assignment to .data, and modules, parameters or arrays that are replaced or new.
        """
        before = "expected it as it was when the Peer was made: call model.to(...), and change layers and parameters, before that"
        for name, x, at in self._in_place:
            if x.data_ptr() != at:
                raise UsageError(f"hearsay: tensor {name}: found its values in other memory (on {x.device}), {before}; "
                                 "change values in place, as copy_() does")
        for x, first in self._tied:
            if x.data_ptr() != first.data_ptr():
                raise UsageError(f"hearsay: a tensor of shape {tuple(x.shape)} that was tied to another: found its values in other "
                                 f"memory, {before}; change values in place, as copy_() does")
        for name, holder, key, held in self._held:
            found = holder.get(key)
            if found is not held:
                what = "nothing" if found is None else f"another {type(found).__name__}"
                raise UsageError(f"hearsay: {name}: found {what}, {before}")
        for name, holder, names in self._counted:
            for other in set(holder).symmetric_difference(names):
                raise UsageError(f"hearsay: {name}: found {'the new part' if other in holder else 'no part'} {other!r}, {before}")

    def hand_over(self) -> None:
        """Copies the tensors that are on a GPU to the CPU memory that the library uses."""
        for owner, host in self._staged:
            host.copy_(owner.detach())

    def take_back(self) -> None:
        """Copies the CPU memory that the library has changed back to the tensors on the GPU."""
        for owner, host in self._staged:
            owner.detach().copy_(host)

    def take_opaque(self) -> None:
        """Sets the buffers that are not mixed to their values in the run's initial model."""
        for i in self._opaque():
            _unpack(i.host, i.owner)
            self._versions[i.name] = i.owner._version

    def changed(self) -> List[str]:
        """Returns a warning for each buffer that is not mixed and that the program has changed since take_opaque().

        The warning is given once per buffer.

        num_batches_tracked of a batch norm is left out, because it may differ between peers.
        """
        replaced = {id(x) for _, holder, key, x in self._homes if holder.get(key) is not x}
        found = [i for i in self._opaque()
                 if i.name in self._versions and (i.owner._version != self._versions[i.name] or id(i.owner) in replaced)]
        for i in found:
            self._versions.pop(i.name)
        return [f"buffer {i.name} ({str(i.owner.dtype).rpartition('.')[2]}) changed in training: such buffers are not mixed, and each "
                "peer keeps its own values"
                for i in found if not i.name.endswith("num_batches_tracked")]

    def _opaque(self) -> List[Item]:
        return [i for i in self.items if i.role == _lib.OPAQUE]

    def tell(self, handle: Any, opaque: bool = True) -> None:
        """Calls hearsay_tensor() for each tensor, with `opaque` also for buffers that are not mixed. UsageError names a refused tensor."""
        if not opaque:
            self.items = [i for i in self.items if i.role != _lib.OPAQUE]
        addresses = [_address(i.host) for i in self.items]
        self._in_place = [(i.name, i.host, at) for i, at in zip(self.items, addresses) if _is_torch(i.host) and i.owner is i.host]
        for i, at in zip(self.items, addresses):
            dims = tuple(int(d) for d in i.host.shape)
            types = TORCH_TYPES if _is_torch(i.host) else NUMPY_TYPES
            name = _label(i) if i.role == _lib.OPAQUE else i.name
            _lib.check(lib.hearsay_tensor(handle, _lib.encoded(name, "tensor"), at, types[str(i.host.dtype)], i.role, len(dims),
                                          (ctypes.c_uint64 * max(1, len(dims)))(*dims)),
                       _sentence(handle))


# ---- buffers that are not mixed ------------------------------------------------------

# Number of bits of a buffer that are stored in one float32. The other bits of its 24-bit significand tolerate
# rounding errors.
BITS = 16
# Value of the lowest stored bit. The value is so small that the stored floats do not change the norm of a model.
UNIT = 2.0**-60
FIRST = 1 << BITS  # This value is added to the stored bits, so that no float is 0.


def _pack(x: Any) -> Any:
    """Returns the bytes of a buffer as a float32 array of numpy, 16 bits per float. A bool is one bit."""
    import numpy
    import torch

    flat = x.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    raw = numpy.packbits(flat.numpy()) if x.dtype == torch.bool else flat.view(torch.uint8).numpy()
    raw = numpy.concatenate([raw, numpy.zeros(-len(raw) % 2, numpy.uint8)])
    return ((raw.view("<u2").astype(numpy.float64) + FIRST) * UNIT).astype(numpy.float32)


def _unpack(host: Any, x: Any) -> None:
    """Sets x to the values that _pack() has stored in `host`."""
    import numpy
    import torch

    raw = (numpy.rint(host.astype(numpy.float64) / UNIT) - FIRST).astype("<u2").view(numpy.uint8)
    if x.dtype == torch.bool:
        value = torch.from_numpy(numpy.unpackbits(raw)[:x.numel()].copy()).view(torch.bool)
    else:
        value = torch.from_numpy(raw[:x.numel() * x.element_size()].copy()).view(x.dtype)
    value = value.reshape(x.shape)
    if numpy.array_equal(_pack(x), _pack(value)):
        return
    if any(s == 0 and d > 1 for s, d in zip(x.stride(), x.shape)):
        x.data = value.to(x.device)
    else:
        x.detach().copy_(value)


def _label(i: Item) -> str:
    """Returns the tensor's name in the run, with type and shape, which must be the same at all peers."""
    shape = "x".join(str(d) for d in i.owner.shape) or "scalar"
    label = f"{i.name}:{str(i.owner.dtype).rpartition('.')[2]}:{shape}"
    return label if len(label) <= NAME_MAX else f"{label[:NAME_MAX - 17]}:{hashlib.sha256(label.encode()).hexdigest()[:16]}"


def _address(x: Any) -> int:
    return int(x.data_ptr()) if _is_torch(x) else int(x.__array_interface__["data"][0])


def _sentence(handle: Any) -> str:
    return _options.speak((lib.hearsay_error(handle) or b"").decode(errors="replace"))


def words(options: Iterable[Tuple[str, Any]]) -> Iterable[Tuple[str, str]]:
    """Yields options in the library's form: True becomes "true", a list is joined by commas, and None is left out."""
    for name, value in options:
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, (list, tuple)):
            value = ",".join(str(one) for one in value)
        elif hasattr(value, "__fspath__"):
            value = value.__fspath__()
        elif not isinstance(value, (str, int, float)) and not hasattr(value, "__index__"):
            raise TypeError(f"keyword argument {name}: found {type(value).__name__}, expected text, a number, a path or a list")
        yield name.replace("_", "-"), str(value)
